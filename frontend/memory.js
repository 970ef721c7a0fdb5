// What a reader had in front of him when a cell runs again: the tab, the block, and the height of the output.

/** @typedef {import("./types").Page} Page */
/** @typedef {import("./types").Model} Model */
/** @typedef {{tab?: string, block?: [number, number]}} Sight */

const CELL = ".jp-Cell, .cell";
const OUTPUT = ".jp-Cell-outputWrapper, .output_wrapper, .output"; // what holds a cell's output, and stays when that is cleared
const FAILED = '[data-mime-type="application/vnd.jupyter.error"]';
const REPORT = ".nbautograd"; // as it is stored, in whose place a view comes
const LONGEST = 120_000; // ms that an output waits for the next view
const CLIPPED = 2_000; // ms that it hides what is higher, once the report is there and its view is not

/** @type {WeakMap<Element, Map<string, Sight>>} by cell, then by what is shown there */
const sights = new WeakMap();

/**
 * Go on where the last view of the same thing in the same cell was left, and remember where this one is left.
 * @param {Page} page @param {Element} host @param {import("./types").State} state
 */
export function resume(page, host, state) {
  const cell = host.closest(CELL);
  if (!cell) return;
  const known = sights.get(cell) ?? new Map();
  sights.set(cell, known);
  const key = `${page.model.get("_kind")} ${"function" in state ? state.function : undefined}`;
  const last = known.get(key) ?? {};
  const has = ([o, i] = /** @type {number[]} */ ([])) =>
    "blocks" in state && state.blocks?.some((b) => b.output === o && b.input === i);
  if (last.tab && !page.model.get("tab")) page.show(last.tab);
  if (!page.selection().block && has(last.block)) page.select({ block: last.block });
  page.onShow((tab) => known.set(key, { ...known.get(key), tab }));
  page.onSelect(({ block }) => known.set(key, { ...known.get(key), block }), page.signal);
  if (page.model.get("tab")) known.set(key, { ...last, tab: page.model.get("tab") });
}

/** @type {Map<Element, () => void>} outputs that keep their height */
const held = new Map();

/** @param {Element} element @returns {Element | null} what holds the output that an element is part of */
export const outputOf = (element) => element.closest(OUTPUT);

/**
 * Keep an output as high as it was, so that nothing jumps, until a view is in it again or its cell fails: no lower, and
 * for a moment no higher either, since the next report may be there some frames before its view.
 * @param {Element | null} output @param {number} height px
 */
export function hold(output, height) {
  if (!output?.isConnected || held.has(output)) return;
  const { style } = /** @type {HTMLElement} */ (output),
    { minHeight, maxHeight, overflow } = style;
  style.minHeight = `${height}px`;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let clip;
  function look() {
    if (output?.querySelector(FAILED)) return release(output);
    if (clip !== undefined || !output?.querySelector(REPORT)) return;
    Object.assign(style, { maxHeight: `${height}px`, overflow: "hidden" });
    clip = setTimeout(() => Object.assign(style, { maxHeight, overflow }), CLIPPED);
  }
  const observer = new MutationObserver(look);
  observer.observe(output, { childList: true, subtree: true });
  const timer = setTimeout(() => release(output), LONGEST);
  held.set(output, () => {
    observer.disconnect();
    [timer, clip].forEach(clearTimeout);
    Object.assign(style, { minHeight, maxHeight, overflow });
  });
}

/** @param {Element | null} output */
export function release(output) {
  if (!output) return;
  held.get(output)?.();
  held.delete(output);
}
