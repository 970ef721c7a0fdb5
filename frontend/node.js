// What is known of one box of the graph: its nodes, their ctx and saved values, the gradients that flowed.

import { mostTelling, verdictWord } from "./blocks.js";
import { methodView } from "./calls.js";
import { documentView } from "./document.js";
import { button, el, icon } from "./dom.js";
import { edgeList, sum } from "./flow.js";
import { shape } from "./formats.js";
import { firstLine } from "./scene.js";
import { gradientView } from "./values.js";
import { ask } from "./wire.js";

/** @typedef {import("./types").Page} Page */
/** @typedef {import("./scene.js").Box} Box */

const MOST = 60; // nodes of a folded box that are listed
const MOST_BLOCKS = 12; // of a Jacobian

/**
 * @param {Page} page
 * @param {import("./types").GraphView} state
 * @param {Box} box
 * @param {() => void} close
 * @param {Node | null} more buttons
 */
export function boxDetail(page, state, box, close, more) {
  const body = el("div", "stack");
  const head = el("div", "bar");
  function fill() {
    const one = box.nodes.length === 1 ? state.nodes[box.nodes[0]] : null;
    head.replaceChildren(
      el("h4", null, one ? el("code", null, one.label || one.name) : firstLine(box)),
      el("span", "faint facts", one && facts(page, one).join(" · ")),
      ...[more, icon("×", page.t("close"), close)].filter((part) => part instanceof Node),
    );
    body.replaceChildren(
      ...[
        one && links(page, state, one),
        one ? nodeBody(page, state, one) : nodeList(state, box),
        one && ownCalls(page, state, one),
      ].filter((part) => part instanceof Node),
    );
  }
  fill();
  need(page, state, box.nodes.slice(0, MOST)).then(
    (late) => late && fill(),
    (problem) => page.signal.aborted || body.append(el("p", "faint", problem.message)),
  );
  return el("div", "stack", head, body);
}

/** @param {import("./types").GraphView} state @param {Box} box */
const nodeList = (state, box) =>
  el(
    "ul",
    "plain-list",
    ...box.nodes
      .slice(0, MOST)
      .map((id) => state.nodes[id])
      .filter(Boolean)
      .map((n) =>
        el("li", null, el("code", null, n.label || n.name), " ", el("span", "faint", n.scope)),
      ),
  );

/**
 * Ask Python for the details of nodes of a large graph that did not come at first.
 * @param {Page} page
 * @param {import("./types").GraphView} state
 * @param {number[]} ids
 */
async function need(page, state, ids) {
  /** @type {Set<number>} */
  const fetched = (state.fetched ??= new Set());
  const nodes = ids.filter((id) => !(id < state.whole || fetched.has(id)));
  if (
    !nodes.length ||
    (nodes.every((id) => state.nodes[id]) && !page.can({ kind: "nodes", nodes }))
  )
    return false;
  const answer = await ask(page.model, { kind: "nodes", nodes }, page.signal, page.t("no_kernel"));
  for (const id of nodes) fetched.add(id);
  for (const node of answer.nodes) state.nodes[node.id] ??= node;
  /** @param {import("./states").EdgeState} e */
  function place(e) {
    return [e.source, e.input_nr, e.target, e.output_nr].join();
  }
  const known = new Set(state.edges.map(place));
  state.edges.push(...answer.edges.filter((e) => !known.has(place(e))));
  return true;
}

/** @param {import("./types").GraphView} state @param {import("./states").NodeState} node whether it is of the Function that the report is about */
const reported = (state, node) =>
  node?.kind === "function" &&
  (!state.function || node.name.replace(/Backward$/, "") === state.function);

/**
 * What is selected along with a custom Function's node: its call and, where it was checked, its block.
 * @param {Page} page
 * @param {import("./types").GraphView} state
 * @param {number[]} ids
 */
export function linked(page, state, ids) {
  const node = ids.length === 1 ? state.nodes[ids[0]] : null,
    calls = state.calls[ids[0]] ?? [];
  if (!node || !reported(state, node)) return {};
  const block =
    !page.selection().block && state.blocks?.length ? page.reach(mostTelling(state.blocks)) : {};
  return calls.length ? { ...block, call: calls[calls.length - 1][0] } : block;
}

/**
 * From a custom Function to its calls and the blocks of its Jacobian; by itself the graph shows the calls here.
 * @param {Page} page
 * @param {import("./types").GraphView} state
 * @param {import("./states").NodeState} node
 */
function links(page, state, node) {
  if (!reported(state, node)) return null;
  const calls = (page.tabs.includes("calls") && state.calls[node.id]) || [],
    blocks = (page.tabs.includes("jacobian") && state.blocks) || [];
  /** @param {Node | string} words @param {string} tab @param {import("./types").Selection} selection */
  function to(words, tab, selection) {
    return button(words, () => (page.select(selection), page.show(tab)), "link");
  }
  /** @param {string} tab @param {Node[]} some */
  function row(tab, some) {
    return some.length > 0 && el("div", "queue", el("h5", null, page.t(`part.${tab}`)), ...some);
  }
  return el(
    "div",
    null,
    row(
      "calls",
      calls.map(([call, title]) => to(title, "calls", { call })),
    ),
    row(
      "jacobian",
      blocks
        .slice(0, MOST_BLOCKS)
        .map((b) =>
          el(
            "span",
            null,
            to(
              el("code", null, `d ${b.output_name} / d ${b.input_name}`),
              "jacobian",
              page.reach([b.output, b.input]),
            ),
            " ",
            b.verdict && verdictWord(page, b.verdict),
          ),
        ),
    ),
  );
}

/**
 * The recorded calls of a Function, where the graph is shown by itself.
 * @param {Page} page
 * @param {import("./types").GraphView} state
 * @param {import("./states").NodeState} node
 */
function ownCalls(page, state, node) {
  const place = el("div", "values");
  if (node.kind !== "function" || page.tabs.length || !page.can({ kind: "function" })) return place;
  ask(page.model, { kind: "function", node: node.id }, page.signal, "").then(
    ({ calls }) => {
      if (calls.length)
        place.append(
          el("h5", null, page.t("part.calls")),
          el("div", "pair", ...calls.map((call) => methodView(page, call))),
        );
    },
    () => {},
  );
  return place;
}

/** @param {Page} page @param {import("./states").NodeState} node */
function facts(page, node) {
  return [
    node.kind === "leaf" && page.t("is_leaf"),
    node.label && node.name,
    node.dtype && `${node.dtype} ${node.shape ? shape(node.shape) || page.t("tensor.scalar") : ""}`,
    node.scope,
    node.sequence !== null && page.t("sequence", { number: node.sequence }),
    node.line && page.t("line", { line: node.line }),
    node.freed && page.t("freed"),
  ].filter(Boolean);
}

/**
 * @param {Page} page
 * @param {import("./types").GraphView} state
 * @param {import("./states").NodeState} node
 */
export function nodeBody(page, state, node) {
  const incoming = state.edges.filter((e) => e.target === node.id),
    outgoing = state.edges.filter((e) => e.source === node.id);
  const added = sum(page, state, node);
  return el(
    "div",
    "columns",
    node.gradient &&
      !added &&
      el(
        "section",
        "values",
        el("h5", null, page.t(node.kind === "leaf" ? "accumulated" : "gradient_in")),
        gradientView(page, page.t("column.gradient"), node.gradient),
      ),
    added &&
      el("section", "values", el("h5", null, page.t("summed", { count: incoming.length })), added),
    node.saved.length > 0 && el("section", "values", ...documentView(page, node.saved)),
    !added &&
      incoming.length > 1 &&
      edgeList(
        page,
        page.t("summed", { count: incoming.length }),
        incoming,
        (e) => state.nodes[e.source],
      ),
    outgoing.length > 0 &&
      edgeList(page, page.t("returned"), outgoing, (e) => state.nodes[e.target]),
  );
}
