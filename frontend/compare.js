// The Function beside its reference, as its document says.

import { documentView } from "./document.js";
import { el } from "./shared.js";

/**
 * @param {import("./types").Page} page
 * @param {{headline: string, document: import("./tree").Block[]}} state
 */
export const compareView = (page, state) =>
  el("div", "stack", ...documentView(page, state.document));
