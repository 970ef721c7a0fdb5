// Blocks as a small matrix of outputs x inputs to choose from, and the words for their verdicts.

import { ask, el } from "./shared.js";

/** @typedef {import("./types").Page} Page */
/** @typedef {import("./types").Block} Block */

/** @type {Record<string, [string, string]>} a sign and a class for each verdict, of a block or of a report */
const SIGNS = {
  match: ["✓", "good"],
  right: ["✓", "good"],
  mismatch: ["✗", "bad"],
  wrong: ["✗", "bad"],
  subgradient: ["∠", "open"],
  flat: ["—", "open"],
  undecided: ["?", "open"],
  "cannot tell": ["?", "open"],
  unchecked: ["•", "plain"],
};

/** @param {string} verdict */
export const tone = (verdict) => (SIGNS[verdict] ?? ["", "open"])[1];

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

/** @param {Block[]} blocks @returns {[number, number]} the block to begin with: the first that is not right */
export function mostTelling(blocks) {
  const block =
    blocks.find((b) => b.verdict === "mismatch") ??
    blocks.find((b) => b.verdict && b.verdict !== "match") ??
    blocks[0];
  return [block.output, block.input];
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
  ).then(({ content }) => Object.assign(block, content.block));
}

/**
 * @param {Page} page
 * @param {Block[]} blocks
 */
export function chooser(page, blocks) {
  const outputs = [...new Set(blocks.map((b) => b.output))],
    inputs = [...new Set(blocks.map((b) => b.input))];
  if (outputs.length * inputs.length > 60) return list(page, blocks);
  /** @type {Map<string, HTMLButtonElement>} */
  const buttons = new Map();
  const cell = (/** @type {number} */ o, /** @type {number} */ i) => {
    const block = blocks.find((b) => b.output === o && b.input === i);
    if (!block) return el("td");
    const name = `d ${block.output_name} / d ${block.input_name}`;
    const [mark, kind] = SIGNS[block.verdict ?? ""] ?? ["·", "plain"];
    const button = el(
      "button",
      {
        class: `cell ${kind}`,
        "aria-pressed": "false",
        "aria-label": block.verdict ? `${name}: ${page.word("block", block.verdict)}` : name,
        on: { click: () => page.select({ block: [o, i], entry: undefined }) },
      },
      mark,
    );
    buttons.set(`${o},${i}`, button);
    return el("td", null, button);
  };
  const name = (/** @type {number} */ k, /** @type {"output" | "input"} */ side) =>
    blocks.find((b) => b[side] === k)?.[`${side}_name`];
  const table = el(
    "table",
    "chooser",
    el(
      "thead",
      null,
      el(
        "tr",
        null,
        el("td", "corner", page.t("output_by_input")),
        ...inputs.map((i) => el("th", { scope: "col" }, name(i, "input"))),
      ),
    ),
    el(
      "tbody",
      null,
      ...outputs.map((o) =>
        el(
          "tr",
          null,
          el("th", { scope: "row" }, name(o, "output")),
          ...inputs.map((i) => cell(o, i)),
        ),
      ),
    ),
  );
  const press = () => {
    const chosen = (page.selection().block ?? mostTelling(blocks)).join(",");
    for (const [key, button] of buttons)
      button.setAttribute("aria-pressed", String(key === chosen));
  };
  page.onSelect(press);
  press();
  return el("div", { class: "scroll", tabindex: "-1" }, table);
}

/** @param {Page} page @param {Block[]} blocks */
function list(page, blocks) {
  const select = el(
    "select",
    { "aria-label": page.t("block") },
    ...blocks.map((b) =>
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
