// Pointing at a leaf's chip or a portal shows every place where that tensor is used.

import { nameOf } from "./scene.js";

/**
 * @param {import("./scene.js").Layout} layout
 * @param {import("./scene.js").Scene} picture
 * @param {(event: Event) => string | null | undefined} boxAt
 * @param {(sentence: string) => void} say
 */
export function highlightUses(layout, picture, boxAt, say) {
  let last = "";
  /** @param {string} key */
  function see(key) {
    if (key === last) return;
    last = key;
    const box = picture.boxes.get(key);
    const chip =
      box && (box.kind === "leaf" || box.kind === "portal") && box.nodes.length ? box : null;
    const same = new Set(
      chip
        ? layout.boxes.filter((b) => b.nodes.some((n) => chip.nodes.includes(n))).map((b) => b.key)
        : [],
    );
    const paths = chip
      ? layout.paths.filter(
          (p) => same.has(p.target) || (chip.kind === "portal" && p.source === key),
        )
      : [];
    const touched = new Set(paths.map((p) => p.source));
    const lit = new Set(paths);
    picture.mark("use", (k, path) => (path ? lit.has(path) : touched.has(k) || same.has(k)));
    say(chip ? nameOf(chip).split("\n")[0] : "");
  }
  for (const event of ["pointerover", "focusin"])
    picture.drawing.addEventListener(event, (e) => see(boxAt(e) ?? ""));
  for (const event of ["pointerleave", "focusout"])
    picture.drawing.addEventListener(event, () => see(""));
}
