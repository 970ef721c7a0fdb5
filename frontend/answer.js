// The answer of a check in words: headline, causes, evidence; what became of it since the last one; the second order.

import { tone, verdictWord } from "./blocks.js";
import { copyButton } from "./clipboard.js";
import { findingsList } from "./findings.js";
import { ask, el, prose } from "./shared.js";

/** @typedef {import("./types").Page} Page */

/**
 * The answer first, in the words of the static report: headline, causes, evidence.
 * @param {Page} page
 * @param {any} answer
 */
export function banner(page, answer) {
  return el(
    "div",
    `banner ${tone(answer.tone)}`,
    el(
      "div",
      "headline",
      verdictWord(page, answer.tone, "verdict"),
      " ",
      el("strong", null, prose(answer.headline)),
      " ",
      prose(answer.aside),
    ),
    answer.findings.length > 0 && findingsList(page, answer.findings),
    ...answer.evidence.map((/** @type {string} */ sentence) => el("p", null, prose(sentence))),
  );
}

/** @param {Page} page @param {Record<string, string[]>} since what became of it since the last check */
export const sinceView = (page, since) =>
  el(
    "section",
    "since",
    el("h5", null, page.t("since")),
    el(
      "ul",
      null,
      ...[
        ["fixed", "good"],
        ["new", "bad"],
        ["still", "open"],
      ].flatMap(([id, tone]) =>
        since[id].map((words) =>
          el("li", null, el("span", `verdict ${tone}`, page.t(`since.${id}`)), " ", prose(words)),
        ),
      ),
    ),
  );

/**
 * @param {Page} page
 * @param {any} check
 */
export function secondOrder(page, check) {
  return el(
    "section",
    "detail",
    el(
      "div",
      "bar",
      el("h4", null, page.t("second_order")),
      verdictWord(page, check.verdict, "verdict"),
    ),
    el("p", null, prose(check.answer.headline)),
    [...check.answer.findings, ...check.answer.others].length > 0 &&
      findingsList(page, [...check.answer.findings, ...check.answer.others]),
  );
}

/** @param {Page} page the whole report as plain text, for a mail or an issue */
export function copyReport(page) {
  if (!page.can({ kind: "text" })) return null;
  const text = () => ask(page.model, { kind: "text" }, page.signal, page.t("no_kernel"));
  return el(
    "div",
    null,
    copyButton(page, page.t("copy_report"), () => text().then(({ content }) => content.text)),
  );
}
