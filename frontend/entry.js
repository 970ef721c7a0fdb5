// One chosen entry of a Jacobian: the elements it belongs to, ways to the other views, the microscope.

import { unravel } from "./arrays.js";
import { button, el } from "./dom.js";
import { element, number } from "./formats.js";
import { entryName } from "./levels.js";
import { microscope } from "./microscope.js";

/** @typedef {import("./types").Page} Page */
/** @typedef {import("./states").BlockState} Block */

/**
 * @param {Page} page
 * @param {Block} block
 * @param {[number, number]} entry
 * @param {AbortSignal} signal
 */
export function entryView(page, block, entry, signal) {
  /** @param {"output" | "input"} side @param {number} flat */
  function shown(side, flat) {
    const sizes = block[`${side}_shape`],
      all = page.elements[`${side}s`]?.[block[side]];
    const known = all?.length === sizes.reduce((a, b) => a * b, 1) ? ` = ${number(all[flat])}` : "";
    return el("code", null, `${element(block, side, unravel(flat, sizes))}${known}`);
  }
  /** @param {string} tab @param {string} words */
  function way(tab, words) {
    return page.tabs.includes(tab) && button(words, () => page.show(tab));
  }
  const { line, call } = page.reach([block.output, block.input]);
  return el(
    "section",
    "detail",
    el(
      "div",
      "bar",
      el("h4", null, el("code", null, entryName(block, entry))),
      el("span", "faint", shown("output", entry[0]), ", ", shown("input", entry[1])),
      el("span", "grow"),
      way("gradcheck", page.t("show_gradcheck")),
      call !== undefined && way("calls", page.t("show_calls")),
      line !== undefined && way("source", page.t("show_line", { line })),
    ),
    lensButton(page, block, entry, signal),
  );
}

/** @param {Page} page @param {Block} block @param {[number, number]} entry @param {AbortSignal} signal */
export function lensButton(page, block, entry, signal) {
  if (!page.can({ kind: "microscope", block: [block.output, block.input], entry }))
    return el("p", "faint", page.t("frozen"));
  const open = button(page.t("microscope"), () =>
    open.replaceWith(microscope(page, block, entry, signal)),
  );
  open.title = page.t("microscope_help");
  return el("div", null, open);
}
