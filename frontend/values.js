// The gradient that flowed along an edge or into a node, and what a cell of a small heat map says.

import { numbers, unravel } from "./arrays.js";
import { el } from "./dom.js";
import { index, number, shape } from "./formats.js";
import { thumbnail } from "./heatmap.js";

/** @typedef {import("./types").Page} Page */
/**
 * @typedef {object} Named
 * @property {string} name
 * @property {number[]} shape
 * @property {boolean} exact
 * @property {boolean} sampled
 * @property {import("./states").Pooling | null} pooling
 */

/**
 * @param {Page} page
 * @param {string} name
 * @param {import("./states").GradientState} gradient
 * @param {number} [most] what full colour stands for
 */
export function gradientView(page, name, gradient, most) {
  const { dtype, shape: sizes, contents, written, thumbnail: packed } = gradient;
  const alt = `${name}: ${dtype} ${shape(sizes)}, ${contents}`;
  return el(
    "div",
    "item",
    packed && smallMap(page, alt, packed, { name, ...gradient }, most),
    !written && el("p", "faint", contents),
  );
}

/**
 * A small heat map of a tensor whose cells say which element they show, or between which numbers those under it lie.
 * @param {Page} page
 * @param {string} alt
 * @param {import("./states").Packed} packed
 * @param {Named} tensor
 * @param {number} [most] what full colour stands for
 * @param {number} [floor] the size up to which a number is drawn as nothing
 */
export function smallMap(
  page,
  alt,
  packed,
  { name, shape: sizes, exact, sampled, pooling },
  most,
  floor,
) {
  const [rows, cols] = packed.shape;
  const under = pooling && underCells(page, name, sizes, cols, pooling);
  /** @param {number} cell @param {number} value */
  function say(cell, value) {
    if (exact) return `${name}${index(unravel(cell, sizes))} = ${number(value)}`;
    if (under) return under(cell, value);
    const part = Math.floor(cell / cols) + 1;
    return page.t(sampled ? "cell_sampled" : "cell_pooled", {
      value: number(value),
      part,
      parts: rows,
    });
  }
  const grid = { rows, cols, values: numbers(packed) };
  const drawn = thumbnail(page, grid, exact, alt, say, most, floor);
  return pooling ? el("div", null, drawn, el("div", "faint stats", pooling.words)) : drawn;
}

/**
 * @param {Page} page
 * @param {string} name
 * @param {number[]} sizes
 * @param {number} cols of cells
 * @param {import("./states").Pooling} pooling
 * @returns {(cell: number, value: number) => string} which elements lie under a cell, and between which numbers
 */
function underCells(page, name, sizes, cols, { rows: high, cols: wide, low: least, high: most }) {
  const leading = sizes.slice(0, -1),
    across = sizes[sizes.length - 1],
    down = leading.reduce((product, size) => product * size, 1);
  const [lows, highs] = [numbers(least), numbers(most)];
  /** @param {number} row @param {number} col */
  const at = (row, col) =>
    index([...unravel(Math.min(row, down - 1), leading), Math.min(col, across - 1)]);
  return (cell, value) => {
    const [row, col] = [Math.floor(cell / cols) * high, (cell % cols) * wide];
    return page.t(Number.isNaN(value) ? "cell_range_nan" : "cell_range", {
      first: name + at(row, col),
      last: at(row + high - 1, col + wide - 1),
      low: number(lows[cell]),
      high: number(highs[cell]),
    });
  };
}
