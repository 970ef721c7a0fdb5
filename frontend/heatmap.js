// A heat map on a canvas: symmetric colours, sign marks, the cursor and one marked cell.

import { el, number } from "./shared.js";

/** @typedef {import("./types").Page} Page */
/** @typedef {{rows: number, cols: number, values: Float32Array | Float64Array}} Grid */
/** @typedef {[number, number] | null} Cell */

const EXTRA = 4; // the tables of views/palette.py are levels from -limit to +limit, then paper, NaN, +inf, -inf
const NEGLIGIBLE = 1e-6;

/**
 * The largest finite size in some arrays, 1 when there is none.
 * @param {...ArrayLike<number>} arrays
 */
export function limit(...arrays) {
  let most = 0;
  for (const values of arrays) {
    for (let k = 0; k < values.length; k++) {
      const size = Math.abs(values[k]);
      if (size > most && size < Infinity) most = size;
    }
  }
  return most || 1;
}

const DECADES = 16; // that a logarithmic scale covers below its largest number

/**
 * Signed shares of a logarithmic scale: ±1 for the largest size, near 0 for what is `DECADES` below it, 0 for nothing.
 * @param {ArrayLike<number>} values
 * @param {number} most
 */
export function logarithmic(values, most) {
  const share = (/** @type {number} */ value) => {
    const part = Number.isFinite(value)
      ? 1 + Math.log10(Math.abs(value) / most) / DECADES
      : Math.abs(value);
    return value === 0 ? 0 : Math.sign(value) * Math.max(part, 1 / DECADES / 2);
  };
  return Float64Array.from({ length: values.length }, (_, k) =>
    Number.isNaN(values[k]) ? NaN : share(values[k]),
  );
}

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
  return table[
    negligible(value, most)
      ? levels
      : Math.round(Math.max(-1, Math.min(1, value / most)) * half) + half
  ];
}

/** @param {string[]} table */
const paperOf = (table) => table[table.length - EXTRA];

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
 * Cell size in CSS pixels for a grid in a given width.
 * @param {number} rows
 * @param {number} cols
 * @param {number} width
 * @returns {[number, number]} width and height of a cell
 */
export function cellSize(rows, cols, width) {
  const w = Math.max(2, Math.min(58, Math.floor(width / Math.max(cols, 1))));
  const h = Math.max(2, Math.min(w, w >= 40 ? 22 : 18, Math.floor(360 / Math.max(rows, 1))));
  return [w, h];
}

/** @typedef {{colours: string[], most: number, width: number, cursor?: Cell, mark?: Cell, font?: string, shares?: ArrayLike<number>}} How `shares`: colour by these, from -1 to 1, instead of by the values */

/** @type {WeakMap<HTMLCanvasElement, {known: any[], cells: HTMLCanvasElement}>} the cells as last painted: a cursor that moves changes none */
const painted = new WeakMap();

/**
 * Draw a grid.
 * @param {HTMLCanvasElement} canvas
 * @param {Grid} grid
 * @param {How} how
 */
export function draw(canvas, grid, how) {
  const { colours, most, width, cursor, mark, shares } = how,
    { rows, cols, values } = grid;
  const [w, h] = cellSize(rows, cols, width),
    scale = globalThis.devicePixelRatio || 1;
  const known = [values, rows, cols, w, h, scale, colours, most, shares];
  let last = painted.get(canvas);
  if (!last || last.known.some((part, k) => part !== known[k])) {
    last = { known, cells: paintCells(grid, how, w, h, scale) };
    painted.set(canvas, last);
    canvas.width = last.cells.width;
    canvas.height = last.cells.height;
    canvas.style.width = `${cols * w}px`;
    canvas.style.height = `${rows * h}px`;
  }
  const pen = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  pen.setTransform(1, 0, 0, 1, 0, 0);
  pen.drawImage(last.cells, 0, 0);
  pen.scale(scale, scale);
  const paper = paperOf(colours),
    ink = inkOn(paper);
  if (mark)
    ring(
      pen,
      mark,
      w,
      h,
      [
        [paper, 4],
        [ink, 2],
      ],
      [3, 2],
    );
  if (cursor)
    ring(
      pen,
      cursor,
      w,
      h,
      [
        [paper, 5],
        [ink, 2.5],
      ],
      [],
    );
}

/**
 * @param {Grid} grid @param {How} how @param {number} w @param {number} h @param {number} scale
 */
function paintCells({ rows, cols, values }, { colours, most, font, shares }, w, h, scale) {
  const cells = el("canvas", {
    width: Math.max(1, Math.round(cols * w * scale)),
    height: Math.max(1, Math.round(rows * h * scale)),
  });
  const pen = /** @type {CanvasRenderingContext2D} */ (cells.getContext("2d"));
  pen.scale(scale, scale);
  pen.fillStyle = paperOf(colours);
  pen.fillRect(0, 0, cols * w, rows * h);
  const gap = w >= 8 && h >= 8 ? 1 : 0;
  pen.font = `${Math.min(11, h - 8)}px ${font ?? "sans-serif"}`;
  pen.textAlign = "center";
  pen.textBaseline = "middle";
  for (let k = 0; k < rows * cols; k++) {
    const fill = shares ? colour(shares[k], 1, colours) : colour(values[k], most, colours);
    const x = (k % cols) * w,
      y = Math.floor(k / cols) * h;
    pen.fillStyle = fill;
    pen.fillRect(x, y, w - gap, h - gap);
    if (gap) sign(pen, values[k], shares ? 0 : most, x, y, w - gap, h - gap, inkOn(fill));
  }
  return cells;
}

/**
 * A number in at most five characters, as the static heat maps write it: `2`, `−.5`, `3e−10`.
 * @param {number} value
 */
export function short(value) {
  if (!Number.isFinite(value)) return Number.isNaN(value) ? "nan" : value > 0 ? "∞" : "−∞";
  let text = "";
  for (const digits of [3, 2, 1]) {
    const [mantissa, power] = value
      .toExponential(digits - 1)
      .split("e")
      .map(Number);
    text =
      value && (power < -4 || power >= digits)
        ? `${mantissa}e${power}`
        : String(Number(value.toPrecision(digits)));
    text = text.replace(/^(-?)0\./, "$1.");
    if (text.length <= 5) break;
  }
  return text.replaceAll("-", "−");
}

/**
 * What a cell says besides its colour: its number where there is room, else a dash for a negative one.
 * @param {CanvasRenderingContext2D} pen
 * @param {number} value @param {number} most
 * @param {number} x @param {number} y @param {number} w @param {number} h
 * @param {string} ink
 */
function sign(pen, value, most, x, y, w, h, ink) {
  pen.fillStyle = ink;
  if (w >= 40 && h >= 17) {
    pen.globalAlpha = negligible(value, most) ? 0.55 : 1;
    pen.fillText(short(value), x + w / 2, y + h / 2 + 0.5, w - 2);
    pen.globalAlpha = 1;
  } else if (w >= 12 && value < 0 && !negligible(value, most))
    pen.fillRect(x + w / 2 - 2, y + h / 2 - 0.5, 4, 1);
  else if (Number.isNaN(value)) pen.fillText("×", x + w / 2, y + h / 2);
}

/**
 * @param {CanvasRenderingContext2D} pen
 * @param {[number, number]} cell
 * @param {number} w @param {number} h
 * @param {[string, number][]} strokes colour and width, outer first
 * @param {number[]} dash
 */
function ring(pen, [row, col], w, h, strokes, dash) {
  for (const [colour, width] of strokes) {
    pen.strokeStyle = colour;
    pen.lineWidth = width;
    pen.setLineDash(colour === strokes[0][0] ? [] : dash);
    const inset = Math.min(w, h) < 10 ? -2.5 : 1; // around a small cell, inside a large one
    pen.strokeRect(col * w + inset, row * h + inset, w - 2 * inset, h - 2 * inset);
  }
  pen.setLineDash([]);
}

/**
 * A small heat map of a tensor's thumbnail.
 * @param {Page} page
 * @param {Grid} grid
 * @param {number} width
 * @param {string} name what it shows
 */
export function thumbnail(page, grid, width, name) {
  const canvas = el("canvas", { class: "thumbnail", role: "img", "aria-label": name });
  const paint = () =>
    draw(canvas, grid, { colours: page.colours(), most: limit(grid.values), width });
  page.onTheme(paint);
  paint();
  return canvas;
}

/**
 * The scale of colours from -limit to +limit.
 * @param {Page} page
 * @param {number} most
 * @param {string} note
 * @param {AbortSignal} signal
 */
export function legend(page, most, note, signal) {
  const bar = el("span", { class: "scale", "aria-hidden": "true" });
  const paint = () =>
    (bar.style.background = `linear-gradient(to right, ${page.colours().slice(0, -EXTRA).join(", ")})`);
  page.onTheme(paint, signal);
  paint();
  return el(
    "div",
    "legend",
    el("span", null, `−${number(most, 3)}`),
    bar,
    el("span", null, `+${number(most, 3)}`),
    el("span", "faint", note),
  );
}
