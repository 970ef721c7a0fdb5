// What stands beside the answer of a check: what became of it since the last one, the second order, the text to copy.

import { verdictWord } from "./blocks.js";
import { copyButton, sayingButton } from "./clipboard.js";
import { documentView } from "./document.js";
import { button, el, prose } from "./dom.js";
import { ask } from "./wire.js";

/** @typedef {import("./types").Page} Page */

/**
 * The view of a report that may begin as one line, which a click opens.
 * @template {{folded: import("./tree").Block[]}} S
 * @param {(page: Page, state: S) => Node} view
 * @returns {(page: Page, state: S) => Node}
 */
export const foldable = (view) => (page, state) => {
  if (!state.folded.length) return view(page, state);
  const report = el("details", "right", el("summary", null, ...documentView(page, state.folded)));
  report.addEventListener("toggle", () => report.append(view(page, state)), { once: true });
  return report;
};

/**
 * A view that is a document, with what can be taken along where it is about something.
 * @param {Page} page
 * @param {import("./states").DocumentState} state
 */
export const pageOf = (page, { document, about }) =>
  el("div", "stack", ...documentView(page, document), about && takeAlong(page, about));

const PATIENCE = 3_600_000; // ms that a check without a limit may take

/**
 * The check that decides what this one cannot tell, by one button.
 * @param {Page} page
 * @param {import("./states").CheckState} check
 */
export function decider(page, { again }) {
  if (!again || !page.can({ kind: "again" })) return null;
  const said = el("div", { class: "stack", role: "status" }),
    run = button(page.t(`again.${again}`), decide, "button primary");
  async function decide() {
    run.disabled = true;
    said.replaceChildren(page.t("checking"));
    const asked = ask(page.model, { kind: "again" }, page.signal, page.t("no_kernel"), PATIENCE);
    said.replaceChildren(
      ...(await asked.then(
        // its lines are marked in no editor, so that its change cannot be applied there
        ({ document }) => documentView({ ...page, unmarked: true }, document),
        (problem) => [problem.message],
      )),
    );
    run.disabled = false;
  }
  return el("div", "stack", el("div", "bar", run), said);
}

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
      el("h4", null, page.t("part.order2")),
      verdictWord(page, check.verdict, "verdict"),
    ),
    ...documentView(page, check.answer.document),
    ...documentView(page, check.answer.others),
  );
}

/**
 * The report as text for an issue, and as a page of its own.
 * @param {Page} page @param {string} name of what it is about
 */
export function takeAlong(page, name) {
  if (!page.can({ kind: "text", redacted: false })) return null;
  const redacted = el("input", { type: "checkbox" });
  /** @param {"text" | "page"} kind @param {object} [more] */
  const text = async (kind, more) =>
    (await ask(page.model, { kind, ...more }, page.signal, page.t("no_kernel"))).text;
  const copy = copyButton(page, page.t("copy_report"), () =>
    text("text", { redacted: redacted.checked }),
  );
  const file = `${name.replace(/[^\p{L}\p{N}_.-]+/gu, "_") || "report"}.html`;
  const freeze = sayingButton(page.t("freeze_report"), async () => save(await text("page"), file), {
    done: page.t("frozen_is", { name: file }),
    failed: (reason) => reason,
  });
  return el(
    "div",
    "bar",
    copy,
    el("label", "slider", redacted, page.t("copy_redacted")),
    page.can({ kind: "page" }) && freeze,
  );
}

/** @param {string} text @param {string} name of the file that the page hands out */
function save(text, name) {
  const href = URL.createObjectURL(new Blob([text], { type: "text/html" }));
  el("a", { href, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(href), 1_000);
}
