// The whole picture, small, beside the frame, while not all is in sight; a click or a drag goes there.

import { el, svg } from "./dom.js";

/** @typedef {import("./scene.js").Rect} Rect */

const WIDE = 130,
  NARROW = 46; // px; at most a quarter of the room is taken

/**
 * @param {import("./scene.js").Layout} layout
 * @param {HTMLElement} frame
 * @param {(x: number, y: number) => void} go
 */
export function minimap({ width, height, boxes }, frame, go) {
  const sight = el("div", "sight"),
    element = el("div", { class: "minimap", "aria-hidden": "true", hidden: true });
  let [w, h] = [NARROW, NARROW];
  function make() {
    const room = frame.parentElement?.clientWidth ?? 0,
      tall = frame.clientHeight;
    const scale = Math.min(Math.min(WIDE, room / 4) / width, tall / height);
    [w, h] = [Math.max(width * scale, NARROW), Math.max(height * scale, Math.min(NARROW, tall))];
    element.replaceChildren(
      svg(
        "svg",
        { width: w, height: h, viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none" },
        svg("path", {
          d: boxes.map((b) => `M${b.x},${b.y}h${b.width}v${b.height}h-${b.width}`).join(""),
        }),
      ),
      sight,
    );
  }
  /** @param {PointerEvent} event */
  function to(event) {
    const place = element.getBoundingClientRect();
    go(((event.clientX - place.left) / w) * width, ((event.clientY - place.top) / h) * height);
  }
  element.addEventListener(
    "pointerdown",
    (event) => (element.setPointerCapture(event.pointerId), to(event)),
  );
  element.addEventListener("pointermove", (event) => event.buttons && to(event));
  return {
    element,
    /** @param {Rect} view @param {boolean} whole whether all is in sight */
    look: (view, whole) => {
      if (whole === element.hidden && whole) return;
      if (element.hidden && !whole) make();
      element.hidden = whole;
      const [left, top] = [Math.max(0, (view.x / width) * w), Math.max(0, (view.y / height) * h)];
      sight.style.cssText = `left:0;top:0;translate:${left}px ${top}px;width:${Math.max(3, Math.min(w, ((view.x + view.width) / width) * w) - left)}px;height:${Math.max(3, Math.min(h, ((view.y + view.height) / height) * h) - top)}px`;
    },
  };
}
