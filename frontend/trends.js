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

/**
 * @param {Page} page
 * @param {import("./states").TrendsState} trends
 * @param {(first: number, count: number, then?: number) => void} list told which calls to list, and the one to choose
 * @param {number} oldest position of the first call that is listed at the beginning
 */
export function trendLines(page, trends, list, oldest) {
  const { count, first_bad: bad } = trends,
    starts = numbers(trends.starts);
  const sight = el("div", { class: "brush", hidden: true });
  const said = el("span", { class: "faint", role: "status" }, page.t("trend_help"));
  const rows = NAMES.flatMap((name) => row(page, name, trends, starts));
  const area = el(
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
    sight,
    bad !== null && el("div", { class: "bad-mark", style: `left:${(100 * (bad + 0.5)) / count}%` }),
  );
  let [first, last] = [oldest, count - 1];
  function mark() {
    const range = page.t("trend_range", { first: first + 1, last: last + 1, count });
    sight.hidden = last - first + 1 >= count;
    sight.style.left = `${(100 * first) / count}%`;
    sight.style.width = `${(100 * (last - first + 1)) / count}%`;
    area.setAttribute("aria-valuenow", String(last + 1));
    area.setAttribute("aria-valuetext", range);
    const begun = first === oldest && last === count - 1; // so that nobody has to guess how to see the others
    said.textContent = [!sight.hidden && range, begun && page.t("trend_help")]
      .filter(Boolean)
      .join(" · ");
  }
  /** @param {number} a @param {number} b @param {number} [then] */
  function show(a, b, then = b) {
    [first, last] = [Math.max(0, Math.min(a, b)), Math.min(count - 1, Math.max(a, b))];
    if (last - first + 1 < count) last = Math.min(last, first + MOST - 1);
    mark();
    list(first, last - first + 1, Math.max(first, Math.min(last, then)));
  }
  /** @param {PointerEvent} event */
  function at(event) {
    const place = area.getBoundingClientRect();
    return Math.max(
      0,
      Math.min(count - 1, Math.floor(((event.clientX - place.left) / place.width) * count)),
    );
  }
  /** @type {number | null} */
  let begun = null;
  area.addEventListener("pointerdown", (event) => {
    area.setPointerCapture(event.pointerId);
    begun = at(event);
  });
  area.addEventListener("pointermove", (event) => {
    if (begun === null) return;
    [first, last] = [begun, at(event)].sort((a, b) => a - b);
    mark();
  });
  area.addEventListener("pointerup", (event) => {
    if (begun !== null) show(begun, at(event));
    begun = null;
  });
  /** @param {number} way */
  function by(way) {
    return () => {
      const wide =
        last - first + 1 >= count ? Math.max(1, Math.round(count / 20)) : last - first + 1;
      const from = last - first + 1 >= count ? count : way > 0 ? last + 1 : first;
      const start = Math.max(0, Math.min(count - wide, way > 0 ? from : from - wide));
      show(start, start + wide - 1);
    };
  }
  keys(area, { ArrowLeft: by(-1), ArrowRight: by(1), Escape: () => show(oldest, count - 1) });
  mark();
  return el(
    "div",
    "stack trends",
    el("div", "trend-grid", ...rows, area),
    el(
      "div",
      "bar",
      said,
      bad !== null &&
        button(
          page.t("trend_bad", { call: trends.bad_call }),
          () => show(bad - FEW / 2, bad + FEW / 2, bad),
          "link bad",
        ),
    ),
  );
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
