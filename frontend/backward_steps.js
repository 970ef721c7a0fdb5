// Step through backward in the engine's order: forwards, backwards, by playing, by a slider.

import { el } from "./dom.js";
import { engineOrder } from "./engine_order.js";
import { Player } from "./player.js";
import { firstLine } from "./scene.js";
import { stepPanel } from "./step_panel.js";

/** @typedef {import("./types").Page} Page */

const MOST_NAMED = 4; // gradients that are added, by name

export class BackwardSteps {
  #page;
  #state;
  #scene;
  #order;
  #reveal;
  #visit;
  #player; // at 0 nothing has run, at k the first k steps have
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
    this.#player = new Player(page, this.#count, page.t("engine_order"), () => this.#show());
    this.element = this.#player.element;
    this.element.hidden = this.sentence.hidden = this.#count < 2;
    this.say("");
  }

  /** @param {number} by how many steps */
  move(by) {
    this.#player.move(by);
  }

  /** @param {string} sentence below the picture; an empty one stands for the step's own */
  say(sentence) {
    this.sentence.textContent =
      sentence || (this.#at ? this.#stepSentence() : this.#page.t("step_help"));
  }

  get #count() {
    return this.#order.steps.length;
  }

  get #at() {
    return this.#player.at;
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
    return this.#page.t(count < 2 ? "step_at" : "step_adds", {
      step: this.#at,
      steps: steps.length,
      name: firstLine(box),
      count,
      names: all ? this.#page.t("colon") + sources.join(" + ") : "",
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
