// Search: boxes by what is written in them; Enter goes from one to the next.

import { nameOf } from "./scene.js";
import { el, keys } from "./shared.js";

/** @typedef {import("./scene.js").Box} Box */

/**
 * @param {import("./types").Page} page
 * @param {Box[]} boxes
 * @param {import("./scene.js").Scene} picture
 * @param {(key: string) => void} see
 */
export function searchField(page, boxes, picture, see) {
  const input = el("input", {
    type: "search",
    placeholder: page.t("search"),
    "aria-label": page.t("search"),
    size: 12,
  });
  const found = el("span", { class: "faint", role: "status" });
  let at = -1;
  /** @type {string[]} */
  let hits = [];
  input.addEventListener("input", () => {
    const wanted = input.value.trim().toLowerCase();
    hits = wanted
      ? boxes.filter((box) => nameOf(box).toLowerCase().includes(wanted)).map((box) => box.key)
      : [];
    at = -1;
    const all = new Set(hits);
    picture.mark("found", (key, path) => !path && all.has(key));
    found.textContent = wanted ? page.t("found", { count: hits.length }) : "";
  });
  keys(input, {
    Enter: () => hits.length && see(hits[(at = (at + 1) % hits.length)]),
    Escape: () => ((input.value = ""), input.dispatchEvent(new Event("input")), input.blur()),
  });
  return el("span", "search", input, found);
}
