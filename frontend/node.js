// What is known of one box of the graph: its nodes, their ctx and saved values, the gradients that flowed.

import { nameOf } from "./graph.js";
import { el, shape } from "./shared.js";
import { ctxView, tensorBody, valueList } from "./values.js";

/** @typedef {import("./types").Page} Page */

/**
 * @param {Page} page
 * @param {any} state
 * @param {any} box
 * @param {() => void} close
 */
export function boxDetail(page, state, box, close) {
  const nodes = box.nodes.map((/** @type {number} */ id) => state.nodes[id]).filter(Boolean);
  const one = nodes.length === 1 ? nodes[0] : null;
  return el("div", { class: "stack" },
    el("div", { class: "bar" }, el("h4", null, one ? el("code", null, one.label || one.name) : nameOf(box).split("\n")[0]), el("span", { class: "faint facts" }, one ? facts(page, one).join(" · ") : page.t("nodes", { count: box.nodes.length })),
      one && links(page, one),
      el("button", { type: "button", class: "button icon", "aria-label": page.t("close"), title: page.t("close"), on: { click: close } }, "×")),
    one ? nodeBody(page, state, one) : el("ul", { class: "plain-list" }, ...nodes.slice(0, 60).map((/** @type {any} */ n) => el("li", null, el("code", null, n.label || n.name), " ", el("span", { class: "faint" }, n.scope)))));
}

/** @param {Page} page @param {any} node */
function links(page, node) {
  if (node.kind !== "function") return null;
  const button = (/** @type {string} */ tab) => page.tabs.includes(tab) && el("button", { type: "button", class: "button", on: { click: () => page.show(tab) } }, page.t(`tab.${tab}`));
  return el("span", { class: "group" }, button("calls"), button("jacobian"));
}

/** @param {Page} page @param {any} node */
function facts(page, node) {
  return [
    node.label && node.name,
    node.dtype && `${node.dtype} ${node.shape ? shape(node.shape) || page.t("scalar") : ""}`,
    node.scope,
    node.sequence !== null && page.t("sequence", { number: node.sequence }),
    node.line && page.t("line", { line: node.line }),
    node.freed && page.t("freed"),
  ].filter(Boolean);
}

/**
 * @param {Page} page
 * @param {any} state
 * @param {any} node
 */
function nodeBody(page, state, node) {
  const gradient = node.gradient && el("section", { class: "values" }, el("h5", null, page.t(node.kind === "leaf" ? "accumulated" : "gradient_in")), tensorBody(page, page.t("gradient"), node.gradient));
  const incoming = state.edges.filter((/** @type {any} */ e) => e.target === node.id), outgoing = state.edges.filter((/** @type {any} */ e) => e.source === node.id);
  return el("div", { class: "columns" },
    node.ctx && ctxView(page, node.ctx),
    node.saved.length > 0 && !node.ctx && valueList(page, page.t("saved"), node.saved),
    gradient,
    incoming.length > 1 && edgeList(page, page.t("summed", { count: incoming.length }), incoming, (e) => state.nodes[e.source]),
    outgoing.length > 0 && edgeList(page, page.t("returned"), outgoing, (e) => state.nodes[e.target]));
}

/**
 * @param {Page} page
 * @param {string} title
 * @param {any[]} edges
 * @param {(edge: any) => any} far the node at the other end
 */
function edgeList(page, title, edges, far) {
  return el("section", { class: "values" }, el("h5", null, title), el("ul", null, ...edges.slice(0, 20).map((edge) => {
    const node = far(edge);
    return el("li", null, el("div", null, el("code", { class: "name" }, node ? node.label || node.name : "…"), " ", el("span", { class: "faint" }, [edge.dtype, edge.shape && (shape(edge.shape) || page.t("scalar"))].filter(Boolean).join(" "))),
      edge.gradient && tensorBody(page, page.t("gradient"), edge.gradient));
  })));
}
