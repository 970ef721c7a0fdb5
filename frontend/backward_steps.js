// Step through backward in the engine's order: forwards, backwards, by playing, by a slider.

import { el, icon } from "./dom.js";
import { engineOrder } from "./engine_order.js";
import { firstLine } from "./scene.js";
import { stepPanel } from "./step_panel.js";

/** @typedef {import("./types").Page} Page */

const PACE = 900; // ms per step when playing
const MOST_NAMED = 4; // gradients that are added, by name
const MOST_PLAYED = 120; // steps of one play; longer orders are played in strides

export class BackwardSteps {
  #page;
  #state;
  #scene;
  #order;
  #reveal;
  #visit;
  #at = 0; // 0: nothing has run; k: the first k steps have
  /** @type {ReturnType<typeof setInterval> | undefined} */
  #timer;
  #play;
  #slider;
  sentence = el("p", { class: "faint said", role: "status" });
  panel = el("div", { class: "step", hidden: true });

  /**
   * @param {Page} page
   * @param {import("./types").GraphView} state
   * @param {import("./scene.js").Scene} scene
   * @param {(key: string) => void} reveal
   * @param {(key: string) => void} visit
   */
  constructor(page, state, scene, reveal, visit) {
    this.#page = page;
    this.#state = state;
    this.#scene = scene;
    this.#order = engineOrder(state.layout);
    this.#reveal = reveal;
    this.#visit = visit;
    const title = page.t("engine_order");
    this.#slider = el("input", {
      type: "range",
      min: 0,
      max: this.#count,
      value: 0,
      "aria-label": title,
      title,
    });
    this.#slider.addEventListener("input", () => {
      this.#pause();
      this.#go(Number(this.#slider.value));
    });
    this.#play = icon("▶", page.t("play"), () => (this.#timer ? this.#pause() : this.#start()));
    this.element = el(
      "span",
      "group steps",
      icon("‹", page.t("step_back"), () => this.move(-1)),
      this.#play,
      icon("›", page.t("step_on"), () => this.move(1)),
      this.#slider,
    );
    this.element.hidden = this.sentence.hidden = this.#count < 2;
    page.signal.addEventListener("abort", () => clearInterval(this.#timer), { once: true });
    this.say("");
  }

  /** @param {number} by how many steps */
  move(by) {
    this.#pause();
    this.#go(this.#at + by);
  }

  /** @param {string} sentence below the picture; an empty one stands for the step's own */
  say(sentence) {
    this.sentence.textContent =
      sentence || (this.#at ? this.#stepSentence() : this.#page.t("step_help"));
  }

  get #count() {
    return this.#order.steps.length;
  }

  /** @param {number} k */
  #go(k) {
    this.#at = Math.max(0, Math.min(this.#count, k));
    this.#show();
  }

  #start() {
    if (this.#at >= this.#count) this.#go(0);
    const stride = Math.max(1, Math.floor((this.#count - this.#at) / MOST_PLAYED));
    this.#go(this.#at + stride);
    this.#timer = setInterval(
      () => (this.#at >= this.#count ? this.#pause() : this.#go(this.#at + stride)),
      PACE,
    );
    this.#play.textContent = "⏸";
    this.#play.setAttribute("aria-label", this.#page.t("pause"));
  }

  #pause() {
    clearInterval(this.#timer);
    this.#timer = undefined;
    this.#play.textContent = "▶";
    this.#play.setAttribute("aria-label", this.#page.t("play"));
  }

  #show() {
    const at = this.#at,
      order = this.#order,
      scene = this.#scene;
    const queue = new Set(at ? order.ready(at).slice(1) : []);
    scene.tag(at ? (box) => this.#arrivals(box) : null);
    scene.mark(
      "came",
      (_, path) => at > 0 && path !== undefined && order.into(path.target) === at - 1,
    );
    scene.mark("waiting", (key) => at > 0 && this.#stepOf(key) >= at);
    scene.mark("now", (key) => at > 0 && this.#stepOf(key) === at - 1);
    scene.mark("ready", (key, path) => !path && queue.has(this.#stepOf(key)));
    this.#slider.value = String(at);
    this.say("");
    this.panel.hidden = !at;
    this.panel.replaceChildren(
      ...(at ? [stepPanel(this.#page, this.#state, scene, order, at, this.#visit)] : []),
    );
    if (at) this.#reveal(order.steps[at - 1][0]);
  }

  #stepSentence() {
    const { boxes } = this.#scene,
      { steps, from } = this.#order,
      box = boxes.get(steps[this.#at - 1][0]),
      count = box?.fan_in ?? 0;
    const sources = from[this.#at - 1].map((step) => firstLine(boxes.get(steps[step][0])));
    const all = sources.length === count && count <= MOST_NAMED;
    return this.#page.t(count < 2 ? "step_at" : all ? "step_adds" : "step_adds_many", {
      step: this.#at,
      steps: steps.length,
      name: firstLine(box),
      count,
      names: sources.join(" + "),
    });
  }

  /** @param {import("./scene.js").Box} box how many of the gradients that are added at it have come, until it runs */
  #arrivals(box) {
    const step = this.#stepOf(box.key),
      from = this.#order.from[step] ?? [];
    const came = from.filter((source) => source < this.#at).length;
    return step >= this.#at && box.fan_in > 1 && from.length > 1
      ? this.#page.t("arrived_count", { came, count: from.length })
      : "";
  }

  /** @param {string} key */
  #stepOf(key) {
    return this.#order.place.get(key) ?? -1;
  }
}
