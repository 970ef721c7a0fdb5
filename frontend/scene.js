// The boxes and edges of a laid-out graph, of which only those in sight are in the page.

import { fill, svg } from "./dom.js";

/** @typedef {import("./states").Box} Box */
/** @typedef {import("./states").Path} Path */
/** @typedef {import("./states").Layout} Layout */
/** @typedef {{x: number, y: number, width: number, height: number}} Rect */
/** @typedef {(key: string, path?: Path) => boolean} Test whether a box, or a path by the key of its source, has a look */
/** @typedef {ReturnType<typeof scene>} Scene */

const TOLD = 6; // edges that a box tells of
const CELL = 512; // px of the drawing: side of a cell of the index
const LOUD = ["found", "now", "ready", "use", "chosen", "hot"]; // looks that are seen from afar too
const ROUND = { function: 6, op: 4, group: 4 };

/**
 * To a screen reader a graph to walk in by the arrow keys, whose boxes also tell where their gradients go; the outline
 * beside it is the same as a tree.
 * @param {import("./types").Page} page
 * @param {Layout} layout
 */
export function scene(page, layout) {
  const cells = index(layout);
  /** @type {Map<string, Box>} */
  const boxes = new Map(layout.boxes.map((box) => [box.key, box]));
  /** @type {Map<Box | Path, SVGGElement>} */
  const shown = new Map();
  /** @type {Record<string, Test>} */
  const looks = {};
  const edges = svg("g", { "aria-hidden": "true" }),
    front = svg("g", { role: "none" });
  const drawing = svg(
    "svg",
    {
      role: "application",
      "aria-label": `${layout.title}. ${page.t("step_help")}`,
      class: "drawing",
    },
    arrowHead(),
    edges,
    front,
  );
  const ways = by(layout.paths, "source");
  /** @type {((item: Box | Path) => string) | null} */
  let paint = null;
  /** @type {((box: Box) => string) | null} */
  let tag = null;
  /** @type {(() => void)[]} */
  const marking = [];
  /** @type {Box[] | null} */
  let marked = null;
  let window_ = "?";
  let stop = layout.order[0] ?? layout.boxes[0].key;

  /** @param {Box | Path} item @param {SVGGElement} group */
  function dress(item, group) {
    const [key, path] = isPath(item) ? [item.source, item] : [item.key];
    const look = [
      looksOf(item),
      ...Object.keys(looks).filter((name) => looks[name](key, path)),
    ].join(" ");
    if (group.getAttribute("class") !== look) group.setAttribute("class", look);
    if (paint || group.hasAttribute("style")) group.setAttribute("style", paint ? paint(item) : "");
    if (!isPath(item)) setTag(group, item, tag?.(item) ?? "");
  }
  /** @param {Box} box */
  function tell(box) {
    const to = (ways.get(box.key) ?? []).slice(0, TOLD).map((path) =>
      page
        .t("goes_to", {
          name: firstLine(/** @type {Box} */ (boxes.get(path.target))),
          what: path.label,
        })
        .trim(),
    );
    return [nameOf(box).replaceAll("\n", ", "), ...to].join(page.t("semicolon"));
  }
  function dressAll() {
    marked = null;
    for (const [item, group] of shown) dress(item, group);
    for (const listener of marking) listener();
  }
  /** @param {Box | Path} item */
  function add(item) {
    if (shown.has(item)) return;
    const group = isPath(item) ? pathGroup(item) : boxGroup(item);
    if (!isPath(item))
      fill(group, {
        role: "button",
        "aria-label": tell(item),
        tabindex: item.key === stop ? 0 : -1,
      });
    dress(item, group);
    shown.set(item, group);
    (isPath(item) ? edges : front).append(group);
  }
  /** @param {Rect | null} view what is in sight; nothing when it is painted by somebody else */
  function look(view) {
    const range = !view
      ? []
      : [view.x, view.y, view.x + view.width, view.y + view.height].map((v) =>
          Math.floor(v / CELL),
        );
    if (range.join() === window_) return;
    window_ = range.join();
    const seen = view ? inCells(cells, range) : new Set();
    const pinned = boxes.get(stop);
    if (pinned) seen.add(pinned);
    for (const [item, group] of shown) if (!seen.has(item)) (group.remove(), shown.delete(item));
    seen.forEach(add);
  }
  /** @param {string} key */
  function groupOf(key) {
    return shown.get(/** @type {Box} */ (boxes.get(key)));
  }
  return {
    drawing,
    boxes,
    look,
    tell,
    stop: () => stop,
    /** @param {string} key the one box that Tab reaches; it stays in the page wherever the view goes */
    pin: (key) => {
      groupOf(stop)?.setAttribute("tabindex", "-1");
      stop = key;
      const box = boxes.get(key);
      if (box) add(box);
      groupOf(key)?.setAttribute("tabindex", "0");
      return groupOf(key);
    },
    /** @param {string} name a class @param {Test} test which boxes and paths have it from now on */
    mark: (name, test) => {
      looks[name] = test;
      dressAll();
    },
    /** @param {((item: Box | Path) => string) | null} style of each box and path from now on */
    paint: (style) => ((paint = style), dressAll()),
    /** @param {((box: Box) => string) | null} words at the left of each box from now on */
    tags: (words) => void (tag = words),
    /** @param {() => void} listener */
    onMark: (listener) => void marking.push(listener),
    /** The boxes that are marked for something that one looks for. */
    marked: () =>
      (marked ??= layout.boxes.filter(({ key }) => LOUD.some((name) => looks[name]?.(key)))),
  };
}

/** @param {Box | Path} item @returns {item is Path} */
export const isPath = (item) => "points" in item;

/** @param {Box | Path} item */
const looksOf = (item) =>
  isPath(item) ? `edge ${item.style}` : `box ${item.kind}${item.freed ? " freed" : ""}`;

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
    ...box.lines.map((line) => svg("text", { x: line.x, y: line.y, class: line.style }, line.text)),
  );
}

/** @param {SVGGElement} group @param {Box} box @param {string} words */
function setTag(group, box, words) {
  const old = group.querySelector(".tag");
  if ((old?.textContent ?? "") === words) return;
  old?.remove();
  if (words) group.append(svg("text", { class: "tag", x: -5, y: 16, "text-anchor": "end" }, words));
}

/** @param {Path} path */
export function pathGroup(path) {
  return svg(
    "g",
    { class: looksOf(path) },
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
