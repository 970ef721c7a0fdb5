// The heat maps of a block beside each other, or one of them: axes, colours, pointer and tooltip, scale.

import { axesOf, axesView, margins } from "./axes.js";
import { verdictWord } from "./blocks.js";
import { button, el } from "./dom.js";
import { compared, count, number } from "./formats.js";
import { opens } from "./explorer.js";
import { cellSize, draw, LARGE_CELL, NUMBERED, ramp } from "./heatmap.js";
import { cellName, cellRange, isPooled } from "./levels.js";
import { colourings, NEGLIGIBLE, robustLimit } from "./scale.js";

/** @typedef {import("./types").Page} Page */
/** @typedef {import("./states").BlockState} Block */
/** @typedef {import("./explorer.js").Explorer} Explorer */
/** @typedef {import("./levels.js").Level} Level */
/** @typedef {import("./scale.js").Scale} Scale */
/** @typedef {{block: Block, level: Level, maps: ArrayLike<number>[], scale: Scale, only?: ArrayLike<number>}} Picture what is drawn of a level */

const NAMES = ["analytical", "numerical", "difference"];
const MEANT = 640; // px of a page on which three maps are seen beside each other
const GAP = 18; // px between maps
const USUAL = 1000; // px of a page that does not show the maps yet

/** @param {Block} block @param {Level} level @param {number} cell @returns {"match" | "mismatch" | undefined} what the checker says of it */
function judgement(block, level, cell) {
  if (block.verdict === "match") return "match";
  if (block.verdict !== "mismatch" || !level.wrong) return undefined;
  return level.wrong[cell] ? "mismatch" : "match";
}

/** @param {Block} block @param {Level} level @param {Scale} scale @returns {ArrayLike<number>[]} */
function shownMaps(block, level, scale) {
  if (scale === "own" || scale === "log") return level.values; // made to look at what is within the tolerance
  const [analytical, numerical, difference] = level.values;
  const least = NEGLIGIBLE * robustLimit(analytical, numerical); // up to there it is round-off, whatever the verdict
  /** @param {number} value @param {number} k */
  function beyond(value, k) {
    const said = judgement(block, level, k);
    return said === "match" || (!said && Math.abs(value) <= least) ? 0 : value;
  }
  return [analytical, numerical, Float64Array.from(difference, beyond)];
}

/** The heat maps with their controls. */
export class HeatMaps {
  #page;
  #block;
  #explore;
  /** @type {Scale} */
  #scale = "robust";
  #large = ""; // the one map that stands alone
  #wrongOnly = false;
  #figures;
  /** Set anew wherever the level, the scale or the choice of cells changes. */
  #picture;
  /** @type {import("./scale.js").Colouring[]} */
  #looks = [];
  scale = el("div", "bar");

  /**
   * @param {Page} page @param {Block} block @param {Explorer} explore @param {AbortSignal} signal
   */
  constructor(page, block, explore, signal) {
    this.#page = page;
    this.#block = block;
    this.#explore = explore;
    this.#picture = this.#pictureOf();
    this.#figures = NAMES.map((name) =>
      figure(page.word("panel", name), page.t("map_large"), () => this.#enlarge(name)),
    );
    const help = [
      page.t("heat_map_help", { output: block.output_name, input: block.input_name }),
      opens(page, block) && page.t("heat_map_opens"),
    ];
    this.element = el(
      "div",
      {
        class: "maps",
        tabindex: "0",
        role: "application",
        "aria-roledescription": page.t("heat_map"),
        "aria-label": help.filter(Boolean).join(" "),
      },
      ...this.#figures.map(({ element }) => element),
    );
    this.choice =
      Boolean(block.wrong && block.maps?.wrong) &&
      wrongCells(page, (only) => this.#showWrong(only));
    const watcher = new ResizeObserver(() => this.paint());
    watcher.observe(this.element);
    signal.addEventListener("abort", () => watcher.disconnect(), { once: true });
    page.onTheme(() => (this.rescale(), this.paint()), signal);
    for (const { canvas } of this.#figures) pointer(canvas, explore);
  }

  /** @returns {Picture} */
  #pictureOf() {
    const level = this.#explore.top(),
      maps = shownMaps(this.#block, level, this.#scale),
      only = this.#wrongOnly ? level.wrong : undefined;
    return { block: this.#block, level, maps, scale: this.#scale, only };
  }

  rescale() {
    this.#picture = this.#pictureOf();
    this.#looks = colourings(this.#scale, this.#picture.maps);
    const change = /** @param {Scale} next */ (next) => this.#change(next);
    this.scale.replaceChildren(legend(this.#page, this.#picture, this.#looks, change));
  }

  /** @param {Scale} next */
  #change(next) {
    this.#scale = next;
    this.rescale();
    this.paint();
    /** @type {HTMLElement} */ (this.scale.firstElementChild).focus();
  }

  paint() {
    const { level, maps, only } = this.#picture,
      axes = axesOf(this.#block, level),
      [left] = margins(...axes),
      element = this.element;
    const one = this.#large || (fitsAll(element, level, left + 6) ? "" : NAMES[0]);
    const cell = largestCell(element, level, one ? 1 : NAMES.length, left + 6);
    const fonts = { font: getComputedStyle(element).fontFamily, colours: this.#page.colours() };
    const { cursor, mark, chosen } = this.#explore;
    const marks = { cursor: cursor(), mark: mark(), chosen: chosen() };
    element.classList.toggle("one", Boolean(one));
    this.#figures.forEach((figure, k) => {
      figure.frame.hidden = Boolean(one) && one !== NAMES[k];
      figure.title.setAttribute("aria-pressed", String(one === NAMES[k]));
      if (figure.frame.hidden) return;
      figure.place(axes, cell, level);
      const { most, shares } = this.#looks[k];
      const look = { ...fonts, ...marks, most, shares, cell, only };
      draw(figure.canvas, { rows: level.rows, cols: level.cols, values: maps[k] }, look);
    });
  }

  /** @param {string} name of a map that stands alone, or among the others again */
  #enlarge(name) {
    this.#large = this.#large === name ? "" : name;
    this.paint();
  }

  /** @param {boolean} only */
  #showWrong(only) {
    this.#wrongOnly = only;
    this.rescale();
    this.paint();
  }

  reading() {
    return readingOf(this.#page, this.#picture, this.#explore);
  }
}

/**
 * The side of a cell where so many maps stand beside each other.
 * @param {HTMLElement} maps @param {Level} level @param {number} beside @param {number} margin px of each that are not cells
 */
function largestCell(maps, { rows, cols }, beside, margin) {
  const width = ((maps.clientWidth || USUAL) - GAP * (beside - 1)) / beside - margin;
  return cellSize(rows, cols, Math.floor(width), beside > 1 ? undefined : LARGE_CELL);
}

/**
 * Whether all maps are shown, as they are compared best: where there is room, or one alone would show no more.
 * @param {HTMLElement} maps @param {Level} level @param {number} margin
 */
function fitsAll(maps, level, margin) {
  const all = largestCell(maps, level, NAMES.length, margin);
  return (
    (maps.clientWidth || USUAL) >= MEANT ||
    all >= NUMBERED ||
    all === largestCell(maps, level, 1, margin)
  );
}

/** @param {string} name @param {string} help what a click on it does @param {() => void} enlarge */
function figure(name, help, enlarge) {
  const title = el(
    "button",
    {
      class: "link title",
      title: help,
      "aria-pressed": "false",
      on: { click: enlarge, keydown: (event) => event.stopPropagation() }, // Enter chooses an entry
    },
    name,
  );
  const canvas = el("canvas", { "aria-hidden": "true" });
  const frame = el("div", "frame", canvas);
  const element = el("figure", null, el("figcaption", null, title), frame);
  let last = "";
  /** @param {ReturnType<typeof axesOf>} axes @param {number} cell @param {Level} level */
  function place(axes, cell, level) {
    const now = JSON.stringify([axes, cell]);
    if (now === last) return;
    last = now;
    const [left, top] = margins(...axes);
    canvas.style.margin = `${top}px 0 0 ${left}px`;
    frame.replaceChildren(canvas, axesView(...axes, cell, [level.rows, level.cols]));
  }
  return { element, frame, canvas, title, place };
}

/**
 * A button for the wrong cells only.
 * @param {Page} page @param {(only: boolean) => void} show
 */
function wrongCells(page, show) {
  const only = button(page.t("maps_wrong"), () => {
    const pressed = only.getAttribute("aria-pressed") !== "true";
    only.setAttribute("aria-pressed", String(pressed));
    show(pressed);
  });
  only.setAttribute("aria-pressed", "false");
  return only;
}

/**
 * The scale of colours; a click changes it.
 * @param {Page} page @param {Picture} picture @param {import("./scale.js").Colouring[]} looks
 * @param {(next: Scale) => void} change
 */
function legend(page, { block, level, maps, scale }, looks, change) {
  const [{ most }, , { most: far }] = looks;
  const beyond = looks.reduce((sum, look) => sum + look.beyond, 0);
  const clips = colourings("robust", shownMaps(block, level, "robust")).some((look) => look.beyond);
  /** @type {Scale[]} */
  const scales = ["robust", ...(clips ? [/** @type {Scale} */ ("largest")] : []), "own", "log"];
  const next = scales[(scales.indexOf(scale) + 1) % scales.length];
  const words = [page.t(`scale_${scale}`, { most: number(far, 2) })];
  if (beyond) words.push(page.t("panel.beyond", { count: count(beyond) }));
  const bar = el("span", { class: "scale", "aria-hidden": "true" });
  bar.style.background = `linear-gradient(to right, ${ramp(page.colours()).join(", ")})`;
  return el(
    "button",
    { class: "legend", title: page.t("scale_change"), on: { click: () => change(next) } },
    el("span", null, `-${number(most, 3)}`),
    bar,
    el("span", null, `+${number(most, 3)}`),
    el("span", "faint", words.join(" · ")),
  );
}

/** @param {HTMLCanvasElement} canvas @param {Explorer} explore */
function pointer(canvas, explore) {
  let frame = 0;
  /** @param {MouseEvent} event @returns {[number, number]} */
  function under(event) {
    const { rows, cols } = explore.top();
    return [
      Math.floor((event.offsetY / canvas.offsetHeight) * rows),
      Math.floor((event.offsetX / canvas.offsetWidth) * cols),
    ];
  }
  canvas.addEventListener("pointermove", (event) => {
    const cell = under(event);
    cancelAnimationFrame(frame);
    frame = requestAnimationFrame(() => explore.move(...cell));
  });
  canvas.addEventListener("click", (event) => {
    cancelAnimationFrame(frame);
    explore.move(...under(event));
    explore.choose();
  });
}

/** @param {Page} page @param {Picture} picture @param {Explorer} explore the entry under the cursor in words */
function readingOf(page, { block, level, maps }, explore) {
  const [row, col] = explore.cursor(),
    cell = row * level.cols + col;
  const said = judgement(block, level, cell);
  const [analytical, numerical, difference] = maps.map((values) => values[cell]);
  const both = difference
    ? compared(analytical, numerical)
    : [number(analytical, 6), number(numerical, 6)];
  const words = [...both, number(difference)];
  const facts = NAMES.map((name, k) =>
    el("span", "fact", el("span", "faint", page.word("panel", name)), " ", el("b", null, words[k])),
  );
  const under = cellRange(block, level, [row, col]).map(([start, end]) => end - start);
  const pooled = isPooled(level) && page.t("cell_largest", { count: count(under[0] * under[1]) });
  return [
    el("code", "entry", cellName(block, level, [row, col])),
    ...(pooled ? [el("span", "faint", pooled)] : []), // the three numbers may be of three entries
    ...facts,
    ...(said ? [verdictWord(page, said)] : []),
  ];
}
