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
 * A text with a change, at the place nearest to its line, and how far off that is; null where it does not hold the lines.
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
  const source = [...rows.slice(0, near), ...moved, ...rows.slice(near + gone.length)].join("\n");
  return { source, off: Math.abs(near + 1 - told) };
}

/**
 * Have the JupyterLab extension put a change into the cell that was checked, and run it again.
 * @param {Page} page
 * @param {import("./tree").Change} change
 * @throws {Error} with the reason, where it refuses
 */
export function applyThere(page, change) {
  const detail = { change, run: true, refused: "" };
  page.root.dispatchEvent(
    new CustomEvent("nbautograd:apply", { bubbles: true, composed: true, detail }),
  );
  if (detail.refused) throw new Error(detail.refused);
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
    const own = ownCell(page);
    const found = notebook.cells.flatMap((cell, at) => {
      const done = cell.cell_type === "code" ? mended(cell.getSource(), change) : null;
      return done ? [{ at, ...done }] : [];
    });
    // another class may have the same line somewhere else; of two definitions the later one counts
    const least = Math.min(...found.map(({ off }) => off)),
      nearest = found.filter(({ off }) => off === least);
    const last = nearest.filter(({ at }) => own < 0 || at <= own).at(-1) ?? nearest.at(-1);
    if (!last) throw new Error(page.t("no_such_cell"));
    notebook.insertCell((own < 0 ? last.at : own) + 1, { cell_type: "code", source: last.source });
  };
}
