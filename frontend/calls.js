// Calls: a time line with forward above and backward below, and under it the chosen pair with ctx between them.

import { documentView } from "./document.js";
import { el, keys, svg } from "./dom.js";
import { time } from "./formats.js";
import { trendLines } from "./trends.js";
import { ask } from "./wire.js";

/** @typedef {import("./types").Page} Page */

const STEP = 162,
  WIDTH = 156,
  CHIP = 26,
  LANE = 60; // px: column, chip, from lane to lane
const BESIDE = 3; // chips that are there left and right of what is seen

/**
 * @param {Page} page
 * @param {import("./states").CallsState} state
 */
export function callsView(page, state) {
  /** @type {import("./states").CallState[]} */
  let calls = state.calls;
  const others = { kind: /** @type {const} */ ("some_calls"), first: 0, count: 1 };
  const gone = state.dropped + (page.can(others) ? 0 : state.first); // a saved copy has no others to list
  const notes = [...state.problems, ...(gone ? [page.t("dropped", { count: gone })] : [])].map(
    (note) => el("p", "faint", note),
  );
  if (!calls.length) return el("div", "stack", el("p", "faint", page.t("no_calls")), ...notes);
  let places = new Map(calls.map((call, k) => [call.index, k]));
  const bad = state.trends?.first_bad ?? -1, // a list opens on the first NaN, else at its end
    begin = state.calls[bad - state.first]?.index ?? -1;
  const chosen = () =>
    places.get(page.selection().call ?? begin) ?? places.get(begin) ?? calls.length - 1;
  let end = new AbortController();
  page.signal.addEventListener("abort", () => end.abort(), { once: true });
  const lineOf = () => timeline({ ...page, signal: end.signal }, calls, places, chosen);
  let line = lineOf();
  const body = el("div", "pair");
  /** @type {import("./states").CallState | undefined} */
  let shown;
  async function follow() {
    const call = calls[chosen()];
    if (call === shown) return;
    shown = call;
    line.see(chosen());
    const group = together(calls, call),
      missing = group.filter((one) => !one.document);
    if (missing.length) {
      body.replaceChildren(page.t("asking"));
      try {
        const answer = await ask(
          page.model,
          { kind: "calls", calls: missing.map((one) => one.index) },
          page.signal,
          page.t("no_kernel"),
        );
        for (const one of answer.calls)
          Object.assign(calls[/** @type {number} */ (places.get(one.index))], one);
      } catch (problem) {
        if (shown === call) body.replaceChildren(/** @type {Error} */ (problem).message);
        return;
      }
    }
    if (shown === call)
      body.replaceChildren(
        ...pair(
          page,
          calls,
          group.filter((one) => one.document),
        ),
      );
  }
  /**
   * List other calls: those that came with the state, or older ones that Python sends.
   * @param {number} first
   * @param {number} count
   * @param {number} [then]
   */
  async function list(first, count, then = first) {
    const question = { kind: /** @type {const} */ ("some_calls"), first, count };
    let some =
      count >= (state.trends?.count ?? 0)
        ? state.calls
        : first >= state.first
          ? state.calls.slice(first - state.first, first - state.first + count)
          : [];
    if (some !== state.calls && first < state.first && page.can(question)) {
      try {
        some = (await ask(page.model, question, page.signal, page.t("no_kernel"))).calls;
      } catch (problem) {
        return void (
          page.signal.aborted || body.replaceChildren(/** @type {Error} */ (problem).message)
        );
      }
    }
    if (!some.length) return;
    end.abort();
    end = new AbortController();
    calls = some;
    places = new Map(calls.map((call, k) => [call.index, k]));
    const next = lineOf();
    line.element.replaceWith(next.element);
    line = next;
    const call = calls[Math.min(calls.length - 1, Math.max(0, then - first))];
    if (page.selection().call === call.index) follow();
    else page.select({ call: call.index });
  }
  page.onSelect(follow);
  follow();
  return el(
    "div",
    "stack calls",
    ...documentView(page, state.finding),
    state.trends && trendLines(page, state.trends, list, state.first),
    line.element,
    body,
    ...notes,
  );
}

/** @param {import("./states").CallState} call */
const isBackward = (call) => call.method === "backward";

/** @param {import("./states").CallState[]} calls @param {import("./states").CallState} call @returns {import("./states").CallState[]} the calls with its ctx: forward, setup_context, the backward in question */
function together(calls, call) {
  const first = call.forward ?? call.index,
    family = calls.filter((one) => (one.forward ?? one.index) === first);
  const late = isBackward(call) ? call : family.find(isBackward);
  return family.filter((one) => !isBackward(one) || one === late).slice(0, 8);
}

/**
 * @param {Page} page
 * @param {import("./states").CallState[]} calls
 * @param {Map<number, number>} places
 * @param {() => number} chosen
 */
function timeline(page, calls, places, chosen) {
  const width = calls.length * STEP;
  /** @param {number} k */
  function middle(k) {
    return k * STEP + WIDTH / 2;
  }
  const links = svg("svg", { width, height: LANE + CHIP, "aria-hidden": "true" }),
    chips = el("div");
  const track = el(
    "div",
    {
      class: "track",
      role: "group",
      "aria-label": `${page.t("timeline")} (${calls.length})`,
      style: `width:${width}px;height:${LANE + CHIP}px`,
    },
    links,
    chips,
  );
  const element = el("div", "scroll timeline", track);
  /** @type {Map<number, HTMLElement>} */
  const made = new Map();
  const arcs = calls.flatMap((call, k) =>
    isBackward(call) && places.has(call.forward ?? -1)
      ? [[/** @type {number} */ (places.get(call.forward ?? -1)), k]]
      : [],
  );
  function paint() {
    const from = Math.floor(element.scrollLeft / STEP) - BESIDE,
      to = Math.ceil((element.scrollLeft + (element.clientWidth || 700)) / STEP) + BESIDE;
    const now = chosen(),
      stop = Math.min(Math.max(now, from + BESIDE, 0), to - BESIDE - 1, calls.length - 1);
    /** @param {number} k */
    function inside(k) {
      return k >= from && k < to;
    }
    for (const [k, chip] of made)
      if (!inside(k) && chip !== element.querySelector(":focus")) (chip.remove(), made.delete(k));
    for (let k = Math.max(0, from); k < Math.min(to, calls.length); k++) {
      if (!made.has(k)) made.set(k, chips.appendChild(chipOf(page, calls[k], k)));
    }
    for (const [k, chip] of made)
      (chip.setAttribute("aria-pressed", String(k === now)), (chip.tabIndex = k === stop ? 0 : -1));
    links.replaceChildren(
      ...arcs
        .filter(([a, b]) => b >= from && a < to)
        .slice(0, 200)
        .map(([a, b]) => {
          const [x1, x2] = [middle(a), middle(b)],
            near = calls[now] && (a === now || b === now);
          return svg("path", {
            class: near ? "link near" : "link",
            d: `M${x1},${CHIP} C${x1},${LANE - 8} ${x2},${CHIP + 8} ${x2},${LANE - 5} m-3,-1 l3,6 l3,-6`,
          });
        }),
    );
  }
  /** @param {number} k */
  function see(k) {
    const left = k * STEP,
      room = element.clientWidth || 700;
    if (left < element.scrollLeft || left + WIDTH > element.scrollLeft + room)
      element.scrollLeft = left - room / 2 + STEP;
    paint();
  }
  /** @param {number} by */
  function go(by) {
    const focused = [...made].find(([, chip]) => chip.matches(":focus"))?.[0] ?? chosen();
    const next = Math.max(0, Math.min(calls.length - 1, focused + by));
    page.select({ call: calls[next].index });
    see(next);
    made.get(next)?.focus();
  }
  keys(track, {
    ArrowLeft: () => go(-1),
    ArrowRight: () => go(1),
    Home: () => go(-Infinity),
    End: () => go(Infinity),
  });
  element.addEventListener("scroll", paint, { passive: true });
  page.onTheme(() => setTimeout(() => see(chosen()), 500), page.signal); // JupyterLab hides the page meanwhile: the place is lost
  const watcher = new ResizeObserver(() => see(chosen()));
  watcher.observe(element);
  page.signal.addEventListener("abort", () => watcher.disconnect(), { once: true });
  return { element, see };
}

/** @param {Page} page @param {import("./states").CallState} call @param {number} k */
function chipOf(page, call, k) {
  const marks = [call.printed && "›", (call.noticed || call.bad) && "!", call.exception && "✗"]
    .filter(Boolean)
    .join("");
  const said = [
    time(call.seconds ?? 0),
    call.printed && page.t("call.printed"),
    call.bad && page.t("trend.bad"),
    call.noticed && page.t("noticed", { count: call.noticed }),
    call.exception,
  ].filter(Boolean);
  return el(
    "button",
    {
      class: `chip ${isBackward(call) ? "backward" : "forward"} ${call.exception || call.bad ? "bad" : ""}`,
      "aria-label": `${call.function}.${call.method} ${call.name}, ${said.join(", ")}`,
      title: said.join(", "),
      style: `left:${k * STEP}px;top:${isBackward(call) ? LANE : 0}px;width:${WIDTH}px;height:${CHIP}px`,
      on: { click: () => page.select({ call: call.index }) },
    },
    el(
      "span",
      null,
      call.method === "setup_context" ? "setup" : call.method,
      marks && el("b", null, ` ${marks}`),
    ),
    el("span", "faint", call.name),
  );
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
  const others = back.length
    ? calls.filter(
        (one) =>
          isBackward(one) &&
          one !== back[0] &&
          one.forward === back[0].forward &&
          one.forward !== undefined,
      )
    : [];
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
            .map((one) =>
              el(
                "button",
                { class: "link", on: { click: () => page.select({ call: one.index }) } },
                one.name,
              ),
            ),
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
