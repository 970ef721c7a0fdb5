// The page of one view: its shadow root, words, theme, selection; everything ends with its signal.

import { el } from "./shared.js";

/** @typedef {import("./types").Model} Model */
/** @typedef {import("./types").Page} Page */
/** @typedef {import("./types").Selection} Selection */

/**
 * @param {Model} model
 * @param {HTMLElement} root
 * @param {AbortSignal} signal
 * @returns {Page}
 */
export function page(model, root, signal) {
  const words = model.get("_labels") ?? {};
  /** @type {Page} */
  const self = {
    model,
    root,
    signal,
    t: (id, params = {}) =>
      String(words[id] ?? id).replace(/\{(\w+)\}/g, (all, name) =>
        name in params ? String(params[name]) : all,
      ),
    word: (group, term) => words[`${group}.${term.replaceAll(" ", "_")}`] ?? term,
    ...themes(model, root, signal),
    ...selections(model, signal),
    tabs: [],
    elements: {},
    reach: (block, entry) => ({ block, entry }),
    can: (question) => model.knows?.(question) ?? true,
    show: (tab) => (model.set("tab", tab), model.save_changes()),
    onShow: (listener) => listen(model, "change:tab", () => listener(model.get("tab")), signal),
  };
  return self;
}

/**
 * @param {Model} model
 * @param {string} event
 * @param {() => void} listener
 * @param {AbortSignal} signal
 */
function listen(model, event, listener, signal) {
  model.on(event, listener);
  signal.addEventListener("abort", () => model.off(event, listener), { once: true });
}

/**
 * Whether the page is dark is asked of the page itself: `light-dark()` follows its color-scheme.
 * @param {Model} model
 * @param {HTMLElement} root
 * @param {AbortSignal} signal
 */
function themes(model, root, signal) {
  const probe = el("span", { class: "probe", "aria-hidden": "true" });
  root.append(probe);
  const name = () => (getComputedStyle(probe).color === "rgb(255, 255, 255)" ? "dark" : "light");
  /** @type {(() => void)[]} */
  const listeners = [];
  let last = "";
  const check = () => {
    root.classList.toggle(
      "dark-host",
      /\bvscode-(dark|high-contrast)\b/.test(document.body.className),
    );
    if (name() === last) return;
    last = name();
    for (const listener of listeners) listener();
  };
  const observer = new MutationObserver(check);
  for (const node of [document.body, document.documentElement]) {
    observer.observe(node, {
      attributes: true,
      attributeFilter: [
        "class",
        "style",
        "data-jp-theme-name",
        "data-jp-theme-light",
        "data-theme",
      ],
    });
  }
  for (const query of ["(prefers-color-scheme: dark)", "(forced-colors: active)"])
    matchMedia(query).addEventListener("change", check, { signal });
  signal.addEventListener("abort", () => observer.disconnect(), { once: true });
  return {
    colours: () => model.get("_colours")[name()],
    onTheme: /** @param {() => void} listener @param {AbortSignal} [until] */ (listener, until) =>
      add(listeners, listener, until),
  };
}

/**
 * @param {Model} model
 * @param {AbortSignal} signal
 */
function selections(model, signal) {
  /** @type {((selection: Selection) => void)[]} */
  const listeners = [];
  const get = () => /** @type {Selection} */ (model.get("selection") ?? {});
  listen(
    model,
    "change:selection",
    () => [...listeners].forEach((listener) => listener(get())),
    signal,
  );
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  signal.addEventListener("abort", () => clearTimeout(timer), { once: true });
  return {
    selection: get,
    select: /** @param {Selection} change */ (change) => {
      model.set("selection", { ...get(), ...change });
      clearTimeout(timer);
      timer = setTimeout(() => model.save_changes(), 150);
    },
    onSelect: /** @param {(selection: Selection) => void} listener @param {AbortSignal} [until] */ (
      listener,
      until,
    ) => add(listeners, listener, until),
  };
}

/**
 * @template T
 * @param {T[]} listeners
 * @param {T} listener
 * @param {AbortSignal} [until]
 */
function add(listeners, listener, until) {
  listeners.push(listener);
  until?.addEventListener("abort", () => listeners.splice(listeners.indexOf(listener), 1), {
    once: true,
  });
}
