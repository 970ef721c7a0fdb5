// The Jacobian: analytical, numerical and difference side by side, with one cursor for all three.

import { chooser, mostTelling, verdictWord, wholeBlock } from "./blocks.js";
import { button, el, keys } from "./dom.js";
import { entryView } from "./entry.js";
import { explorer, opens } from "./explorer.js";
import { count } from "./formats.js";
import { extent, isPooled, worstEntry } from "./levels.js";
import { HeatMaps } from "./maps.js";

/** @typedef {import("./types").Page} Page */
/** @typedef {import("./states").BlockState} Block */
/** @typedef {import("./explorer.js").Explorer} Explorer */

/**
 * @param {Page} page
 * @param {{blocks: Block[], complete?: boolean}} state
 */
export function jacobianView(page, { blocks, complete }) {
  const cut = complete === false && el("p", null, page.t("evidence.incomplete"));
  if (!blocks.length) return el("div", "stack", cut, el("p", "faint", page.t("no_blocks")));
  const body = el("div", "stack");
  /** @type {AbortController | undefined} */
  let shown;
  /** @type {Block | undefined} */
  let current;
  function show() {
    const wanted = (page.selection().block ?? mostTelling(blocks)).join();
    const block = blocks.find((b) => `${b.output},${b.input}` === wanted) ?? blocks[0];
    if (current === block) return;
    current = block;
    shown?.abort();
    shown = new AbortController();
    const { signal } = shown,
      draw = () =>
        signal.aborted ||
        body.replaceChildren(
          blockView(page, /** @type {import("./types").WholeBlock} */ (block), signal),
        );
    const coming = wholeBlock(page, block);
    if (!coming) return draw();
    body.replaceChildren(page.t("asking"));
    coming.then(draw, (problem) => signal.aborted || body.replaceChildren(problem.message));
  }
  page.signal.addEventListener("abort", () => shown?.abort(), { once: true });
  page.onSelect(show);
  show();
  return el("div", "stack jacobian", cut, blocks.length > 1 && chooser(page, blocks), body);
}

/**
 * The heat maps of a block with the numbers under the cursor.
 * @param {Page} page
 * @param {import("./types").WholeBlock} block
 * @param {AbortSignal} signal
 * @param {string} pooled what is said where a cell stands for several entries
 */
function explored(page, block, signal, pooled) {
  const reading = el("div", { class: "reading", role: "status" }),
    note = el("p", "faint note");
  const explore = explorer(page, block, signal, { moved, zoomed, say });
  const out = button(page.t("zoom_out"), explore.out);
  const maps = new HeatMaps(page, block, explore, signal);

  /** @param {string} sentence */
  function say(sentence) {
    note.textContent = sentence;
    note.hidden = !sentence;
  }
  function moved() {
    maps.paint();
    reading.replaceChildren(...maps.reading());
  }
  function zoomed() {
    const [rows, cols] = explore.top().step.map(count);
    say(isPooled(explore.top()) ? page.t(pooled, { rows, cols }) : "");
    out.hidden = !explore.zoomed();
    maps.rescale();
    moved();
  }
  zoomed();
  return {
    explore,
    maps,
    out,
    parts: [maps.element, reading, maps.scale, note],
  };
}

/**
 * A block's heat maps inside a document: they can be read there, but nothing is selected and nothing asked.
 * @param {Page} page
 * @param {import("./types").WholeBlock} block
 */
export function mapsView(page, block) {
  const alone = { ...page, can: () => false, selection: () => ({}), select() {} };
  const { explore, maps, parts } = explored(alone, block, page.signal, "panel.pooled");
  handleKeys(maps.element, explore, () => explore.goTo(worstEntry(block)));
  return el("div", "stack", el("div", "bar", maps.choice), ...parts);
}

/**
 * @param {Page} page
 * @param {import("./types").WholeBlock} block
 * @param {AbortSignal} signal
 */
function blockView(page, block, signal) {
  const pooled = opens(page, block) ? "pooled" : "pooled_frozen",
    { explore, maps, out, parts } = explored(page, block, signal, pooled),
    chosen = el("div");
  function toWorst() {
    explore.toWorst();
    maps.element.focus();
  }
  let last = "";
  /** @param {import("./types").Selection} selection */
  function follow(selection) {
    const here = selection.block?.join() === `${block.output},${block.input}`;
    const entry = here ? selection.entry : undefined;
    if (last === String(entry)) return;
    last = String(entry);
    chosen.replaceChildren(entry ? entryView(page, block, entry, signal) : "");
    explore.follow(selection);
    maps.paint();
  }

  handleKeys(maps.element, explore, toWorst);
  page.onSelect(follow, signal);
  follow(page.selection());
  const head = heading(page, block, block.worst ? toWorst : null, out, maps.choice);
  return el("div", "stack", head, ...parts, chosen);
}

/** @param {HTMLElement} maps @param {Explorer} explore @param {() => void} toWorst */
function handleKeys(maps, explore, toWorst) {
  keys(maps, {
    ArrowUp: () => explore.by(-1, 0),
    ArrowDown: () => explore.by(1, 0),
    ArrowLeft: () => explore.by(0, -1),
    ArrowRight: () => explore.by(0, 1),
    Home: () => explore.by(0, -Infinity),
    End: () => explore.by(0, Infinity),
    PageUp: () => explore.by(-Infinity, 0),
    PageDown: () => explore.by(Infinity, 0),
    Enter: explore.choose,
    w: toWorst,
    Escape: explore.out,
  });
}

/**
 * @param {Page} page
 * @param {Block} block
 * @param {(() => void) | null} toWorst
 * @param {...import("./dom.js").Child} more buttons
 */
function heading(page, block, toWorst, ...more) {
  const facts = [
    extent(block).map(count).join(" × "), // rows and columns, as on a stored page
    page.word("structure", block.structure),
  ];
  if (block.verdict === "match" || block.verdict === "mismatch")
    facts.push(
      page.t("wrong_entries", { wrong: count(block.wrong ?? 0), entries: count(block.entries) }),
    );
  return el(
    "div",
    "bar",
    el("h4", null, el("code", null, `d ${block.output_name} / d ${block.input_name}`)),
    block.verdict && verdictWord(page, block.verdict),
    el("span", "faint facts", facts.join(" · ")),
    toWorst &&
      el("button", { class: "button", title: "w", on: { click: toWorst } }, page.t("worst_entry")),
    ...more,
  );
}
