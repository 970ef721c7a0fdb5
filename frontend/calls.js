// Calls: a time line with forward above and backward below, and under it the chosen pair with ctx between them.

import { documentView } from "./document.js";
import { button, el, prose } from "./dom.js";
import { time } from "./formats.js";
import { isBackward, Timeline } from "./timeline.js";
import { Trends } from "./trends.js";
import { ask } from "./wire.js";

/** @typedef {import("./types").Page} Page */

/**
 * @param {Page} page
 * @param {import("./states").CallsState} state
 */
export function callsView(page, state) {
  const others = { kind: /** @type {const} */ ("some_calls"), first: 0, count: 1 };
  const gone = state.dropped + (page.can(others) ? 0 : state.first); // a saved copy has no others to list
  const notes = [...state.problems, ...(gone ? [page.t("dropped", { count: gone })] : [])].map(
    (note) => el("p", "faint", note),
  );
  if (!state.calls.length)
    return el(
      "div",
      "stack",
      ...(notes.length ? notes : [el("p", null, prose(page.t("no_calls")))]),
    );
  const listed = new ListedCalls(page, state);
  return el(
    "div",
    "stack calls",
    ...documentView(page, state.finding),
    state.trends &&
      new Trends(page, state.trends, state.first, (...calls) => listed.list(...calls)).element,
    listed.timeline.element,
    listed.pair,
    ...notes,
  );
}

/** The calls that are listed: their time line, and the chosen one with those of its ctx. */
class ListedCalls {
  #page;
  #state;
  #first;
  /** @type {import("./states").CallState[]} */
  #calls = [];
  /** @type {Map<number, number>} */
  #places = new Map();
  /** @type {import("./states").CallState | undefined} */
  #shown;
  #end = new AbortController();
  pair = el("div", "pair");

  /** @param {Page} page @param {import("./states").CallsState} state */
  constructor(page, state) {
    this.#page = page;
    this.#state = state;
    const bad = state.trends?.first_bad ?? -1; // a list opens on the first NaN, else at its end
    this.#first = state.calls[bad - state.first]?.index ?? -1;
    page.signal.addEventListener("abort", () => this.#end.abort(), { once: true });
    this.timeline = this.#lineUp(state.calls);
    page.onSelect(() => this.#follow());
    this.#follow();
  }

  /** Where the chosen call stands. */
  get #chosen() {
    const { call } = this.#page.selection();
    const place = this.#places.get(call ?? this.#first) ?? this.#places.get(this.#first);
    return place ?? this.#calls.length - 1;
  }

  /** @param {import("./states").CallState[]} calls */
  #lineUp(calls) {
    this.#calls = calls;
    this.#places = new Map(calls.map((call, k) => [call.index, k]));
    const page = { ...this.#page, signal: this.#end.signal };
    return new Timeline(page, calls, this.#places, () => this.#chosen);
  }

  /** @template {"calls" | "some_calls"} K @param {import("./types").Question<K>} question */
  #ask(question) {
    return ask(this.#page.model, question, this.#page.signal, this.#page.t("no_kernel"));
  }

  /** Show the pair of the chosen call; what came in brief is asked for. */
  async #follow() {
    const call = this.#calls[this.#chosen];
    if (call === this.#shown) return;
    this.#shown = call;
    this.timeline.see(this.#chosen);
    const group = together(this.#calls, call),
      missing = group.filter((one) => !one.document);
    if (missing.length) {
      this.pair.replaceChildren(this.#page.t("asking"));
      try {
        const answer = await this.#ask({ kind: "calls", calls: missing.map((one) => one.index) });
        for (const one of answer.calls)
          Object.assign(this.#calls[/** @type {number} */ (this.#places.get(one.index))], one);
      } catch (problem) {
        if (this.#shown === call) this.#say(problem);
        return;
      }
    }
    const whole = group.filter((one) => one.document);
    if (this.#shown === call) this.pair.replaceChildren(...pair(this.#page, this.#calls, whole));
  }

  /** @param {unknown} problem */
  #say(problem) {
    this.pair.replaceChildren(/** @type {Error} */ (problem).message);
  }

  /**
   * List other calls: those that came with the state, or older ones that Python sends.
   * @param {number} first
   * @param {number} count
   * @param {number} [then]
   */
  async list(first, count, then = first) {
    const { calls, trends, first: oldest } = this.#state,
      question = { kind: /** @type {const} */ ("some_calls"), first, count };
    let some = first >= oldest ? calls.slice(first - oldest, first - oldest + count) : [];
    if (count >= (trends?.count ?? 0)) some = calls;
    else if (first < oldest && this.#page.can(question)) {
      try {
        some = (await this.#ask(question)).calls;
      } catch (problem) {
        return void (this.#page.signal.aborted || this.#say(problem));
      }
    }
    if (!some.length) return;
    this.#end.abort();
    this.#end = new AbortController();
    const before = this.timeline;
    this.timeline = this.#lineUp(some);
    before.element.replaceWith(this.timeline.element);
    const call = some[Math.min(some.length - 1, Math.max(0, then - first))];
    if (this.#page.selection().call === call.index) this.#follow();
    else this.#page.select({ call: call.index });
  }
}

/** @param {import("./states").CallState[]} calls @param {import("./states").CallState} call @returns {import("./states").CallState[]} the calls with its ctx: forward, setup_context, the backward in question */
function together(calls, call) {
  const first = call.forward ?? call.index,
    family = calls.filter((one) => (one.forward ?? one.index) === first);
  const late = isBackward(call) ? call : family.find(isBackward);
  return family.filter((one) => !isBackward(one) || one === late).slice(0, 8);
}

/**
 * forward | ctx | backward.
 * @param {Page} page
 * @param {import("./states").CallState[]} calls
 * @param {import("./states").CallState[]} group
 */
function pair(page, calls, group) {
  const back = group.filter(isBackward),
    front = group.filter((one) => !isBackward(one));
  const holder = front.find((one) => one.method === "setup_context") ?? front[0] ?? back[0];
  const others = calls.filter(
    (one) =>
      isBackward(one) &&
      one !== back[0] &&
      one.forward !== undefined &&
      one.forward === back[0]?.forward,
  );
  return [
    el(
      "section",
      null,
      ...front.map((one) => methodView(page, one)),
      !front.length && el("p", "faint", page.t("no_call")),
    ),
    el(
      "section",
      "kept",
      el("h4", null, el("code", null, "ctx")),
      ...documentView(page, holder.ctx ?? []),
    ),
    el(
      "section",
      null,
      ...back.map((one) => methodView(page, one)),
      !back.length && el("p", "faint", page.t("no_backward")),
      others.length > 0 &&
        el(
          "p",
          "links",
          page.t("again"),
          ...others
            .slice(0, 8)
            .map((one) => button(one.name, () => page.select({ call: one.index }), "link")),
        ),
    ),
  ];
}

/** @param {Page} page @param {import("./states").CallState} call what one method was given, printed, raised and returned */
export function methodView(page, call) {
  return el(
    "div",
    "method",
    el(
      "h4",
      null,
      el("code", null, call.method),
      el("span", "faint", ` ${call.name} · ${time(call.seconds ?? 0)}`),
    ),
    ...documentView(page, call.document ?? []),
  );
}
