// One step of backward: what arrived and how it adds up, what the formula reads, what is ready next, what .grad holds.

import { button, el } from "./dom.js";
import { sum } from "./flow.js";
import { nodeBody } from "./node.js";
import { firstLine } from "./scene.js";
import { gradientView } from "./values.js";

/** @typedef {import("./types").Page} Page */

const MOST = 8;

/**
 * @param {Page} page
 * @param {import("./types").GraphView} state
 * @param {import("./scene.js").Scene} picture
 * @param {import("./engine_order.js").EngineOrder} run
 * @param {number} at
 * @param {(key: string) => void} visit
 */
export function stepPanel(page, state, picture, run, at, visit) {
  /** @param {number} step */
  function name(step) {
    return firstLine(picture.boxes.get(run.steps[step][0]));
  }
  /** @param {number} step */
  function link(step) {
    return button(el("code", null, name(step)), () => visit(run.steps[step][0]), "link");
  }
  /** @param {string} title @param {number[]} steps */
  function row(title, steps) {
    return el(
      "div",
      "queue",
      el("h5", null, title),
      ...steps.slice(0, MOST).map(link),
      steps.length > MOST &&
        el("span", "faint", page.t("more_steps", { count: steps.length - MOST })),
      !steps.length && el("span", "faint", page.t("nothing")),
    );
  }
  const box = /** @type {import("./states").Box} */ (picture.boxes.get(run.steps[at - 1][0]));
  const node = box.nodes.length === 1 ? state.nodes[box.nodes[0]] : null;
  return el(
    "div",
    "stack",
    row(page.t("queue"), run.ready(at).slice(1)),
    node
      ? nodeBody(page, state, node)
      : el(
          "div",
          "queue",
          el("h5", null, page.t("arrived_from")),
          ...run.from[at - 1].slice(0, MOST).map(link),
        ),
    leaves(page, state, picture, run, at),
  );
}

/**
 * The `.grad` of the leaves: complete, or how many contributions have come.
 * @param {Page} page
 * @param {import("./types").GraphView} state
 * @param {import("./scene.js").Scene} picture
 * @param {import("./engine_order.js").EngineOrder} run
 * @param {number} at
 */
function leaves(page, state, picture, run, at) {
  const all = run.steps
    .map((keys, k) => ({ k, node: state.nodes[picture.boxes.get(keys[0])?.nodes[0] ?? -1] }))
    .filter(
      ({ k, node }) => node?.kind === "leaf" && run.from[k].some((s) => s < at) && k !== at - 1,
    );
  const shown = all
    .filter(({ k }) => k >= at)
    .concat(all.filter(({ k }) => k < at).reverse())
    .slice(0, MOST);
  if (!shown.length) return null;
  return el(
    "section",
    "values",
    el("h5", null, page.t("grads")),
    el(
      "ul",
      "columns",
      ...shown.map(({ k, node }) => {
        const came = run.from[k].filter((s) => s < at).length,
          done = k < at;
        return el(
          "li",
          null,
          el("code", "name", `${node.label || node.name}.grad`),
          " ",
          el(
            "span",
            "faint",
            done ? page.t("accumulated_now") : page.t("came", { came, count: run.from[k].length }),
          ),
          sum(page, state, node, (source) => (run.ofNode.get(source) ?? at) < at, done) ??
            (done && node.gradient && gradientView(page, page.t("column.gradient"), node.gradient)),
        );
      }),
    ),
  );
}
