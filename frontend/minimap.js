// The whole picture, small, beside the part in sight; a click or a drag goes there.

import { el, svg } from "./shared.js";

/** @typedef {import("./scene.js").Rect} Rect */

const WIDE = 150, TALL = 190, NARROW = 46;

/**
 * @param {import("./scene.js").Layout} layout
 * @param {(x: number, y: number) => void} go
 */
export function minimap({ width, height, boxes }, go) {
  const scale = Math.min(WIDE / width, TALL / height);
  const [w, h] = [width, height].map((side) => Math.max(side * scale, NARROW));
  const sight = el("div", "sight");
  const element = el("div", { class: "minimap", "aria-hidden": "true", hidden: true }, svg("svg", { width: w, height: h, viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none" }), sight);
  const to = (/** @type {PointerEvent} */ event) => {
    const place = element.getBoundingClientRect();
    go(((event.clientX - place.left) / w) * width, ((event.clientY - place.top) / h) * height);
  };
  element.addEventListener("pointerdown", (event) => (element.setPointerCapture(event.pointerId), to(event)));
  element.addEventListener("pointermove", (event) => event.buttons && to(event));
  return {
    element,
    /** @param {Rect} view @param {boolean} whole whether all is in sight */
    look: (view, whole) => {
      const picture = element.firstElementChild;
      if (!whole && !picture?.firstChild) picture?.append(svg("path", { d: boxes.map((b) => `M${b.x},${b.y}h${b.width}v${b.height}h-${b.width}`).join("") }));
      element.hidden = whole;
      sight.style.cssText = `left:${(view.x / width) * w}px;top:${(view.y / height) * h}px;width:${(view.width / width) * w}px;height:${Math.max(3, (view.height / height) * h)}px`;
    },
  };
}
