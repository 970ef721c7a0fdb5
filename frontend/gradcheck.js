// The verdict per output and input: a table, and for the chosen block its witnesses and the error against the step.

import { decider, secondOrder, sinceView, takeAlong } from "./answer.js";
import { chosenBlock, mostTelling, verdictWord, wholeBlock } from "./blocks.js";
import { curveView, nearest, pointsOf } from "./curve.js";
import { documentView } from "./document.js";
import { button, el, prose } from "./dom.js";
import { lensButton } from "./entry.js";
import { number } from "./formats.js";
import { worstEntry } from "./levels.js";
import { slider } from "./microscope.js";
import { slowMotionPart } from "./slow_motion.js";
import { ask } from "./wire.js";

/** @typedef {import("./types").Page} Page */
/** @typedef {import("./states").BlockState} Block */

/**
 * @param {Page} page
 * @param {import("./states").GradcheckState | (import("./states").InspectorState & {check: import("./states").CheckState})} state
 */
export function gradcheckView(page, { check, answer, blocks }) {
  const brief = page.tabs.includes("summary"); // which tells the answer
  if (blocks.length) page.first = mostTelling(blocks);
  return el(
    "div",
    "stack gradcheck",
    ...(brief ? [] : documentView(page, answer.document)),
    !brief && decider(page, check),
    !brief && check.since && sinceView(page, check.since),
    ...documentView(page, check.table),
    check.motion && slowMotionPart(page, blocks),
    ...(brief ? [] : documentView(page, answer.evidence)),
    blocks.length > 0 && check.again !== "point" && elsewhere(page),
    blocks.length > 0 && evidence(page, blocks),
    check.order2 && secondOrder(page, check.order2),
    ...(brief ? [] : documentView(page, answer.others)),
    !brief && takeAlong(page, check.function),
  );
}

/**
 * Of the chosen block its witnesses, and the error of finite differences at a step.
 * @param {Page} page
 * @param {Block[]} blocks
 */
function evidence(page, blocks) {
  let step = 1e-6;
  const said = el("p", { role: "status" }),
    curve = el("div"),
    steps = el("span"),
    weighed = el("div", "stack", curve, el("div", "bar", steps, said)),
    detail = el("div", "stack");
  const chosen = () =>
    blocks.find((b) => `${b.output},${b.input}` === chosenBlock(page)) ?? blocks[0];
  function weigh() {
    curve.replaceChildren(curveView(page, chosen(), step) ?? "");
    said.replaceChildren(prose(apart(page, chosen(), step)));
  }
  /** @param {number} to */
  function setStep(to) {
    step = to;
    weigh();
  }
  function show() {
    wholeBlock(page, chosen())?.then(
      show,
      (problem) => page.signal.aborted || said.replaceChildren(problem.message),
    );
    const stops = pointsOf(chosen()).map(([stop]) => stop);
    steps.replaceChildren(stops.length > 1 ? slider(page.t("step"), stops, step, setStep) : "");
    detail.replaceChildren(blockDetail(page, chosen(), weighed));
    weigh();
  }
  page.onSelect(show);
  show();
  return detail;
}

/**
 * How far the worst entry is off, and how far finite differences at one step, by the kept curve.
 * @param {Page} page @param {Block} block @param {number} step
 */
function apart(page, block, step) {
  const points = pointsOf(block);
  if (points.length < 2) return "";
  const at = nearest(
    points.map(([s]) => s),
    step,
  );
  const difference = Math.abs(Number(block.worst?.analytical) - Number(block.worst?.numerical));
  return page.t("naive", {
    step: number(points[at][0], 2),
    difference: number(difference, 2),
    error: number(points[at][1], 2),
  });
}

/** @param {Page} page the check at other inputs, when asked for */
function elsewhere(page) {
  if (!page.can({ kind: "elsewhere", seed: 1 })) return null;
  let seed = 0;
  const said = el("p", { role: "status" });
  const more = button(page.t("elsewhere"), () => {
    const line = said.appendChild(
      el("span", "fact-line", page.t("elsewhere_says", { seed: ++seed }), " "),
    );
    ask(page.model, { kind: "elsewhere", seed }, page.signal, page.t("no_kernel"))
      .then(({ verdict, headline }) =>
        line.append(verdictWord(page, verdict, "verdict"), " ", prose(headline)),
      )
      .catch((problem) => line.append(problem.message));
    more.hidden = !page.can({ kind: "elsewhere", seed: seed + 1 });
  });
  return el("div", "stack", el("div", "bar", more), said);
}

/** @param {Page} page @param {Block} block */
export function toJacobian(page, block) {
  page.select(page.reach([block.output, block.input]));
  page.show("jacobian");
}

/** @param {Page} page @param {Block} block @param {Node} weighed the error of finite differences */
function blockDetail(page, block, weighed) {
  const worst = worstEntry(block);
  return el(
    "section",
    { class: "detail", "aria-label": `d ${block.output_name} / d ${block.input_name}` },
    el(
      "div",
      "bar",
      el("h4", null, el("code", null, `d ${block.output_name} / d ${block.input_name}`)),
      el("span", "grow"),
      page.tabs.includes("jacobian") &&
        button(page.t("show_jacobian"), () => toJacobian(page, block)),
    ),
    el(
      "div",
      "columns",
      el("section", "stack", ...documentView(page, block.methods ?? [])),
      weighed,
    ),
    worst && !page.tabs.includes("jacobian") && lensButton(page, block, worst, page.signal),
  );
}
