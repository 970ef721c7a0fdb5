// Findings: the sentence, where it is, and the fix as a small diff.

import { copyButton } from "./clipboard.js";
import { el, prose } from "./shared.js";

/** @typedef {import("./types").Page} Page */
/** @typedef {import("./types").Finding} Finding */

/**
 * @param {Page} page
 * @param {Finding[]} findings
 */
export function findingsList(page, findings) {
  return el("ol", "findings", ...findings.map((finding) => findingItem(page, finding)));
}

/**
 * @param {Page} page
 * @param {Finding} finding
 */
function findingItem(page, finding) {
  const kind = { bug: "bad", lint: "open" }[finding.kind] ?? "plain";
  return el(
    "li",
    `finding ${kind}`,
    el(
      "div",
      null,
      el("span", "kind", page.word("kind", finding.kind)),
      " ",
      prose(finding.message),
    ),
    finding.fix && fixView(page, finding.fix),
    links(page, finding),
  );
}

/**
 * @param {Page} page
 * @param {NonNullable<Finding["fix"]>} fix
 */
export function fixView(page, fix) {
  const line = (
    /** @type {string} */ text,
    /** @type {string} */ kind,
    /** @type {string} */ mark,
  ) => el("span", { class: kind }, el("span", "mark", mark), ` ${text}`);
  const [before, after] = outdent(
    [fix.before, fix.source].map((text) => (text ? text.replace(/\n$/, "").split("\n") : [])),
  );
  return el(
    "div",
    "fix",
    el(
      "div",
      "bar",
      el("span", "faint", page.t(fix.verified ? "fix_tried" : "fix_untried")),
      fix.verified && copyFix(page, fix.source),
    ),
    el(
      "pre",
      { tabindex: "0", "aria-label": page.t("fix") },
      el(
        "code",
        null,
        ...before.map((t) => line(t, "before", "-")),
        ...after.map((t) => line(t, "after", "+")),
      ),
    ),
  );
}

/** @param {Page} page @param {string} source */
function copyFix(page, source) {
  const text = source.replace(/\n$/, "");
  return copyButton(page, page.t(text.includes("\n") ? "copy_lines" : "copy_line"), () => text);
}

/**
 * Ways from a finding to its evidence.
 * @param {Page} page
 * @param {Finding} finding
 */
function links(page, finding) {
  const { where, line } = finding;
  const buttons = [];
  if (where && page.tabs.includes("jacobian")) {
    buttons.push(
      el(
        "button",
        {
          class: "button",
          on: {
            click: () => (
              page.select({ ...page.reach(where), ...(line && { line }) }),
              page.show("jacobian")
            ),
          },
        },
        page.t("show_jacobian"),
      ),
    );
  }
  if (line && page.tabs.includes("source")) {
    buttons.push(
      el(
        "button",
        { class: "button", on: { click: () => (page.select({ line }), page.show("source")) } },
        page.t("show_line", { line }),
      ),
    );
  }
  return buttons.length ? el("div", "links", ...buttons) : null;
}

/**
 * Take away the spaces that all lines begin with.
 * @param {string[][]} texts
 */
function outdent(texts) {
  const margins = texts
    .flat()
    .filter((line) => line.trim())
    .map((line) => line.length - line.trimStart().length);
  return texts.map((lines) => lines.map((line) => line.slice(Math.min(...margins))));
}
