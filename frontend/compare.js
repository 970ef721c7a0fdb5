// The Function beside its reference: a row for each quantity with small heat maps, then the two graphs.

import { arrowHead, boxGroup, pathGroup } from "./scene.js";
import { el, svg } from "./shared.js";
import { tensorBody } from "./values.js";

/** @typedef {import("./types").Page} Page */
/** @typedef {import("./scene.js").Layout} Layout */

/**
 * @param {Page} page
 * @param {any} state
 */
export function compareView(page, state) {
  return el(
    "div",
    "stack",
    el("p", state.agree ? "verdict good" : "verdict bad", state.said),
    el(
      "div",
      { class: "scroll", tabindex: "0", role: "region", "aria-label": page.t("comparison") },
      table(page, state),
    ),
    state.graphs &&
      el(
        "div",
        "beside",
        ...state.graphs.map((/** @type {Layout} */ layout, /** @type {number} */ k) =>
          el("section", null, el("h5", null, el("code", null, state.names[k])), drawing(layout)),
        ),
      ),
  );
}

/** @param {Page} page @param {any} state */
function table(page, state) {
  const value = (/** @type {import("./types").Value} */ v) =>
    el("td", null, v.tensor ? tensorBody(page, v.name, v.tensor) : el("code", null, v.repr));
  const row = (/** @type {any} */ { title, cells, said, agrees, values, error }) =>
    el(
      "tr",
      null,
      el("th", { scope: "row" }, title),
      ...(values
        ? values.map(value)
        : cells.map((/** @type {string} */ words) => el("td", null, words))),
      el("td", agrees ? null : "bad", said, error?.tensor && tensorBody(page, title, error.tensor)),
    );
  return el(
    "table",
    "grid",
    el(
      "thead",
      null,
      el(
        "tr",
        null,
        el("td"),
        ...state.names.map((/** @type {string} */ n) =>
          el("th", { scope: "col" }, el("code", null, n)),
        ),
        el("th", { scope: "col" }, page.t("difference")),
      ),
    ),
    el("tbody", null, ...state.rows.map(row)),
  );
}

/** @param {Layout} layout */
function drawing({ width, height, boxes, paths, title, description }) {
  return svg(
    "svg",
    {
      width,
      height,
      viewBox: `0 0 ${width} ${height}`,
      class: "drawing still",
      role: "img",
      "aria-label": description || title,
    },
    arrowHead(),
    ...paths.map(pathGroup),
    ...boxes.map(boxGroup),
  );
}
