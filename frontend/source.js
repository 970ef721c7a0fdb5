// The source of the class, the selected line marked.

import { el } from "./shared.js";

/** @typedef {import("./types").Page} Page */

/**
 * @param {Page} page
 * @param {{text: string, first_line: number}} state
 */
export function sourceView(page, state) {
  const lines = state.text.replace(/\n$/, "").split("\n");
  const rows = lines.map((text, k) => el("span", { class: "row" }, el("span", { class: "nr" }, String(state.first_line + k)), `${text}\n`));
  const mark = () => {
    const { line } = page.selection();
    rows.forEach((row, k) => row.classList.toggle("marked", state.first_line + k === line));
    const row = rows[(line ?? NaN) - state.first_line];
    if (row?.parentElement) row.parentElement.parentElement?.scrollTo({ top: row.offsetTop - 60 });
  };
  page.onSelect(mark);
  queueMicrotask(mark);
  return el("pre", { class: "source", tabindex: "0", "aria-label": page.t("tab.source") }, el("code", null, ...rows));
}
