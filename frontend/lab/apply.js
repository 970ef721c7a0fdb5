// Puts a change into its cell, in one step that Ctrl+Z undoes, and runs the cells again where that was chosen.

import { beginOf } from "./place.js";
import { words } from "./words.js";

/** @typedef {import("./notebook_marks.js").Found} Found */

/**
 * @param {Found} found
 * @param {boolean} run
 * @param {import("./jupyterlab").NotebookModule} notebook
 * @returns {string} why not; empty where it was done
 */
export function applyChange({ mark, checked, language, from, notebook }, run, { NotebookActions }) {
  const say = words(language),
    change = mark.change,
    cell = notebook.home(checked);
  if (!change) return say("refused_gone");
  if (!from.trusted) return say("refused_untrusted");
  if (!cell) return say("refused_gone");
  const source = cell.sharedModel.getSource(),
    lines = source.split("\n"),
    begin = beginOf(lines, checked);
  if (!begin) return say("refused_changed");
  const at = change.line + begin - checked.first_line - 1,
    start = lines.slice(0, at).join("\n").length + (at ? 1 : 0);
  cell.sharedModel.transact(() =>
    cell.sharedModel.updateSource(start, start + change.before.length, change.after),
  );
  if (!run) return "";
  // where the call stands in another cell, its report comes from there
  const { panel } = notebook,
    cells = panel.content.widgets.filter(({ model }) => model === cell || model === from);
  panel.content.activate(); // the button that was pressed goes with its output, and the keys with it
  void NotebookActions.runCells(panel.content, cells, panel.sessionContext);
  return "";
}
