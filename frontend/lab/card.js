// The card of a mark: the same words as in the report, the change with what is new lit, and the buttons.

import { button, el, prose } from "../dom.js";
import { words } from "./words.js";

/** @typedef {import("./editor.js").Placed} Placed */
/** @typedef {import("./marks").EditorChange} EditorChange */

/** A sign for each tone: they differ by more than colour. @type {Record<string, string>} */
export const SIGNS = { bug: "✗", risk: "!", explained: "◆" };

/**
 * The lines that come, as a block of code.
 * @param {EditorChange} change @param {number} [indent]
 */
export const comingBlock = (change, indent) =>
  el(
    "pre",
    { class: "nbag-change", tabindex: "0" },
    el("code", null, ...comingLines(change, indent)),
  );

/**
 * The lines that come, what is new in them lit.
 * @param {EditorChange} change
 * @param {number} indent columns that are left out
 */
export function comingLines({ after, lit }, indent = 0) {
  const rows = after.split("\n");
  return rows.map((row, k) => {
    /** @type {(Node | string)[]} */
    const parts = [];
    let at = indent;
    for (const [, begin, end] of lit.filter(([line]) => line === k)) {
      parts.push(row.slice(at, begin), el("mark", "nbag-lit", row.slice(begin, end)));
      at = end;
    }
    return el("span", "nbag-row", ...parts, row.slice(at));
  });
}

/**
 * @param {Placed} placed
 * @param {(run: boolean) => string} apply returns why not, or nothing
 * @param {boolean} atCaret where the key applies it too
 */
export function cardOf({ found, line }, apply, atCaret) {
  const { mark, language, from } = found,
    say = words(language),
    change = mark.change;
  // away from its line the change needs no more indentation than its lines have among each other
  const indents = change ? (change.after.match(/^ *(?=\S)/gm) ?? []) : [],
    indent = Math.min(...indents.map((one) => one.length));
  const said = el("p", { class: "nbag-said", role: "status" });
  /** @param {boolean} run */
  const act = (run) => () => void (said.textContent = apply(run));
  const plain = button(say("apply"), act(false), "nbag-button");
  // the card lies over the ghost line, which shows the key else
  if (atCaret) plain.append(el("kbd", { class: "nbag-key", "aria-hidden": "true" }, "Tab"));
  if (change && !from.trusted) said.textContent = say("refused_untrusted");
  return el(
    "section",
    {
      class: `nbag-card nbag-${mark.tone}`,
      "aria-label": `${mark.kind}, ${say("line", { line })}`,
    },
    el(
      "p",
      null,
      el("strong", "nbag-kind", `${SIGNS[mark.tone]} ${mark.kind}`),
      " ",
      prose(mark.message),
    ),
    change && comingBlock(change, indent),
    change && el("p", "nbag-note", prose(change.note)),
    change &&
      from.trusted &&
      el(
        "div",
        "nbag-buttons",
        button(say("apply_and_run"), act(true), "nbag-button nbag-first"),
        plain,
      ),
    said,
  );
}
