// What stands in the place of the traceback of a gradient error: the answer, the user's own lines, the next step.
//
// It is an output of its own kind, so that it is there when a notebook is opened again; other front ends show its HTML.

import { button, el, prose } from "../dom.js";
import { comingBlock } from "./card.js";
import { runInKernel } from "./kernel.js";
import { words } from "./words.js";

/** @typedef {import("./marks").ExplanationCard} ExplanationCard */
/** @typedef {import("./jupyterlab").NotebookPanel} NotebookPanel */
/** @typedef {import("./jupyterlab").CellModel} CellModel */
/** @typedef {import("./words.js").WordId} WordId */

export const CARD = "application/vnd.nbautograd.explanation+json";
const ALWAYS = "%autograd_explain --on --run";
const TORCH = /^.*File .*[\\/]torch[\\/].*$/gm;
const LONGEST = 110; // letters of an error's own words

/**
 * The class of the output, made of the application's own widgets.
 * @param {{Widget: any}} lumino
 * @param {{createRenderer: (type: string, options: object) => any}} registry what shows the rest
 * @param {() => NotebookPanel[]} panels
 */
export function explanationOutput({ Widget }, registry, panels) {
  return class extends Widget {
    /** @param {object} options of JupyterLab's */
    constructor(options) {
      super();
      this.options = options;
      /** @type {HTMLElement | null} the traceback that it stands for */
      this.folded = null;
    }

    /** @param {{data: Record<string, any>, trusted: boolean}} model */
    async renderModel(model) {
      const rest = registry.createRenderer("text/html", this.options);
      await rest.renderModel(model);
      this.model = model;
      this.rest?.dispose();
      this.rest = rest;
      this.draw();
    }

    onAfterAttach() {
      this.draw();
    }

    onBeforeDetach() {
      this.folded?.classList.remove("nbag-folded");
    }

    dispose() {
      this.rest?.dispose();
      super.dispose();
    }

    draw() {
      if (!this.model || !this.node.isConnected) return;
      const { data, trusted } = this.model,
        /** @type {ExplanationCard} */ card = data[CARD],
        say = words(card.language),
        place = placeOf(this.node, panels());
      this.folded?.classList.remove("nbag-folded");
      this.folded = tracebackAbove(this.node, place);
      const said = el("p", { class: "nbag-said", role: "status" });
      this.node.replaceChildren(
        el(
          "section",
          { class: "nbag-wall", "aria-label": card.answer },
          this.folded && foldButton(this.folded, place, say),
          el("p", "nbag-answer", prose(card.answer)),
          card.rows.length > 0 && arc(card, say),
          card.change && comingBlock(card.change),
          card.change && el("p", "nbag-note", prose(card.change.note)),
          trusted && place && buttons(this.node, card, place, said),
          said,
          el("details", null, el("summary", null, say("more")), this.rest.node),
        ),
      );
    }
  };
}

/** @typedef {{panel: NotebookPanel, cell: CellModel, at: number}} Place of an output among those of its cell */

/**
 * @param {HTMLElement} node
 * @param {NotebookPanel[]} panels
 * @returns {Place | null}
 */
function placeOf(node, panels) {
  const panel = panels.find((one) => one.node.contains(node)),
    cell = panel?.content.widgets.find((one) => one.node.contains(node))?.model,
    own = node.closest(".jp-OutputArea-child"),
    at = own ? [...(own.parentElement?.children ?? [])].indexOf(own) : -1,
    outputs = cell?.outputs;
  if (!panel || !cell || !outputs || at < 0 || at >= outputs.length) return null;
  return CARD in outputs.get(at).data ? { panel, cell, at } : null;
}

/** @param {HTMLElement} node @param {Place | null} place @returns {HTMLElement | null} */
function tracebackAbove(node, place) {
  const above = node.closest(".jp-OutputArea-child")?.previousElementSibling;
  if (!place?.at || !(above instanceof HTMLElement)) return null;
  return place.cell.outputs?.get(place.at - 1).type === "error" ? above : null;
}

/**
 * The traceback as one line, which opens it.
 * @param {HTMLElement} traceback
 * @param {Place | null} place
 * @param {ReturnType<typeof words>} say
 */
function foldButton(traceback, place, say) {
  const error = place?.at ? place.cell.outputs?.get(place.at - 1).toJSON() : undefined,
    first = String(error?.evalue ?? "").split(/: \[|\. |\n/)[0],
    // eslint-disable-next-line no-control-regex
    frames =
      (error?.traceback ?? [])
        .join("\n")
        .replace(/\x1b\[[\d;]*m/g, "")
        .match(TORCH) ?? [];
  traceback.classList.add("nbag-folded");
  const fold = button("", toggle, "nbag-fold");
  fold.append(
    el("strong", null, error?.ename ?? ""),
    ` ${first.length > LONGEST ? `${first.slice(0, LONGEST)}…` : first} `,
    el("span", "nbag-note", say("traceback", { count: frames.length })),
  );
  fold.setAttribute("aria-expanded", "false");
  function toggle() {
    const folded = traceback.classList.toggle("nbag-folded");
    fold.setAttribute("aria-expanded", String(!folded));
  }
  return fold;
}

/** The user's own lines, joined. @param {ExplanationCard} card @param {ReturnType<typeof words>} say */
const arc = ({ rows }, say) =>
  el(
    "ol",
    { class: "nbag-arc", "aria-label": say("lines") },
    ...rows.map(({ role, place, text, main }) =>
      el(
        "li",
        main ? "nbag-main" : null,
        el("span", "nbag-role", role),
        el("code", null, text),
        el("span", "nbag-note", prose(place)),
      ),
    ),
  );

/**
 * @param {HTMLElement} node
 * @param {ExplanationCard} card
 * @param {Place} place
 * @param {HTMLElement} said
 */
function buttons(node, card, place, said) {
  const say = words(card.language);
  /** @param {WordId} word @param {() => void} act @param {string} [look] */
  const one = (word, act, look = "") => button(say(word), act, `nbag-button ${look}`);
  /** @param {boolean} run */
  const apply = (run) => () => {
    const detail = { change: card.change, run, refused: "" };
    node.dispatchEvent(
      new CustomEvent("nbautograd:apply", { bubbles: true, composed: true, detail }),
    );
    said.textContent = detail.refused;
  };
  /** @param {string[]} codes */
  const run = (codes) => async () => {
    const { panel, cell, at } = place,
      kernel = panel.sessionContext.session?.kernel;
    if (!kernel) return void (said.textContent = say("no_kernel"));
    for (const each of row.querySelectorAll("button")) each.disabled = true;
    const stop = one("stop", () => void kernel.interrupt());
    said.replaceChildren(say("finding"), el("progress", { "aria-label": say("finding") }), stop);
    const { data, words: why } = await runInKernel(kernel, codes, cell.sharedModel.id);
    panel.content.activate(); // the button that was pressed goes with its output, and the keys with it
    if (data) return cell.outputs?.set(at, { output_type: "display_data", data, metadata: {} });
    said.textContent = why;
    for (const each of row.querySelectorAll("button")) each.disabled = false;
  };
  const row = el(
    "div",
    "nbag-buttons",
    card.change && one("apply_and_run", apply(true), "nbag-first"),
    card.change && one("apply", apply(false)),
    card.find && one("find", run([card.find]), "nbag-first"),
    card.find.includes("@") && one("always", run([ALWAYS, card.find])),
  );
  return row;
}
