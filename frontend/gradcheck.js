// The verdict per output and input: a table, and for the chosen block its witnesses and the error against the step.

import { mostTelling, tone, verdictWord } from "./blocks.js";
import { curveView } from "./curve.js";
import { findingsList } from "./findings.js";
import { count, el, index, number, prose } from "./shared.js";

/** @typedef {import("./types").Page} Page */
/** @typedef {import("./types").Block} Block */

/**
 * The answer first, in the words of the static report: headline, causes, evidence.
 * @param {Page} page
 * @param {any} answer
 */
export function banner(page, answer) {
  return el("div", `banner ${tone(answer.tone)}`,
    el("div", "headline", verdictWord(page, answer.tone, "verdict"), " ", el("strong", null, prose(answer.headline)), " ", prose(answer.aside)),
    answer.findings.length > 0 && findingsList(page, answer.findings),
    ...answer.evidence.map((/** @type {string} */ sentence) => el("p", null, prose(sentence))));
}

/**
 * @param {Page} page
 * @param {any} state
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
  const show = () => detail.replaceChildren(...(blocks.length ? [blockDetail(page, chosen())] : []));
  page.onSelect(show);
  show();
  return el("div", "stack gradcheck",
    banner(page, brief ? { ...answer, findings: [] } : answer),
    blocks.length > 0 && table(page, blocks, chosen),
    detail,
    check.order2 && secondOrder(page, check.order2),
    !brief && answer.others.length > 0 && findingsList(page, answer.others),
    el("p", "faint", page.t("check_facts", { seconds: number(check.seconds, 2), seed: check.seed })));
}

/**
 * @param {Page} page
 * @param {Block[]} blocks
 * @param {() => Block} chosen
 */
function table(page, blocks, chosen) {
  const head = ["block", "verdict", "wrong", "largest_error", "worst"].map((id) => el("th", { scope: "col" }, page.t(`column.${id}`)));
  /** @type {HTMLButtonElement[]} */
  const buttons = [];
  const rows = blocks.map((block) => {
    const name = el("button", { type: "button", class: "link", "aria-pressed": "false", on: { click: () => page.select({ block: [block.output, block.input], entry: undefined }) } }, el("code", null, `d ${block.output_name} / d ${block.input_name}`));
    buttons.push(name);
    return el("tr", null, el("th", { scope: "row" }, name), el("td", null, block.verdict && verdictWord(page, block.verdict), reason(page, block)),
      el("td", "num", `${count(block.wrong ?? 0)} / ${count(block.entries)}`), el("td", "num", number(block.largest_error, 2)), el("td", null, worst(block)));
  });
  const press = () => {
    const now = blocks.indexOf(chosen());
    buttons.forEach((button, k) => (button.setAttribute("aria-pressed", String(k === now)), rows[k].classList.toggle("chosen", k === now)));
  };
  page.onSelect(press);
  press();
  return el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": page.t("blocks") },
    el("table", "grid", el("caption", "hidden", page.t("blocks")), el("thead", null, el("tr", null, ...head)), el("tbody", null, ...rows)));
}

/** @param {Page} page @param {Block} block */
const reason = (page, block) => block.reason && el("span", "faint", ` (${page.word("reason", block.reason)})`);

/** @param {Block} block */
function worst({ worst: entry, verdict, output_name, input_name }) {
  if (!entry) return "-";
  const name = `d ${output_name}${index(entry.output_index)} / d ${input_name}${index(entry.input_index)}`;
  return el("span", null, el("code", null, name), ` ${number(entry.analytical)} `, el("span", "faint", verdict === "mismatch" ? "≠" : "≈"), ` ${number(entry.numerical)}`);
}

/**
 * @param {Page} page
 * @param {Block} block
 */
function blockDetail(page, block) {
  const witnesses = block.witnesses ?? [];
  return el("section", { class: "detail", "aria-label": `d ${block.output_name} / d ${block.input_name}` },
    el("div", "bar", el("h4", null, el("code", null, `d ${block.output_name} / d ${block.input_name}`)), el("span", "grow"),
      page.tabs.includes("jacobian") && el("button", { type: "button", class: "button", on: { click: () => (page.select({ block: [block.output, block.input] }), page.show("jacobian")) } }, page.t("show_jacobian"))),
    el("div", "columns",
      witnesses.length > 0 && el("table", "grid",
        el("caption", null, page.t("witnesses")),
        el("tbody", null, ...witnesses.map((w) => el("tr", { class: w.took_part ? "" : "faint" }, el("th", { scope: "row" }, page.word("witness", w.witness)), el("td", null, prose(w.says)), el("td", "num", w.largest_difference === null ? "" : number(w.largest_difference, 2)))))),
      curveView(page, block)));
}

/**
 * @param {Page} page
 * @param {any} check
 */
function secondOrder(page, check) {
  return el("section", "detail", el("div", "bar", el("h4", null, page.t("second_order")), verdictWord(page, check.verdict)), el("p", null, prose(check.answer.headline)), [...check.answer.findings, ...check.answer.others].length > 0 && findingsList(page, [...check.answer.findings, ...check.answer.others]));
}
