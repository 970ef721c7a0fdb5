// Frames around the boxes of one module, behind a picture of the graph.

import { svg } from "./dom.js";
import { nameOf } from "./scene.js";

/** @typedef {import("./scene.js").Box} Box */
/** @typedef {{path: string, inside: Box[], name: string, at: number, left: number, top: number, right: number, bottom: number}} Frame */

const PAD = 6, // px between a frame and what is in it, and as many for each frame inside
  FOOT = 3, // px below; the label of an edge stands between it and the next frame
  HEAD = 15, // px above for its name
  LETTER = 7, // px of a name, at most on average
  INSET = 9; // px of a box left and right of its words
const MOST = 400; // boxes; among more nobody sees frames

/**
 * A frame for each module of which several boxes are drawn, one in each column, where nothing else stands between them;
 * and the boxes, whose words leave out the name of the frame around them.
 * @param {import("./states").Layout} layout
 * @param {Record<string, string>} scopes the module of each box, by its key
 * @param {Record<string, string>} classes of the modules that are called by numbers
 */
export function framed({ boxes, paths }, scopes, classes) {
  const found = boxes.length > MOST ? [] : modules(boxes, scopes),
    names = found.map(([path]) => path),
    turns = paths.flatMap(turn);
  /** @param {string} path @returns {number} how many frames stand in each other there */
  const depth = (path) =>
    1 + Math.max(0, ...names.filter((p) => p.startsWith(`${path}.`)).map(depth));
  /** @param {Box} box @returns {number} a number that boxes of one column share */
  const column = (box) => turns.filter((x) => x < box.x).length;
  const parts = found.flatMap(([path, inside]) =>
    [...new Set(inside.map(column))].map((number) => ({
      path,
      inside: inside.filter((box) => column(box) === number),
    })),
  );
  const drawn = parts.flatMap(({ path, inside }) => {
    const own = new Set(inside.map(({ key }) => key)),
      edges = paths.filter(({ source, target }) => own.has(source) && own.has(target));
    /** @param {number[]} xs */
    const around = (xs) => frame(path, inside, boxes, PAD * depth(path), xs);
    return around(edges.flatMap(({ points }) => points.map(([x]) => x))) ?? around([]) ?? [];
  });
  drawn.sort((a, b) => a.path.length - b.path.length);
  drawn.forEach((inner, k) => {
    name(inner, drawn.slice(0, k));
    describe(inner, classes[inner.path]);
  });
  return {
    frames: svg("g", { class: "frames", "aria-hidden": "true" }, ...drawn.map(picture)),
    boxes: boxes.map((box) => {
      const around = drawn.findLast(({ inside }) => inside.includes(box));
      return around ? shortened(box, `${around.path}.`) : box;
    }),
  };
}

/** @param {Frame} inner @param {Frame[]} others its name leaves out that of the frame around it, and stands beside that */
function name(inner, others) {
  const outer = others.findLast(({ inside }) => inside.includes(inner.inside[0]));
  if (outer) inner.name = inner.path.slice(outer.path.length + 1);
  if (outer?.top === inner.top)
    inner.at = Math.max(inner.at, outer.at + LETTER * outer.name.length + PAD);
}

/** @param {Frame} frame @param {string | undefined} type a number says nothing by itself: its whole path and its class */
function describe(frame, type) {
  const { path, name, at, right } = frame,
    fits = [`${path} ${type}`, path].find((words) => at + LETTER * words.length <= right);
  if (type) frame.name = fits ?? name;
}

/** @param {Frame} frame */
const picture = ({ name, at, left, top, right, bottom }) =>
  svg(
    "g",
    null,
    svg("rect", { x: left, y: top, width: right - left, height: bottom - top, rx: 8 }),
    svg("text", { x: at, y: top + 11 }, name),
  );

/** @param {import("./states").Path} path @returns {number[]} where it rises to the top of the next column */
const turn = ({ edges, points }) =>
  points
    .filter(([x, y], k) => edges.length && k && x === points[k - 1][0] && y < points[k - 1][1])
    .map(([x]) => x);

/** @param {Box} box @param {string} path what its words leave out, and stay in the middle */
function shortened(box, path) {
  /** @param {Box["lines"][0]} line */
  function short(line) {
    const whole = nameOf(box).includes(line.text) ? line.text : box.title.split(";")[0]; // it was cut
    if (line.style !== "text" || !whole.includes(path)) return line;
    const all = whole.replaceAll(path, ""),
      most = line.text.length, // a cut one is as wide as a box may be
      text = all.length > most ? `${all.slice(0, most - 13)}…${all.slice(-12)}` : all,
      left = Math.max(0, 1 - text.length / line.text.length) / 2;
    return { ...line, text, x: INSET + left * (box.width - 2 * INSET) };
  }
  return { ...box, title: nameOf(box), lines: box.lines.map(short) };
}

/** @param {Box[]} boxes @param {Record<string, string>} scopes the boxes of each module, the innermost of those that hold the same ones last */
function modules(boxes, scopes) {
  /** @type {Map<string, Box[]>} */
  const found = new Map();
  for (const box of boxes) {
    const names = (scopes[box.key] ?? "").split(".");
    for (let k = 1; k <= names.length && names[0]; k++) {
      const path = names.slice(0, k).join(".");
      found.get(path)?.push(box) ?? found.set(path, [box]);
    }
  }
  const sizes = [...found].filter(
    ([, inside]) => inside.some(({ kind }) => kind !== "leaf") && inside.length > 1,
  );
  return sizes.filter(
    ([path, inside]) =>
      !sizes.some(([other, same]) => other.startsWith(`${path}.`) && same.length === inside.length),
  );
}

/** @param {string} path @param {Box[]} inside @param {Box[]} all @param {number} pad @param {number[]} xs what is inside too @returns {Frame | null} */
function frame(path, inside, all, pad, xs) {
  const left = Math.min(...xs, ...inside.map((b) => b.x)) - pad,
    top = Math.min(...inside.map((b) => b.y)) - HEAD,
    right = Math.max(...xs, ...inside.map((b) => b.x + b.width)) + pad,
    bottom = Math.max(...inside.map((b) => b.y + b.height)) + FOOT;
  /** @param {Box} b */
  const within = (b) => b.x < right && b.x + b.width > left && b.y < bottom && b.y + b.height > top;
  if (all.some((b) => within(b) && !inside.includes(b))) return null;
  return { path, inside, name: path, at: left + PAD, left, top, right, bottom };
}
