// The Function beside its reference: a row for each quantity with small heat maps, then the two graphs.

import { arrowHead, boxGroup, pathGroup } from "./scene.js";
import { count, el, size, svg, time } from "./shared.js";
import { tensorBody } from "./values.js";

/** @typedef {import("./types").Page} Page */
/** @typedef {import("./scene.js").Layout} Layout */

/**
 * @param {Page} page
 * @param {any} state
 */
export function compareView(page, state) {
  const [first, second] = state.names;
  return el("div", "stack",
    el("p", state.agree ? "verdict good" : "verdict bad", page.t(state.agree ? "comparison_agree" : "comparison_differ", { first, second })),
    el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": page.t("comparison") }, table(page, state)),
    state.graphs && el("div", "beside", ...state.graphs.map((/** @type {Layout} */ layout, /** @type {number} */ k) => el("section", null, el("h5", null, el("code", null, state.names[k])), drawing(layout)))));
}

/** @param {Page} page @param {any} state */
function table(page, state) {
  const head = (/** @type {any} */ words) => el("th", { scope: "row" }, words);
  const value = (/** @type {import("./types").Value} */ v) => el("td", null, v?.tensor ? tensorBody(page, v.name, v.tensor) : v ? el("code", null, v.repr) : "");
  const pair = (/** @type {string} */ key) => (/** @type {any} */ row) => el("tr", null, head(page.t(key, { name: row.name })), ...row.values.map(value),
    el("td", row.agrees ? null : "bad", row.said, !row.agrees && row.error?.tensor && tensorBody(page, row.name, row.error.tensor)));
  const fact = (/** @type {string} */ words, /** @type {any[]} */ values) => el("tr", null, head(words), ...values.map((v) => el("td", null, v)), el("td"));
  return el("table", "grid",
    el("thead", null, el("tr", null, el("td"), ...state.names.map((/** @type {string} */ n) => el("th", { scope: "col" }, el("code", null, n))), el("th", { scope: "col" }, page.t("difference")))),
    el("tbody", null, ...state.outputs.map(pair("compare_output")), ...state.gradients.map(pair("compare_gradient")),
      fact(page.t("saved_bytes"), state.saved_bytes.map(size)), fact(page.t("time"), state.seconds.map(time)),
      state.nodes && fact(page.t("compare_nodes"), state.nodes.map((/** @type {number} */ n) => count(n)))));
}

/** @param {Layout} layout */
function drawing({ width, height, boxes, paths, title, description }) {
  return svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, class: "drawing still", role: "img", "aria-label": description || title },
    arrowHead(), ...paths.map(pathGroup), ...boxes.map(boxGroup));
}
