// The gradient that flowed along an edge or into a node, and what a cell of a small heat map says.

import { numbers, unravel } from "./arrays.js";
import { el } from "./dom.js";
import { index, number, shape } from "./formats.js";
import { thumbnail, thumbnailWidth } from "./heatmap.js";

/** @typedef {import("./types").Page} Page */

/**
 * @param {Page} page
 * @param {string} name
 * @param {import("./states").GradientState} gradient
 */
export function gradientView(page, name, gradient) {
  const { dtype, shape: sizes, contents, thumbnail: packed } = gradient;
  const alt = `${name}: ${dtype} ${shape(sizes)}`;
  return el(
    "div",
    null,
    packed && smallMap(page, alt, packed, { name, ...gradient }),
    el("div", "faint stats", contents),
  );
}

/**
 * A small heat map of a tensor whose cells say which element they show, or how many.
 * @param {Page} page
 * @param {string} alt
 * @param {import("./states").Packed} packed
 * @param {{name: string, shape: number[], exact: boolean, sampled: boolean}} tensor
 */
export function smallMap(page, alt, packed, { name, shape: sizes, exact, sampled }) {
  const [rows, cols] = packed.shape;
  /** @param {number} cell @param {number} value */
  function say(cell, value) {
    if (exact) return `${name}${index(unravel(cell, sizes))} = ${number(value)}`;
    const part = Math.floor(cell / cols) + 1;
    return page.t(sampled ? "cell_sampled" : "cell_pooled", {
      value: number(value),
      part,
      parts: rows,
    });
  }
  const grid = { rows, cols, values: numbers(packed) };
  return thumbnail(page, grid, thumbnailWidth(rows, cols, exact), alt, { say });
}
