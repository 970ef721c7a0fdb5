// A slider over steps, with buttons for the step before, the next one and for playing them.

import { el, icon } from "./dom.js";

/** @typedef {import("./types").Page} Page */

const PACE = 900; // ms per step when playing
const MOST_PLAYED = 120; // steps of one play; longer runs are played in strides

export class Player {
  #page;
  #count;
  #reached;
  /** @type {ReturnType<typeof setInterval> | undefined} */
  #timer;
  #play;
  #slider;
  at = 0;

  /**
   * @param {Page} page
   * @param {number} count the last step; the first one is 0
   * @param {string} title
   * @param {() => void} reached what to do at each step
   */
  constructor(page, count, title, reached) {
    this.#page = page;
    this.#count = count;
    this.#reached = reached;
    this.#slider = el("input", {
      type: "range",
      min: 0,
      max: count,
      value: 0,
      "aria-label": title,
      title,
    });
    this.#slider.addEventListener("input", () => this.move(Number(this.#slider.value) - this.at));
    this.#play = icon("▶", page.t("play"), () => this.toggle());
    this.element = el(
      "span",
      "group steps",
      icon("‹", page.t("step_back"), () => this.move(-1)),
      this.#play,
      icon("›", page.t("step_on"), () => this.move(1)),
      this.#slider,
    );
    page.signal.addEventListener("abort", () => clearInterval(this.#timer), { once: true });
  }

  /** @param {number} by how many steps */
  move(by) {
    this.#pause();
    this.#go(this.at + by);
  }

  toggle() {
    if (this.#timer) return this.#pause();
    if (this.at >= this.#count) this.#go(0);
    const stride = Math.max(1, Math.floor((this.#count - this.at) / MOST_PLAYED));
    this.#go(this.at + stride);
    this.#timer = setInterval(
      () => (this.at >= this.#count ? this.#pause() : this.#go(this.at + stride)),
      PACE,
    );
    this.#play.textContent = "⏸";
    this.#play.setAttribute("aria-label", this.#page.t("pause"));
  }

  /** @param {number} k */
  #go(k) {
    this.at = Math.max(0, Math.min(this.#count, k));
    this.#slider.value = String(this.at);
    this.#reached();
  }

  #pause() {
    clearInterval(this.#timer);
    this.#timer = undefined;
    this.#play.textContent = "▶";
    this.#play.setAttribute("aria-label", this.#page.t("play"));
  }
}
