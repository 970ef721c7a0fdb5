// A large graph from afar: too small to read, so its boxes are painted on a canvas in place of thousands of elements.

import { el } from "./dom.js";

/** @typedef {import("./scene.js").Rect} Rect */

const MANY = 400,
  LEGIBLE = 0.35; // more boxes than that, drawn smaller than that, are painted
const SHORTEST = 3,
  DOT = 5; // px on the page: of an edge that is painted, and of a box that is marked

/**
 * @param {import("./types").Page} page
 * @param {import("./scene.js").Layout} layout
 * @param {import("./scene.js").Scene} picture
 */
export function overview(page, { boxes, paths }, picture) {
  const canvas = el("canvas", { class: "overview", "aria-hidden": "true", hidden: true });
  const ends = Float64Array.from(
    paths.flatMap(({ points }) => [...points[0], ...points[points.length - 1]]),
  );
  /** @type {[Rect, number] | null} */
  let last = null;
  /** @param {Rect} view @param {number} scale */
  function paint(view, scale) {
    const sharp = Math.min(2, devicePixelRatio),
      [w, h] = [view.width * scale, view.height * scale];
    if (canvas.width !== Math.round(w * sharp) || canvas.height !== Math.round(h * sharp))
      Object.assign(canvas, { width: w * sharp, height: h * sharp });
    const pen = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d")),
      look = getComputedStyle(canvas);
    pen.setTransform(sharp, 0, 0, sharp, 0, 0);
    pen.clearRect(0, 0, w, h);
    pen.strokeStyle = look.outlineColor;
    pen.beginPath();
    for (let k = 0; k < ends.length; k += 4) {
      const [x1, y1, x2, y2] = [
        (ends[k] - view.x) * scale,
        (ends[k + 1] - view.y) * scale,
        (ends[k + 2] - view.x) * scale,
        (ends[k + 3] - view.y) * scale,
      ];
      if (y2 < 0 || y1 > h || Math.abs(x2 - x1) + Math.abs(y2 - y1) < SHORTEST) continue;
      pen.moveTo(x1, y1);
      pen.lineTo(x2, y2);
    }
    pen.stroke();
    /** @param {Rect[]} some @param {string} colour @param {number} least */
    function fill(some, colour, least) {
      pen.fillStyle = colour;
      for (const b of some) {
        const [x, y, bw, bh] = [
          (b.x - view.x) * scale,
          (b.y - view.y) * scale,
          Math.max(least, b.width * scale),
          Math.max(least, b.height * scale),
        ];
        if (x < w && y < h && x + bw > 0 && y + bh > 0) pen.fillRect(x, y, bw, bh);
      }
    }
    fill(boxes, look.color, 1);
    fill(picture.marked, look.caretColor, DOT);
  }
  /** @param {number} scale whether the boxes are painted as dots at it */
  const paints = (scale) => boxes.length > MANY && scale < LEGIBLE;
  const again = () => last && paint(...last);
  page.onTheme(again, page.signal);
  picture.onMark(again);
  return {
    canvas,
    /** @param {Rect} view @param {number} scale @returns {boolean} whether it is painted */
    look: (view, scale) => {
      last = paints(scale) ? [view, scale] : null;
      canvas.hidden = !last;
      again();
      return Boolean(last);
    },
    far: () => Boolean(last),
    paints,
  };
}
