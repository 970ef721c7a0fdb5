// Search: boxes by what is written in them, and what is folded inside; Enter goes from one to the next, or opens a box.

import { el, keys } from "./dom.js";
import { canRepaint, unfoldTo } from "./folds.js";
import { nameOf } from "./scene.js";

/** @typedef {import("./scene.js").Box} Box */

/** @typedef {{key: string, node: number | null}} Hit a box, and the first node folded inside that is meant */

/**
 * @param {import("./types").Page} page
 * @param {import("./types").GraphView} state
 * @param {import("./scene.js").Scene} picture
 * @param {(key: string) => void} go
 */
export function searchField(page, state, picture, go) {
  const input = el("input", {
    type: "search",
    placeholder: page.t("search"),
    "aria-label": page.t("search"),
    size: 12,
    value: state.wanted ?? "",
    "data-at": "search",
  });
  const found = el("span", { class: "faint", role: "status" });
  let at = 0;
  /** @type {Hit[]} */
  let hits = [];
  function look() {
    const wanted = (state.wanted = input.value.trim().toLowerCase());
    hits = wanted ? hitsOf(state, wanted) : [];
    at = 0;
    const all = new Set(hits.map((hit) => hit.key)),
      inside = hits.filter((hit) => hit.node !== null).length;
    picture.mark("found", (key, path) => !path && all.has(key));
    found.textContent = wanted ? page.t("found", { count: hits.length, inside }) : "";
  }
  /** @param {number} next */
  function show(next) {
    if (hits.length) go(hits[(at = (next + hits.length) % hits.length)].key);
  }
  /** @param {KeyboardEvent} event */
  function enter(event) {
    const node = hits[at]?.node ?? null;
    if (node !== null && !event.shiftKey && canRepaint(page, state))
      unfoldTo(page, state, node).catch((problem) => (found.textContent = problem.message));
    else show(at + (event.shiftKey ? -1 : 1));
  }
  input.addEventListener("input", () => (look(), show(0)));
  keys(input, {
    Enter: enter,
    Escape: () => ((input.value = ""), input.dispatchEvent(new Event("input")), input.blur()),
  });
  if (state.wanted) look();
  return el("span", "search", input, found);
}

/** @param {import("./types").GraphView} state @param {string} wanted in lower case @returns {Hit[]} */
function hitsOf({ layout, nodes }, wanted) {
  /** @param {string} words */
  function has(words) {
    return words.toLowerCase().includes(wanted);
  }
  /** @param {Box} box */
  function inside(box) {
    return box.kind === "group"
      ? box.nodes.find((id) => {
          const n = nodes[id];
          return n && has([n.name, n.label, n.scope].join(" "));
        })
      : undefined;
  }
  return layout.boxes.flatMap((box) => {
    const node = has(nameOf(box)) ? null : inside(box);
    return node === undefined ? [] : [{ key: box.key, node }];
  });
}
