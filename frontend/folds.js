// Opening what is folded, and folding it again: Python lays the graph out anew, and the view begins afresh with it.

import { firstLine } from "./scene.js";
import { ask, button, el } from "./shared.js";

/** @typedef {import("./types").Page} Page */
/** @typedef {{key: string, name: string, nodes: number[]}} Opened */

/**
 * @param {Page} page
 * @param {any} state
 * @param {import("./scene.js").Box | undefined} box
 */
export function foldButtons(page, state, box) {
  /** @type {Opened[]} */
  const opened = state.opened ?? [];
  if (!box) return null;
  const inside = opened.filter((o) => o.nodes.includes(box.nodes[0])).pop();
  return el("span", "group",
    box.kind === "group" && foldButton(page, page.t("unfold"), () => unfold(page, state, [...opened, { key: box.key, name: firstLine(box), nodes: box.nodes }], box.nodes[0])),
    inside && foldButton(page, page.t("fold", { name: inside.name }), () => unfold(page, state, opened.filter((o) => !o.nodes.every((n) => inside.nodes.includes(n))), box.nodes[0])));
}

/** @param {Page} page @param {any} state */
export function wholeButton(page, state) {
  const { layout, opened } = state;
  if (opened?.length || state.all) return foldButton(page, page.t("fold_all"), () => unfold(page, state, []));
  return layout.boxes.some((/** @type {any} */ b) => b.kind === "group") && foldButton(page, page.t("unfold_all", { count: layout.nodes }), () => unfold(page, state, "all"));
}

/** @param {Page} page @param {string} words @param {() => Promise<void>} act */
function foldButton(page, words, act) {
  const made = button(words, () => {
    made.disabled = true;
    act().catch((problem) => page.signal.aborted || ((made.disabled = false), made.after(problem.message)));
  });
  return made;
}

/**
 * @param {Page} page
 * @param {any} state
 * @param {Opened[] | "all"} opened
 * @param {number} [node] where to go then
 */
async function unfold(page, state, opened, node) {
  const all = opened === "all";
  const { content } = await ask(page.model, { kind: "unfold", opened: all ? opened : opened.map((o) => o.key) }, page.signal, page.t("no_kernel"));
  state.again({ ...state, layout: content.layout, opened: all ? [] : opened, all }, node);
}
