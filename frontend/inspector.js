// The inspector: one Function in tabs.

import { copyReport, sinceView } from "./answer.js";
import { agreeingWords, byInterest, FEW, fitsMatrix, matrix, verdictWord } from "./blocks.js";
import { callsView } from "./calls.js";
import { documentView, pageOf } from "./document.js";
import { button, el, prose } from "./dom.js";
import { count, size } from "./formats.js";
import { gradcheckView } from "./gradcheck.js";
import { graphView } from "./graph.js";
import { jacobianView } from "./jacobian.js";
import { worstEntry } from "./levels.js";
import { sourceView } from "./source.js";
import { tabs } from "./tabs.js";

/** @typedef {import("./types").Page} Page */

/**
 * @param {Page} page
 * @param {import("./states").InspectorState} state
 */
export function inspectorView(page, state) {
  page.elements = state.elements;
  page.reach = (block, entry) => {
    const found = state.blocks.find(
      (/** @type {import("./states").BlockState} */ b) =>
        b.output === block[0] && b.input === block[1],
    );
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
    state.calls.calls.length && { id: "calls", make: () => callsView(page, state.calls) },
    graph && {
      id: "graph",
      make: () => graphView(page, { ...graph, blocks: state.blocks, function: state.function }),
    },
    state.blocks.length && { id: "jacobian", make: () => jacobianView(page, state) },
    check && { id: "gradcheck", make: () => gradcheckView(page, { ...state, check }) },
    comparison && { id: "compare", make: () => pageOf(page, comparison) },
    source && { id: "source", make: () => sourceView(page, source, state.answer.marks) },
  ];
  return tabs(
    page,
    parts.flatMap((part) => part || []),
    state.view === "all" ? "summary" : state.view,
  );
}

/**
 * @param {Page} page
 * @param {import("./states").InspectorState} state
 */
function summaryView(page, state) {
  return el(
    "div",
    "stack",
    ...documentView(page, state.answer.document),
    state.check?.since && sinceView(page, state.check.since),
    state.blocks.length > 0 && blocksView(page, state.blocks),
    ...documentView(page, state.answer.others),
    state.comparison && compareLine(page, state.comparison),
    el("p", "faint", callLine(page, state.calls)),
    copyReport(page),
    ...state.notes.map((/** @type {string} */ note) => el("p", "faint", prose(note))),
  );
}

/**
 * Every block with its verdict, each a way into the Jacobian: a matrix of signs, the wrong ones in words, the others folded.
 * @param {Page} page
 * @param {import("./states").BlockState[]} blocks
 */
function blocksView(page, blocks) {
  const ordered = byInterest(blocks);
  const agreeing = blocks.length > FEW ? ordered.filter((b) => b.verdict === "match") : [];
  const telling = ordered.slice(0, ordered.length - agreeing.length);
  const lines = (/** @type {import("./states").BlockState[]} */ some) =>
    el("ul", "blocks", ...some.map((block) => blockLine(page, block)));
  return el(
    "div",
    "stack",
    blocks.length > 2 &&
      fitsMatrix(blocks) &&
      matrix(page, blocks, (block) => goTo(page, block)).element,
    telling.length > 0 && lines(telling),
    agreeing.length > 0 &&
      el(
        "details",
        null,
        el("summary", null, agreeingWords(page, agreeing.length)),
        lines(agreeing),
      ),
  );
}

/** @param {Page} page @param {import("./states").BlockState} block */
function goTo(page, block) {
  page.select(page.reach([block.output, block.input]));
  page.show("jacobian");
}

/** @param {Page} page @param {import("./states").BlockState} block */
function blockLine(page, block) {
  const name = el("code", null, `d ${block.output_name} / d ${block.input_name}`);
  const counts = { wrong: count(block.wrong ?? 0), entries: count(block.entries) };
  return el(
    "li",
    null,
    button(name, () => goTo(page, block), "link"),
    " ",
    block.verdict && verdictWord(page, block.verdict),
    " ",
    block.wrong !== undefined && el("span", "faint", page.t("wrong_entries", counts)),
  );
}

/**
 * @param {Page} page
 * @param {import("./states").CallsState} calls
 */
function callLine(page, calls) {
  const total = (/** @type {string} */ method) =>
    calls.calls.filter((/** @type {import("./states").CallState} */ c) => c.method === method);
  const [forward, backward] = [total("forward"), total("backward")];
  const saved = Math.max(
    0,
    ...forward.map((/** @type {import("./states").CallState} */ c) => c.bytes),
  );
  return page.t("call_line", {
    forward: forward.length,
    backward: backward.length,
    saved: size(saved),
  });
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
    state.headline,
    " ",
    button(page.t("tab.compare"), () => page.show("compare"), "link"),
  );
