// Other pictures of the graph: boxes opened and folded again, a ghost. Python draws, and the view begins afresh.

import { button, el } from "./dom.js";
import { count } from "./formats.js";
import { firstLine } from "./scene.js";
import { ask } from "./wire.js";

/** @typedef {import("./types").Page} Page */
/** @typedef {import("./types").Opened} Opened */

const DEEPEST = 12; // boxes around one node

/**
 * @param {Page} page
 * @param {import("./types").GraphView} state
 * @param {{opened?: Opened[] | "all", name?: string, wide?: number | null}} change
 * @param {number} [node] where to go then
 */
export async function repaint(page, state, change, node) {
  state.redraw?.(await painted(page, state, change), node, "opened" in change);
}

/**
 * The state with another picture, which Python draws.
 * @param {Page} page
 * @param {import("./types").GraphView} state
 * @param {{opened?: Opened[] | "all", name?: string, wide?: number | null}} change
 */
async function painted(page, state, change) {
  const view = {
      opened: state.opened ?? [],
      name: state.asked?.name ?? "",
      wide: state.wide ?? null,
      ...change,
    },
    { opened, name, wide } = view;
  const answer = await ask(
    page.model,
    {
      kind: "picture",
      ...(wide && { wide }),
      name,
      opened: opened === "all" ? opened : opened.map((o) => o.key),
    },
    page.signal,
    page.t("no_kernel"),
  );
  const { layout, scopes, classes, ghosts, message, line, node: of, ghost } = answer;
  return {
    ...state,
    layout,
    scopes,
    classes,
    ghosts,
    opened,
    wide,
    asked: message === undefined ? undefined : { name, message, line, node: of, ghost },
  };
}

/**
 * Open the boxes around a node, one after the other.
 * @param {Page} page @param {import("./types").GraphView} state @param {number} node
 */
export async function unfoldTo(page, state, node) {
  let next = state;
  for (let depth = 0; depth < DEEPEST; depth++) {
    const box = next.layout.boxes.find((b) => b.kind === "group" && b.nodes.includes(node));
    if (!box) break;
    next = await painted(page, next, { opened: withOpened(next, box) });
  }
  state.redraw?.(next, node, true);
}

/** @param {Page} page @param {import("./types").GraphView} state whether Python can be asked for another picture */
export const canRepaint = (page, state) => page.can({ kind: "picture" }) && Boolean(state.redraw);

/**
 * @param {Page} page
 * @param {import("./types").GraphView} state
 * @param {import("./scene.js").Box | undefined} box
 */
export function foldButtons(page, state, box) {
  /** @type {Opened[]} */
  const opened = Array.isArray(state.opened) ? state.opened : [];
  if (!box || !canRepaint(page, state)) return null;
  const inside = opened.filter((o) => o.nodes.includes(box.nodes[0])).pop();
  return el(
    "span",
    "group",
    box.kind === "group" && waiting(page, page.t("unfold"), () => unfold(page, state, box)),
    inside &&
      waiting(page, page.t("fold", { name: inside.name }), () =>
        repaint(
          page,
          state,
          { opened: opened.filter((o) => !o.nodes.every((n) => inside.nodes.includes(n))) },
          box.nodes[0],
        ),
      ),
  );
}

/** @param {Page} page @param {import("./types").GraphView} state @param {import("./scene.js").Box} box */
export const unfold = (page, state, box) =>
  repaint(page, state, { opened: withOpened(state, box) }, box.nodes[0]);

/** @param {import("./types").GraphView} state @param {import("./scene.js").Box} box @returns {Opened[]} */
const withOpened = (state, box) => [
  ...(Array.isArray(state.opened) ? state.opened : []),
  { key: box.key, name: firstLine(box), nodes: box.nodes },
];

/** @param {Page} page @param {import("./types").GraphView} state */
export function wholeButton(page, state) {
  if (!canRepaint(page, state)) return null;
  if (state.opened?.length)
    return waiting(page, page.t("fold_all"), () => repaint(page, state, { opened: [] }));
  return (
    state.layout.boxes.some((b) => b.kind === "group") &&
    waiting(page, page.t("unfold_all", { count: count(state.total) }), () =>
      repaint(page, state, { opened: "all" }),
    )
  );
}

/**
 * A button that waits for what it has begun, and says what went wrong.
 * @param {Page} page @param {string} words @param {() => Promise<void>} act
 */
export function waiting(page, words, act) {
  const made = button(words, () => {
    made.disabled = true;
    act().catch(
      (problem) => page.signal.aborted || ((made.disabled = false), made.after(problem.message)),
    );
  });
  return made;
}
