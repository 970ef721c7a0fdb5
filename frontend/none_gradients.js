// Why is this grad None? Any tensor that had a name when the graph was made; the answer says why and shows it as a ghost.

import { button, el, prose } from "./dom.js";
import { canRepaint, repaint, waiting } from "./folds.js";

/** @typedef {import("./types").Page} Page */

/**
 * @param {Page} page
 * @param {import("./types").GraphView} state
 * @param {import("./scene.js").Scene} picture
 * @param {(key: string) => void} see
 */
export function whyNone(page, state, picture, see) {
  const { asked, names } = state;
  const answer = el("div", { class: "why", role: "status", hidden: !asked });
  if (!canRepaint(page, state) || !names.length) return { element: null, answer };
  const select = el(
    "select",
    { "data-at": "why" },
    el("option", { value: "" }, page.t("choose_tensor")),
    ...names.map((name) => el("option", { value: name }, name)),
  );
  select.value = asked?.name ?? "";
  select.addEventListener("change", () => {
    repaint(page, state, { name: select.value }).catch(
      (problem) =>
        page.signal.aborted || ((answer.hidden = false), answer.replaceChildren(problem.message)),
    );
  });
  if (asked) {
    const key =
      asked.ghost !== undefined
        ? `x${asked.ghost}`
        : ([...picture.boxes.values()].find((b) => b.nodes.includes(asked.node ?? -1))?.key ?? "");
    const line =
      asked.line &&
      page.tabs.includes("source") &&
      button(
        page.t("show_line", { line: asked.line }),
        () => (page.select({ line: asked.line }), page.show("source")),
        "link",
      );
    answer.append(prose(asked.message), " ", ...(line ? [line] : []));
    picture.mark("asked", (k, path) =>
      path ? path.target === key && path.style !== "" : k === key,
    );
    if (picture.boxes.has(key)) requestAnimationFrame(() => requestAnimationFrame(() => see(key)));
  }
  return { element: el("label", "slider", page.t("why_none"), select), answer };
}

/**
 * The same question from a leaf that got nothing, or from a ghost.
 * @param {Page} page
 * @param {import("./types").GraphView} state
 * @param {import("./scene.js").Box | undefined} box
 */
export function whyButton(page, state, box) {
  const node = state.nodes[box?.nodes[0] ?? -1];
  const name =
    box?.kind === "ghost"
      ? state.ghosts[Number(box.key.slice(1))]
      : box?.kind === "leaf" && !node?.gradient
        ? node?.label
        : "";
  return name && canRepaint(page, state)
    ? waiting(page, page.t("why_none"), () => repaint(page, state, { name }))
    : null;
}
