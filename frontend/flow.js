// The gradients that flow into a node and out of it: their sum, and the list of the edges.

import { numbers } from "./arrays.js";
import { el } from "./dom.js";
import { shape } from "./formats.js";
import { limit } from "./scale.js";
import { gradientView } from "./values.js";

/** @typedef {import("./types").Page} Page */

/**
 * The contributions that meet at a node, and their sum; null where there is nothing to add.
 * @param {Page} page
 * @param {import("./types").GraphView} state
 * @param {import("./states").NodeState} node
 * @param {(source: number) => boolean} [came] which have arrived
 * @param {boolean} [done] whether the sum stands
 */
export function sum(page, state, node, came = () => true, done = true) {
  const edges = state.edges.flatMap((e) =>
    e.target === node.id && e.gradient ? [{ ...e, gradient: e.gradient }] : [],
  );
  if (edges.length < 2 || edges.length > 6 || new Set(edges.map((e) => e.output_nr)).size > 1)
    return null;
  const drawn = edges.map((e) => e.gradient.thumbnail);
  const whole = node.gradient?.thumbnail;
  const most = drawn.every(Boolean)
    ? limit(...[...drawn, whole].flatMap((packed) => (packed ? [numbers(packed)] : [])))
    : undefined; // of all terms: they are compared
  /** @param {string} name @param {import("./states").GradientState} gradient */
  function term(name, gradient) {
    return el("div", "term", el("code", "name", name), gradientView(page, name, gradient, most));
  }
  const terms = edges
    .filter((e) => came(e.source))
    .map((e) => term(label(state.nodes[e.source]), e.gradient));
  const row = terms.flatMap((t, k) => (k ? [el("span", null, "+"), t] : [t]));
  if (done && node.gradient)
    row.push(
      el("span", null, "="),
      term(node.kind === "leaf" ? `${label(node)}.grad` : page.t("gradient_in"), node.gradient),
    );
  return el("div", "sum", ...row);
}

/** @param {import("./states").NodeState} node */
const label = (node) => (node ? node.label || node.name : "…");

/**
 * @param {Page} page
 * @param {string} title
 * @param {import("./states").EdgeState[]} edges
 * @param {(edge: import("./states").EdgeState) => import("./states").NodeState} far the node at the other end
 */
export function edgeList(page, title, edges, far) {
  return el(
    "section",
    "values",
    el("h5", null, title),
    el(
      "ul",
      null,
      ...edges
        .slice(0, 20)
        .map((edge) =>
          el(
            "li",
            "item",
            el(
              "p",
              null,
              el("code", "name", label(far(edge))),
              " ",
              el(
                "span",
                "faint",
                [edge.dtype, edge.shape && (shape(edge.shape) || page.t("tensor.scalar"))]
                  .filter(Boolean)
                  .join(" "),
              ),
            ),
            edge.gradient && gradientView(page, page.t("column.gradient"), edge.gradient),
          ),
        ),
    ),
  );
}
