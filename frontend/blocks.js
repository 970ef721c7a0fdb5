// Blocks as a small matrix of outputs x inputs to choose from, and the words for their verdicts.

import { ask } from "./wire.js";
import { button, el, keys } from "./dom.js";
import { count } from "./formats.js";
import { RANKS, SIGNS } from "./verdicts.js";

/** @typedef {import("./types").Page} Page */
/** @typedef {import("./states").BlockState} Block */

/**
 * @param {Page} page
 * @param {string} verdict
 * @param {"block" | "verdict"} [group]
 */
export function verdictWord(page, verdict, group = "block") {
  const [mark, kind] = SIGNS[verdict] ?? ["", "open"];
  return el(
    "span",
    `verdict ${kind}`,
    el("span", { class: "mark", "aria-hidden": "true" }, mark),
    " ",
    page.word(group, verdict),
  );
}

/** @param {Block[]} blocks @returns {Block[]} wrong ones first, then those that were not decided, then the others */
export function byInterest(blocks) {
  /** @param {Block} block */
  function rank(block) {
    return RANKS[block.verdict ?? ""] ?? 4;
  }
  return [...blocks].sort((a, b) => rank(a) - rank(b));
}

/** @param {Block[]} blocks @returns {[number, number]} the block to begin with */
export function mostTelling(blocks) {
  const [block] = byInterest(blocks);
  return [block.output, block.input];
}

/** @param {Page} page @returns {string} the place of the block that is selected, else of the one to begin with */
export const chosenBlock = (page) => String(page.selection().block ?? page.first);

/**
 * The name of a block as a way to it: into another part of the view, or selecting it where its row stands.
 * @param {Page} page
 * @param {import("./tree").BlockName} name
 */
export function blockNameView(page, { words, block, tab = "" }) {
  const code = el("code", null, words);
  if (tab ? !page.tabs.includes(tab) : !page.first) return code;
  const name = button(code, go, "link");
  function go() {
    page.select(tab ? page.reach(block) : { block, entry: undefined });
    if (tab) page.show(tab);
  }
  function press() {
    const pressed = chosenBlock(page) === String(block);
    name.setAttribute("aria-pressed", String(pressed));
    const fold = name.closest("details");
    if (fold && pressed && page.selection().block) fold.open = true;
  }
  if (!tab) {
    page.onSelect(press);
    press();
    queueMicrotask(press); // by then it stands in its table
  }
  return name;
}

/**
 * All of a block, of which a list of many blocks holds only the verdict.
 * @param {Page} page @param {Block} block @returns {Promise<Block> | undefined} nothing when it is there already
 */
export function wholeBlock(page, block) {
  if (block.maps) return undefined;
  return ask(
    page.model,
    { kind: "block", block: [block.output, block.input] },
    page.signal,
    page.t("no_kernel"),
  ).then((answer) => Object.assign(block, answer.block));
}

/**
 * The blocks to choose from, all of them in sight as long as that is possible.
 * @param {Page} page
 * @param {Block[]} blocks
 */
export function chooser(page, blocks) {
  if (!fitsMatrix(blocks)) return list(page, blocks);
  const { element, buttons } = matrix(page, blocks, (block) =>
    page.select({ block: [block.output, block.input], entry: undefined }),
  );
  function press() {
    const chosen = (page.selection().block ?? mostTelling(blocks)).join(",");
    for (const [key, button] of buttons)
      button.setAttribute("aria-pressed", String(key === chosen));
  }
  page.onSelect(press);
  press();
  return element;
}

const MOST_CELLS = 60;
const BESIDE = 34; // characters that the names of a matrix may take beside each other in a narrow view

/** @param {Block[]} blocks */
export function fitsMatrix(blocks) {
  const outputs = new Set(blocks.map((b) => b.output)),
    inputs = new Set(blocks.map((b) => b.input));
  return outputs.size * inputs.size <= MOST_CELLS;
}

/** @param {Block[]} blocks whether the names of the inputs have room beside each other wherever the matrix stands */
function fitsLevel(blocks) {
  const outputs = blocks.map((b) => b.output_name.length),
    inputs = new Map(blocks.map((b) => [b.input, Math.max(4, b.input_name.length)]));
  return Math.max(...outputs, 14) + [...inputs.values()].reduce((a, b) => a + b, 0) <= BESIDE;
}

/**
 * A matrix of signs, outputs by inputs: one stop for Tab, arrows go from block to block.
 * @param {Page} page
 * @param {Block[]} blocks
 * @param {(block: Block) => void} choose
 */
export function matrix(page, blocks, choose) {
  const outputs = [...new Set(blocks.map((b) => b.output))],
    inputs = [...new Set(blocks.map((b) => b.input))];
  /** @type {Map<string, HTMLButtonElement>} by "output,input" */
  const buttons = new Map();
  for (const block of blocks) {
    const name = `d ${block.output_name} / d ${block.input_name}`;
    const [mark, kind] = SIGNS[block.verdict ?? ""] ?? ["·", "plain"];
    const wrong = { wrong: count(block.wrong ?? 0), entries: count(block.entries) };
    const label = block.verdict ? `${name}: ${page.word("block", block.verdict)}` : name;
    const title = block.verdict ? `${label}; ${page.t("wrong_entries", wrong)}` : label;
    const button = el(
      "button",
      { class: `cell ${kind}`, "aria-label": label, title, tabindex: "-1" },
      mark,
    );
    button.addEventListener("click", () => choose(block));
    button.addEventListener("focus", () => rove(button));
    buttons.set(`${block.output},${block.input}`, button);
  }
  /** @param {HTMLButtonElement} to the one that Tab comes back to */
  function rove(to) {
    for (const button of buttons.values()) button.tabIndex = button === to ? 0 : -1;
  }
  /** @param {"output" | "input"} side @param {number} k */
  const name = (side, k) => blocks.find((b) => b[side] === k)?.[`${side}_name`];
  /** @param {"col" | "row"} scope @param {string | undefined} words */
  const heading = (scope, words) => el("th", { scope, title: words }, el("div", null, words));
  const table = el(
    "table",
    {
      class: fitsLevel(blocks) ? "chooser" : "chooser upright",
      role: "grid",
      "aria-label": page.t("blocks"),
    },
    el(
      "thead",
      null,
      el(
        "tr",
        null,
        el("td", "corner", page.t("output_by_input")),
        ...inputs.map((i) => heading("col", name("input", i))),
      ),
    ),
    el(
      "tbody",
      null,
      ...outputs.map((o) =>
        el(
          "tr",
          null,
          heading("row", name("output", o)),
          ...inputs.map((i) => el("td", null, buttons.get(`${o},${i}`))),
        ),
      ),
    ),
  );
  const places = outputs.map((o) => inputs.map((i) => buttons.get(`${o},${i}`)));
  arrows(table, places);
  rove(/** @type {HTMLButtonElement} */ (buttons.get(mostTelling(blocks).join(","))));
  return { element: el("div", { class: "scroll", tabindex: "-1" }, table), buttons };
}

/**
 * Let arrows, Home and End move the focus among buttons in rows and columns; places without one are passed over.
 * @param {HTMLElement} element
 * @param {(HTMLButtonElement | undefined)[][]} places
 */
function arrows(element, places) {
  /** @param {number} down @param {number} right */
  function go(down, right) {
    const root = /** @type {ShadowRoot} */ (element.getRootNode());
    /** @param {HTMLButtonElement | undefined} button */
    function holds(button) {
      return button && button === root.activeElement;
    }
    let row = places.findIndex((some) => some.some(holds));
    let col = places[row]?.findIndex(holds) ?? -1;
    while (row >= 0 && col >= 0) {
      row += down;
      col += right;
      const button = places[row]?.[col];
      if (button) return button.focus();
      if (!places[row] || col >= places[row].length) return;
    }
  }
  /** @param {1 | -1} way */
  function toEnd(way) {
    for (let k = 0; k < places[0].length; k++) go(0, way);
  }
  keys(element, {
    ArrowUp: () => go(-1, 0),
    ArrowDown: () => go(1, 0),
    ArrowLeft: () => go(0, -1),
    ArrowRight: () => go(0, 1),
    Home: () => toEnd(-1),
    End: () => toEnd(1),
  });
}

/** @param {Page} page @param {Block[]} blocks */
function list(page, blocks) {
  const select = el(
    "select",
    { "aria-label": page.t("block") },
    ...byInterest(blocks).map((b) =>
      el(
        "option",
        { value: `${b.output},${b.input}` },
        `d ${b.output_name} / d ${b.input_name}${b.verdict ? ` — ${page.word("block", b.verdict)}` : ""}`,
      ),
    ),
  );
  select.addEventListener("change", () => {
    const [o, i] = select.value.split(",").map(Number);
    page.select({ block: [o, i], entry: undefined });
  });
  const follow = () => (select.value = (page.selection().block ?? mostTelling(blocks)).join(","));
  page.onSelect(follow);
  follow();
  return select;
}
