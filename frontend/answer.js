// What stands beside the answer of a check: what became of it since the last one, the second order, the text to copy.

import { verdictWord } from "./blocks.js";
import { copyButton } from "./clipboard.js";
import { documentView } from "./document.js";
import { el, prose } from "./dom.js";
import { ask } from "./wire.js";

/** @typedef {import("./types").Page} Page */

/**
 * The view of a report that may begin as one line, which a click opens.
 * @template {{folded: string}} S
 * @param {(page: Page, state: S) => Node} view
 * @returns {(page: Page, state: S) => Node}
 */
export const foldable = (view) => (page, state) => {
  if (!state.folded) return view(page, state);
  const line = [verdictWord(page, "right", "verdict"), " ", prose(state.folded)],
    report = el("details", null, el("summary", null, ...line));
  report.addEventListener("toggle", () => report.append(view(page, state)), { once: true });
  return report;
};

/** @param {Page} page @param {import("./states").Since} since what became of it since the last check */
export const sinceView = (page, since) =>
  el(
    "section",
    "since",
    el("h5", null, page.t("since")),
    el(
      "ul",
      null,
      .../** @type {const} */ ([
        ["fixed", "good"],
        ["new", "bad"],
        ["still", "open"],
      ]).flatMap(([id, tone]) =>
        since[id].map((words) =>
          el("li", null, el("span", `verdict ${tone}`, page.t(`since.${id}`)), " ", prose(words)),
        ),
      ),
    ),
  );

/**
 * @param {Page} page
 * @param {import("./states").SecondOrder} check
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
    ...documentView(page, check.answer.document),
    ...documentView(page, check.answer.others),
  );
}

/** @param {Page} page the whole report as plain text, for a mail or an issue */
export function copyReport(page) {
  if (!page.can({ kind: "text" })) return null;
  const text = () => ask(page.model, { kind: "text" }, page.signal, page.t("no_kernel"));
  return el(
    "div",
    null,
    copyButton(page, page.t("copy_report"), () => text().then((answer) => answer.text)),
  );
}
