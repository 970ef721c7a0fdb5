// The outline: the same graph as a tree, modules around what they made, in the order of backward; children on opening.

import { el, keys } from "./dom.js";
import { firstLine } from "./scene.js";

/** @typedef {import("./types").Page} Page */
/** @typedef {import("./scene.js").Box} Box */
/** @typedef {{name: string, inside: Map<string, Item>, box?: Box}} Item a module, or a box of the picture */

const MOST = 100; // children in one go; more are cut into stretches

/**
 * @param {Page} page
 * @param {import("./types").GraphView} state
 * @param {import("./scene.js").Scene} picture
 * @param {(key: string) => void} visit
 * @param {((box: Box) => void) | null} unfold
 */
export function outline(page, state, picture, visit, unfold) {
  const tree = el("ul", { role: "tree", class: "tree", "aria-label": state.layout.title });
  /** @type {WeakMap<Element, Item>} */
  const items = new WeakMap();
  /** @param {Element} list @param {Item} item @param {number} level */
  function children(list, item, level) {
    const all = stretches(page, [...item.inside.values()]);
    list.append(
      ...all.map((child, k) => {
        const group = child.inside.size || child.box?.kind === "group";
        const said = child.box ? picture.describe(child.box) : child.name;
        const li = el(
          "li",
          {
            role: "treeitem",
            tabindex: -1,
            "aria-level": level,
            "aria-posinset": k + 1,
            "aria-setsize": all.length,
            "aria-expanded": group ? "false" : null,
            "aria-label": said,
          },
          el(
            "div",
            {
              class: `row ${child.box?.kind ?? "scope"}`,
              title: said,
              style: `padding-inline-start:${level * 16}px`,
            },
            said,
          ),
        );
        items.set(li, child);
        return li;
      }),
    );
  }
  /** @param {Element} li @param {boolean} open */
  function set(li, open) {
    const item = items.get(li);
    if (!item || li.getAttribute("aria-expanded") === null) return;
    if (item.box) return void (open && unfold?.(item.box));
    li.setAttribute("aria-expanded", String(open));
    let list = li.querySelector("ul");
    if (!list)
      (li.append((list = el("ul", { role: "group" }))),
        children(list, item, Number(li.getAttribute("aria-level")) + 1));
    list.hidden = !open;
  }
  const stops = () =>
    /** @type {HTMLElement[]} */ (
      [...tree.querySelectorAll("li")].filter((li) => !li.parentElement?.closest("[hidden]"))
    );
  /** @param {Element | null | undefined} li */
  function focus(li) {
    if (!(li instanceof HTMLElement)) return;
    for (const other of tree.querySelectorAll('[tabindex="0"]'))
      other.setAttribute("tabindex", "-1");
    li.tabIndex = 0;
    li.focus();
  }
  const now = () =>
    /** @type {Element} */ (tree.querySelector("li:focus") ?? tree.firstElementChild);
  /** @param {Element} li */
  function open(li) {
    return now().getAttribute("aria-expanded") === "true" && li === now();
  }
  /** @param {number} k */
  function by(k) {
    return focus(stops()[stops().indexOf(/** @type {HTMLElement} */ (now())) + k]);
  }
  /** @param {Element} li */
  function act(li) {
    const item = items.get(li);
    if (item?.box) visit(item.box.key);
    else set(li, li.getAttribute("aria-expanded") !== "true");
  }
  keys(tree, {
    ArrowDown: () => by(1),
    ArrowUp: () => by(-1),
    Home: () => focus(stops()[0]),
    End: () => focus(stops().pop()),
    ArrowRight: () => (open(now()) ? by(1) : set(now(), true)),
    ArrowLeft: () => (open(now()) ? set(now(), false) : focus(now().parentElement?.closest("li"))),
    Enter: () => act(now()),
    " ": () => act(now()),
  });
  tree.addEventListener("click", (event) => {
    const li = /** @type {Element} */ (event.target).closest("li");
    if (li) (focus(li), act(li));
  });
  const whole = el(
    "details",
    { class: "outline", open: state.outlined },
    el("summary", null, page.t("outline")),
    tree,
  );
  whole.addEventListener("toggle", () => {
    state.outlined = whole.open;
    if (tree.firstChild) return;
    children(tree, root(state, picture), 1);
    tree.firstElementChild?.setAttribute("tabindex", "0");
  });
  return whole;
}

/** @param {import("./types").GraphView} state @param {import("./scene.js").Scene} picture @returns {Item} */
function root({ layout, scopes }, picture) {
  /** @type {Item} */
  const top = { name: "", inside: new Map() },
    drawn = new Set();
  for (const key of new Set([...layout.order, ...picture.boxes.keys()])) {
    const box = /** @type {Box} */ (picture.boxes.get(key)),
      once = key.split(".e")[0];
    if (!box || box.kind === "portal" || drawn.has(once)) continue;
    drawn.add(once);
    const way = scopes[key]?.split(".") ?? [];
    if (box.kind === "group") way.pop();
    let at = top,
      path = "";
    for (const part of way) {
      path = path ? `${path}.${part}` : part;
      if (!at.inside.has(path)) at.inside.set(path, { name: path, inside: new Map() });
      at = /** @type {Item} */ (at.inside.get(path));
    }
    at.inside.set(`#${key}`, { name: firstLine(box), inside: new Map(), box });
  }
  return top;
}

/** @param {Page} page @param {Item[]} all @returns {Item[]} as they are, or many in stretches */
function stretches(page, all) {
  if (all.length <= MOST) return all;
  const each = Math.max(MOST, Math.ceil(all.length / MOST));
  return Array.from({ length: Math.ceil(all.length / each) }, (_, k) => {
    const some = all.slice(k * each, (k + 1) * each);
    return {
      name: page.t("stretch", {
        from: k * each + 1,
        to: k * each + some.length,
        name: some[0].name,
      }),
      inside: new Map(some.map((item, i) => [String(i), item])),
    };
  });
}
