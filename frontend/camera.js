// Pan and zoom of a drawing. It is drawn larger than its frame and then only shifted, which costs the page next to nothing.

import { el, icon } from "./dom.js";

/** @typedef {import("./types").Page} Page */
/** @typedef {import("./scene.js").Rect} Rect */
/** @typedef {{scale: number, x: number, y: number}} Place how large the drawing is, and its left top in sight */

export const PAD = 320; // px drawn beyond the frame on each side, as in the stylesheet
const FLIGHT = 260, // ms
  MARGIN = 40; // px between what is followed and the frame
const TALLEST = 460,
  SMALLEST = 0.05,
  LARGEST = 4;
export const READABLE = 0.7; // the smallest letters have 7 px; a picture that would become smaller than this begins at its top, and is panned

/**
 * @param {Page} page
 * @param {SVGSVGElement} drawing
 * @param {HTMLElement} frame
 * @param {{width: number, height: number, boxes: Rect[]}} size
 * @param {{draw: (part: Rect, scale: number) => void, see: (view: Rect, whole: boolean) => void, textless: (scale: number) => boolean}} tell what must be drawn now; what is in sight, and whether that is all; at which scales no text is drawn
 * @param {Place | undefined} start
 */
export function camera(page, drawing, frame, size, tell, start) {
  let scale = 1,
    x = 0,
    y = 0,
    moved = false,
    drawn = { key: "", x: 0, y: 0 },
    flight = 0;
  const room = () => frame.clientWidth || size.width;
  const tall = () =>
    Math.min(TALLEST, Math.max(120, size.height * Math.min(1, room() / size.width)));
  const whole = () =>
    Math.min(1, room() / size.width, (frame.clientHeight || TALLEST) / size.height);
  function apply() {
    const view = { x, y, width: room() / scale, height: frame.clientHeight / scale };
    const key = [scale, room(), frame.clientHeight].join(),
      away = Math.max(Math.abs(drawn.x - x), Math.abs(drawn.y - y)) * scale;
    if (key !== drawn.key || away > PAD) {
      drawn = { key, x, y };
      const part = {
        x: x - PAD / scale,
        y: y - PAD / scale,
        width: view.width + (2 * PAD) / scale,
        height: view.height + (2 * PAD) / scale,
      };
      drawing.setAttribute("viewBox", `${part.x} ${part.y} ${part.width} ${part.height}`);
      tell.draw(part, scale);
    }
    for (const layer of /** @type {Iterable<HTMLElement | SVGElement>} */ (frame.children))
      layer.style.translate = `${Math.round((drawn.x - x) * scale)}px ${Math.round((drawn.y - y) * scale)}px`; // whole pixels are copied, others blended
    frame.dataset.view = [x, y, view.width, view.height].join(" ");
    tell.see(view, view.width >= size.width - 1 && view.height >= size.height - 1);
  }
  const land = () => cancelAnimationFrame(flight);
  /** @param {number} least */
  function fit(least) {
    land();
    const before = room();
    fitOnce(least);
    if (room() !== before) fitOnce(least); // the minimap has come or gone
  }
  /** @param {number} least */
  function fitOnce(least) {
    frame.style.height = `${tall()}px`;
    scale = whole() < least ? Math.min(1, Math.max(least, room() / size.width)) : whole();
    const [spare, first] = [size.width - room() / scale, size.boxes[0]];
    x =
      spare <= 0
        ? spare / 2
        : least
          ? Math.max(0, Math.min(spare, first.x + (first.width - room() / scale) / 2))
          : 0;
    y = 0;
    apply();
  }
  /** @param {number} by */
  function zoom(by, px = room() / 2, py = frame.clientHeight / 2) {
    land();
    const next = Math.max(Math.min(SMALLEST, whole()), Math.min(LARGEST, scale * by));
    x += px / scale - px / next;
    y += py / scale - py / next;
    scale = next;
    apply();
  }
  /** @param {number} cx @param {number} cy */
  function centre(cx, cy) {
    land();
    x = cx - room() / scale / 2;
    y = cy - frame.clientHeight / scale / 2;
    apply();
  }
  /** @param {Rect} box move to it, near enough to read it */
  function fly(box) {
    land();
    const from = { scale, x, y },
      near = Math.max(scale, READABLE);
    const to = {
      scale: near,
      x: box.x + box.width / 2 - room() / near / 2,
      y: box.y + box.height / 2 - frame.clientHeight / near / 2,
    };
    const begun = performance.now();
    /** @param {number} now */
    function move(now) {
      const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
      const t = still ? 1 : Math.min(1, Math.max(0, now - begun) / FLIGHT),
        s = t * t * (3 - 2 * t);
      /** @param {"scale" | "x" | "y"} k */
      function part(k) {
        return from[k] + (to[k] - from[k]) * s;
      }
      [scale, x, y] = [part("scale"), part("x"), part("y")];
      apply();
      if (t < 1) flight = requestAnimationFrame(move);
    }
    move(begun);
  }
  drag(
    drawing,
    (dx, dy) => (land(), (x -= dx / scale), (y -= dy / scale), apply()),
    (yes) => (moved = yes),
  );
  frame.addEventListener(
    "wheel",
    (event) => {
      if (!event.ctrlKey && !event.metaKey) return; // the wheel alone scrolls the notebook
      event.preventDefault();
      const place = frame.getBoundingClientRect();
      zoom(Math.exp(-event.deltaY / 300), event.clientX - place.left, event.clientY - place.top);
    },
    { passive: false },
  );
  let wide = 0;
  const watcher = new ResizeObserver(() => {
    const now = frame.parentElement?.clientWidth ?? 0; // the minimap beside it takes from the frame alone
    if (now === wide || !frame.clientWidth) return void (frame.clientWidth && apply());
    wide = now;
    if (!start) return fit(READABLE);
    frame.style.height = `${tall()}px`;
    ({ scale, x, y } = start);
    start = undefined;
    apply();
  });
  watcher.observe(frame);
  page.signal.addEventListener("abort", () => (watcher.disconnect(), land()), { once: true });
  return {
    buttons: el(
      "span",
      "group",
      icon("−", page.t("zoom_less"), () => zoom(1 / 1.3)),
      icon("+", page.t("zoom_more"), () => zoom(1.3)),
      icon("⤢", page.t("zoom_fit"), () => fit(tell.textless(whole()) ? 0 : READABLE)),
    ),
    dragged: () => moved,
    centre,
    place: () => /** @type {Place} */ ({ scale, x, y }),
    /** @param {MouseEvent} event go near to what was pointed at */
    near: (event) => {
      const place = frame.getBoundingClientRect();
      const [cx, cy] = [
        x + (event.clientX - place.left) / scale,
        y + (event.clientY - place.top) / scale,
      ];
      scale = READABLE;
      centre(cx, cy);
    },
    /** @param {Rect | undefined} box fly there */
    find: (box) => box && frame.clientHeight && fly(box),
    /** @param {Rect | undefined} box fly there unless it is in sight and can be read */
    follow: (box) => {
      if (!box || !frame.clientHeight) return;
      const [w, h, m] = [room() / scale, frame.clientHeight / scale, MARGIN / scale];
      const inside =
        box.x >= x && box.x + box.width <= x + w && box.y >= y && box.y + box.height <= y + h;
      const deep =
        size.height * scale <= frame.clientHeight ||
        (box.y - m >= y && box.y + box.height + m <= y + h);
      if (!inside || !deep || scale < Math.min(1, READABLE)) fly(box);
    },
    /** @param {Rect | undefined} box bring it into view */
    reveal: (box) => {
      if (!box || !frame.clientHeight) return;
      land();
      const [w, h] = [room() / scale, frame.clientHeight / scale];
      if (box.x < x || box.x + box.width > x + w) x = box.x + box.width / 2 - w / 2;
      if (box.y < y || box.y + box.height > y + h) y = box.y + box.height / 2 - h / 2;
      apply();
    },
  };
}

/**
 * @param {SVGSVGElement} drawing
 * @param {(dx: number, dy: number) => void} move
 * @param {(yes: boolean) => void} moved
 */
function drag(drawing, move, moved) {
  /** @type {[number, number] | null} */
  let last = null;
  let way = 0;
  drawing.addEventListener("pointerdown", (event) => {
    last = [event.clientX, event.clientY];
    way = 0;
    moved(false);
  });
  drawing.addEventListener("pointermove", (event) => {
    if (!last || !event.buttons) return;
    const [dx, dy] = [event.clientX - last[0], event.clientY - last[1]];
    way += Math.abs(dx) + Math.abs(dy);
    if (way < 4) return;
    if (!drawing.hasPointerCapture(event.pointerId)) drawing.setPointerCapture(event.pointerId);
    moved(true);
    last = [event.clientX, event.clientY];
    move(dx, dy);
  });
  drawing.addEventListener("pointerup", () => (last = null));
}
