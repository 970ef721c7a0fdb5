// The module that anywidget loads: one for all views, told apart by the `_kind` trait.

import { foldable, pageOf } from "./answer.js";
import { callsView } from "./calls.js";
import { claimKeys } from "./shortcuts.js";
import { el } from "./dom.js";
import { frozenModel } from "./frozen.js";
import { gradcheckView } from "./gradcheck.js";
import { graphView } from "./graph.js";
import { inspectorView } from "./inspector.js";
import { jacobianView } from "./jacobian.js";
import { resume } from "./memory.js";
import { page } from "./page.js";
import { replaceReport } from "./report_replacement.js";
import { slowMotionView } from "./slow_motion.js";
import { decode, inflate } from "./wire.js";

/** @typedef {import("./types").Model} Model */
/** @typedef {import("./types").State} State */

/** @type {{[K in keyof import("./states").Views]: (page: import("./types").Page, state: import("./states").Views[K]) => Node}} */
const VIEWS = {
  inspector: foldable(inspectorView),
  graph: graphView,
  jacobian: jacobianView,
  gradcheck: foldable(gradcheckView),
  calls: callsView,
  motion: (view, state) => slowMotionView(view, state),
  document: pageOf,
};

/** @param {keyof typeof VIEWS} kind */
const viewOf = (kind) =>
  /** @type {(page: import("./types").Page, state: State) => Node} */ (VIEWS[kind]);

/**
 * Draw the model's view into an element.
 * @param {Model} model
 * @param {HTMLElement} element
 * @returns {() => void} removes it and every listener
 */
export function mount(model, element) {
  const end = new AbortController();
  const host = el("div", "nbag-live");
  const root = el("div", "nbag");
  host.attachShadow({ mode: "open" }).append(el("style", null, sheets.get(model) ?? ""), root);
  element.append(host);
  claimKeys(host, end.signal);
  try {
    const view = page(model, root, end.signal),
      state = /** @type {State} */ (states.get(model));
    resume(view, host, state);
    root.append(viewOf(model.get("_kind"))(view, state));
  } catch (problem) {
    end.abort();
    host.remove();
    throw problem;
  }
  // what is typed into our fields is not for the notebook
  root.addEventListener("keydown", (event) => {
    if (/** @type {Element} */ (event.target).matches("input, select, textarea"))
      event.stopPropagation();
  });
  return () => (end.abort(), host.remove());
}

/** @type {WeakMap<Model, string>} the stylesheet of each model, unpacked */
const sheets = new WeakMap();
/** @type {string | undefined} the last one: a module and its stylesheet go together */
let sheet;

/** @type {WeakMap<Model, State>} their states, decoded */
const states = new WeakMap();

/** @param {Model} model the stylesheet comes deflated as well, since it is stored in every saved widget */
async function unpack(model) {
  if (!sheets.has(model)) sheets.set(model, (sheet ??= await inflate(model.get("_stylesheet"))));
  if (!states.has(model)) states.set(model, await decode(model.get("state")));
}

/**
 * What ends a view is given back, as anywidget has it, and heard from the host's signal as well.
 * @param {() => void} end @param {AbortSignal} [signal]
 */
function ended(end, signal) {
  if (signal?.aborted) end();
  else signal?.addEventListener("abort", end, { once: true });
  return end;
}

/** @param {{model: Model, signal?: AbortSignal}} context */
async function initialize({ model, signal }) {
  await unpack(model);
  return ended(replaceReport(model, mount), signal);
}

/** @param {{model: Model, el: HTMLElement, signal?: AbortSignal}} context */
async function render({ model, el: element, signal }) {
  try {
    await unpack(model);
    return ended(mount(model, element), signal);
  } catch (problem) {
    element.append(el("p", { role: "alert" }, `nbautograd: ${problem}`));
    throw problem;
  }
}

const thawed = Symbol.for("nbautograd");

/**
 * Show what a widget stored, where no kernel is: in the place of its static report, and of every copy of it.
 * @param {{_anchor: string}} traits as they were stored
 */
export async function thaw(traits) {
  const shared = /** @type {Record<symbol, Set<string> | undefined>} */ (
    /** @type {unknown} */ (globalThis)
  );
  const known = (shared[thawed] ??= new Set());
  if (known.has(traits._anchor)) return undefined;
  known.add(traits._anchor);
  return initialize({ model: await frozenModel(traits) });
}

export default { initialize, render };
