// Backward in slow motion: its lines, its graph and its tensors in step, by a slider, by keys or by playing.

import { numbers } from "./arrays.js";
import { documentView } from "./document.js";
import { el, keys, prose, svg } from "./dom.js";
import { number } from "./formats.js";
import { thumbnail } from "./heatmap.js";
import { Player } from "./player.js";
import { arrowHead, boxGroup, pathGroup } from "./scene.js";
import { ask } from "./wire.js";

/** @typedef {import("./types").Page} Page */
/** @typedef {import("./states").BlockState} Block */
/** @typedef {import("./states").MotionState} State */
/** @typedef {{name: string, kind: string, x: number, y: number, width: number}} Place of a box */

const SIGNS = /** @type {Record<string, string>} */ ({
  right: "✓",
  wrong: "✗",
  "wrong by here": "✗",
  follows: "↳",
});
const WIDTH = 236, // px of the graph
  HEIGHT = 28, // of a box
  GAP = 10, // between boxes
  EDGE = 64, // that an edge goes down
  VERDICT = 60, // of a box whose edge has a verdict beside it
  LONGEST = 14; // letters of a name

/**
 * The part of a report that asks for the view when it is first opened.
 * @param {Page} page @param {Block[]} blocks
 */
export function slowMotionPart(page, blocks) {
  const body = el("div", "stack");
  let asked = false;
  function ask_() {
    if (asked) return;
    asked = true;
    body.replaceChildren(page.t("asking"));
    ask(page.model, { kind: "motion" }, page.signal, page.t("no_kernel")).then(
      (state) => body.replaceChildren(slowMotionView(page, state, blocks)),
      (problem) => page.signal.aborted || ((asked = false), body.replaceChildren(problem.message)),
    );
  }
  const title = el("summary", null, el("strong", null, page.t("motion_part")));
  return el("details", { class: "part", on: { toggle: ask_ } }, title, body);
}

/**
 * @param {Page} page
 * @param {State} state
 * @param {Block[]} [blocks] whose Jacobians light up with the entries of gradients
 */
export function slowMotionView(page, state, blocks = []) {
  const { stops } = state,
    lines = linesView(page, state, (at) => player.move(at - player.at)),
    graph = graphView(page, state),
    tensors = el("section"),
    said = el("p", { class: "said", role: "status" }),
    player = new Player(page, stops.length - 1, page.t("motion_part"), show);
  function show() {
    const at = player.at,
      stop = stops[at];
    lines.show(at);
    graph.show(at);
    const words = { step: at + 1, steps: stops.length, what: stop.says };
    said.replaceChildren(prose(page.t("motion_at", words)));
    const values = el("div", "stack", ...documentView(page, stop.document));
    lightJacobian(page, state, blocks, at, values);
    tensors.replaceChildren(values);
  }
  const view = el(
    "div",
    { class: "stack motion", tabindex: "0", role: "group", "aria-label": page.t("motion_help") },
    el("div", "bar", player.element, el("span", "faint", page.t("motion_help"))),
    said,
    ...documentView(page, state.notes),
    el("div", "three", lines.element, graph.element, tensors),
  );
  /** @param {number} steps */
  const by = (steps) => () => player.move(steps);
  keys(view, {
    " ": ({ target }) =>
      /** @type {HTMLElement} */ (target).matches("button, summary")
        ? /** @type {HTMLElement} */ (target).click()
        : player.toggle(),
    ArrowLeft: by(-1),
    ArrowUp: by(-1),
    "[": by(-1),
    ArrowRight: by(1),
    ArrowDown: by(1),
    "]": by(1),
    Home: by(-Infinity),
    End: by(Infinity),
  });
  show();
  return view;
}

/**
 * The lines of backward: those that ran have their sign, the one that runs is lit.
 * @param {Page} page @param {State} state @param {(at: number) => void} go
 */
function linesView(page, { lines, stops }, go) {
  const rows = lines.map(([line, text]) => {
    const at = stops.findIndex((stop) => stop.line <= line && line <= stop.end);
    const sign = el("span", "known");
    const row = el(
      "span",
      { class: "row", style: `--indent:${text.search(/\S|$/)}` },
      el("span", "nr", String(line)),
      sign,
      text,
    );
    if (at >= 0) row.addEventListener("click", () => go(at));
    return { line, row, sign };
  });
  /** @param {number} at */
  function show(at) {
    for (const { line, row, sign } of rows) {
      const ran = stops.slice(0, at + 1).filter((stop) => stop.line <= line && line <= stop.end);
      const known = (ran.find((stop) => stop.known.startsWith("wrong")) ?? ran.at(-1))?.known ?? "";
      row.className = `row ${known.split(" ")[0]}`.trim();
      row.classList.toggle("marked", stops[at].line <= line && line <= stops[at].end);
      sign.textContent = SIGNS[known] ?? "";
    }
  }
  return {
    show,
    element: el(
      "pre",
      { class: "source", tabindex: "0", "aria-label": page.t("motion_lines") },
      el("code", null, ...rows.map(({ row }) => row)),
    ),
  };
}

/**
 * What arrives and what was saved above, the Function, and the inputs that the gradients go to below.
 * @param {Page} page @param {State} state
 */
function graphView(page, state) {
  const { arrived, saved, gradients, stops } = state;
  const above = inRows(
    [
      ...arrived.map((name) => ({ name, kind: "output" })),
      ...saved.map((name) => ({ name, kind: "op" })),
    ],
    1,
  );
  const middle = inRows([{ name: state.function, kind: "function" }], bottom(above) + EDGE);
  const below = inRows(
    gradients.map(({ name }) => ({ name, kind: "leaf" })),
    bottom(middle) + EDGE,
  );
  const into = above.map((place) => edge(place, middle[0])),
    out = below.map((place) => edge(middle[0], place)),
    boxes = [...above, ...middle, ...below].map(box),
    signs = below.map((place) =>
      svg("text", { class: "tag", x: place.x + place.width / 2 + 8, y: place.y - 12 }),
    );
  /** @param {number} at */
  function show(at) {
    const names = [...arrived, ...saved];
    into.forEach((group, k) => group.classList.toggle("came", stops[at].reads.includes(names[k])));
    out.forEach((group, k) => {
      const { known, stop } = gradients[k],
        there = at >= stop;
      group.setAttribute("class", `edge ${there ? `flow ${known || "came"}` : "waiting"}`);
      signs[k].textContent =
        there && SIGNS[known] ? `${SIGNS[known]} ${page.word("verdict", known)}` : "";
      signs[k].setAttribute("class", `tag ${known}`);
      boxes[above.length + 1 + k].classList.toggle("wrong", there && known === "wrong");
    });
  }
  const height = bottom(below.length ? below : middle) + 1;
  return {
    show,
    element: svg(
      "svg",
      {
        width: WIDTH,
        height,
        viewBox: `0 0 ${WIDTH} ${height}`,
        class: "drawing still",
        overflow: "visible", // a word beside the last edge
        role: "img",
        "aria-label": page.t("motion_graph", {
          grads: arrived.join(", "),
          saved: saved.join(", ") || "–",
          inputs: gradients.map(({ name }) => name).join(", ") || "–",
        }),
      },
      arrowHead(),
      ...into,
      ...out,
      ...boxes,
      ...signs,
    ),
  };
}

/** @param {Place[]} places */
const bottom = (places) => Math.max(...places.map(({ y }) => y + HEIGHT));

/**
 * Boxes beside each other, as many in a row as there is room for.
 * @param {{name: string, kind: string}[]} items @param {number} y
 * @returns {Place[]}
 */
function inRows(items, y) {
  /** @type {Place[][]} */
  const rows = [[]];
  let x = 0;
  for (const { name, kind } of items) {
    const width = Math.max(
      kind === "leaf" ? VERDICT : 0,
      Math.ceil(textWidth(shown(name), kind)) + 20,
    );
    if (x + width > WIDTH - 2) {
      rows.push([]);
      x = 0;
    }
    const row = rows[rows.length - 1];
    row.push({ name, kind, x, y: y + (rows.length - 1) * (HEIGHT + GAP), width });
    x += width + GAP;
  }
  for (const row of rows) {
    const last = row[row.length - 1],
      left = last ? (WIDTH - last.x - last.width) / 2 : 0;
    for (const place of row) place.x += left;
  }
  return rows.flat();
}

/** @param {string} name */
const shown = (name) => (name.length > LONGEST ? `${name.slice(0, LONGEST - 1)}…` : name);

/** @param {string} text @param {string} kind of its box */
function textWidth(text, kind) {
  const pen = /** @type {CanvasRenderingContext2D} */ (el("canvas").getContext("2d"));
  pen.font = `${kind === "function" ? "600 13px" : "12px"} system-ui, "DejaVu Sans", sans-serif`;
  return pen.measureText(text).width;
}

/** @param {Place} place */
function box({ name, kind, x, y, width }) {
  const text = shown(name);
  const style = kind === "function" ? "title" : "text";
  const lines = [{ text, x: (width - textWidth(text, kind)) / 2, y: 18, style }];
  /** @type {unknown} what a drawn graph needs of a box, not all that one has */
  const drawn = { kind, x, y, width, height: HEIGHT, key: name, title: name, lines };
  return boxGroup(/** @type {import("./scene.js").Box} */ (drawn));
}

/** @param {Place} place @param {number} x as near to it as the box goes, so that edges meet it beside each other */
const within = ({ x: left, width }, x) => Math.max(left + 8, Math.min(left + width - 8, x));

/** @param {Place} from @param {Place} to */
function edge(from, to) {
  const [x, y, end] = [from.x + from.width / 2, from.y + HEIGHT, to.y - 2];
  const out = from.kind === "function",
    half = (end - y) / 2;
  const start = out ? within(from, to.x + to.width / 2) : x,
    goal = out ? to.x + to.width / 2 : within(to, x);
  const points = [
    [start, y],
    [start, y + half],
    [goal, end - half],
    [goal, end],
  ];
  /** @type {unknown} */
  const path = { points, style: "", label: "" };
  const group = pathGroup(/** @type {import("./scene.js").Path} */ (path));
  group.querySelector("path")?.setAttribute("pathLength", "1");
  return group;
}

/**
 * Beside what arrives or is returned the Jacobian, whose row or column lights up with the entry under the pointer.
 * @param {Page} page @param {State} state @param {Block[]} blocks @param {number} at @param {HTMLElement} values
 */
function lightJacobian(page, state, blocks, at, values) {
  const arrives = at === 0,
    returns = at === state.stops.length - 1;
  const telling = state.gradients.find(({ known }) => known === "wrong") ?? state.gradients[0];
  /** @param {number | undefined} position */
  const blockOf = (position) =>
    blocks.find((b) => b.output === state.output && b.input === position && b.maps);
  const first = arrives || returns ? blockOf(telling?.position) : undefined;
  if (!first) return;
  const figure = el("figure", "stack");
  let [shown, band] = drawn(first);
  /** @param {Block} block @returns {[Block, HTMLElement]} */
  function drawn(block) {
    const { maps, output_name: output, input_name: input } = block,
      name = `d ${output} / d ${input}`,
      lit = el("div", { class: "lit", hidden: true });
    if (!maps) return [block, lit];
    const [rows, cols] = maps.analytical.shape,
      grid = { rows, cols, values: numbers(maps.analytical) };
    const map = thumbnail(page, grid, false, name, (_, value) => number(value));
    map.append(lit);
    figure.replaceChildren(
      el(
        "figcaption",
        "faint",
        page.t(arrives ? "motion_row" : "motion_column"),
        " ",
        el("code", null, name),
      ),
      map,
    );
    return [block, lit];
  }
  values.append(figure);
  values.addEventListener("entry", (event) => {
    const row = /** @type {HTMLElement} */ (event.target).closest("tr"),
      number_ = row ? [...(row.parentElement?.children ?? [])].indexOf(row) : -1;
    const block = arrives
      ? number_ === state.output && first
      : blockOf(state.gradients[number_]?.position);
    if (!block) return;
    if (block !== shown) [shown, band] = drawn(block);
    const size = (arrives ? block.output_shape : block.input_shape).reduce((a, b) => a * b, 1),
      [start, long] = arrives ? ["top", "height"] : ["left", "width"];
    const cell = /** @type {CustomEvent<number>} */ (event).detail;
    band.style.cssText = `${start}:${(100 * cell) / size}%;${long}:${100 / size}%`;
    band.hidden = false;
  });
}
