// The notebook around a view, where the front end lets a widget at it, as JupyterLab and Notebook 7 do.

/** @typedef {import("./types").Page} Page */
/** @typedef {import("./types").Notebook} Notebook */

/** @param {Page} page @returns {Notebook | null} */
function notebookAround({ model }) {
  const notebook = model.widget_manager?.context?.model?.sharedModel;
  return notebook?.cells && typeof notebook.insertCell === "function" ? notebook : null;
}

/**
 * The position of the cell that a view is an output of, -1 where that is not known.
 * @param {Page} page
 */
function ownCell({ root }) {
  const tree = root.getRootNode(),
    cell = tree instanceof ShadowRoot ? tree.host.closest(".jp-Cell") : null;
  // of a long notebook only the cells in sight stand on the page
  return cell instanceof HTMLElement ? Number(cell.dataset.windowedListIndex ?? -1) : -1;
}

/**
 * A text with a change, at the place nearest to a line; null where it does not hold the lines that change.
 * @param {string} text
 * @param {import("./tree").Change} change
 */
function mended(text, { before, after, line }) {
  const rows = text.split("\n"),
    told = line ?? 1,
    gone = before.replace(/\n$/, "").split("\n"),
    come = after.replace(/\n$/, "").split("\n");
  const starts = rows
    .map((_, i) => i)
    .filter((i) => gone.every((row, k) => rows[i + k]?.trim() === row.trim()));
  if (!starts.length) return null;
  const near = starts.reduce((a, b) => (Math.abs(b + 1 - told) < Math.abs(a + 1 - told) ? b : a));
  const [there, here] = [gone[0], rows[near]].map((row) => row.match(/^\s*/)?.[0] ?? "");
  const moved = come.map((row) => (row.startsWith(there) ? here + row.slice(there.length) : row));
  return [...rows.slice(0, near), ...moved, ...rows.slice(near + gone.length)].join("\n");
}

/**
 * What puts a cell with a change below the view; null where the front end has no way, or nothing is replaced.
 * @param {Page} page
 * @param {import("./tree").Change} change
 * @returns {(() => void) | null} throws where no cell holds the lines any more
 */
export function cellBelow(page, change) {
  const notebook = notebookAround(page);
  if (!notebook || !change.before.trim()) return null;
  return () => {
    const own = ownCell(page),
      found = notebook.cells
        .map((cell, at) => ({
          at,
          source: cell.cell_type === "code" ? mended(cell.getSource(), change) : null,
        }))
        .filter(({ source }) => source !== null);
    const last = found.filter(({ at }) => own < 0 || at <= own).at(-1) ?? found.at(-1);
    if (!last) throw new Error(page.t("no_such_cell"));
    const below = (own < 0 ? last.at : own) + 1;
    notebook.insertCell(below, { cell_type: "code", source: last.source ?? "" });
  };
}
