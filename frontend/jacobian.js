// The Jacobian: analytical, numerical and difference side by side, with one cursor for all three.

import { chooser, mostTelling, verdictWord } from "./blocks.js";
import { draw, cellSize, legend, limit } from "./heatmap.js";
import { ask, count, el, index, keys, number, numbers, ravel, shape, unravel } from "./shared.js";

/** @typedef {import("./types").Page} Page */
/** @typedef {import("./types").Block} Block */
/** @typedef {{first: [number, number], step: [number, number], rows: number, cols: number, values: (Float32Array | Float64Array)[]}} Level */

const NAMES = ["analytical", "numerical", "difference"];
const SIDE = 64;

/**
 * @param {Page} page
 * @param {{blocks: Block[]}} state
 */
export function jacobianView(page, { blocks }) {
  if (!blocks.length) return el("p", { class: "faint" }, page.t("no_blocks"));
  const body = el("div", { class: "stack" });
  /** @type {AbortController | undefined} */
  let shown;
  let current = "";
  const show = () => {
    const wanted = page.selection().block ?? mostTelling(blocks);
    const block = blocks.find((b) => b.output === wanted[0] && b.input === wanted[1]) ?? blocks[0];
    if (current === `${block.output},${block.input}`) return;
    current = `${block.output},${block.input}`;
    shown?.abort();
    shown = new AbortController();
    body.replaceChildren(blockView(page, block, shown.signal));
  };
  page.signal.addEventListener("abort", () => shown?.abort(), { once: true });
  page.onSelect(show);
  show();
  return el("div", { class: "stack jacobian" }, blocks.length > 1 && chooser(page, blocks), body);
}

/**
 * @param {Page} page
 * @param {Block} block
 * @param {AbortSignal} signal
 */
function blockView(page, block, signal) {
  /** @type {Level[]} */
  const levels = [firstLevel(block)];
  /** @type {[number, number]} */
  let cursor = [0, 0];
  const worst = block.worst && /** @type {[number, number]} */ ([ravel(block.worst.output_index, block.output_shape), ravel(block.worst.input_index, block.input_shape)]);
  const top = () => levels[levels.length - 1];
  const canvases = NAMES.map(() => el("canvas", { "aria-hidden": "true" }));
  const figures = canvases.map((canvas, k) => el("figure", null, el("figcaption", null, page.t(NAMES[k])), el("div", { class: "frame" }, canvas)));
  const reading = el("div", { class: "reading", role: "status" });
  const note = el("p", { class: "faint note" });
  const scale = el("div", { class: "bar" });
  let own = false; // the difference on its own scale
  const magnify = el("button", { class: "button", type: "button", "aria-pressed": "false", on: { click: () => ((own = !own), magnify.setAttribute("aria-pressed", String(own)), refresh()) } }, page.t("own_scale"));
  const out = el("button", { class: "button", type: "button", on: { click: () => zoomOut() } }, page.t("zoom_out"));
  const maps = el("div", { class: "maps", tabindex: "0", role: "application", "aria-roledescription": page.t("heat_map"), "aria-label": page.t("heat_map_help", { output: block.output_name, input: block.input_name }) }, ...figures);

  const most = () => limit(top().values[0], top().values[1]);
  const mostDifferent = () => (own ? limit(top().values[2]) : most());
  const where = () => (worst && inLevel(top(), worst)) || null;
  const paint = () => {
    const level = top();
    const room = figures[0].clientWidth || 200;
    const font = getComputedStyle(maps).fontFamily;
    canvases.forEach((canvas, k) => draw(canvas, { rows: level.rows, cols: level.cols, values: level.values[k] }, { colours: page.colours(), most: k === 2 ? mostDifferent() : most(), width: room, cursor, mark: where(), font }));
  };
  const tell = () => {
    const level = top();
    const k = cursor[0] * level.cols + cursor[1];
    const [a, n, d] = level.values.map((values) => values[k]);
    reading.replaceChildren(
      el("code", { class: "entry" }, entryName(block, level, cursor)),
      ...[a, n, d].map((value, j) => el("span", { class: "fact" }, el("span", { class: "faint" }, page.t(NAMES[j])), " ", el("b", null, number(value, 6)))),
    );
  };
  const refresh = () => {
    const level = top();
    const pooled = level.step[0] * level.step[1] > 1;
    note.textContent = pooled ? page.t("pooled", { rows: count(level.step[0]), cols: count(level.step[1]) }) : "";
    note.hidden = !pooled;
    out.hidden = levels.length < 2;
    scale.replaceChildren(legend(page, most(), own ? page.t("own_scale_on", { most: number(mostDifferent(), 2) }) : page.t("scale"), signal), el("span", { class: "grow" }), magnify);
    paint();
    tell();
  };
  /** @param {number} row @param {number} col */
  const move = (row, col) => {
    const level = top();
    cursor = [Math.max(0, Math.min(level.rows - 1, row)), Math.max(0, Math.min(level.cols - 1, col))];
    paint();
    tell();
  };
  const choose = () => {
    const level = top();
    if (level.step[0] * level.step[1] > 1) return zoomTo(cellRange(block, level, cursor));
    page.select({ block: [block.output, block.input], entry: [level.first[0] + cursor[0], level.first[1] + cursor[1]] });
  };
  /** @param {[[number, number], [number, number]]} range @param {[number, number]} [then] entry to put the cursor on */
  const zoomTo = async ([rows, cols], then) => {
    try {
      note.hidden = false;
      note.textContent = page.t("asking");
      const { content, buffers } = await ask(page.model, { kind: "zoom", block: [block.output, block.input], rows, cols }, signal, page.t("no_kernel"));
      levels.push({ first: [rows[0], cols[0]], step: [content.rows, content.cols], rows: content.shape[0], cols: content.shape[1], values: buffers.map((buffer) => numbers({ dtype: "float64", shape: [], buffer })) });
      cursor = (then && inLevel(top(), then)) || [0, 0];
      refresh();
    } catch (problem) {
      if (!signal.aborted) note.textContent = /** @type {Error} */ (problem).message;
    }
  };
  const zoomOut = () => levels.length > 1 && (levels.pop(), (cursor = [0, 0]), refresh());
  const toWorst = () => {
    if (!worst) return;
    const cell = inLevel(top(), worst);
    if (cell && top().step[0] * top().step[1] === 1) move(...cell);
    else zoomTo([around(worst[0], block, 0), around(worst[1], block, 1)], worst);
    maps.focus();
  };

  /** @param {import("./types").Selection} selection */
  const follow = ({ block: chosen, entry }) => {
    if (!entry || chosen?.join() !== `${block.output},${block.input}`) return;
    const cell = inLevel(top(), entry);
    if (cell && top().step[0] * top().step[1] === 1) move(...cell);
    else zoomTo([around(entry[0], block, 0), around(entry[1], block, 1)], entry);
  };

  pointer(canvases, () => top(), () => figures[0].clientWidth || 200, move, choose);
  keys(maps, {
    ArrowUp: () => move(cursor[0] - 1, cursor[1]),
    ArrowDown: () => move(cursor[0] + 1, cursor[1]),
    ArrowLeft: () => move(cursor[0], cursor[1] - 1),
    ArrowRight: () => move(cursor[0], cursor[1] + 1),
    Home: () => move(cursor[0], 0),
    End: () => move(cursor[0], Infinity),
    PageUp: () => move(0, cursor[1]),
    PageDown: () => move(Infinity, cursor[1]),
    Enter: choose,
    w: toWorst,
    Escape: zoomOut,
  });
  const watcher = new ResizeObserver(paint);
  watcher.observe(maps);
  signal.addEventListener("abort", () => watcher.disconnect(), { once: true });
  page.onTheme(paint, signal);
  page.onSelect(follow, signal);
  const first = worst && inLevel(top(), worst);
  if (first) cursor = first;
  refresh();
  follow(page.selection());
  return el("div", { class: "stack" }, heading(page, block, worst ? toWorst : null, out), maps, scale, reading, note);
}

/**
 * @param {Page} page
 * @param {Block} block
 * @param {(() => void) | null} toWorst
 * @param {Node} out
 */
function heading(page, block, toWorst, out) {
  const facts = [`${shape(block.output_shape) || page.t("scalar")} × ${shape(block.input_shape) || page.t("scalar")}`, page.word("structure", block.structure)];
  if (block.wrong !== undefined) facts.push(page.t("wrong_entries", { wrong: count(block.wrong), entries: count(block.entries) }));
  return el("div", { class: "bar" },
    el("h4", null, el("code", null, `d ${block.output_name} / d ${block.input_name}`)),
    block.verdict && verdictWord(page, block.verdict),
    el("span", { class: "faint facts" }, facts.join(" · ")),
    out,
    toWorst && el("button", { class: "button", type: "button", title: "w", on: { click: toWorst } }, page.t("worst_entry")));
}

/** @param {Block} block @returns {Level} */
function firstLevel({ maps }) {
  const [rows, cols] = [maps.analytical.shape[0], maps.analytical.shape[1] ?? 1];
  return { first: [0, 0], step: [maps.rows, maps.cols], rows, cols, values: [maps.analytical, maps.numerical, maps.difference].map(numbers) };
}

/** @param {Level} level @param {[number, number]} entry @returns {[number, number] | null} the cell that an entry is under */
function inLevel(level, entry) {
  const cell = entry.map((k, d) => Math.floor((k - level.first[d]) / level.step[d]));
  return cell[0] >= 0 && cell[1] >= 0 && cell[0] < level.rows && cell[1] < level.cols ? [cell[0], cell[1]] : null;
}

/** @param {Block} block */
const extent = (block) => [block.output_shape, block.input_shape].map((sizes) => sizes.reduce((a, b) => a * b, 1));

/** @param {Block} block @param {Level} level @param {[number, number]} cell @returns {[[number, number], [number, number]]} */
function cellRange(block, level, cell) {
  const most = extent(block);
  const range = (/** @type {number} */ d) => {
    const start = level.first[d] + cell[d] * level.step[d];
    return /** @type {[number, number]} */ ([start, Math.min(start + level.step[d], most[d])]);
  };
  return [range(0), range(1)];
}

/** @param {number} k @param {Block} block @param {0 | 1} d @returns {[number, number]} a window of single entries around one */
function around(k, block, d) {
  const start = Math.max(0, Math.min(k - SIDE / 2, extent(block)[d] - SIDE));
  return [start, Math.min(start + SIDE, extent(block)[d])];
}

/**
 * "d out[0,2] / d weight[1,2]", or the ranges that a pooled cell stands for.
 * @param {Block} block @param {Level} level @param {[number, number]} cell
 */
export function entryName(block, level, cell) {
  const names = [block.output_name, block.input_name];
  const sizes = [block.output_shape, block.input_shape];
  const parts = cellRange(block, level, cell).map(([start, end], d) => {
    const from = index(unravel(start, sizes[d]));
    return `d ${names[d]}${end - start > 1 ? `${from}…${index(unravel(end - 1, sizes[d]))}` : from}`;
  });
  return parts.join(" / ");
}

/**
 * @param {HTMLCanvasElement[]} canvases
 * @param {() => Level} top
 * @param {() => number} room
 * @param {(row: number, col: number) => void} move
 * @param {() => void} choose
 */
function pointer(canvases, top, room, move, choose) {
  const under = (/** @type {MouseEvent} */ event) => {
    const [w, h] = cellSize(top().rows, top().cols, room());
    return /** @type {[number, number]} */ ([Math.floor(event.offsetY / h), Math.floor(event.offsetX / w)]);
  };
  for (const canvas of canvases) {
    let frame = 0;
    canvas.addEventListener("pointermove", (event) => {
      const cell = under(event);
      cancelAnimationFrame(frame);
      frame = requestAnimationFrame(() => move(...cell));
    });
    canvas.addEventListener("click", (event) => {
      cancelAnimationFrame(frame);
      move(...under(event));
      choose();
    });
  }
}
