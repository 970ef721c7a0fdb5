// Text for the clipboard.

import { button, el } from "./dom.js";

/**
 * A button that copies a text and says so.
 * @param {import("./types").Page} page
 * @param {string} words
 * @param {() => string | Promise<string>} text
 */
export const copyButton = (page, words, text) =>
  sayingButton(words, async () => copy(await text()), {
    done: page.t("copied"),
    failed: (reason) => page.t("not_copied", { reason }),
  });

/**
 * A button that says beside itself how it went.
 * @param {string} words
 * @param {() => void | Promise<void>} act
 * @param {{done: string, failed: (reason: string) => string}} says
 * @param {string} [look]
 */
export function sayingButton(words, act, { done, failed }, look) {
  const said = el("span", { class: "faint", "aria-live": "polite" });
  async function press() {
    try {
      await act();
      said.textContent = done;
    } catch (problem) {
      said.textContent = failed(/** @type {Error} */ (problem).message);
    }
  }
  return el("span", "copy", button(words, press, look), " ", said);
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
