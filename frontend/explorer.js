// One block being explored: the cursor, and zooming by asking Python. What is drawn is the view's affair.

import { around, cellOf, cellRange, isPooled, keptLevel, levelOf, worstEntry } from "./levels.js";
import { ask } from "./wire.js";

/** @typedef {import("./types").Page} Page */
/** @typedef {import("./states").BlockState} Block */
/** @typedef {import("./levels.js").Pair} Pair */
/** @typedef {ReturnType<typeof explorer>} Explorer */

/** @param {Page} page @param {Block} block @returns {boolean} whether the entries under a pooled cell can be had */
export const opens = (page, block) => Boolean(block.whole) || page.can({ kind: "zoom" });

/**
 * @param {Page} page
 * @param {import("./types").WholeBlock} block
 * @param {AbortSignal} signal
 * @param {{moved: () => void, zoomed: () => void, say: (sentence: string) => void}} tell what happened
 */
export function explorer(page, block, signal, tell) {
  const levels = [levelOf(block.maps)];
  const worst = worstEntry(block);
  const place = /** @type {Pair} */ ([block.output, block.input]);
  const top = () => levels[levels.length - 1];
  let cursor = /** @type {Pair} */ ((worst && cellOf(top(), worst)) ?? [0, 0]);

  /** @param {number} row @param {number} col */
  function move(row, col) {
    cursor = [
      Math.max(0, Math.min(top().rows - 1, row)),
      Math.max(0, Math.min(top().cols - 1, col)),
    ];
    tell.moved();
  }
  /** @param {Pair} rows @param {Pair} cols */
  async function fetched(rows, cols) {
    const window = await ask(
      page.model,
      { kind: "zoom", block: place, rows, cols },
      signal,
      page.t("no_kernel"),
    );
    return levelOf(window, [rows[0], cols[0]]);
  }
  /** @param {[Pair, Pair]} range @param {Pair} [then] the entry to go to */
  async function zoom([rows, cols], then) {
    tell.say(page.t("asking"));
    try {
      levels.push(block.whole ? keptLevel(block, rows, cols) : await fetched(rows, cols));
      cursor = (then && cellOf(top(), then)) ?? [0, 0];
      tell.zoomed();
    } catch (problem) {
      if (!signal.aborted) tell.say(/** @type {Error} */ (problem).message);
    }
  }
  /** @param {Pair | null} entry */
  function goTo(entry) {
    const cell = entry && cellOf(top(), entry);
    if (cell && !(isPooled(top()) && opens(page, block))) move(...cell);
    else if (entry) zoom(around(block, entry), entry);
  }
  function choose() {
    if (isPooled(top())) return void (opens(page, block) && zoom(cellRange(block, top(), cursor)));
    page.select(page.reach(place, [top().first[0] + cursor[0], top().first[1] + cursor[1]]));
  }
  function out() {
    if (levels.length < 2) return;
    levels.pop();
    cursor = [0, 0];
    tell.zoomed();
  }
  return {
    top,
    move,
    goTo,
    choose,
    out,
    cursor: () => cursor,
    chosen: () => {
      const { block: of, entry } = page.selection();
      return entry && of?.join() === place.join() ? cellOf(top(), entry) : null;
    },
    mark: () => worst && cellOf(top(), worst),
    zoomed: () => levels.length > 1,
    /** Choose the worst entry, so that everything that shows a chosen entry shows this one. */
    toWorst: () => {
      const { block: chosen, entry } = page.selection();
      if (String([chosen, entry]) === String([place, worst])) goTo(worst);
      else if (worst) page.select(page.reach(place, worst));
    },
    /** @param {number} rows @param {number} cols */
    by: (rows, cols) => move(cursor[0] + rows, cursor[1] + cols),
    /** @param {import("./types").Selection} selection */
    follow: (selection) =>
      selection.entry && selection.block?.join() === place.join() && goTo(selection.entry),
  };
}
