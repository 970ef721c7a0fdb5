// The names and indices along a heat map's sides, and the lines between the slices of the slowest dimension.

import { svg } from "./dom.js";
import { unravel } from "./arrays.js";

/** @typedef {import("./states").BlockState} Block */
/** @typedef {import("./levels.js").Level} Level */
/** @typedef {{name: string, labels: string[], breaks: number[]}} Axis names of the whole side and of its cells; cells that a line stands before */

const NAME = 15, // px: room of a side's name, and of a row of labels
  CHARACTER = 6.4, // px: mean width of a digit at the labels' size
  LINE = 11; // px: height of a label
const APART = 10; // px: lines that stand closer than this are left out
const THREE_DIGITS = 100; // a dimension of more has indices that look like thousands behind a comma
const ENDS = 4; // px: by which a line reaches out of the map

/**
 * @param {Block} block @param {Level} level
 * @returns {[Axis, Axis]} of the rows and of the columns
 */
export function axesOf(block, level) {
  return [
    axis(block, "output", level.first[0], level.step[0], level.rows),
    axis(block, "input", level.first[1], level.step[1], level.cols),
  ];
}

/**
 * @param {Block} block @param {"output" | "input"} side
 * @param {number} first element under the first cell @param {number} step elements under a cell @param {number} cells
 */
function axis(block, side, first, step, cells) {
  const sizes = block[`${side}_shape`],
    pairs = block[`${side}_complex`];
  const starts = Array.from({ length: cells }, (_, k) => first + k * step),
    comma = sizes.some((size) => size > THREE_DIGITS) ? ", " : ",";
  return {
    name: block[`${side}_name`],
    labels: sizes.length ? starts.map((flat) => label(unravel(flat, sizes), comma, pairs)) : [],
    breaks: breaks(sizes, starts),
  };
}

/** @param {number[]} position @param {string} comma @param {boolean} [pair] whether its last number is a part of a complex one */
function label(position, comma, pair) {
  if (!pair) return position.join(comma);
  const part = ["re", "im"][position[position.length - 1]];
  return `${position.slice(0, -1).join(comma)} ${part}`.trimStart();
}

/**
 * The cells at which the index along the slowest dimension changes, unless that dimension is the only one.
 * @param {number[]} sizes @param {number[]} starts element under each cell
 */
export function breaks(sizes, starts) {
  const slowest = sizes.findIndex((size) => size > 1);
  const slice = sizes.slice(slowest + 1).reduce((a, b) => a * b, 1);
  if (slowest < 0 || slice === 1) return [];
  const at = starts.map((start) => Math.floor(start / slice));
  return [...at.keys()].filter((k) => k > 0 && at[k] !== at[k - 1]);
}

/** @param {Axis} rows @param {Axis} cols @returns {[number, number]} px left of the cells and above them */
export function margins(rows, cols) {
  const widest = Math.max(0, ...rows.labels.map((text) => text.length));
  return [
    NAME + (widest ? Math.ceil(widest * CHARACTER) + 9 : 4),
    NAME + (cols.labels.length ? NAME : 3),
  ];
}

/**
 * @param {Axis} rows @param {Axis} cols
 * @param {number} cell side of a cell, px
 * @param {[number, number]} size rows and columns
 */
export function axesView(rows, cols, cell, [high, wide]) {
  const [left, top] = margins(rows, cols);
  const [right, bottom] = [left + wide * cell, top + high * cell];
  const columnRoom = Math.max(0, ...cols.labels.map((text) => text.length)) * CHARACTER + 4;
  return svg(
    "svg",
    { class: "axes", width: right + ENDS + 1, height: bottom + ENDS + 1, "aria-hidden": "true" },
    svg("text", { class: "name", x: (left + right) / 2, y: 10 }, fitting(cols.name, wide * cell)),
    svg(
      "text",
      { class: "name", transform: `translate(10 ${(top + bottom) / 2}) rotate(-90)` },
      fitting(rows.name, high * cell),
    ),
    ...spaced(rows.labels, cell, LINE).map(([k, text]) =>
      svg("text", { class: "row", x: left - 5, y: top + (k + 0.5) * cell + 3.5 }, text),
    ),
    ...spaced(cols.labels, cell, columnRoom).map(([k, text]) =>
      svg("text", { x: left + (k + 0.5) * cell, y: top - 5 }, text),
    ),
    ...lines(rows, cell).map((k) =>
      svg("line", { x1: left - ENDS, x2: right + ENDS, y1: top + k * cell, y2: top + k * cell }),
    ),
    ...lines(cols, cell).map((k) =>
      svg("line", { x1: left + k * cell, x2: left + k * cell, y1: top - ENDS, y2: bottom + ENDS }),
    ),
  );
}

/** @param {Axis} axis @param {number} cell @returns {number[]} none where they would stand too close */
function lines({ breaks }, cell) {
  const near = breaks.some((k, at) => at > 0 && (k - breaks[at - 1]) * cell < APART);
  return near ? [] : breaks;
}

/**
 * Every label, or every second, third, ... so that each has room.
 * @param {string[]} labels @param {number} cell @param {number} room
 * @returns {[number, string][]}
 */
function spaced(labels, cell, room) {
  const step = Math.max(1, Math.ceil(room / cell));
  return [...labels.entries()].filter(([k]) => k % step === 0);
}

/** @param {string} name @param {number} room px */
function fitting(name, room) {
  const most = Math.max(6, Math.floor(room / 6));
  return name.length <= most ? name : `${name.slice(0, most - 1)}…`;
}
