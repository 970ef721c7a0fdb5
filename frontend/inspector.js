// The inspector: one Function in tabs.

import { decider, pageOf, sinceView, takeAlong } from "./answer.js";
import { fitsMatrix, matrix, mostTelling } from "./blocks.js";
import { callsView } from "./calls.js";
import { documentView } from "./document.js";
import { button, el, prose } from "./dom.js";
import { gradcheckView, toJacobian } from "./gradcheck.js";
import { graphView } from "./graph.js";
import { jacobianView } from "./jacobian.js";
import { worstEntry } from "./levels.js";
import { sourceView } from "./source.js";
import { tabs } from "./tabs.js";

/** @typedef {import("./types").Page} Page */

const FEW = 4; // blocks whose matrix says all; of more a table lists those that tell something

/**
 * @param {Page} page
 * @param {import("./states").InspectorState} state
 */
export function inspectorView(page, state) {
  page.elements = state.elements;
  if (state.blocks.length) page.first = mostTelling(state.blocks);
  page.reach = (block, entry) => {
    const found = state.blocks.find((b) => b.output === block[0] && b.input === block[1]);
    return {
      block,
      entry: entry ?? (found && worstEntry(found)) ?? undefined,
      line: state.elements.lines[block[1]] ?? undefined,
      call: state.elements.call ?? undefined,
    };
  };
  const { graph, check, comparison, source } = state;
  const parts = [
    { id: "summary", make: () => summaryView(page, state) },
    state.calls.calls.length && {
      id: "calls",
      make: () => beneath(page, state, callsView(page, state.calls)),
    },
    graph && {
      id: "graph",
      make: () =>
        beneath(
          page,
          state,
          graphView(page, { ...graph, blocks: state.blocks, function: state.function }),
        ),
    },
    state.blocks.length && { id: "jacobian", make: () => jacobianView(page, state) },
    {
      id: "gradcheck",
      make: () => beneath(page, state, gradcheckView(page, { ...state, check })),
    },
    comparison && { id: "compare", make: () => pageOf(page, comparison) },
    source && {
      id: "source",
      make: () =>
        el(
          "div",
          "stack",
          ...(check.verdict === "wrong" ? causes(page, state) : []),
          sourceView(page, source, state.answer.marks),
        ),
    },
  ];
  return tabs(
    page,
    parts.flatMap((part) => part || []),
  );
}

/**
 * What is wrong, why, and what mends it, without the ways to where it stands.
 * @param {Page} page
 * @param {import("./states").InspectorState} state
 */
function causes(page, { answer }) {
  const [card] = answer.document;
  const told = card.kind === "card" ? card.body.filter((_, k) => !k || _.kind === "item") : [];
  return documentView({ ...page, tabs: [] }, told);
}

/**
 * A part beneath what is wrong and the way to its line, which the part does not say by itself.
 * @param {Page} page
 * @param {import("./states").InspectorState} state
 * @param {HTMLElement} part
 */
function beneath(page, { check, answer }, part) {
  const [card] = answer.document,
    [head] = card.kind === "card" ? card.body : [];
  if (check.verdict !== "wrong" || head?.kind !== "paragraph") return part;
  const line = answer.marks[0]?.line;
  /** @type {import("./tree").Span[]} */
  const way = line
    ? [" ", { kind: "link", words: page.t("show_line", { line }), tab: "source", line }]
    : [];
  const said = { ...head, spans: [...head.spans, ...way] };
  return el("div", "stack", ...documentView(page, [said]), part);
}

/**
 * @param {Page} page
 * @param {import("./states").InspectorState} state
 */
function summaryView(page, state) {
  const many = state.blocks.length > 2 && fitsMatrix(state.blocks),
    small = many && state.blocks.length <= FEW;
  return el(
    "div",
    "stack",
    ...documentView(page, state.answer.document),
    decider(page, state.check),
    state.check.since && sinceView(page, state.check.since),
    many && matrix(page, state.blocks, (block) => toJacobian(page, block)).element,
    ...(small ? [] : documentView(page, state.table)),
    ...documentView(page, state.answer.evidence),
    ...documentView(page, state.answer.others),
    state.comparison && compareLine(page, state.comparison),
    takeAlong(page, state.function),
    ...state.notes.map((note) => el("p", "faint", prose(note))),
  );
}

/**
 * Whether the Function agrees with its reference, and the way to the whole comparison.
 * @param {Page} page
 * @param {import("./states").ComparisonState} state
 */
const compareLine = (page, state) =>
  el(
    "p",
    null,
    prose(state.headline),
    " ",
    button(page.t("part.compare"), () => page.show("compare"), "link"),
  );
