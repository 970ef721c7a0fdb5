// Pan and zoom of a drawing. It is drawn larger than its frame and then only shifted, which costs the page next to nothing.

import { el, icon } from "./dom.js";

/** @typedef {import("./types").Page} Page */
/** @typedef {import("./scene.js").Rect} Rect */
/** @typedef {{scale: number, x: number, y: number}} Place how large the drawing is, and its left top in sight */
/** @typedef {{draw: (part: Rect, scale: number) => void, textless: (scale: number) => boolean}} Audience what must be drawn now; at which scales no text is drawn */

export const PAD = 320; // px drawn beyond the frame on each side, as in the stylesheet
const FLIGHT = 260, // ms
  MARGIN = 40; // px between what is followed and the frame
const TALLEST = () => Math.max(460, Math.min(840, 0.85 * innerHeight)), // px of a frame: it stands in sight whole
  SMALLEST = 0.05,
  LARGEST = 4;
export const READABLE = 1; // the smallest letters have 11 px; a picture that would become smaller than this begins at its top, and is panned
const DRAGGED = 4; // px that the pointer goes before a click is a drag

export class Camera {
  #scale = 1;
  #x = 0;
  #y = 0;
  #drawn = { key: "", x: 0, y: 0 };
  #animation = 0;
  #drawing;
  #frame;
  #size;
  #audience;
  #start;
  /** Whether the last press of the pointer moved the drawing: then it was no click. */
  dragged = false;

  /**
   * @param {Page} page
   * @param {SVGSVGElement} drawing
   * @param {HTMLElement} frame
   * @param {{width: number, height: number, boxes: Rect[]}} size
   * @param {Audience} audience
   * @param {Place | undefined} start
   */
  constructor(page, drawing, frame, size, audience, start) {
    this.#drawing = drawing;
    this.#frame = frame;
    this.#size = size;
    this.#audience = audience;
    this.#start = start;
    this.buttons = el(
      "span",
      "group",
      icon("−", page.t("zoom_less"), () => this.zoom(1 / 1.3)),
      icon("+", page.t("zoom_more"), () => this.zoom(1.3)),
      icon("⤢", page.t("zoom_fit"), () => this.fit(audience.textless(this.#whole) ? 0 : READABLE)),
    );
    this.#listenToPointer();
    frame.addEventListener("wheel", (event) => this.#wheel(event), { passive: false });
    this.#watchRoom(page.signal);
  }

  get place() {
    return { scale: this.#scale, x: this.#x, y: this.#y };
  }

  get #room() {
    return this.#frame.clientWidth || this.#size.width;
  }

  /** What is in sight. */
  get #view() {
    const { clientHeight } = this.#frame;
    return {
      x: this.#x,
      y: this.#y,
      width: this.#room / this.#scale,
      height: clientHeight / this.#scale,
    };
  }

  /** The scale at which all is in sight. */
  get #whole() {
    const { width, height } = this.#size;
    return Math.min(1, this.#room / width, (this.#frame.clientHeight || TALLEST()) / height);
  }

  /** Show all of the drawing, or its top where all would be smaller than `least`. */
  fit(least = READABLE) {
    this.#land();
    this.#setHeight();
    const { width, boxes } = this.#size;
    this.#scale = this.#whole;
    if (this.#scale < least) this.#scale = Math.min(1, Math.max(least, this.#room / width));
    const inSight = this.#room / this.#scale,
      spare = width - inSight,
      first = boxes[0].x + (boxes[0].width - inSight) / 2;
    this.#x = spare <= 0 ? spare / 2 : least ? Math.max(0, Math.min(spare, first)) : 0;
    this.#y = 0;
    this.#apply();
  }

  /** @param {number} by */
  zoom(by, px = this.#room / 2, py = this.#frame.clientHeight / 2) {
    this.#land();
    const next = Math.max(Math.min(SMALLEST, this.#whole), Math.min(LARGEST, this.#scale * by));
    this.#x += px / this.#scale - px / next;
    this.#y += py / this.#scale - py / next;
    this.#scale = next;
    this.#apply();
  }

  /** @param {MouseEvent} event zoom in on what it points at */
  zoomTo(event) {
    const place = this.#frame.getBoundingClientRect();
    const x = this.#x + (event.clientX - place.left) / this.#scale,
      y = this.#y + (event.clientY - place.top) / this.#scale;
    this.#land();
    this.#scale = READABLE;
    this.#x = x - this.#view.width / 2;
    this.#y = y - this.#view.height / 2;
    this.#apply();
  }

  /** @param {Rect | undefined} box move to it, near enough to read it */
  flyTo(box) {
    if (!box || !this.#frame.clientHeight) return;
    this.#land();
    const from = this.place,
      scale = Math.max(this.#scale, READABLE),
      x = box.x + box.width / 2 - this.#room / scale / 2,
      y = box.y + box.height / 2 - this.#frame.clientHeight / scale / 2;
    const begun = performance.now();
    /** @param {number} now */
    const move = (now) => {
      const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
      const t = still ? 1 : Math.min(1, Math.max(0, now - begun) / FLIGHT),
        s = t * t * (3 - 2 * t);
      this.#scale = from.scale + (scale - from.scale) * s;
      this.#x = from.x + (x - from.x) * s;
      this.#y = from.y + (y - from.y) * s;
      this.#apply();
      if (t < 1) this.#animation = requestAnimationFrame(move);
    };
    move(begun);
  }

  /** @param {Rect | undefined} box fly there unless it is in sight and can be read */
  follow(box) {
    if (!box || !this.#frame.clientHeight) return;
    const { x, y, width, height } = this.#view,
      margin = MARGIN / this.#scale;
    const inside =
      box.x >= x &&
      box.x + box.width <= x + width &&
      box.y >= y &&
      box.y + box.height <= y + height;
    const clear =
      this.#size.height <= height ||
      (box.y - margin >= y && box.y + box.height + margin <= y + height);
    if (!inside || !clear || this.#scale < READABLE) this.flyTo(box);
  }

  /** @param {Rect | undefined} box shift the drawing until it is in sight */
  reveal(box) {
    if (!box || !this.#frame.clientHeight) return;
    this.#land();
    const { x, y, width, height } = this.#view;
    if (box.x < x || box.x + box.width > x + width) this.#x = box.x + box.width / 2 - width / 2;
    if (box.y < y || box.y + box.height > y + height) this.#y = box.y + box.height / 2 - height / 2;
    this.#apply();
  }

  #land() {
    cancelAnimationFrame(this.#animation);
  }

  #setHeight() {
    const tall = this.#size.height * Math.min(1, this.#room / this.#size.width);
    this.#frame.style.height = `${Math.min(TALLEST(), Math.max(120, tall))}px`;
  }

  #apply() {
    const view = this.#view,
      scale = this.#scale,
      key = [scale, this.#room, this.#frame.clientHeight].join();
    const away = Math.max(Math.abs(this.#drawn.x - this.#x), Math.abs(this.#drawn.y - this.#y));
    if (key !== this.#drawn.key || away * scale > PAD) {
      this.#drawn = { key, x: this.#x, y: this.#y };
      const part = {
        x: view.x - PAD / scale,
        y: view.y - PAD / scale,
        width: view.width + (2 * PAD) / scale,
        height: view.height + (2 * PAD) / scale,
      };
      this.#drawing.setAttribute("viewBox", `${part.x} ${part.y} ${part.width} ${part.height}`);
      this.#audience.draw(part, scale);
    }
    for (const layer of /** @type {Iterable<HTMLElement | SVGElement>} */ (this.#frame.children))
      layer.style.translate = `${Math.round((this.#drawn.x - this.#x) * scale)}px ${Math.round((this.#drawn.y - this.#y) * scale)}px`; // whole pixels are copied, others blended
    this.#frame.dataset.view = [view.x, view.y, view.width, view.height].join(" ");
  }

  /** @param {WheelEvent} event */
  #wheel(event) {
    if (!event.ctrlKey && !event.metaKey) return; // the wheel alone scrolls the notebook
    event.preventDefault();
    const place = this.#frame.getBoundingClientRect();
    this.zoom(Math.exp(-event.deltaY / 300), event.clientX - place.left, event.clientY - place.top);
  }

  #listenToPointer() {
    const drawing = this.#drawing;
    /** @type {{x: number, y: number} | null} */
    let last = null;
    let path = 0;
    drawing.addEventListener("pointerdown", ({ clientX, clientY }) => {
      last = { x: clientX, y: clientY };
      path = 0;
      this.dragged = false;
    });
    drawing.addEventListener("pointermove", ({ buttons, clientX, clientY, pointerId }) => {
      if (!last || !buttons) return;
      const dx = clientX - last.x,
        dy = clientY - last.y;
      path += Math.abs(dx) + Math.abs(dy);
      if (path < DRAGGED) return;
      if (!drawing.hasPointerCapture(pointerId)) drawing.setPointerCapture(pointerId);
      this.dragged = true;
      last = { x: clientX, y: clientY };
      this.#land();
      this.#x -= dx / this.#scale;
      this.#y -= dy / this.#scale;
      this.#apply();
    });
    drawing.addEventListener("pointerup", () => (last = null));
  }

  /** @param {AbortSignal} signal */
  #watchRoom(signal) {
    let wide = 0;
    const watcher = new ResizeObserver(() => {
      const now = this.#frame.parentElement?.clientWidth ?? 0;
      if (!this.#frame.clientWidth) return;
      if (now === wide) return this.#apply();
      wide = now;
      if (!this.#start) return this.fit();
      this.#setHeight();
      ({ scale: this.#scale, x: this.#x, y: this.#y } = this.#start);
      this.#start = undefined;
      this.#apply();
    });
    watcher.observe(this.#frame);
    const stop = () => (watcher.disconnect(), this.#land());
    signal.addEventListener("abort", stop, { once: true });
  }
}
