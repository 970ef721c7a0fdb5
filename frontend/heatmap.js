// A heat map on a canvas: symmetric colours, sign marks, cells beyond the scale, the cursor and the marked cells.

import { el } from "./dom.js";
import { number, short } from "./formats.js";
import { isBeyond, NEGLIGIBLE, recordedLimit } from "./scale.js";

/** @typedef {import("./types").Page} Page */
/** @typedef {{rows: number, cols: number, values: ArrayLike<number>}} Grid */
/** @typedef {[number, number] | null | undefined} Cell */
/**
 * @typedef {object} Look
 * @property {string[]} colours
 * @property {number} most what full colour stands for
 * @property {number} cell side of a cell, CSS pixels
 * @property {ArrayLike<number>} [shares] colour by these, from -1 to 1, instead of by the values
 * @property {ArrayLike<number>} [only] draw the cells where this is not 0, leave the others empty
 * @property {Cell} [cursor]
 * @property {Cell} [mark] the worst entry
 * @property {Cell} [chosen]
 * @property {string} [font]
 */

const EXTRA = 4; // the tables of views/theme.py are levels from -limit to +limit, then paper, NaN, +inf, -inf
const LARGEST_CELL = 28; // px
export const LARGE_CELL = 56; // px of a map that stands alone
const TALLEST = 420; // px: a map that is higher does not fit a screen together with its reading
export const NUMBERED = 22; // px: from this size on a cell shows its number
const SIGNED = 9; // px: from this size on a negative cell has a dash
const MARGIN = 2; // px that a number leaves free at each side of its cell, so that neighbours stand apart
const RING = 3.5; // px of a numbered cell that a ring takes at each side
const CORNERED = 4; // px: from this size on a cell beyond the scale has its mark
const CHARACTER = 6.2; // px: width of a digit

/**
 * A value's colour.
 * @param {number} value
 * @param {number} most
 * @param {string[]} table
 */
export function colour(value, most, table) {
  const levels = table.length - EXTRA,
    half = (levels - 1) / 2;
  if (Number.isNaN(value)) return table[levels + 1];
  if (!Number.isFinite(value)) return table[levels + (value > 0 ? 2 : 3)];
  if (negligible(value, most)) return table[levels];
  return table[Math.round(Math.max(-1, Math.min(1, value / most)) * half) + half];
}

/** @param {string[]} table */
const paperOf = (table) => table[table.length - EXTRA];

/** @param {string[]} table its colours from -limit to +limit */
export const ramp = (table) => table.slice(0, -EXTRA);

/** @param {number} value @param {number} most */
const negligible = (value, most) => Math.abs(value) <= NEGLIGIBLE * most;

/** @param {string} colour "#rrggbb" */
export function inkOn(colour) {
  const [r, g, b] = [1, 3, 5]
    .map((k) => parseInt(colour.slice(k, k + 2), 16) / 255)
    .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.18 ? "#000000" : "#ffffff";
}

/**
 * The side of a grid's cells in CSS pixels: they are squares.
 * @param {number} rows
 * @param {number} cols
 * @param {number} width that there is
 * @param {number} [largest]
 */
export function cellSize(rows, cols, width, largest = LARGEST_CELL) {
  const wide = width / Math.max(cols, 1),
    high = TALLEST / Math.max(rows, 1);
  return Math.max(2, Math.floor(Math.min(largest, wide, high)));
}

/** @type {WeakMap<HTMLCanvasElement, {known: unknown[], cells: HTMLCanvasElement}>} the cells as last painted: a cursor that moves changes none */
const painted = new WeakMap();

/**
 * Draw a grid.
 * @param {HTMLCanvasElement} canvas
 * @param {Grid} grid
 * @param {Look} look
 */
export function draw(canvas, grid, look) {
  const { colours, most, cell, cursor, mark, chosen, shares, only } = look,
    { rows, cols, values } = grid;
  const sharp = globalThis.devicePixelRatio || 1;
  const known = [values, rows, cols, cell, sharp, colours, most, shares, only];
  let last = painted.get(canvas);
  if (!last || last.known.some((part, k) => part !== known[k])) {
    last = { known, cells: paintCells(grid, look, sharp) };
    painted.set(canvas, last);
    canvas.width = last.cells.width;
    canvas.height = last.cells.height;
    canvas.style.width = `${cols * cell}px`;
    canvas.style.height = `${rows * cell}px`;
  }
  const pen = penOf(canvas);
  pen.setTransform(1, 0, 0, 1, 0, 0);
  pen.drawImage(last.cells, 0, 0);
  pen.scale(sharp, sharp);
  const paper = paperOf(colours),
    ink = inkOn(paper);
  if (cell >= NUMBERED) {
    write(pen, look.font);
    for (const at of [chosen, mark, cursor])
      if (at) paintCell(pen, grid, look, at[0] * cols + at[1], RING);
  }
  if (chosen) ring(pen, chosen, cell, [paper, 3.5], [ink, 1.5]);
  if (mark) ring(pen, mark, cell, [paper, 4], [ink, 2], [3, 2]);
  if (cursor) ring(pen, cursor, cell, [paper, 5], [ink, 2.5]);
}

/** @param {HTMLCanvasElement} canvas */
const penOf = (canvas) => /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));

/** @param {Grid} grid @param {Look} look @param {number} sharp device pixels of a CSS pixel */
function paintCells(grid, look, sharp) {
  const { rows, cols } = grid,
    { colours, cell } = look;
  const [width, height] = [cols, rows].map((n) => Math.max(1, Math.round(n * cell * sharp)));
  const cells = el("canvas", { width, height });
  const pen = penOf(cells);
  pen.scale(sharp, sharp);
  pen.fillStyle = paperOf(colours);
  pen.fillRect(0, 0, cols * cell, rows * cell);
  write(pen, look.font);
  for (let k = 0; k < rows * cols; k++) paintCell(pen, grid, look, k);
  return cells;
}

/** @param {CanvasRenderingContext2D} pen @param {string} [font] of the numbers */
function write(pen, font = "sans-serif") {
  pen.font = `10px ${font}`;
  pen.textAlign = "center";
  pen.textBaseline = "middle";
}

/**
 * @param {CanvasRenderingContext2D} pen @param {Grid} grid @param {Look} look
 * @param {number} k which cell
 * @param {number} [ring] px at each side that a ring covers, in which no digit and no minus may stand
 */
function paintCell(pen, { cols, values }, { colours, most, cell, shares, only }, k, ring = 0) {
  if (only && !only[k]) return;
  const side = cell - (cell >= 8 ? 1 : 0); // a gap between cells that are not small
  const fill = shares ? colour(shares[k], 1, colours) : colour(values[k], most, colours);
  const [x, y] = [(k % cols) * cell, Math.floor(k / cols) * cell];
  pen.fillStyle = fill;
  pen.fillRect(x, y, side, side);
  pen.fillStyle = inkOn(fill);
  if (!shares && isBeyond(values[k], most)) corner(pen, x, y, side);
  sign(pen, values[k], shares ? 0 : most, x, y, side, ring);
}

/**
 * What a cell says besides its colour: its number where there is room, else a dash for a negative one.
 * @param {CanvasRenderingContext2D} pen
 * @param {number} value @param {number} most
 * @param {number} x @param {number} y @param {number} side @param {number} ring
 */
function sign(pen, value, most, x, y, side, ring) {
  const middle = side / 2;
  if (side + 1 >= NUMBERED) {
    pen.globalAlpha = negligible(value, most) ? 0.4 : 1;
    const text = short(value, side / CHARACTER);
    pen.fillText(text, x + middle, y + middle + 0.5, side - 2 * Math.max(MARGIN, ring));
    pen.globalAlpha = 1;
  } else if (side < SIGNED) return;
  else if (Number.isNaN(value)) pen.fillText("×", x + middle, y + middle);
  else if (value < 0 && !negligible(value, most))
    pen.fillRect(x + middle - 2, y + middle - 0.5, 4, 1);
}

/**
 * The mark of a cell whose size is beyond the scale.
 * @param {CanvasRenderingContext2D} pen
 * @param {number} x @param {number} y @param {number} side
 */
function corner(pen, x, y, side) {
  if (side < CORNERED) return;
  const long = Math.max(3, side * 0.3);
  pen.beginPath();
  pen.moveTo(x + side - long, y);
  pen.lineTo(x + side, y);
  pen.lineTo(x + side, y + long);
  pen.fill();
}

/**
 * @param {CanvasRenderingContext2D} pen
 * @param {[number, number]} cell
 * @param {number} side
 * @param {[string, number]} halo colour and width
 * @param {[string, number]} line colour and width
 * @param {number[]} [dash]
 */
function ring(pen, [row, col], side, halo, line, dash = []) {
  const inset = side < 10 ? -2.5 : 1; // around a small cell, inside a large one
  const box = /** @type {const} */ ([col * side + inset, row * side + inset]);
  for (const [colour, width] of [halo, line]) {
    pen.strokeStyle = colour;
    pen.lineWidth = width;
    pen.setLineDash(colour === halo[0] ? [] : dash);
    pen.strokeRect(...box, side - 2 * inset, side - 2 * inset);
  }
  pen.setLineDash([]);
}

/**
 * The side of a thumbnail's cells: large where each of a few is one element, and never a tall picture.
 * @param {Grid} grid @param {boolean} exact
 */
function thumbnailCell({ rows, cols }, exact) {
  if (exact && cols <= 6 && rows <= 8) return LARGEST_CELL;
  return Math.max(4, Math.min(12, Math.floor(Math.min(224 / cols, 160 / rows))));
}

/**
 * A small heat map of a tensor's thumbnail; the cell under the pointer says its value.
 * @param {Page} page
 * @param {Grid} grid
 * @param {boolean} exact whether each cell is one element
 * @param {string} name what it shows
 * @param {(cell: number, value: number) => string} say the words for a cell
 * @param {number} [most] what full colour stands for
 * @param {number} [floor] the size up to which a number is drawn as nothing
 */
export function thumbnail(
  page,
  grid,
  exact,
  name,
  say,
  most = recordedLimit(grid.values),
  floor = 0,
) {
  const canvas = el("canvas", { class: "thumbnail", role: "img", "aria-label": name });
  const tip = el("code", { class: "tip", "aria-hidden": "true", hidden: true });
  const look = { most, cell: thumbnailCell(grid, exact) };
  const drawn = { ...grid, values: Array.from(grid.values, (v) => (Math.abs(v) <= floor ? 0 : v)) };
  /** @param {[number, number] | null} cursor */
  const paint = (cursor = null) =>
    draw(canvas, drawn, { ...look, cursor, colours: page.colours() });
  /** @param {PointerEvent} event */
  function point(event) {
    const side = canvas.offsetWidth / grid.cols;
    const col = Math.min(grid.cols - 1, Math.floor(event.offsetX / side)),
      row = Math.min(grid.rows - 1, Math.floor(event.offsetY / side));
    const cell = row * grid.cols + col;
    tip.textContent = say(cell, grid.values[cell]);
    tip.style.left = `${(col + 1) * side + 8}px`;
    tip.style.top = `${(row + 1) * side + 4}px`;
    tip.hidden = false;
    paint([row, col]);
    if (exact) canvas.dispatchEvent(new CustomEvent("entry", { bubbles: true, detail: cell }));
  }
  canvas.addEventListener("pointermove", point);
  canvas.addEventListener("pointerleave", () => ((tip.hidden = true), paint()));
  page.onTheme(() => paint());
  paint();
  return el("div", "thumb", canvas, tip);
}
