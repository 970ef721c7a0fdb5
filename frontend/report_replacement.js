// Live in place of static: the model finds the static report by its class and puts the view where it stands.

import { hold, outputOf, release } from "./memory.js";

/** @typedef {import("./types").Model} Model */
/** @typedef {{output: Element | null, height: () => number, restore: () => void}} Place a view that stands for a report; `restore` puts everything back */

const PAUSE = 50; // ms between a change of the page and the next look at it
const SOON = 5000; // ms in which the report is expected: until then every change is looked at, so that nothing flashes

/**
 * Keep a view in the place of every copy of the static report, until the returned function is called.
 * @param {Model} model
 * @param {(model: Model, element: HTMLElement) => () => void} mount
 * @returns {() => void}
 */
export function replaceReport(model, mount) {
  /** @type {(() => void) | undefined} */
  let stop;
  function start() {
    stop?.();
    stop = model.get("_anchor") ? watch(model, model.get("_anchor"), mount) : undefined;
  }
  model.on("change:_anchor", start); // Python gives it when the widget is displayed by itself
  start();
  return () => (model.off("change:_anchor", start), stop?.());
}

/**
 * @param {Model} model
 * @param {string} anchor
 * @param {(model: Model, element: HTMLElement) => () => void} mount
 */
function watch(model, anchor, mount) {
  /** @type {Map<Element, Place>} */
  const places = new Map();
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let waiting;
  function look() {
    waiting = undefined;
    for (const [report, place] of places) {
      if (report.isConnected) continue;
      hold(place.output, place.height());
      place.restore();
      places.delete(report);
    }
    for (const report of document.getElementsByClassName(anchor)) {
      if (!places.has(report) && trusted(report))
        places.set(report, put(/** @type {HTMLElement} */ (report), model, mount));
    }
  }
  const start = performance.now();
  const observer = new MutationObserver(() => {
    const gone = [...places.keys()].some((report) => !report.isConnected);
    if (gone || (!places.size && performance.now() - start < SOON)) look();
    else waiting ??= setTimeout(look, PAUSE);
  });
  observer.observe(document.body, { childList: true, subtree: true });
  look();
  return () => {
    observer.disconnect();
    clearTimeout(waiting);
    for (const { restore } of places.values()) restore();
    places.clear();
  };
}

/**
 * Whether the page trusts the output that a report is in: JupyterLab restores widgets of other people's notebooks too.
 * @param {Element} report
 */
function trusted(report) {
  const output = report.closest(".jp-RenderedHTML");
  if (!document.getElementById("jupyter-config-data")) return true; // a page that nbconvert made
  return !output || output.classList.contains("jp-mod-trusted");
}

/**
 * Mount the view after the report and hide the report; when the view fails the report stays.
 * @param {HTMLElement} report
 * @param {Model} model
 * @param {(model: Model, element: HTMLElement) => () => void} mount
 * @returns {Place}
 */
function put(report, model, mount) {
  const output = outputOf(report);
  const host = document.createElement("div");
  report.after(host);
  const display = report.style.display;
  report.classList.toggle(
    "nbag-paper",
    ["graph", "motion", "document"].includes(model.get("_kind")),
  );
  let height = 0;
  const watcher = new ResizeObserver(() => {
    if (output?.isConnected && host.isConnected) height = output.getBoundingClientRect().height;
  });
  try {
    const unmount = mount(model, host);
    report.style.display = "none";
    watcher.observe(host);
    release(output);
    function restore() {
      watcher.disconnect();
      unmount();
      host.remove();
      report.style.display = display;
    }
    return { output, height: () => height, restore };
  } catch (problem) {
    console.warn(
      "nbautograd: the static report stays, since the interactive view failed.",
      problem,
    );
    host.remove();
    return { output, height: () => 0, restore: () => {} };
  }
}
