// Trends along calls: sizes of gradients, NaN and Inf, time, as small lines with a brush that lists the calls under it.

import { numbers } from "./arrays.js";
import { button, el, keys, svg } from "./dom.js";
import { count, number, time } from "./formats.js";

/** @typedef {import("./types").Page} Page */

const HIGH = 26; // px of one line
const MOST = 500; // calls that are listed at once
const FEWEST = 3; // numbers of a band
const FEW = 40; // calls around the first bad one that are listed with it
const NAMES = /** @type {const} */ (["incoming", "outgoing", "bad", "seconds"]);

/** The lines with their brush, which tells what calls to list. */
export class Trends {
  #page;
  #trends;
  #oldest;
  #list;
  #first;
  #last;
  #sight = el("div", { class: "brush", hidden: true });
  #said;
  #area;

  /**
   * @param {Page} page
   * @param {import("./states").TrendsState} trends
   * @param {number} oldest position of the first call that is listed at the beginning
   * @param {(first: number, count: number, then?: number) => void} list told which calls to list, and the one to choose
   */
  constructor(page, trends, oldest, list) {
    this.#page = page;
    this.#trends = trends;
    this.#oldest = this.#first = oldest;
    this.#last = trends.count - 1;
    this.#list = list;
    this.#said = el("span", { class: "faint", role: "status" }, page.t("trend_help"));
    const { count, first_bad: bad } = trends;
    this.#area = el(
      "div",
      {
        class: "brush-area",
        role: "slider",
        tabindex: 0,
        "aria-label": page.t("timeline"),
        "aria-valuemin": 1,
        "aria-valuemax": count,
        "aria-valuenow": count,
      },
      this.#sight,
      bad !== null &&
        el("div", { class: "bad-mark", style: `left:${(100 * (bad + 0.5)) / count}%` }),
    );
    this.#listenToPointer();
    keys(this.#area, {
      ArrowLeft: () => this.#move(-1),
      ArrowRight: () => this.#move(1),
      Escape: () => this.#show(oldest, count - 1),
    });
    this.#mark();
    const starts = numbers(trends.starts);
    const rows = NAMES.flatMap((name) => row(page, name, trends, starts));
    this.element = el(
      "div",
      "stack trends",
      el("div", "trend-grid", ...rows, this.#area),
      el("div", "bar", this.#said, bad !== null && this.#firstBad(bad)),
    );
  }

  /** @param {number} bad */
  #firstBad(bad) {
    const words = this.#page.t("trend_bad", { call: this.#trends.bad_call });
    return button(words, () => this.#show(bad - FEW / 2, bad + FEW / 2, bad), "link bad");
  }

  /** How many calls are under the brush. */
  get #wide() {
    return this.#last - this.#first + 1;
  }

  /** Draw the brush, and say what is under it. */
  #mark() {
    const { count } = this.#trends,
      [first, last] = [this.#first, this.#last];
    const range = this.#page.t("trend_range", { first: first + 1, last: last + 1, count });
    this.#sight.hidden = this.#wide >= count;
    this.#sight.style.left = `${(100 * first) / count}%`;
    this.#sight.style.width = `${(100 * this.#wide) / count}%`;
    this.#area.setAttribute("aria-valuenow", String(last + 1));
    this.#area.setAttribute("aria-valuetext", range);
    const begun = first === this.#oldest && last === count - 1; // so that nobody has to guess how to see the others
    this.#said.textContent = [!this.#sight.hidden && range, begun && this.#page.t("trend_help")]
      .filter(Boolean)
      .join(" · ");
  }

  /** @param {number} a @param {number} b @param {number} [then] */
  #show(a, b, then = b) {
    const { count } = this.#trends;
    this.#first = Math.max(0, Math.min(a, b));
    this.#last = Math.min(count - 1, Math.max(a, b));
    if (this.#wide < count) this.#last = Math.min(this.#last, this.#first + MOST - 1);
    this.#mark();
    this.#list(this.#first, this.#wide, Math.max(this.#first, Math.min(this.#last, then)));
  }

  #listenToPointer() {
    const area = this.#area,
      { count } = this.#trends;
    /** @param {PointerEvent} event */
    function under(event) {
      const { left, width } = area.getBoundingClientRect();
      return Math.max(0, Math.min(count - 1, Math.floor(((event.clientX - left) / width) * count)));
    }
    /** @type {number | null} */
    let begun = null;
    area.addEventListener("pointerdown", (event) => {
      area.setPointerCapture(event.pointerId);
      begun = under(event);
    });
    area.addEventListener("pointermove", (event) => {
      if (begun === null) return;
      [this.#first, this.#last] = [begun, under(event)].sort((a, b) => a - b);
      this.#mark();
    });
    area.addEventListener("pointerup", (event) => {
      if (begun !== null) this.#show(begun, under(event));
      begun = null;
    });
  }

  /** @param {number} way the calls before or behind those under the brush; of all the last ones */
  #move(way) {
    const { count } = this.#trends,
      all = this.#wide >= count,
      wide = all ? Math.max(1, Math.round(count / 20)) : this.#wide;
    const from = all ? count : way > 0 ? this.#last + 1 : this.#first;
    const start = Math.max(0, Math.min(count - wide, way > 0 ? from : from - wide));
    this.#show(start, start + wide - 1);
  }
}

/** @param {Page} page @param {typeof NAMES[number]} name @param {import("./states").TrendsState} trends @param {ArrayLike<number>} starts */
function row(page, name, trends, starts) {
  const values = Array.from(numbers(trends[name]));
  const known = values.filter((v) => Number.isFinite(v));
  const most = Math.max(0, ...known),
    low = Math.min(...known.filter((v) => v > 0));
  if (known.length < FEWEST || (name === "bad" && !most)) return [];
  const logarithmic = name !== "bad" && name !== "seconds" && most > 20 * low;
  /** @param {number} v */
  function height(v) {
    return logarithmic
      ? v > 0
        ? 0.08 + (0.92 * Math.log(v / low)) / Math.log(most / low)
        : 0
      : most
        ? v / most
        : 0;
  }
  const points = values.flatMap((v, k) =>
    Number.isFinite(v) ? [`${starts[k] + 0.5},${(1 - height(v)) * (HIGH - 4) + 2}`] : [],
  );
  const most_ = name === "seconds" ? time(most) : name === "bad" ? count(most) : number(most, 3);
  const said = page.t("trend_of", {
    name: page.t(`trend.${name}`),
    count: trends.count,
    most: most_,
  });
  return [
    el("span", "faint", page.t(`trend.${name}`)),
    svg(
      "svg",
      {
        class: `trend ${name}`,
        role: "img",
        "aria-label": said,
        height: HIGH,
        viewBox: `0 0 ${trends.count} ${HIGH}`,
        preserveAspectRatio: "none",
      },
      name === "bad"
        ? svg("path", {
            d: values
              .map((v, k) =>
                v ? `M${starts[k] + 0.5},${HIGH}V${HIGH - 4 - height(v) * (HIGH - 6)}` : "",
              )
              .join(""),
          })
        : svg("polyline", { points: points.join(" ") }),
    ),
    el("span", "faint", page.t("trend_most", { most: most_ })),
  ];
}
