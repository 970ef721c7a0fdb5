// Where a text that was checked stands now. Pure: a mark is shown where its text is, or nowhere.

/** @typedef {import("./marks").CheckedText} CheckedText */

/**
 * The line of a cell, from 1, that a checked text begins at; 0 where it is not there, or elsewhere more than once.
 * @param {string[]} lines
 * @param {CheckedText} checked
 */
export function beginOf(lines, checked) {
  const rows = checked.text.split("\n");
  /** @param {number} at */
  const stands = (at) => rows.every((row, k) => lines[at + k] === row);
  if (stands(checked.first_line - 1)) return checked.first_line;
  const others = lines.flatMap((_, at) => (stands(at) ? [at + 1] : []));
  return others.length === 1 ? others[0] : 0;
}

/**
 * The cell that a text was checked in: the one of its id, else the only one that holds it.
 * @template {{id: string, getSource: () => string}} C
 * @param {C[]} cells
 * @param {CheckedText} checked
 * @returns {C | undefined}
 */
export function cellOf(cells, checked) {
  if (checked.cell) return cells.find((cell) => cell.id === checked.cell);
  const holding = cells.filter((cell) => beginOf(cell.getSource().split("\n"), checked));
  return holding.length === 1 ? holding[0] : undefined;
}
