// One entry close up: the output along that input, the slope that backward claims, the secant of finite differences.

import { numbers } from "./arrays.js";
import { curve, nearest } from "./curve.js";
import { el, prose, svg } from "./dom.js";
import { compared, number } from "./formats.js";
import { entryName } from "./levels.js";
import { ask } from "./wire.js";

/** @typedef {import("./types").Page} Page */
/** @typedef {import("./states").BlockState} Block */

const WIDTH = 300,
  HEIGHT = 150,
  EDGE = 14;

/**
 * A slider over some numbers: it stops at those that there are, and says the one it stands on.
 * @param {string} name
 * @param {number[]} stops
 * @param {number} at the number to begin with; the nearest stop is taken
 * @param {(stop: number) => void} moved
 */
export function slider(name, stops, at, moved) {
  const shown = el("span", { "aria-hidden": "true" });
  const value = nearest(stops, at);
  const input = el("input", { type: "range", min: 0, max: stops.length - 1, step: 1, value });
  function say() {
    shown.textContent = number(stops[+input.value], 2);
    input.setAttribute("aria-valuetext", shown.textContent);
  }
  input.addEventListener("input", () => {
    say();
    moved(stops[+input.value]);
  });
  say();
  return el("label", "slider", name, input, shown);
}

/**
 * @param {Page} page
 * @param {Block} block
 * @param {[number, number]} entry
 * @param {AbortSignal} signal
 */
export function microscope(page, block, entry, signal) {
  const box = el("section", "stack", page.t("asking"));
  const place = [block.output, block.input];
  ask(page.model, { kind: "microscope", block: place, entry }, signal, page.t("no_kernel"))
    .then((seen) => box.replaceChildren(...lens(page, entryName(block, entry), seen)))
    .catch((problem) => box.replaceChildren(problem.message));
  return box;
}

/** @param {Page} page @param {string} entry its name @param {import("./states").MicroscopeAnswer} seen what Python answered */
function lens(page, entry, { steps, curves, claimed, found }) {
  const title = el("h5", null, page.t("microscope"), page.t("colon"), el("code", null, entry));
  const [first] = Object.values(curves);
  if (!Number(claimed) && Object.values(curves).every(isFlat))
    return [
      title,
      el("p", { role: "status" }, page.t("microscope_flat", { value: number(first.center) })),
    ];
  const names = Object.keys(curves),
    drawing = el("div", "columns"),
    said = el("p", { role: "status" });
  let dtype = names[0],
    step = 1e-2;
  function paint() {
    const seen = curves[dtype],
      [plus, minus] = [seen.plus, seen.minus].map(numbers),
      center = Number(seen.center),
      k = nearest(steps, step);
    const drawn = { steps, center, plus, minus, k, claimed: Number(claimed) };
    const secants = steps.map((s, i) => (plus[i] - minus[i]) / (2 * s));
    const errors = secants
      .map((s, i) => /** @type {[number, number]} */ ([steps[i], Math.abs(s - Number(found))]))
      .filter((point) => Number.isFinite(point[1]));
    drawing.replaceChildren(
      picture(page, { ...drawn, secant: secants[k] }),
      errors.length > 1 ? curve(page, errors, page.t("microscope_curve", { dtype }), steps[k]) : "",
    );
    const [secant, slope] = compared(secants[k], claimed, 8);
    const words = page.t("microscope_say", {
      step: number(steps[k], 2),
      dtype,
      secant,
      claimed: slope,
      difference: number(Math.abs(secants[k] - Number(claimed)), 2),
    });
    said.replaceChildren(prose(words));
  }
  const choice = el(
    "select",
    { "aria-label": page.t("precision"), on: { change: () => ((dtype = choice.value), paint()) } },
    ...names.map((name) => el("option", null, name)),
  );
  paint();
  const ascending = [...steps].sort((a, b) => a - b);
  return [
    el(
      "div",
      "bar",
      title,
      slider(page.t("step"), ascending, step, (to) => ((step = to), paint())),
      choice,
    ),
    drawing,
    said,
  ];
}

/** @param {import("./states").EntryCurveState} curve @returns {boolean} whether the output stays what it is at every step */
const isFlat = ({ center, plus, minus }) =>
  [...numbers(plus), ...numbers(minus)].every((value) => value === Number(center));

/**
 * @param {Page} page
 * @param {{steps: number[], center: number, plus: ArrayLike<number>, minus: ArrayLike<number>, k: number, claimed: number, secant: number}} seen
 */
function picture(page, { steps, center, plus, minus, k, claimed, secant }) {
  const h = steps[k],
    middle = (plus[k] + minus[k]) / 2 - center;
  /** @type {[number, number][]} what the output does within the step: [move, change] */
  const points = [[0, 0]];
  for (let i = k; i < steps.length; i++)
    points.push([steps[i], plus[i] - center], [-steps[i], minus[i] - center]);
  const sound = points.filter(([, v]) => Number.isFinite(v)).sort((a, b) => a[0] - b[0]);
  const most = Math.max(
    1e-300,
    ...[...sound.map(([, v]) => v), claimed * h, secant * h + middle]
      .map(Math.abs)
      .filter(Number.isFinite),
  );
  /** @param {number} t @param {number} v */
  function at(t, v) {
    return [
      WIDTH / 2 + (t / h) * (WIDTH / 2 - EDGE),
      HEIGHT / 2 - (v / most) * (HEIGHT / 2 - EDGE),
    ];
  }
  /** @param {string} name @param {number} by @param {number} from */
  function slope(name, by, from) {
    const [[x1, y1], [x2, y2]] = [at(-h, from - by * h), at(h, from + by * h)];
    return Number.isFinite(y1 + y2) && svg("line", { class: name, x1, y1, x2, y2 });
  }
  return el(
    "figure",
    "curve",
    el(
      "figcaption",
      null,
      el("span", "secant", `— ${page.word("panel", "numerical")}`),
      " ",
      el("span", "claimed", `— ${page.word("panel", "analytical")}`),
    ),
    svg(
      "svg",
      {
        viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
        width: WIDTH,
        role: "img",
        "aria-label": page.t("microscope_alt", { step: number(h, 2) }),
      },
      svg("polyline", { class: "output", points: sound.map(([t, v]) => at(t, v)).join(" ") }),
      slope("secant", secant, middle),
      slope("claimed", claimed, 0),
      ...sound
        .filter(([t]) => !t || Math.abs(t) === h)
        .map(([t, v]) => svg("circle", { class: "dot", cx: at(t, v)[0], cy: at(t, v)[1], r: 3 })),
    ),
  );
}
