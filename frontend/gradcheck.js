// The verdict per output and input: a table, and for the chosen block its witnesses and the error against the step.

import { copyReport, secondOrder, sinceView } from "./answer.js";
import { agreeingWords, byInterest, FEW, mostTelling, verdictWord, wholeBlock } from "./blocks.js";
import { curveView, nearest, pointsOf } from "./curve.js";
import { documentView } from "./document.js";
import { button, el, prose } from "./dom.js";
import { lensButton } from "./entry.js";
import { compared, count, element, number, time } from "./formats.js";
import { worstEntry } from "./levels.js";
import { slider } from "./microscope.js";
import { ask } from "./wire.js";

/** @typedef {import("./types").Page} Page */
/** @typedef {import("./states").BlockState} Block */

// those of widgets/jacobian.py
const TOLERANCES = Array.from({ length: 31 }, (_, k) => 10 ** ((k - 30) / 2));

/**
 * @param {Page} page
 * @param {import("./states").GradcheckState | (import("./states").InspectorState & {check: import("./states").CheckState})} state
 */
export function gradcheckView(page, state) {
  // in the inspector the summary tells the causes
  const brief = page.tabs.includes("summary");
  const { check, answer } = state;
  const detail = el("div", "stack");
  /** @type {Block[]} */
  const blocks = state.blocks;
  const chosen = () => {
    const wanted = (page.selection().block ?? (blocks.length ? mostTelling(blocks) : [])).join();
    return blocks.find((b) => `${b.output},${b.input}` === wanted) ?? blocks[0];
  };
  let step = 1e-6,
    tolerance = TOLERANCES[20]; // 1e-5
  const grid = table(page, blocks, chosen),
    said = el("p", { role: "status" }),
    curve = el("div"),
    steps = el("span");
  /** What the sliders change. */
  function weigh() {
    grid.weigh(tolerance);
    curve.replaceChildren(curveView(page, chosen(), step) ?? "");
    said.textContent = naive(page, chosen(), step, tolerance);
  }
  function show() {
    if (!blocks.length) return;
    wholeBlock(page, chosen())?.then(
      show,
      (problem) => page.signal.aborted || said.replaceChildren(problem.message),
    );
    const stops = pointsOf(chosen()).map(([stop]) => stop);
    steps.replaceChildren(
      stops.length > 1 ? slider(page.t("step"), stops, step, (to) => ((step = to), weigh())) : "",
    );
    detail.replaceChildren(blockDetail(page, chosen(), curve));
    weigh();
  }
  page.onSelect(show);
  show();
  return el(
    "div",
    "stack gradcheck",
    ...documentView(page, brief ? answer.brief : answer.document),
    check.since && sinceView(page, check.since),
    blocks.length > 0 && grid.element,
    blocks.length > 0 &&
      el(
        "div",
        "bar",
        steps,
        slider(page.t("tolerance"), TOLERANCES, tolerance, (to) => ((tolerance = to), weigh())),
        page.can({ kind: "elsewhere", seed: 1 }) && elsewhere(page, said),
      ),
    said,
    detail,
    check.order2 && secondOrder(page, check.order2),
    ...(brief ? [] : documentView(page, answer.others)),
    !brief && copyReport(page),
    el("p", "faint", page.t("check_facts", { time: time(check.seconds ?? 0), seed: check.seed })),
  );
}

/**
 * @param {Page} page
 * @param {Block[]} all
 * @param {() => Block} chosen
 */
function table(page, all, chosen) {
  const blocks = byInterest(all);
  const shown = blocks.length > FEW ? blocks.filter((b) => b.verdict !== "match").length : Infinity;
  const head = ["block", "verdict", "wrong", "beyond", "error", "worst"].map((id) =>
    el("th", { scope: "col" }, page.t(`column.${id}`)),
  );
  const counts = blocks.map(() => el("td", "num"));
  /** @type {HTMLButtonElement[]} */
  const buttons = [];
  const rows = blocks.map((block, k) => {
    const name = el(
      "button",
      {
        class: "link",
        "aria-pressed": "false",
        on: { click: () => page.select({ block: [block.output, block.input], entry: undefined }) },
      },
      el("code", null, `d ${block.output_name} / d ${block.input_name}`),
    );
    buttons.push(name);
    return el(
      "tr",
      null,
      el("th", { scope: "row" }, name),
      el("td", null, block.verdict && verdictWord(page, block.verdict), reason(page, block)),
      el("td", "num", `${count(block.wrong ?? 0)} / ${count(block.entries)}`),
      counts[k],
      el("td", "num", number(block.largest_error, 2)),
      el("td", null, worst(block)),
    );
  });
  const folded = el("tbody", { hidden: true }, ...rows.slice(shown));
  const more = button(
    agreeingWords(page, rows.length - shown),
    () => unfold(folded.hidden),
    "link",
  );
  function unfold(/** @type {boolean} */ open) {
    folded.hidden = !open;
    more.setAttribute("aria-expanded", String(open));
  }
  unfold(false);
  const press = () => {
    const now = blocks.indexOf(chosen());
    if (now >= shown && page.selection().block) unfold(true);
    buttons.forEach(
      (button, k) => (
        button.setAttribute("aria-pressed", String(k === now)),
        rows[k].classList.toggle("chosen", k === now)
      ),
    );
  };
  page.onSelect(press);
  press();
  const weigh = (/** @type {number} */ tolerance) => {
    head[3].textContent = page.t("beyond", { tolerance: number(tolerance, 2) });
    counts.forEach(
      (cell, b) =>
        (cell.textContent = String(blocks[b].beyond?.[TOLERANCES.indexOf(tolerance)] ?? "-")),
    );
  };
  const element = el(
    "div",
    { class: "scroll", tabindex: "0", role: "region", "aria-label": page.t("blocks") },
    el(
      "table",
      "grid wide",
      el("caption", "hidden", page.t("blocks")),
      el("thead", null, el("tr", null, ...head)),
      el("tbody", null, ...rows.slice(0, shown)),
      shown < rows.length &&
        el("tbody", null, el("tr", null, el("td", { colspan: head.length }, more))),
      shown < rows.length && folded,
    ),
  );
  return { element, weigh };
}

/**
 * What one step and one tolerance alone would make of the worst entry, by the kept curve.
 * @param {Page} page @param {Block} block @param {number} step @param {number} tolerance
 */
function naive(page, block, step, tolerance) {
  const points = pointsOf(block);
  if (points.length < 2) return "";
  const [at, error] = points[nearest(points, step)],
    difference = Math.abs(Number(block.worst?.analytical) - Number(block.worst?.numerical));
  const says =
    difference + error <= tolerance
      ? "agree"
      : difference - error <= tolerance
        ? "blind"
        : "differ";
  return page.t(`naive_${says}`, {
    step: number(at, 2),
    tolerance: number(tolerance, 2),
    difference: number(difference, 2),
    error: number(error, 2),
  });
}

/** @param {Page} page @param {HTMLElement} said the check at other inputs, when asked for */
function elsewhere(page, said) {
  let seed = 0;
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
  return more;
}

/** @param {Page} page @param {Block} block */
const reason = (page, block) =>
  block.reason && el("span", "faint", ` (${page.word("reason", block.reason)})`);

/** @param {Block} block */
function worst(block) {
  const { worst: entry, verdict } = block;
  if (!entry) return "-";
  const differ = verdict === "mismatch";
  const [analytical, numerical] = differ
    ? compared(entry.analytical, entry.numerical)
    : [number(entry.analytical), number(entry.numerical)];
  const name = `d ${element(block, "output", entry.output_index)} / d ${element(block, "input", entry.input_index)}`;
  return el(
    "span",
    null,
    el("code", null, name),
    ` ${analytical} `,
    el("span", "faint", differ ? "≠" : "≈"),
    ` ${numerical}`,
  );
}

/**
 * @param {Page} page
 * @param {Block} block
 * @param {Node} curve
 */
function blockDetail(page, block, curve) {
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
        el(
          "button",
          {
            class: "button",
            on: {
              click: () => (
                page.select(page.reach([block.output, block.input])),
                page.show("jacobian")
              ),
            },
          },
          page.t("show_jacobian"),
        ),
    ),
    el("div", "columns", el("section", "stack", ...documentView(page, block.methods ?? [])), curve),
    worst && !page.tabs.includes("jacobian") && lensButton(page, block, worst, page.signal),
  );
}
