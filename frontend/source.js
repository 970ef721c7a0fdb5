// The source of the class, the selected line marked.

import { el } from "./dom.js";

/** @typedef {import("./types").Page} Page */

/**
 * @param {Page} page
 * @param {{text: string, first_line: number}} state
 * @param {{line: number | null, message: string}[]} findings their lines are marked
 */
export function sourceView(page, state, findings) {
  const lines = state.text.replace(/\n$/, "").split("\n");
  const rows = lines.map((text, k) =>
    el(
      "span",
      { class: "row", style: `--indent:${text.search(/\S|$/)}` },
      el("span", "nr", String(state.first_line + k)),
      text,
    ),
  );
  for (const { line, message } of findings) {
    const row = rows[(line ?? NaN) - state.first_line];
    if (row) (row.classList.add("found"), (row.title = message));
  }
  function mark() {
    const line = page.selection().line ?? findings.find((finding) => finding.line)?.line;
    rows.forEach((row, k) => row.classList.toggle("marked", state.first_line + k === line));
    const row = rows[(line ?? NaN) - state.first_line];
    if (row?.parentElement) row.parentElement.parentElement?.scrollTo({ top: row.offsetTop - 60 });
  }
  page.onSelect(mark);
  queueMicrotask(mark);
  return el(
    "pre",
    { class: "source", tabindex: "0", "aria-label": page.t("part.source") },
    el("code", null, ...rows),
  );
}
