// The backward graph: the laid-out picture that the static report shows, to pan, zoom, search, step through and open.

import { camera } from "./camera.js";
import { searchField } from "./find.js";
import { foldButtons, wholeButton } from "./folds.js";
import { minimap } from "./minimap.js";
import { boxDetail } from "./node.js";
import { exportButtons } from "./picture.js";
import { scene } from "./scene.js";
import { el, keys } from "./shared.js";
import { stepper } from "./stepper.js";
import { uses } from "./uses.js";
import { neighbour } from "./ways.js";

/** @typedef {import("./types").Page} Page */
/** @typedef {import("./scene.js").Box} Box */

/**
 * @param {Page} page
 * @param {any} state
 */
export function graphView(page, state) {
  if (!state.layout.boxes.length) return el("p", "faint", [page.t("no_graph"), ...state.notes].join(" "));
  const place = el("div", "stack");
  let end = new AbortController();
  page.signal.addEventListener("abort", () => end.abort(), { once: true });
  const again = (/** @type {any} */ next, /** @type {number | undefined} */ node) => {
    end.abort();
    end = new AbortController();
    const { signal } = end;
    const local = { ...page, signal, onTheme: (/** @type {() => void} */ f, until = signal) => page.onTheme(f, until), onSelect: (/** @type {any} */ f, until = signal) => page.onSelect(f, until) };
    place.replaceChildren(pictureView(local, { ...next, again }, node));
  };
  again(state, undefined);
  return place;
}

/**
 * The view of one layout of the graph.
 * @param {Page} page
 * @param {any} state
 * @param {number | undefined} node where to go first
 */
function pictureView(page, state, node) {
  const { layout } = state;
  const picture = scene(page, layout);
  const frame = el("div", { class: "graph-frame", title: layout.description }, picture.drawing);
  const view = camera(page, picture.drawing, frame, layout, (rect, whole) => (picture.look(rect), map.look(rect, whole)));
  const map = minimap(layout, view.centre);
  frame.append(map.element);
  const walk = walker(page, state, picture, view.reveal);
  const steps = stepper(page, state, picture, walk.see, walk.visit);
  const search = searchField(page, layout.boxes, picture, walk.see);
  const boxAt = (/** @type {Event} */ event) => /** @type {Element} */ (event.target).closest?.(".box")?.getAttribute("data-key");
  picture.drawing.addEventListener("click", (event) => {
    const key = boxAt(event);
    if (key && !view.dragged()) walk.visit(key);
  });
  uses(layout, picture, boxAt, steps.say);
  keys(picture.drawing, walk.keys);
  const whole = el("div", "stack graph",
    el("div", "bar", steps.element, el("span", "grow"), search, exportButtons(page, layout, frame), view.buttons),
    frame,
    steps.said,
    steps.panel,
    el("div", "bar", layout.note && el("p", "faint", layout.note), wholeButton(page, state)),
    walk.detail,
    ...state.notes.map((/** @type {string} */ note) => el("p", "faint", note)));
  keys(whole, { "[": () => steps.by(-1), "]": () => steps.by(1), "/": () => search.querySelector("input")?.focus() });
  const follow = (/** @type {number | undefined} */ id) => {
    const box = id === undefined ? undefined : layout.boxes.find((/** @type {Box} */ b) => b.nodes.includes(id));
    if (box && !picture.boxes.get(picture.stop())?.nodes.includes(id ?? -1)) walk.see(box.key);
    return box;
  };
  page.onSelect((selection) => void follow(selection.node));
  const first = follow(node);
  if (first) requestAnimationFrame(() => requestAnimationFrame(() => walk.visit(first.key))); // once the frame has its size
  return whole;
}

/**
 * Which box is focused, where the keys lead, and which box is open.
 * @param {Page} page
 * @param {any} state
 * @param {import("./scene.js").Scene} picture
 * @param {(box: Box | undefined) => void} reveal
 */
function walker(page, state, picture, reveal) {
  const { layout } = state;
  const detail = el("div", { class: "detail", hidden: true });
  const first = picture.stop();
  picture.mark("chosen", (key, path) => !path && !detail.hidden && key === picture.stop());
  const see = (/** @type {string} */ key) => (picture.pin(key), reveal(picture.boxes.get(key)));
  const go = (/** @type {string} */ key) => (see(key), picture.pin(key)?.focus({ preventScroll: true }));
  const show = (/** @type {boolean} */ open) => {
    detail.hidden = !open;
    picture.mark("chosen", (key, path) => !path && open && key === picture.stop());
  };
  const close = () => (show(false), go(picture.stop()));
  const open = () => {
    const box = picture.boxes.get(picture.stop());
    show(true);
    detail.replaceChildren(boxDetail(page, state, box, close, foldButtons(page, state, box)));
    if (box?.nodes.length) page.select({ node: box.nodes[0] });
  };
  const along = (/** @type {"up" | "down" | "left" | "right"} */ way) => () => go(neighbour(layout, picture.stop(), way));
  const actions = { ArrowDown: along("down"), ArrowUp: along("up"), ArrowLeft: along("left"), ArrowRight: along("right"), Home: () => go(first), Enter: open, " ": open, Escape: close };
  return { detail, see, visit: (/** @type {string} */ key) => (go(key), open()), keys: actions };
}
