// The outline: the same graph as a tree, modules around what they made, in the order of backward; children on opening.

import { el, keys } from "./dom.js";
import { firstLine } from "./scene.js";

/** @typedef {import("./types").Page} Page */
/** @typedef {import("./scene.js").Box} Box */
/** @typedef {{name: string, inside: Map<string, Item>, box?: Box}} Item a module, or a box of the picture */

const MOST = 100; // children in one go; more are cut into stretches

export class Outline {
  #page;
  #picture;
  #visit;
  #unfold;
  /** @type {WeakMap<Element, Item>} */
  #items = new WeakMap();
  #tree;

  /**
   * @param {Page} page
   * @param {import("./types").GraphView} state
   * @param {import("./scene.js").Scene} picture
   * @param {(key: string) => void} visit
   * @param {((box: Box) => void) | null} unfold
   */
  constructor(page, state, picture, visit, unfold) {
    this.#page = page;
    this.#picture = picture;
    this.#visit = visit;
    this.#unfold = unfold;
    this.#tree = el("ul", { role: "tree", class: "tree", "aria-label": state.layout.title });
    this.#listen();
    this.element = el(
      "details",
      { class: "outline", open: state.outlined },
      el("summary", null, page.t("outline")),
      this.#tree,
    );
    this.element.addEventListener("toggle", () => {
      state.outlined = this.element.open;
      if (this.#tree.firstChild) return;
      this.#fill(this.#tree, root(state, picture), 1);
      this.#tree.firstElementChild?.setAttribute("tabindex", "0");
    });
  }

  #listen() {
    const tree = this.#tree;
    keys(tree, {
      ArrowDown: () => this.#move(1),
      ArrowUp: () => this.#move(-1),
      Home: () => this.#focus(this.#visible[0]),
      End: () => this.#focus(this.#visible.pop()),
      ArrowRight: () => (isOpen(this.#current) ? this.#move(1) : this.#toggle(this.#current, true)),
      ArrowLeft: () =>
        isOpen(this.#current)
          ? this.#toggle(this.#current, false)
          : this.#focus(this.#current.parentElement?.closest("li")),
      Enter: () => this.#activate(this.#current),
      " ": () => this.#activate(this.#current),
    });
    tree.addEventListener("click", (event) => {
      const li = /** @type {Element} */ (event.target).closest("li");
      if (li) (this.#focus(li), this.#activate(li));
    });
  }

  get #visible() {
    return /** @type {HTMLElement[]} */ (
      [...this.#tree.querySelectorAll("li")].filter((li) => !li.parentElement?.closest("[hidden]"))
    );
  }

  get #current() {
    return /** @type {HTMLElement} */ (
      this.#tree.querySelector("li:focus") ?? this.#tree.firstElementChild
    );
  }

  /** @param {Element} list @param {Item} item @param {number} level */
  #fill(list, item, level) {
    const all = stretches(this.#page, [...item.inside.values()]);
    list.append(
      ...all.map((child, k) => {
        const group = child.inside.size || child.box?.kind === "group";
        const said = child.box ? this.#picture.describe(child.box) : child.name;
        const kind = child.box?.kind ?? "scope";
        const indent = `padding-inline-start:${level * 16}px`;
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
          el("div", { class: `row ${kind}`, title: said, style: indent }, said),
        );
        this.#items.set(li, child);
        return li;
      }),
    );
  }

  /** @param {Element} li @param {boolean} open */
  #toggle(li, open) {
    const item = this.#items.get(li);
    if (!item || li.getAttribute("aria-expanded") === null) return;
    if (item.box) return void (open && this.#unfold?.(item.box));
    li.setAttribute("aria-expanded", String(open));
    let list = li.querySelector("ul");
    if (!list) {
      li.append((list = el("ul", { role: "group" })));
      this.#fill(list, item, Number(li.getAttribute("aria-level")) + 1);
    }
    list.hidden = !open;
  }

  /** @param {Element | null | undefined} li */
  #focus(li) {
    if (!(li instanceof HTMLElement)) return;
    for (const other of this.#tree.querySelectorAll('[tabindex="0"]'))
      other.setAttribute("tabindex", "-1");
    li.tabIndex = 0;
    li.focus();
  }

  /** @param {number} k */
  #move(k) {
    this.#focus(this.#visible[this.#visible.indexOf(this.#current) + k]);
  }

  /** @param {Element} li */
  #activate(li) {
    const item = this.#items.get(li);
    if (item?.box) this.#visit(item.box.key);
    else this.#toggle(li, !isOpen(li));
  }
}

/** @param {Element} li */
function isOpen(li) {
  return li.getAttribute("aria-expanded") === "true";
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
