// The boxes and edges of a laid-out graph, of which only those in sight are in the page.

import { fill, svg } from "./dom.js";

/** @typedef {import("./states").Box} Box */
/** @typedef {import("./states").Path} Path */
/** @typedef {import("./states").Layout} Layout */
/** @typedef {{x: number, y: number, width: number, height: number}} Rect */
/** @typedef {(key: string, path?: Path) => boolean} Test whether a box, or a path by the key of its source, has a look */

const TOLD = 6; // edges that the words of a box name
const CELL = 512; // px of the drawing: side of a cell of the index
const LOUD = ["found", "now", "ready", "use", "chosen", "hot", "wrong"]; // looks that are seen from afar too
const TAG = 48; // px that a tag takes
const ROUND = { function: 6, op: 4, group: 4 };

/**
 * To a screen reader a graph to walk in by the arrow keys, whose boxes also tell where their gradients go; the outline
 * beside it is the same as a tree.
 */
export class Scene {
  #page;
  #layout;
  #cells;
  #outgoing;
  #edges = svg("g", { "aria-hidden": "true" });
  #front = svg("g", { role: "none" });
  /** @type {Map<Box | Path, SVGGElement>} */
  #shown = new Map();
  /** @type {Record<string, Test>} */
  #looks = {};
  /** @type {((item: Box | Path) => string) | null} */
  #style = null;
  /** @type {((box: Box) => string) | null} */
  #tag = null;
  /** @type {(() => void)[]} */
  #listeners = [];
  /** @type {Box[] | null} */
  #marked = null;
  #range = "?";
  /** The key of the one box that Tab reaches. */
  pinned;

  /**
   * @param {import("./types").Page} page
   * @param {Layout} layout
   * @param {SVGGElement} [frames] what stands behind all
   */
  constructor(page, layout, frames = svg("g", null)) {
    this.#page = page;
    this.#layout = layout;
    this.#cells = index(layout);
    this.#outgoing = by(layout.paths, "source");
    /** @type {Map<string, Box>} */
    this.boxes = new Map(layout.boxes.map((box) => [box.key, box]));
    this.pinned = layout.order[0] ?? layout.boxes[0].key;
    this.drawing = svg(
      "svg",
      {
        role: "application",
        "aria-label": `${layout.title}. ${page.t("step_help")}`,
        class: "drawing",
      },
      arrowHead(),
      frames,
      this.#edges,
      this.#front,
    );
  }

  /** @param {Rect | null} view what is in sight; null where the boxes are painted on a canvas */
  show(view) {
    const range = !view
      ? []
      : [view.x, view.y, view.x + view.width, view.y + view.height].map((v) =>
          Math.floor(v / CELL),
        );
    if (range.join() === this.#range) return;
    this.#range = range.join();
    const seen = view ? inCells(this.#cells, range) : new Set();
    const pinned = this.boxes.get(this.pinned);
    if (pinned) seen.add(pinned);
    for (const [item, group] of this.#shown) {
      if (seen.has(item)) continue;
      group.remove();
      this.#shown.delete(item);
    }
    for (const item of seen) this.#insert(item);
  }

  /** @param {string} key the box that Tab reaches from now on; it stays in the page wherever the view goes */
  pin(key) {
    this.#groupOf(this.pinned)?.setAttribute("tabindex", "-1");
    this.pinned = key;
    const box = this.boxes.get(key);
    if (box) this.#insert(box);
    const group = this.#groupOf(key);
    group?.setAttribute("tabindex", "0");
    return group;
  }

  /** @param {string} name a class @param {Test} test which boxes and paths have it from now on */
  mark(name, test) {
    this.#looks[name] = test;
    this.#dressAll();
  }

  /** @param {((item: Box | Path) => string) | null} style of each box and path from now on */
  paint(style) {
    this.#style = style;
    this.#dressAll();
  }

  /** @param {((box: Box) => string) | null} words at the left of each box from the next mark on */
  tag(words) {
    this.#tag = words;
  }

  /** @param {() => void} listener */
  onMark(listener) {
    this.#listeners.push(listener);
  }

  /** The boxes that are marked for something that one looks for. */
  get marked() {
    return (this.#marked ??= this.#layout.boxes.filter(({ key }) =>
      LOUD.some((name) => this.#looks[name]?.(key)),
    ));
  }

  /** @param {Box} box its name and where its gradients go, in words */
  describe(box) {
    const to = (this.#outgoing.get(box.key) ?? []).slice(0, TOLD).map((path) =>
      this.#page
        .t("goes_to", {
          name: firstLine(/** @type {Box} */ (this.boxes.get(path.target))),
          what: path.style === "wrong" ? this.#page.word("verdict", "wrong") : path.label,
        })
        .trim(),
    );
    return [nameOf(box).replaceAll("\n", ", "), ...to].join(this.#page.t("semicolon"));
  }

  /** @param {string} key */
  #groupOf(key) {
    return this.#shown.get(/** @type {Box} */ (this.boxes.get(key)));
  }

  /** @param {Box | Path} item */
  #insert(item) {
    if (this.#shown.has(item)) return;
    const group = isPath(item) ? pathGroup(item) : boxGroup(item);
    if (!isPath(item))
      fill(group, {
        role: "button",
        "aria-label": this.describe(item),
        tabindex: item.key === this.pinned ? 0 : -1,
      });
    this.#dress(item, group);
    this.#shown.set(item, group);
    (isPath(item) ? this.#edges : this.#front).append(group);
  }

  #dressAll() {
    this.#marked = null;
    for (const [item, group] of this.#shown) this.#dress(item, group);
    for (const listener of this.#listeners) listener();
  }

  /** @param {Box | Path} item @param {SVGGElement} group */
  #dress(item, group) {
    const [key, path] = isPath(item) ? [item.source, item] : [item.key];
    const names = Object.keys(this.#looks).filter((name) => this.#looks[name](key, path));
    const look = [looksOf(item), ...names].join(" ");
    if (group.getAttribute("class") !== look) group.setAttribute("class", look);
    if (this.#style || group.hasAttribute("style"))
      group.setAttribute("style", this.#style?.(item) ?? "");
    if (!isPath(item)) setTag(group, item, this.#tag?.(item) ?? "", this.#layout);
  }
}

/** @param {Box | Path} item @returns {item is Path} */
export const isPath = (item) => "points" in item;

/** @param {Box | Path} item */
const looksOf = (item) =>
  isPath(item)
    ? `edge ${item.style}`
    : `box ${item.kind}${item.freed ? " freed" : ""}${item.frozen ? " frozen" : ""}`;

/**
 * Boxes and paths by the cells of a grid that they touch.
 * @param {Layout} layout
 */
function index({ boxes, paths }) {
  /** @type {Map<string, (Box | Path)[]>} */
  const cells = new Map();
  /** @param {Box | Path} item @param {number[]} xs @param {number[]} ys */
  function put(item, xs, ys) {
    const [left, top, right, bottom] = [
      Math.min(...xs),
      Math.min(...ys),
      Math.max(...xs),
      Math.max(...ys),
    ].map((v) => Math.floor(v / CELL));
    for (let x = left; x <= right; x++)
      for (let y = top; y <= bottom; y++) {
        const cell = cells.get(`${x},${y}`);
        if (cell) cell.push(item);
        else cells.set(`${x},${y}`, [item]);
      }
  }
  for (const path of paths)
    put(
      path,
      path.points.map((p) => p[0]),
      path.points.map((p) => p[1]),
    );
  for (const box of boxes) put(box, [box.x, box.x + box.width], [box.y, box.y + box.height]);
  return cells;
}

/** @param {Map<string, (Box | Path)[]>} cells @param {number[]} range */
function inCells(cells, [left, top, right, bottom]) {
  /** @type {Set<Box | Path>} */
  const seen = new Set();
  for (let x = left; x <= right; x++)
    for (let y = top; y <= bottom; y++)
      for (const item of cells.get(`${x},${y}`) ?? []) seen.add(item);
  return seen;
}

/**
 * Paths by one of their ends.
 * @param {Path[]} paths
 * @param {"source" | "target"} end
 */
export function by(paths, end) {
  /** @type {Map<string, Path[]>} */
  const at = new Map();
  for (const path of paths) at.get(path[end])?.push(path) ?? at.set(path[end], [path]);
  return at;
}

/** @param {{title: string, lines: {text: string}[]}} box its title, or what is written in it */
export const nameOf = (box) => box.title || box.lines.map((line) => line.text).join(" ");

/** @param {{lines: {text: string, y: number}[]} | undefined} box what stands in its first line */
export const firstLine = (box) =>
  box
    ? box.lines
        .filter((line) => line.y === box.lines[0].y)
        .map((line) => line.text)
        .join(" ")
    : "";

/** @param {Box} box */
export function boxGroup(box) {
  return svg(
    "g",
    { class: looksOf(box), transform: `translate(${box.x},${box.y})`, "data-key": box.key },
    svg("title", null, nameOf(box)),
    svg("rect", {
      width: box.width,
      height: box.height,
      rx: ROUND[/** @type {keyof ROUND} */ (box.kind)] ?? 11,
    }),
    svg("path", { class: "bar-of", d: `M6,${box.height - 2.5}H${box.width - 6}` }),
    ...box.lines.map((line) => svg("text", { x: line.x, y: line.y, class: line.style }, line.text)),
  );
}

/** @param {SVGGElement} group @param {Box} box @param {string} words at its left, where there is no room at its right, else above @param {Layout} layout */
function setTag(group, { x, y, width, height }, words, { boxes }) {
  const old = group.querySelector(".tag");
  if ((old?.textContent ?? "") === words) return;
  old?.remove();
  if (!words) return;
  const row = boxes.filter((b) => b.y < y + height && b.y + b.height > y);
  /** @param {number} from px */
  const free = (from) => from > 0 && !row.some((b) => b.x < from + TAG && b.x + b.width > from);
  const [at, down, anchor] = free(x - TAG)
    ? [-5, 16, "end"]
    : free(x + width)
      ? [width + 5, 16, "start"]
      : [width, -4, "end"];
  group.append(svg("text", { class: "tag", x: at, y: down, "text-anchor": anchor }, words));
}

/** @param {Path} path */
export function pathGroup(path) {
  return svg(
    "g",
    { class: looksOf(path) },
    path.title && svg("title", null, path.title),
    svg("path", { d: course(path), "marker-end": "url(#nbag-arrow)" }),
    path.label && svg("text", { x: path.label_x, y: path.label_y }, path.label),
  );
}

/** @param {Path} path */
const course = ({ points: [start, ...rest] }) =>
  `M${start.join(",")} ${rest.length ? `C${rest.map((p) => p.join(",")).join(" ")}` : ""}`;

export const arrowHead = () =>
  svg(
    "defs",
    null,
    svg(
      "marker",
      {
        id: "nbag-arrow",
        viewBox: "0 0 8 8",
        refX: 7,
        refY: 4,
        markerWidth: 8.4,
        markerHeight: 8.4,
        markerUnits: "userSpaceOnUse",
        orient: "auto",
      },
      svg("path", { d: "M0,0.5 L8,4 L0,7.5 Z", class: "arrow" }),
    ),
  );
