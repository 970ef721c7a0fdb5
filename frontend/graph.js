// The backward graph: the laid-out picture that the static report shows, to pan, zoom, search, step through and open.

import { Camera, READABLE } from "./camera.js";
import { el, keys, prose } from "./dom.js";
import { searchField } from "./find.js";
import { framed } from "./frames.js";
import { canRepaint, foldButtons, repaint, unfold, wholeButton } from "./folds.js";
import { legend } from "./legend.js";
import { lenses } from "./lenses.js";
import { boxDetail, linked } from "./node.js";
import { Outline } from "./outline.js";
import { overview } from "./overview.js";
import { Scene } from "./scene.js";
import { BackwardSteps } from "./backward_steps.js";
import { highlightUses } from "./tensor_uses.js";
import { neighbour } from "./neighbours.js";
import { whyButton, whyNone } from "./none_gradients.js";

/** @typedef {import("./types").Page} Page */
/** @typedef {import("./scene.js").Box} Box */

const STEP = 50, // px of a picture's width: nearly the same room asks for the same picture
  AROUND = 34; // px of it that are margins

/**
 * @param {Page} page
 * @param {import("./types").GraphView} state
 */
export function graphView(page, state) {
  if (!state.layout.boxes.length)
    return el("p", "faint", page.t("no_graph"), " ", prose(state.notes.join(" ")));
  const place = el("div", "stack");
  let end = new AbortController();
  page.signal.addEventListener("abort", () => end.abort(), { once: true });
  let latest = state;
  /** @type {LayoutView | undefined} */
  let view;
  /** @param {import("./types").GraphView} next @param {number | undefined} node */
  function redraw(next, node, fresh = true) {
    latest = { ...next, redraw };
    end.abort();
    end = new AbortController();
    const { signal } = end;
    /** @type {Page} */
    const local = {
      ...page,
      signal,
      onTheme: (f, until = signal) => page.onTheme(f, until),
      onSelect: (f, until = signal) => page.onSelect(f, until),
    };
    const at = /** @type {ShadowRoot} */ (place.getRootNode()).activeElement?.getAttribute(
      "data-at",
    );
    view = new LayoutView(local, { ...latest, start: fresh ? undefined : view?.place });
    place.replaceChildren(view.element);
    view.begin(node);
    if (at) /** @type {HTMLElement | null} */ (place.querySelector(`[data-at=${at}]`))?.focus();
  }
  redraw(state, undefined);
  onRoom(page, place, (room) => rewrap(page, latest, room));
  return place;
}

/**
 * Tell how wide a view is, whenever that changes.
 * @param {Page} page @param {HTMLElement} place @param {(room: number) => void} tell
 */
function onRoom(page, place, tell) {
  let last = 0;
  const watcher = new ResizeObserver(() => {
    const room = place.clientWidth;
    if (room && room !== last) tell((last = room));
  });
  watcher.observe(place);
  page.signal.addEventListener("abort", () => watcher.disconnect(), { once: true });
}

/**
 * Have a long chain wrapped anew where the columns do not fit the room while their words can be read, and again where
 * there is more room.
 * @param {Page} page @param {import("./types").GraphView} state @param {number} room px
 */
function rewrap(page, state, room) {
  const wide = Math.floor((room / READABLE - AROUND) / STEP) * STEP;
  const wanted = wide < state.widest ? wide : null;
  const fits = state.layout.width <= wide + AROUND && !state.wide;
  if (fits || wanted === (state.wide ?? null) || !canRepaint(page, state)) return;
  repaint(page, state, { wide: wanted }).catch(() => {}); // the picture that is there can be panned
}

/** The view of one layout of the graph: which box is focused, which is open, and where the keys lead. */
class LayoutView {
  #page;
  #state;
  #scene;
  #overview;
  #camera;
  #first;
  #unfold;
  #detail = el("div", { class: "detail", hidden: true });

  /**
   * @param {Page} page
   * @param {import("./types").GraphView} state
   */
  constructor(page, state) {
    const { frames, boxes } = framed(state.layout, state.scopes, state.classes),
      layout = { ...state.layout, boxes };
    this.#page = page;
    this.#state = state;
    this.#scene = new Scene(page, layout, frames);
    const reached = new Set(layout.paths.filter(isWrong).map((path) => path.target));
    if (reached.size)
      this.#scene.mark("wrong", (key, path) => (path ? isWrong(path) : reached.has(key)));
    this.#first = this.#scene.pinned;
    this.#unfold = canRepaint(page, state)
      ? (/** @type {Box} */ box) => void unfold(page, state, box).catch(() => {})
      : null;
    const { drawing } = this.#scene,
      afar = (this.#overview = overview(page, layout, this.#scene));
    const frame = el(
      "div",
      { class: "graph-frame", title: layout.description },
      afar.canvas,
      drawing,
    );
    this.#camera = new Camera(
      page,
      drawing,
      frame,
      layout,
      {
        draw: (part, scale) => this.#scene.show(afar.look(part, scale) ? null : part),
        textless: afar.paints,
      },
      state.start,
    );
    this.#markOpen();
    drawing.addEventListener("click", (event) => this.#click(event));
    keys(drawing, this.#keys());
    this.element = this.#build(frame);
    page.onSelect(({ node }) => void this.#revealNode(node));
  }

  /** Where the view is, for the next one of the same graph. */
  get place() {
    return this.#camera.place;
  }

  /** @param {number | undefined} node where to go first; else the box that was open is opened again */
  begin(node) {
    const box = this.#revealNode(node);
    const open = box ?? this.#boxOf(this.#state.open);
    const act = () => (box ? this.visit(box.key) : open && this.open(open.key));
    requestAnimationFrame(() => requestAnimationFrame(act)); // once the frame has its size
  }

  /** @param {string} key bring a box into view */
  reveal(key) {
    this.#scene.pin(key);
    this.#camera.reveal(this.#scene.boxes.get(key));
  }

  /** @param {string} key give it the keyboard, in view */
  focus(key) {
    this.reveal(key);
    this.#scene.pin(key)?.focus({ preventScroll: true });
  }

  /** @param {string} key show its details, in view */
  open(key) {
    this.reveal(key);
    const page = this.#page,
      state = this.#state,
      box = this.#scene.boxes.get(key);
    if (!box) return;
    this.#setOpen(true);
    const buttons = [whyButton(page, state, box), foldButtons(page, state, box)];
    this.#detail.replaceChildren(
      boxDetail(page, state, box, () => this.close(), el("span", "group", ...buttons)),
    );
    if (box.nodes.length) page.select({ node: box.nodes[0], ...linked(page, state, box.nodes) });
  }

  /** @param {string} key focus and open it */
  visit(key) {
    this.focus(key);
    this.open(key);
  }

  close() {
    this.#setOpen(false);
    this.focus(this.#scene.pinned);
  }

  /** @param {boolean} open */
  #setOpen(open) {
    this.#detail.hidden = !open;
    this.#state.open = open ? this.#scene.boxes.get(this.#scene.pinned)?.nodes[0] : undefined;
    this.#markOpen();
  }

  #markOpen() {
    this.#scene.mark(
      "chosen",
      (key, path) => !path && !this.#detail.hidden && key === this.#scene.pinned,
    );
  }

  /** @param {number | undefined} id a node's @returns {Box | undefined} */
  #boxOf(id) {
    return id === undefined
      ? undefined
      : this.#state.layout.boxes.find((box) => box.nodes.includes(id));
  }

  /** @param {number | undefined} id of a node that is selected */
  #revealNode(id) {
    const box = this.#boxOf(id),
      pinned = this.#scene.boxes.get(this.#scene.pinned);
    if (box && id !== undefined && !pinned?.nodes.includes(id)) this.reveal(box.key);
    return box;
  }

  /** @param {MouseEvent} event */
  #click(event) {
    const key = keyAt(event),
      again = event.detail === 2 && key === this.#scene.pinned && this.#scene.boxes.get(key);
    if (this.#camera.dragged) return;
    if (this.#overview.far()) this.#camera.zoomTo(event);
    else if (again && again.kind === "group") this.#unfold?.(again);
    else if (key) this.visit(key);
  }

  #keys() {
    const { layout } = this.#state;
    /** @param {"up" | "down" | "left" | "right"} way */
    const along = (way) => () => this.focus(neighbour(layout, this.#scene.pinned, way));
    const open = () => this.open(this.#scene.pinned);
    return {
      ArrowDown: along("down"),
      ArrowUp: along("up"),
      ArrowLeft: along("left"),
      ArrowRight: along("right"),
      Home: () => this.focus(this.#first),
      Enter: open,
      " ": open,
      Escape: () => this.close(),
    };
  }

  /** @param {HTMLElement} frame */
  #build(frame) {
    const page = this.#page,
      state = this.#state,
      { layout } = state;
    /** @param {(box: Box | undefined) => void} move */
    const pinAnd = (move) => (/** @type {string} */ key) => {
      this.#scene.pin(key);
      move(this.#scene.boxes.get(key));
    };
    const steps = new BackwardSteps(
      page,
      state,
      this.#scene,
      pinAnd((box) => this.#camera.follow(box)),
      (key) => this.visit(key),
    );
    const search = searchField(
      page,
      state,
      this.#scene,
      pinAnd((box) => this.#camera.flyTo(box)),
    );
    const lens = lenses(page, state, this.#scene, (id) => {
      const box = this.#boxOf(id);
      if (box) this.visit(box.key);
    });
    const why = whyNone(page, state, this.#scene, (key) => this.reveal(key));
    highlightUses(layout, this.#scene, keyAt, (sentence) => steps.say(sentence));
    const bar = [search, this.#camera.buttons];
    const whole = el(
      "div",
      "stack graph",
      el("div", "bar", steps.element, lens.element, why.element, el("span", "bar end", ...bar)),
      lens.legend,
      why.answer,
      frame,
      steps.sentence,
      steps.panel,
      legend(page, layout),
      Boolean(layout.note || state.opened?.length) &&
        el("div", "bar", layout.note && el("p", "faint", layout.note), wholeButton(page, state)),
      this.#detail,
      ...state.notes.map((note) => el("p", "faint", prose(note))),
      new Outline(page, state, this.#scene, (key) => this.open(key), this.#unfold).element,
    );
    keys(whole, {
      "[": () => steps.move(-1),
      "]": () => steps.move(1),
      "/": () => search.querySelector("input")?.focus(),
    });
    return whole;
  }
}

/** @param {import("./scene.js").Path} path */
const isWrong = (path) => path.style === "wrong";

/** @param {Event} event @returns {string | null | undefined} the key of the box it happened at */
const keyAt = (event) =>
  /** @type {Element} */ (event.target).closest?.(".box")?.getAttribute("data-key");
