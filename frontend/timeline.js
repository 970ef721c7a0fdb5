// The time line of calls: a chip for each, forward above and backward below, joined by arrows.

import { el, keys, svg } from "./dom.js";
import { time } from "./formats.js";

/** @typedef {import("./types").Page} Page */

const STEP = 162,
  WIDTH = 156,
  CHIP = 26,
  LANE = 60; // px: column, chip, from lane to lane
const BESIDE = 3; // chips that are there left and right of what is seen

/** @param {import("./states").CallState} call */
export const isBackward = (call) => call.method === "backward";

/** @param {number} k */
const middle = (k) => k * STEP + WIDTH / 2;

export class Timeline {
  #page;
  #calls;
  #chosen;
  #arcs;
  #several;
  /** @type {Map<number, HTMLElement>} */
  #made = new Map();
  #chips = el("div");
  #links;

  /**
   * @param {Page} page
   * @param {import("./states").CallState[]} calls
   * @param {Map<number, number>} places
   * @param {() => number} chosen
   */
  constructor(page, calls, places, chosen) {
    this.#page = page;
    this.#calls = calls;
    this.#chosen = chosen;
    this.#several = new Set(calls.map((call) => call.function)).size > 1; // each numbers its own
    this.#arcs = calls.flatMap((call, k) => {
      const from = isBackward(call) ? places.get(call.forward ?? -1) : undefined;
      return from === undefined ? [] : [[from, k]];
    });
    const width = calls.length * STEP,
      height = LANE + CHIP;
    this.#links = svg("svg", { width, height, "aria-hidden": "true" });
    const track = el(
      "div",
      {
        class: "track",
        role: "group",
        "aria-label": `${page.t("timeline")} (${calls.length})`,
        style: `width:${width}px;height:${height}px`,
      },
      this.#links,
      this.#chips,
    );
    this.element = el("div", "scroll timeline", track);
    keys(track, {
      ArrowLeft: () => this.#go(-1),
      ArrowRight: () => this.#go(1),
      Home: () => this.#go(-Infinity),
      End: () => this.#go(Infinity),
    });
    this.#watchRoom();
  }

  #watchRoom() {
    this.element.addEventListener("scroll", () => this.#paint(), { passive: true });
    const see = () => this.see(this.#chosen()),
      { signal } = this.#page;
    this.#page.onTheme(() => setTimeout(see, 500), signal); // JupyterLab hides the page meanwhile: the place is lost
    const watcher = new ResizeObserver(see);
    watcher.observe(this.element);
    signal.addEventListener("abort", () => watcher.disconnect(), { once: true });
  }

  get #room() {
    return this.element.clientWidth || 700;
  }

  #paint() {
    const { scrollLeft } = this.element,
      from = Math.floor(scrollLeft / STEP) - BESIDE,
      to = Math.ceil((scrollLeft + this.#room) / STEP) + BESIDE;
    this.#paintChips(from, to);
    this.#paintLinks(from, to);
  }

  /** @param {number} from @param {number} to */
  #paintChips(from, to) {
    const now = this.#chosen(),
      { length } = this.#calls,
      stop = Math.min(Math.max(now, from + BESIDE, 0), to - BESIDE - 1, length - 1);
    for (const [k, chip] of this.#made)
      if ((k < from || k >= to) && !chip.matches(":focus")) (chip.remove(), this.#made.delete(k));
    for (let k = Math.max(0, from); k < Math.min(to, length); k++) {
      if (!this.#made.has(k)) this.#made.set(k, this.#chips.appendChild(this.#chip(k)));
    }
    for (const [k, chip] of this.#made) {
      chip.setAttribute("aria-pressed", String(k === now));
      chip.tabIndex = k === stop ? 0 : -1;
    }
  }

  /** @param {number} from @param {number} to */
  #paintLinks(from, to) {
    const now = this.#chosen();
    const seen = this.#arcs.filter(([a, b]) => b >= from && a < to).slice(0, 200);
    this.#links.replaceChildren(
      ...seen.map(([a, b]) => {
        const [x1, x2] = [middle(a), middle(b)];
        return svg("path", {
          class: a === now || b === now ? "link near" : "link",
          d: `M${x1},${CHIP} C${x1},${LANE - 8} ${x2},${CHIP + 8} ${x2},${LANE - 5} m-3,-1 l3,6 l3,-6`,
        });
      }),
    );
  }

  /** @param {number} k */
  #chip(k) {
    const call = this.#calls[k];
    const name = this.#several ? `${call.function} ${call.name}` : call.name;
    return chipOf(this.#page, call, k, name);
  }

  /** @param {number} k of the call that is to be in sight */
  see(k) {
    const left = k * STEP,
      { scrollLeft } = this.element;
    if (left < scrollLeft || left + WIDTH > scrollLeft + this.#room)
      this.element.scrollLeft = left - this.#room / 2 + STEP;
    this.#paint();
  }

  /** @param {number} by */
  #go(by) {
    const focused = [...this.#made].find(([, chip]) => chip.matches(":focus"))?.[0];
    const next = Math.max(0, Math.min(this.#calls.length - 1, (focused ?? this.#chosen()) + by));
    this.#page.select({ call: this.#calls[next].index });
    this.see(next);
    this.#made.get(next)?.focus();
  }
}

/** @param {Page} page @param {import("./states").CallState} call @param {number} k @param {string} name */
function chipOf(page, call, k, name) {
  const marks = [call.printed && "›", (call.noticed || call.bad) && "!", call.exception && "✗"]
    .filter(Boolean)
    .join("");
  const said = [
    time(call.seconds ?? 0),
    call.printed && page.t("call.printed"),
    call.bad && page.t("trend.bad"),
    call.noticed && page.t("noticed", { count: call.noticed }),
    call.exception,
  ].filter(Boolean);
  return el(
    "button",
    {
      class: `chip ${isBackward(call) ? "backward" : "forward"} ${call.exception || call.bad ? "bad" : ""}`,
      "aria-label": `${call.function}.${call.method} ${call.name}, ${said.join(", ")}`,
      title: said.join(", "),
      style: `left:${k * STEP}px;top:${isBackward(call) ? LANE : 0}px;width:${WIDTH}px;height:${CHIP}px`,
      on: { click: () => page.select({ call: call.index }) },
    },
    el(
      "span",
      null,
      call.method === "setup_context" ? "setup" : call.method,
      marks && el("b", null, ` ${marks}`),
    ),
    el("span", "faint", name),
  );
}
