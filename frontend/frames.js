// Frames around the boxes of one module, behind a picture of the graph.

import { svg } from "./dom.js";
import { nameOf } from "./scene.js";

/** @typedef {import("./scene.js").Box} Box */

const PAD = 6, // px between a frame and what is in it, and as many for each frame inside
  FOOT = 3, // px below; the label of an edge stands between it and the next frame
  HEAD = 15, // px above for its name
  INSET = 9; // px of a box left and right of its words
const MOST = 400; // boxes; among more nobody sees frames

/**
 * A frame for each module of which several boxes are drawn and nothing else stands between them; and the boxes, whose
 * words leave out the name of the frame around them.
 * @param {import("./states").Layout} layout
 * @param {Record<string, string>} scopes the module of each box, by its key
 */
export function framed({ boxes }, scopes) {
  const found = boxes.length > MOST ? [] : modules(boxes, scopes),
    paths = found.map(([path]) => path);
  /** @param {string} path @returns {number} how many frames stand in each other there */
  const depth = (path) =>
    1 + Math.max(0, ...paths.filter((p) => p.startsWith(`${path}.`)).map(depth));
  const drawn = found.map(([path, inside]) => frame(path, inside, boxes, PAD * depth(path)));
  const around = found.filter((_, k) => drawn[k]).sort(([a], [b]) => b.length - a.length);
  return {
    frames: svg("g", { class: "frames", "aria-hidden": "true" }, ...drawn),
    boxes: boxes.map((box) => {
      const path = around.find(([, inside]) => inside.includes(box))?.[0];
      return path === undefined ? box : shortened(box, `${path}.`);
    }),
  };
}

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

/** @param {string} path @param {Box[]} inside @param {Box[]} all @param {number} pad */
function frame(path, inside, all, pad) {
  const left = Math.min(...inside.map((b) => b.x)) - pad,
    top = Math.min(...inside.map((b) => b.y)) - HEAD,
    right = Math.max(...inside.map((b) => b.x + b.width)) + pad,
    bottom = Math.max(...inside.map((b) => b.y + b.height)) + FOOT;
  /** @param {Box} b */
  const within = (b) => b.x < right && b.x + b.width > left && b.y < bottom && b.y + b.height > top;
  if (all.some((b) => within(b) && !inside.includes(b))) return null;
  return svg(
    "g",
    null,
    svg("rect", { x: left, y: top, width: right - left, height: bottom - top, rx: 8 }),
    svg("text", { x: left + 6, y: top + 11 }, path),
  );
}
