// Calls: a time line with forward above and backward below, and under it every call, to be opened.

import { findingsList } from "./findings.js";
import { el, keys, size, svg, time } from "./shared.js";
import { ctxView, valueList } from "./values.js";

/** @typedef {import("./types").Page} Page */

const STEP = 112, CHIP = 26, LANE = 58; // px: column width, chip height, from lane to lane

/**
 * @param {Page} page
 * @param {any} state
 */
export function callsView(page, state) {
  /** @type {any[]} */
  const calls = state.calls;
  const notes = [...state.problems, ...(state.dropped ? [page.t("dropped", { count: state.dropped })] : [])];
  if (!calls.length) return el("div", { class: "stack" }, el("p", { class: "faint" }, page.t("no_calls")), ...notes.map((n) => el("p", { class: "faint" }, n)));
  const rows = calls.map((call) => row(page, call));
  const { element, chips } = timeline(page, calls);
  const follow = () => {
    const wanted = calls.findIndex((call) => call.index === page.selection().call);
    chips.forEach((chip, k) => (chip.setAttribute("aria-pressed", String(k === wanted)), (chip.tabIndex = k === Math.max(wanted, 0) ? 0 : -1)));
    if (wanted < 0) return;
    rows[wanted].open = true;
    if (rows[wanted].isConnected) rows[wanted].scrollIntoView({ block: "nearest" });
  };
  page.onSelect(follow);
  follow();
  if (page.selection().call === undefined && calls.length <= 3) rows.forEach((r) => (r.open = true));
  return el("div", { class: "stack calls" }, element, el("div", { class: "rows" }, ...rows), ...notes.map((n) => el("p", { class: "faint" }, n)));
}

/** @param {any} call */
const isBackward = (call) => call.method === "backward";

/**
 * @param {Page} page
 * @param {any[]} calls
 */
function timeline(page, calls) {
  const x = (/** @type {number} */ k) => k * STEP, y = (/** @type {any} */ call) => (isBackward(call) ? LANE : 0);
  const chips = calls.map((call, k) => el("button", {
    type: "button", class: `chip ${isBackward(call) ? "backward" : "forward"} ${call.exception ? "bad" : ""}`, "aria-pressed": "false",
    "aria-label": `${title(call)}, ${time(call.seconds)}${call.exception ? `, ${call.exception}` : ""}`, style: `left:${x(k)}px;top:${y(call)}px;width:${STEP - 10}px;height:${CHIP}px`,
    on: { click: () => page.select({ call: call.index }) },
  }, el("span", null, call.method === "setup_context" ? "setup" : call.method), el("span", { class: "faint" }, `#${call.index}`)));
  const places = new Map(calls.map((call, k) => [call.index, k]));
  const links = calls.flatMap((call, k) => {
    const from = places.get(call.forward);
    if (from === undefined || !isBackward(call)) return [];
    const [x1, x2] = [x(from) + (STEP - 10) / 2, x(k) + (STEP - 10) / 2];
    return [svg("path", { class: "link", d: `M${x1},${CHIP} C${x1},${LANE - 8} ${x2},${CHIP + 8} ${x2},${LANE}` })];
  });
  const width = calls.length * STEP;
  const track = el("div", { class: "track", role: "group", "aria-label": page.t("timeline"), style: `width:${width}px;height:${LANE + CHIP}px` },
    svg("svg", { width, height: LANE + CHIP, "aria-hidden": "true" }, ...links), ...chips);
  const go = (/** @type {number} */ by) => {
    const next = Math.max(0, Math.min(chips.length - 1, chips.findIndex((chip) => chip.tabIndex === 0) + by));
    page.select({ call: calls[next].index });
    chips[next].focus();
  };
  keys(track, { ArrowLeft: () => go(-1), ArrowRight: () => go(1), Home: () => go(-Infinity), End: () => go(Infinity) });
  return { element: el("div", { class: "scroll timeline" }, track), chips };
}

/** @param {any} call */
const title = (call) => `${call.function}.${call.method} #${call.index}`;

/**
 * One call, its contents made when it is opened.
 * @param {Page} page
 * @param {any} call
 */
function row(page, call) {
  const facts = [time(call.seconds), call.caller_line && page.t("called_from", { line: call.caller_line }), call.ctx.bytes && !isBackward(call) && page.t("saves", { size: size(call.ctx.bytes) }), call.thread !== "MainThread" && call.thread].filter(Boolean);
  const details = el("details", { class: "call" }, el("summary", null,
    el("span", { class: `dot ${isBackward(call) ? "backward" : "forward"}`, "aria-hidden": "true" }), el("code", null, `${call.function}.`, el("b", null, call.method)), el("span", { class: "faint" }, ` #${call.index} · ${facts.join(" · ")}`),
    call.exception && el("span", { class: "bad" }, ` ${page.t("raised")}`), call.warnings.length > 0 && el("span", { class: "verdict open" }, ` ${page.t("noticed", { count: call.warnings.length })}`)));
  details.addEventListener("toggle", () => {
    if (details.open && details.childNodes.length === 1) details.append(callBody(page, call));
  });
  return details;
}

/**
 * @param {Page} page
 * @param {any} call
 */
function callBody(page, call) {
  const backward = isBackward(call);
  return el("div", { class: "body" },
    el("div", { class: "columns" },
      valueList(page, page.t(backward ? "grad_outputs" : "inputs"), call.inputs),
      ctxView(page, call.ctx),
      call.exception ? null : valueList(page, page.t(backward ? "gradients" : "outputs"), call.outputs)),
    call.exception && el("pre", { class: "exception", tabindex: "0" }, call.exception),
    call.stdout && el("section", null, el("h5", null, page.t("printed")), el("pre", { class: "stdout", tabindex: "0" }, call.stdout)),
    call.warnings.length > 0 && findingsList(page, call.warnings),
    ...call.missing.map((/** @type {string} */ sentence) => el("p", { class: "faint" }, sentence)));
}
