// Error of finite differences against their step, both logarithmic: the V of truncation and round-off.

import { numbers } from "./arrays.js";
import { el, svg } from "./dom.js";
import { number } from "./formats.js";

/** @typedef {import("./types").Page} Page */

const WIDTH = 300,
  HEIGHT = 150,
  LEFT = 44,
  BOTTOM = 32,
  TOP = 10,
  RIGHT = 10;

/**
 * The curve that came with a block, for its worst entry.
 * @param {Page} page
 * @param {import("./states").BlockState} block
 * @param {number} [at] a step to mark
 */
export function curveView(page, block, at) {
  const points = pointsOf(block);
  return points.length > 1 ? curve(page, points, page.t("curve"), at) : null;
}

/** @param {import("./states").BlockState} block @returns {number[][]} steps and errors, by step */
export function pointsOf({ curve: kept, worst }) {
  if (!kept || !worst) return [];
  const errors = numbers(kept.errors);
  return [...numbers(kept.steps)]
    .map((step, k) => [step, errors[k]])
    .filter(([s, e]) => s > 0 && Number.isFinite(e))
    .sort((a, b) => a[0] - b[0]);
}

/**
 * @param {Page} page
 * @param {number[][]} points steps and errors
 * @param {string} title
 * @param {number} [at]
 */
export function curve(page, points, title, at) {
  if (points.every(([, error]) => error === 0)) {
    const exact = el("p", null, page.t("curve_exact"));
    return el("figure", "curve", el("figcaption", null, title), exact);
  }
  const floor = Math.max(1e-18, Math.min(...points.map(([, e]) => (e > 0 ? e : Infinity)), 1));
  const steps = points.map(([s]) => s),
    xs = steps.map(Math.log10),
    ys = points.map(([, e]) => Math.log10(Math.max(e, floor)));
  const [x, xTicks] = axis(xs, LEFT, WIDTH - RIGHT),
    [y, yTicks] = axis(ys, HEIGHT - BOTTOM, TOP);
  const best = ys.indexOf(Math.min(...ys)),
    marked = at === undefined ? best : nearest(steps, at);
  const name = page.t("curve_alt", {
    best: number(points[best][0], 2),
    error: number(points[best][1], 2),
  });
  /** @param {number} k */
  function power(k) {
    return k === 0 ? "1" : `1e${k}`;
  }
  return el(
    "figure",
    { class: "curve" },
    el("figcaption", null, title),
    svg(
      "svg",
      {
        viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
        width: WIDTH,
        height: HEIGHT,
        role: "img",
        "aria-label": name,
      },
      ...yTicks.map((k) =>
        svg(
          "g",
          { class: "tick" },
          svg("line", { x1: LEFT, x2: WIDTH - RIGHT, y1: y(k), y2: y(k) }),
          svg("text", { x: LEFT - 5, y: y(k) + 3.5, "text-anchor": "end" }, power(k)),
        ),
      ),
      ...xTicks.map((k) =>
        svg("text", { x: x(k), y: HEIGHT - BOTTOM + 16, "text-anchor": "middle" }, power(k)),
      ),
      svg(
        "text",
        { x: (LEFT + WIDTH - RIGHT) / 2, y: HEIGHT - 3, "text-anchor": "middle" },
        page.t("step"),
      ),
      svg("polyline", { class: "line", points: xs.map((v, k) => `${x(v)},${y(ys[k])}`).join(" ") }),
      ...xs.map((v, k) =>
        svg(
          "circle",
          { class: k === marked ? "best" : "dot", cx: x(v), cy: y(ys[k]), r: k === marked ? 4 : 2 },
          svg("title", null, `${number(points[k][0], 2)}: ${number(points[k][1], 2)}`),
        ),
      ),
    ),
  );
}

/** @param {number[]} steps @param {number} step */
export function nearest(steps, step) {
  const far = steps.map((s) => Math.abs(Math.log10(s / step)));
  return far.indexOf(Math.min(...far));
}

/**
 * @param {number[]} values logarithms
 * @param {number} from
 * @param {number} to
 * @returns {[(value: number) => number, number[]]} the axis' place of a value, and whole powers to write
 */
function axis(values, from, to) {
  const low = Math.floor(Math.min(...values)),
    high = Math.max(low + 1, Math.ceil(Math.max(...values)));
  const every = Math.max(1, Math.ceil((high - low) / 5));
  const ticks = Array.from(
    { length: Math.floor((high - low) / every) + 1 },
    (_, k) => low + k * every,
  );
  return [(value) => from + ((value - low) / (high - low)) * (to - from), ticks];
}
