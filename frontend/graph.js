// The backward graph: the laid-out picture that the static report shows, to pan, zoom, search, step through and open.

import { boxDetail } from "./node.js";
import { camera } from "./camera.js";
import { el, keys, svg } from "./shared.js";
import { stepper } from "./stepper.js";

/** @typedef {import("./types").Page} Page */
/** @typedef {{key: string, kind: string, nodes: number[], x: number, y: number, width: number, height: number, lines: {text: string, x: number, y: number, style: string}[], title: string, fan_in: number, freed: boolean}} Box */
/** @typedef {{source: string, target: string, edges: number[], points: [number, number][], label: string, label_x: number, label_y: number, style: string}} Path */

/**
 * @param {Page} page
 * @param {any} state
 */
export function graphView(page, state) {
  const { layout } = state;
  if (!layout.boxes.length) return el("p", { class: "faint" }, [page.t("no_graph"), ...state.notes].join(" "));
  /** @type {Map<string, SVGGElement>} */
  const groups = new Map(layout.boxes.map((/** @type {Box} */ box) => [box.key, boxGroup(box)]));
  const paths = layout.paths.map(pathGroup);
  const drawing = svg("svg", { role: "group", "aria-label": layout.title, class: "drawing" }, arrowHead(), ...paths, ...groups.values());
  const frame = el("div", { class: "graph-frame", title: layout.description }, drawing);
  const view = camera(page, drawing, frame, layout);
  const walk = walker(page, state, groups, view.reveal);
  const steps = stepper(page, layout, groups, paths, walk.see);
  const search = searchField(page, layout.boxes, groups, walk.see);
  for (const [key, group] of groups) group.addEventListener("click", () => view.dragged() || (walk.go(key), walk.open()));
  keys(drawing, walk.keys);
  const whole = el("div", { class: "stack graph" },
    el("div", { class: "bar" }, steps.element, el("span", { class: "grow" }), search, view.buttons),
    frame,
    steps.said,
    layout.note && el("p", { class: "faint" }, layout.note),
    walk.detail,
    ...state.notes.map((/** @type {string} */ note) => el("p", { class: "faint" }, note)));
  keys(whole, { "[": () => steps.by(-1), "]": () => steps.by(1), "/": () => search.querySelector("input")?.focus() });
  follow(page, layout.boxes, walk.see);
  return whole;
}

/**
 * Which box is focused, where the keys lead, and which box is open.
 * @param {Page} page
 * @param {any} state
 * @param {Map<string, SVGGElement>} groups
 * @param {(box: Box | undefined) => void} reveal
 */
function walker(page, state, groups, reveal) {
  const { layout } = state;
  const detail = el("div", { class: "detail", hidden: true });
  const boxOf = (/** @type {string} */ key) => layout.boxes.find((/** @type {Box} */ box) => box.key === key);
  let focused = layout.order[0] ?? layout.boxes[0].key;
  groups.get(focused)?.setAttribute("tabindex", "0");
  const see = (/** @type {string} */ key) => {
    groups.get(focused)?.setAttribute("tabindex", "-1");
    focused = key;
    groups.get(key)?.setAttribute("tabindex", "0");
    reveal(boxOf(key));
  };
  const go = (/** @type {string} */ key) => (see(key), groups.get(key)?.focus({ preventScroll: true }));
  const open = () => {
    const box = boxOf(focused);
    for (const [key, group] of groups) group.classList.toggle("chosen", key === focused);
    detail.hidden = false;
    detail.replaceChildren(boxDetail(page, state, box, close));
    if (box.nodes.length) page.select({ node: box.nodes[0] });
  };
  const close = () => {
    detail.hidden = true;
    groups.get(focused)?.classList.remove("chosen");
    groups.get(focused)?.focus({ preventScroll: true });
  };
  const along = (/** @type {"up" | "down" | "left" | "right"} */ way) => () => go(neighbour(layout, focused, way));
  const actions = { ArrowDown: along("down"), ArrowUp: along("up"), ArrowLeft: along("left"), ArrowRight: along("right"), Home: () => go(layout.order[0] ?? focused), Enter: open, " ": open, Escape: close };
  return { detail, see, go, open, keys: actions };
}

/**
 * Go where Python or another tab points.
 * @param {Page} page
 * @param {Box[]} boxes
 * @param {(key: string) => void} see
 */
function follow(page, boxes, see) {
  page.onSelect(({ node }) => {
    const box = node === undefined ? undefined : boxes.find((b) => b.nodes.includes(node));
    if (box) see(box.key);
  });
}

/** @param {{title: string, lines: {text: string}[]}} box its title, or what is written in it */
export const nameOf = (box) => box.title || box.lines.map((line) => line.text).join(" ");

/** @param {Box} box */
function boxGroup(box) {
  return svg("g", { class: `box ${box.kind}${box.freed ? " freed" : ""}`, transform: `translate(${box.x},${box.y})`, role: "button", tabindex: "-1", "aria-label": nameOf(box).replaceAll("\n", ", "), "data-key": box.key },
    svg("title", null, nameOf(box)),
    svg("rect", { width: box.width, height: box.height, rx: { function: 6, op: 4, group: 4 }[box.kind] ?? 11 }),
    ...box.lines.map((line) => svg("text", { x: line.x, y: line.y, class: line.style }, line.text)));
}

/** @param {Path} path */
function pathGroup(path) {
  const [start, ...rest] = path.points;
  const curves = rest.length ? `C${rest.map((p) => p.join(",")).join(" ")}` : "";
  return svg("g", { class: `edge ${path.style}`, "data-source": path.source, "data-target": path.target },
    svg("path", { d: `M${start.join(",")} ${curves}`, "marker-end": "url(#nbag-arrow)" }),
    path.label && svg("text", { x: path.label_x, y: path.label_y }, path.label));
}

const arrowHead = () => svg("defs", null, svg("marker", { id: "nbag-arrow", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto" }, svg("path", { d: "M0,0.5 L8,4 L0,7.5 Z", class: "arrow" })));

/**
 * The box that an arrow key leads to: along an edge up or down, to the nearest in the same layer left or right.
 * @param {{boxes: Box[], paths: Path[]}} layout
 * @param {string} key
 * @param {"up" | "down" | "left" | "right"} way
 */
export function neighbour({ boxes, paths }, key, way) {
  if (way === "down") return paths.find((p) => p.source === key)?.target ?? key;
  if (way === "up") return paths.find((p) => p.target === key)?.source ?? key;
  const from = boxes.find((box) => box.key === key);
  if (!from) return key;
  const centre = (/** @type {Box} */ b) => b.x + b.width / 2;
  const beside = boxes.filter((b) => b.y < from.y + from.height && from.y < b.y + b.height && (way === "left" ? centre(b) < centre(from) : centre(b) > centre(from)));
  beside.sort((a, b) => Math.abs(centre(a) - centre(from)) - Math.abs(centre(b) - centre(from)));
  return beside[0]?.key ?? key;
}

/**
 * @param {Page} page
 * @param {Box[]} boxes
 * @param {Map<string, SVGGElement>} groups
 * @param {(key: string) => void} see
 */
function searchField(page, boxes, groups, see) {
  const input = el("input", { type: "search", placeholder: page.t("search"), "aria-label": page.t("search"), size: 12 });
  const found = el("span", { class: "faint", role: "status" });
  let at = -1;
  /** @type {Box[]} */
  let hits = [];
  input.addEventListener("input", () => {
    const wanted = input.value.trim().toLowerCase();
    hits = wanted ? boxes.filter((box) => nameOf(box).toLowerCase().includes(wanted)) : [];
    at = -1;
    for (const [key, group] of groups) group.classList.toggle("found", hits.some((box) => box.key === key));
    found.textContent = wanted ? page.t("found", { count: hits.length }) : "";
  });
  keys(input, {
    Enter: () => hits.length && see(hits[(at = (at + 1) % hits.length)].key),
    Escape: () => ((input.value = ""), input.dispatchEvent(new Event("input")), input.blur()),
  });
  return el("span", { class: "search" }, input, found);
}
