// Step through backward in the engine's order: forwards, backwards, by playing, by a slider.

import { el, icon } from "./dom.js";
import { engineOrder } from "./engine_order.js";
import { firstLine } from "./scene.js";
import { stepPanel } from "./step_panel.js";

/** @typedef {import("./types").Page} Page */

const PACE = 900; // ms per step when playing
const MOST_NAMED = 4; // gradients that are added, by name
const MOST_PLAYED = 120; // steps of one play; longer orders are played in strides

/**
 * @param {Page} page
 * @param {import("./types").GraphView} state
 * @param {import("./scene.js").Scene} picture
 * @param {(key: string) => void} reveal
 * @param {(key: string) => void} visit
 */
export function stepper(page, state, picture, reveal, visit) {
  const run = engineOrder(state.layout);
  const most = run.steps.length;
  let at = 0; // 0: nothing has run; k: the first k steps have
  /** @type {ReturnType<typeof setInterval> | undefined} */
  let timer;
  const said = el("p", { class: "faint said", role: "status" });
  const panel = el("div", { class: "step", hidden: true });
  const slider = el("input", {
    type: "range",
    min: 0,
    max: most,
    value: 0,
    "aria-label": page.t("engine_order"),
    title: page.t("engine_order"),
  });
  /** @param {string} key */
  function title(key) {
    return firstLine(picture.boxes.get(key));
  }
  function told() {
    const key = run.steps[at - 1][0],
      count = picture.boxes.get(key)?.fan_in ?? 0,
      sources = run.from[at - 1].map((step) => title(run.steps[step][0]));
    const facts = { step: at, steps: most, name: title(key), count, names: sources.join(" + ") };
    const all = sources.length === count && count <= MOST_NAMED;
    return page.t(count < 2 ? "step_at" : all ? "step_adds" : "step_adds_many", facts);
  }
  /**
   * How many of the gradients that are added at a box have come, until it runs.
   * @param {import("./scene.js").Box} box
   */
  function come(box) {
    const k = place(box.key),
      from = run.from[k] ?? [];
    const came = from.filter((step) => step < at).length;
    return at && k >= at && box.fan_in > 1 && from.length > 1
      ? page.t("arrived_count", { came, count: from.length })
      : "";
  }
  /** @param {string} sentence */
  function say(sentence) {
    said.textContent = sentence || (at ? told() : page.t("step_help"));
  }
  /** @param {string} key */
  function place(key) {
    return run.place.get(key) ?? -1;
  }
  function show() {
    const queue = new Set(at ? run.ready(at).slice(1) : []);
    picture.tags(at ? come : null);
    picture.mark(
      "came",
      (_, path) => at > 0 && path !== undefined && run.into(path.target) === at - 1,
    );
    picture.mark("waiting", (key) => at > 0 && place(key) >= at);
    picture.mark("now", (key) => at > 0 && place(key) === at - 1);
    picture.mark("ready", (key, path) => !path && queue.has(place(key)));
    slider.value = String(at);
    say("");
    panel.hidden = !at;
    panel.replaceChildren(...(at ? [stepPanel(page, state, picture, run, at, visit)] : []));
    if (at) reveal(run.steps[at - 1][0]);
  }
  /** @param {number} k */
  function to(k) {
    at = Math.max(0, Math.min(most, k));
    show();
  }
  function stop() {
    clearInterval(timer);
    timer = undefined;
    play.textContent = "▶";
    play.setAttribute("aria-label", page.t("play"));
  }
  function start() {
    if (at >= most) to(0);
    const stride = Math.max(1, Math.floor((most - at) / MOST_PLAYED));
    to(at + stride);
    timer = setInterval(() => (at >= most ? stop() : to(at + stride)), PACE);
    play.textContent = "⏸";
    play.setAttribute("aria-label", page.t("pause"));
  }
  /** @param {number} k */
  function by(k) {
    stop();
    to(at + k);
  }
  const play = icon("▶", page.t("play"), () => (timer ? stop() : start()));
  slider.addEventListener("input", () => (stop(), to(Number(slider.value))));
  page.signal.addEventListener("abort", () => clearInterval(timer), { once: true });
  const element = el(
    "span",
    "group steps",
    icon("‹", page.t("step_back"), () => by(-1)),
    play,
    icon("›", page.t("step_on"), () => by(1)),
    slider,
  );
  element.hidden = said.hidden = most < 2;
  say("");
  return { element, said, panel, by, say };
}
