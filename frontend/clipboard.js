// Text for the clipboard.

import { button, el } from "./dom.js";

/**
 * A button that copies a text and says so.
 * @param {import("./types").Page} page
 * @param {string} words
 * @param {() => string | Promise<string>} text
 */
export function copyButton(page, words, text) {
  const said = el("span", { class: "faint", "aria-live": "polite" });
  async function act() {
    try {
      await copy(await text());
      said.textContent = page.t("copied");
    } catch (problem) {
      said.textContent = page.t("not_copied", { reason: /** @type {Error} */ (problem).message });
    }
  }
  return el("span", "copy", button(words, act), " ", said);
}

/** @param {string} text */
async function copy(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  // a page that came over plain http has no clipboard of its own
  const area = el("textarea", { style: "position: fixed; opacity: 0" });
  area.value = text;
  document.body.append(area);
  area.select();
  const done = document.execCommand("copy");
  area.remove();
  if (!done) throw new Error("execCommand");
}
