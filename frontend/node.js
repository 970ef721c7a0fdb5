// What is known of one box of the graph: its nodes, their ctx and saved values, the gradients that flowed.

import { firstLine } from "./scene.js";
import { ask, button, el, icon, shape } from "./shared.js";
import { ctxView, tensorBody, valueList } from "./values.js";

/** @typedef {import("./types").Page} Page */
/** @typedef {import("./scene.js").Box} Box */

const MOST = 60; // nodes of a folded box that are listed

/**
 * @param {Page} page
 * @param {any} state
 * @param {any} box
 * @param {() => void} close
 * @param {Node | null} more buttons
 */
export function boxDetail(page, state, box, close, more) {
  const body = el("div", null);
  const head = el("div", "bar");
  const fill = () => {
    const one = box.nodes.length === 1 ? state.nodes[box.nodes[0]] : null;
    const lines = [firstLine(box), one ? facts(page, one).join(" · ") : box.nodes.length > 1 && page.t("nodes", { count: box.nodes.length })];
    head.replaceChildren(el("h4", null, one ? el("code", null, one.label || one.name) : lines[0]), el("span", "faint facts", lines[1]), ...[one && links(page, one), more, icon("×", page.t("close"), close)].filter((part) => part instanceof Node));
    body.replaceChildren(one ? nodeBody(page, state, one) : nodeList(state, box));
  };
  fill();
  need(page, state, box.nodes.slice(0, MOST)).then((late) => late && fill(), (problem) => page.signal.aborted || body.append(el("p", "faint", problem.message)));
  return el("div", "stack", head, body);
}

/** @param {any} state @param {Box} box */
const nodeList = (state, box) => el("ul", "plain-list", ...box.nodes.slice(0, MOST).map((id) => state.nodes[id]).filter(Boolean).map((n) => el("li", null, el("code", null, n.label || n.name), " ", el("span", "faint", n.scope))));

/**
 * Ask Python for the details of nodes of a large graph that did not come at first.
 * @param {Page} page
 * @param {any} state
 * @param {number[]} ids
 */
async function need(page, state, ids) {
  const nodes = ids.filter((id) => !state.nodes[id]);
  if (!nodes.length) return false;
  const { content } = await ask(page.model, { kind: "nodes", nodes }, page.signal, page.t("no_kernel"));
  for (const node of content.nodes) state.nodes[node.id] ??= node;
  const place = (/** @type {any} */ e) => [e.source, e.input_nr, e.target, e.output_nr].join();
  const known = new Set(state.edges.map(place));
  state.edges.push(...content.edges.filter((/** @type {any} */ e) => !known.has(place(e))));
  return true;
}

/**
 * From a custom Function to its calls and its Jacobian.
 * @param {Page} page
 * @param {any} node
 */
function links(page, node) {
  if (node.kind !== "function") return null;
  return el("span", "group", ...["calls", "jacobian"].map((tab) => page.tabs.includes(tab) && button(page.t(`tab.${tab}`), () => page.show(tab))));
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
export function nodeBody(page, state, node) {
  const incoming = state.edges.filter((/** @type {any} */ e) => e.target === node.id), outgoing = state.edges.filter((/** @type {any} */ e) => e.source === node.id);
  const added = sum(page, state, node);
  return el("div", "columns",
    node.gradient && !added && el("section", "values", el("h5", null, page.t(node.kind === "leaf" ? "accumulated" : "gradient_in")), tensorBody(page, page.t("gradient"), node.gradient)),
    added && el("section", "values", el("h5", null, page.t("summed", { count: incoming.length })), added),
    node.ctx && ctxView(page, node.ctx),
    node.saved.length > 0 && !node.ctx && valueList(page, page.t("saved"), node.saved),
    !added && incoming.length > 1 && edgeList(page, page.t("summed", { count: incoming.length }), incoming, (e) => state.nodes[e.source]),
    outgoing.length > 0 && edgeList(page, page.t("returned"), outgoing, (e) => state.nodes[e.target]));
}

/**
 * The contributions that meet at a node, and their sum; null where there is nothing to add.
 * @param {Page} page
 * @param {any} state
 * @param {any} node
 * @param {(source: number) => boolean} [came] which have arrived
 * @param {boolean} [done] whether the sum stands
 */
export function sum(page, state, node, came = () => true, done = true) {
  const edges = state.edges.filter((/** @type {any} */ e) => e.target === node.id && e.gradient);
  if (edges.length < 2 || edges.length > 6 || new Set(edges.map((/** @type {any} */ e) => e.output_nr)).size > 1) return null;
  const term = (/** @type {string} */ name, /** @type {any} */ gradient) => el("div", "term", el("code", "name", name), tensorBody(page, name, gradient));
  const terms = edges.filter((/** @type {any} */ e) => came(e.source)).map((/** @type {any} */ e) => term(label(state.nodes[e.source]), e.gradient));
  const row = terms.flatMap((/** @type {Node} */ t, /** @type {number} */ k) => (k ? [el("span", null, "+"), t] : [t]));
  if (done && node.gradient) row.push(el("span", null, "="), term(node.kind === "leaf" ? `${label(node)}.grad` : page.t("gradient_in"), node.gradient));
  return el("div", "sum", ...row);
}

/** @param {any} node */
const label = (node) => (node ? node.label || node.function || node.name : "…");

/**
 * @param {Page} page
 * @param {string} title
 * @param {any[]} edges
 * @param {(edge: any) => any} far the node at the other end
 */
function edgeList(page, title, edges, far) {
  return el("section", "values", el("h5", null, title), el("ul", null, ...edges.slice(0, 20).map((edge) =>
    el("li", null, el("div", null, el("code", "name", label(far(edge))), " ", el("span", "faint", [edge.dtype, edge.shape && (shape(edge.shape) || page.t("scalar"))].filter(Boolean).join(" "))),
      edge.gradient && tensorBody(page, page.t("gradient"), edge.gradient)))));
}
