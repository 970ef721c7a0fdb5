// The page of one view: its shadow root, words, theme, selection; everything ends with its signal.

import { el } from "./dom.js";
import { store } from "./store.js";

/** @typedef {import("./types").Model} Model */
/** @typedef {import("./types").Page} Page */
/** @typedef {import("./types").Selection} Selection */

const PAUSE = 150; // ms without another choice before Python is told

/**
 * @param {Model} model
 * @param {HTMLElement} root
 * @param {AbortSignal} signal
 * @returns {Page}
 */
export function page(model, root, signal) {
  const words = model.get("_labels") ?? {};
  const theme = followedTheme(root, signal),
    { selection, select } = followedSelection(model, signal);
  return {
    model,
    root,
    signal,
    t: (id, params = {}) =>
      String(words[id] ?? id).replace(/\{(\w+)\}/g, (all, name) =>
        name in params ? String(params[name]) : all,
      ),
    word: (group, term) => words[`${group}.${term.replaceAll(" ", "_")}`] ?? term,
    colours: () => model.get("_colours")[theme.get()],
    onTheme: theme.on,
    selection: selection.get,
    select,
    onSelect: selection.on,
    lens: store(""),
    first: null,
    tabs: [],
    elements: { inputs: [], outputs: [], lines: {}, call: null },
    reach: (block, entry) => ({ block, entry }),
    can: (question) => model.knows?.(question) ?? true,
    show: (tab) => (model.set("tab", tab), model.save_changes()),
    onShow: (listener) => listen(model, "change:tab", () => listener(model.get("tab")), signal),
  };
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
 * Follow the page's theme; whether it is dark is asked of the page itself: `light-dark()` follows its color-scheme.
 * @param {HTMLElement} root
 * @param {AbortSignal} signal
 * @returns {import("./store").Store<"light" | "dark">}
 */
function followedTheme(root, signal) {
  const probe = el("span", { class: "probe", "aria-hidden": "true" });
  root.append(probe);
  /** @returns {"light" | "dark"} */
  const now = () => (getComputedStyle(probe).color === "rgb(255, 255, 255)" ? "dark" : "light");
  const theme = store(now());
  function check() {
    root.classList.toggle(
      "dark-host",
      /\bvscode-(dark|high-contrast)\b/.test(document.body.className),
    );
    theme.set(now());
  }
  check();
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
  return { ...theme, get: now }; // a view may be drawn before it stands on the page
}

/**
 * Follow what is selected: Python and every view may change it.
 * @param {Model} model
 * @param {AbortSignal} signal
 */
function followedSelection(model, signal) {
  const get = () => /** @type {Selection} */ (model.get("selection") ?? {});
  const selection = store(get());
  listen(model, "change:selection", () => selection.set(get()), signal);
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  signal.addEventListener("abort", () => clearTimeout(timer), { once: true });
  /** @param {Selection} change */
  function select(change) {
    model.set("selection", { ...get(), ...change });
    clearTimeout(timer);
    timer = setTimeout(() => model.save_changes(), PAUSE);
  }
  return { selection, select };
}
