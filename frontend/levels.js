// Where a heat map's cells stand in a Jacobian: levels of zoom, from pooled cells to single entries.

import { numbers, ravel, unravel } from "./arrays.js";
import { element } from "./formats.js";

/** @typedef {import("./states").BlockState} Block */
/** @typedef {[number, number]} Pair */
/** @typedef {{first: Pair, step: Pair, rows: number, cols: number, values: ArrayLike<number>[], wrong?: ArrayLike<number>}} Level `wrong`: not 0 in a cell with an entry that the checker calls wrong */

export const SIDE = 64; // most cells along one side

/** @param {import("./states").Maps} maps of a whole block, or of a window @param {Pair} [first] @returns {Level} */
export function levelOf(maps, first = [0, 0]) {
  const [rows, cols] = [maps.analytical.shape[0], maps.analytical.shape[1] ?? 1];
  return {
    first,
    step: [maps.rows, maps.cols],
    rows,
    cols,
    values: [maps.analytical, maps.numerical, maps.difference].map(numbers),
    wrong: maps.wrong && numbers(maps.wrong),
  };
}

/**
 * A window made on the page from the entries that were kept, as Python would send it: exact when few, else pooled.
 * @param {Block} block @param {Pair} rows @param {Pair} cols
 * @returns {Level}
 */
export function keptLevel(block, rows, cols) {
  const whole = /** @type {NonNullable<Block["whole"]>} */ (block.whole);
  const [analytical, numerical] = [whole.analytical, whole.numerical].map(numbers);
  const wrong = whole.wrong && numbers(whole.wrong);
  const width = extent(block)[1],
    range = [rows, cols];
  const step = /** @type {Pair} */ (range.map(([start, end]) => Math.ceil((end - start) / SIDE)));
  const [high, wide] = range.map(([start, end], d) => Math.ceil((end - start) / step[d]));
  /** @type {((k: number) => number)[]} */
  const parts = [(k) => analytical[k], (k) => numerical[k], (k) => analytical[k] - numerical[k]];
  /** @param {(k: number) => number} at @param {number} row @param {number} col */
  function cell(at, row, col) {
    let most = 0;
    for (let r = row; r < Math.min(row + step[0], rows[1]); r++) {
      for (let c = col; c < Math.min(col + step[1], cols[1]); c++) {
        const value = at(r * width + c);
        if (Number.isNaN(value)) return value;
        if (Math.abs(value) > Math.abs(most)) most = value;
      }
    }
    return most;
  }
  /** @param {(k: number) => number} at */
  function pooled(at) {
    return Float64Array.from({ length: high * wide }, (_, k) =>
      cell(at, rows[0] + Math.floor(k / wide) * step[0], cols[0] + (k % wide) * step[1]),
    );
  }
  return {
    first: [rows[0], cols[0]],
    step,
    rows: high,
    cols: wide,
    values: parts.map(pooled),
    wrong: wrong && pooled((k) => wrong[k]),
  };
}

/** @param {Level} level whether a cell stands for several entries */
export const isPooled = (level) => level.step[0] * level.step[1] > 1;

/** @param {Level} level @param {Pair} entry @returns {Pair | null} the cell that an entry is under */
export function cellOf(level, entry) {
  const cell = entry.map((k, d) => Math.floor((k - level.first[d]) / level.step[d]));
  return cell[0] >= 0 && cell[1] >= 0 && cell[0] < level.rows && cell[1] < level.cols
    ? [cell[0], cell[1]]
    : null;
}

/** @param {Block} block @returns {Pair} rows and columns of the whole block */
export const extent = (block) =>
  /** @type {Pair} */ (
    [block.output_shape, block.input_shape].map((sizes) => sizes.reduce((a, b) => a * b, 1))
  );

/** @param {Block} block @param {Level} level @param {Pair} cell @returns {[Pair, Pair]} rows and columns that a cell stands for */
export function cellRange(block, level, cell) {
  const most = extent(block);
  /** @param {number} d */
  function range(d) {
    const start = level.first[d] + cell[d] * level.step[d];
    return /** @type {Pair} */ ([start, Math.min(start + level.step[d], most[d])]);
  }
  return [range(0), range(1)];
}

/** @param {Block} block @param {Pair} entry @returns {[Pair, Pair]} a window of single entries around one */
export function around(block, entry) {
  /** @param {number} d */
  function range(d) {
    const most = extent(block)[d],
      start = Math.max(0, Math.min(entry[d] - SIDE / 2, most - SIDE));
    return /** @type {Pair} */ ([start, Math.min(start + SIDE, most)]);
  }
  return [range(0), range(1)];
}

/** @param {Block} block @returns {Pair | null} row and column of the worst entry */
export const worstEntry = ({ worst, output_shape, input_shape }) =>
  worst ? [ravel(worst.output_index, output_shape), ravel(worst.input_index, input_shape)] : null;

/** @param {Block} block @param {Pair} entry a single entry, such as "d out[0,2] / d weight[1,2]" */
export const entryName = (block, entry) =>
  cellName(block, { first: entry, step: [1, 1], rows: 1, cols: 1, values: [] }, [0, 0]);

/**
 * "d out[0,2] / d weight[1,2]", or the ranges that a pooled cell stands for.
 * @param {Block} block @param {Level} level @param {Pair} cell
 */
export function cellName(block, level, cell) {
  const sides = /** @type {const} */ (["output", "input"]);
  return cellRange(block, level, cell)
    .map(([start, end], d) => {
      /** @param {number} k */
      function name(k) {
        return element(block, sides[d], unravel(k, block[`${sides[d]}_shape`]));
      }
      return `d ${name(start)}${end - start > 1 ? `…${name(end - 1).slice(block[`${sides[d]}_name`].length)}` : ""}`;
    })
    .join(" / ");
}
