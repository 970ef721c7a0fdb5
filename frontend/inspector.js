// The inspector: one Function in tabs.

import { banner, sinceView } from "./answer.js";
import { verdictWord } from "./blocks.js";
import { callsView } from "./calls.js";
import { compareView } from "./compare.js";
import { findingsList } from "./findings.js";
import { gradcheckView } from "./gradcheck.js";
import { graphView } from "./graph.js";
import { jacobianView } from "./jacobian.js";
import { worstEntry } from "./levels.js";
import { button, count, el, prose, size } from "./shared.js";
import { sourceView } from "./source.js";
import { tabs } from "./tabs.js";

/** @typedef {import("./types").Page} Page */

/**
 * @param {Page} page
 * @param {any} state
 */
export function inspectorView(page, state) {
  page.elements = state.elements;
  page.reach = (block, entry) => {
    const found = state.blocks.find(
      (/** @type {any} */ b) => b.output === block[0] && b.input === block[1],
    );
    return {
      block,
      entry: entry ?? (found && worstEntry(found)) ?? undefined,
      line: state.elements.lines[block[1]] ?? undefined,
      call: state.elements.call ?? undefined,
    };
  };
  const parts = [
    { id: "summary", make: () => summaryView(page, state) },
    state.calls.calls.length && { id: "calls", make: () => callsView(page, state.calls) },
    state.graph && {
      id: "graph",
      make: () =>
        graphView(page, { ...state.graph, blocks: state.blocks, function: state.function }),
    },
    state.blocks.length && { id: "jacobian", make: () => jacobianView(page, state) },
    state.check && { id: "gradcheck", make: () => gradcheckView(page, state) },
    state.comparison && { id: "compare", make: () => compareView(page, state.comparison) },
    state.source && {
      id: "source",
      make: () => sourceView(page, state.source, state.answer.findings),
    },
  ];
  return tabs(
    page,
    parts.filter((part) => part),
    state.view === "all" ? "summary" : state.view,
  );
}

/**
 * @param {Page} page
 * @param {any} state
 */
function summaryView(page, state) {
  return el(
    "div",
    "stack",
    banner(page, state.answer),
    state.check?.since && sinceView(page, state.check.since),
    state.blocks.length > 0 && blockLine(page, state.blocks),
    state.answer.others.length > 0 && findingsList(page, state.answer.others),
    state.comparison && compareLine(page, state.comparison),
    el("p", "faint", callLine(page, state.calls)),
    ...state.notes.map((/** @type {string} */ note) => el("p", "faint", prose(note))),
  );
}

/**
 * Every block with its verdict, each a way into the Jacobian.
 * @param {Page} page
 * @param {import("./types").Block[]} blocks
 */
function blockLine(page, blocks) {
  const some = blocks.slice(0, 12);
  const item = (/** @type {import("./types").Block} */ b) =>
    el(
      "li",
      null,
      el(
        "button",
        {
          class: "link",
          on: {
            click: () => (page.select(page.reach([b.output, b.input])), page.show("jacobian")),
          },
        },
        el("code", null, `d ${b.output_name} / d ${b.input_name}`),
      ),
      " ",
      b.verdict && verdictWord(page, b.verdict),
      " ",
      b.wrong !== undefined &&
        el(
          "span",
          "faint",
          page.t("wrong_entries", { wrong: count(b.wrong), entries: count(b.entries) }),
        ),
    );
  return el(
    "ul",
    "blocks",
    ...some.map(item),
    blocks.length > some.length &&
      el("li", "faint", page.t("more_blocks", { count: blocks.length - some.length })),
  );
}

/**
 * @param {Page} page
 * @param {any} calls
 */
function callLine(page, calls) {
  const total = (/** @type {string} */ method) =>
    calls.calls.filter((/** @type {any} */ c) => c.method === method);
  const [forward, backward] = [total("forward"), total("backward")];
  const saved = Math.max(0, ...forward.map((/** @type {any} */ c) => c.ctx.bytes));
  return page.t("call_line", {
    forward: forward.length,
    backward: backward.length,
    saved: size(saved),
  });
}

/**
 * Whether the Function agrees with its reference, and the way to the whole comparison.
 * @param {Page} page
 * @param {any} state
 */
const compareLine = (page, state) =>
  el(
    "p",
    null,
    state.said,
    " ",
    button(page.t("tab.compare"), () => page.show("compare"), "link"),
  );
