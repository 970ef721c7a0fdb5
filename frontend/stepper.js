// Step through backward in the engine's order: forwards, backwards, by playing, by a slider.

import { nameOf } from "./graph.js";
import { el } from "./shared.js";

/** @typedef {import("./types").Page} Page */

const PACE = 700; // ms per step when playing

/**
 * @param {Page} page
 * @param {{order: string[], boxes: {key: string, title: string, lines: {text: string}[]}[]}} layout
 * @param {Map<string, SVGGElement>} groups
 * @param {SVGGElement[]} paths
 * @param {(key: string) => void} reveal
 */
export function stepper(page, layout, groups, paths, reveal) {
  const { order } = layout;
  const titles = new Map(layout.boxes.map((box) => [box.key, nameOf(box).split("\n")[0]]));
  let at = 0; // 0: nothing has run; k: the first k boxes have
  /** @type {ReturnType<typeof setInterval> | undefined} */
  let timer;
  const said = el("p", { class: "faint said", role: "status" }, page.t("step_help"));
  const slider = el("input", { type: "range", min: 0, max: order.length, value: 0, "aria-label": page.t("engine_order") });
  const show = () => {
    const later = new Set(at ? order.slice(at) : []);
    const waits = (/** @type {string} */ key) => later.has(key);
    for (const [key, group] of groups) {
      group.classList.toggle("waiting", waits(key));
      group.classList.toggle("now", at > 0 && order[at - 1] === key);
    }
    for (const path of paths) path.classList.toggle("waiting", waits(path.dataset.source ?? ""));
    slider.value = String(at);
    said.textContent = at ? page.t("step_at", { step: at, steps: order.length, name: titles.get(order[at - 1]) ?? "" }) : page.t("step_help");
    if (at) reveal(order[at - 1]);
  };
  const to = (/** @type {number} */ k) => ((at = Math.max(0, Math.min(order.length, k))), show());
  const stop = () => {
    clearInterval(timer);
    timer = undefined;
    play.textContent = "▶";
    play.setAttribute("aria-label", page.t("play"));
  };
  const start = () => {
    if (at >= order.length) to(0);
    to(at + 1);
    timer = setInterval(() => (at >= order.length ? stop() : to(at + 1)), PACE);
    play.textContent = "⏸";
    play.setAttribute("aria-label", page.t("pause"));
  };
  const button = (/** @type {string} */ label, /** @type {string} */ name, /** @type {() => void} */ act) => el("button", { type: "button", class: "button icon", "aria-label": name, title: name, on: { click: act } }, label);
  const by = (/** @type {number} */ k) => (stop(), to(at + k));
  const play = button("▶", page.t("play"), () => (timer ? stop() : start()));
  slider.addEventListener("input", () => (stop(), to(Number(slider.value))));
  page.signal.addEventListener("abort", () => clearInterval(timer), { once: true });
  const element = el("span", { class: "group steps" }, button("‹", page.t("step_back"), () => by(-1)), play, button("›", page.t("step_on"), () => by(1)), slider);
  element.hidden = order.length < 2;
  said.hidden = order.length < 2;
  return { element, said, by };
}
