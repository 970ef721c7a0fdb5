// Lenses: what each node keeps for backward, what was changed in place since, how large the gradients are.

import { numbers } from "./arrays.js";
import { button, el, prose } from "./dom.js";
import { number, size } from "./formats.js";
import { canRepaint, repaint, waiting } from "./folds.js";
import { isPath } from "./scene.js";
import { ask } from "./wire.js";

/** @typedef {import("./types").Page} Page */

const NAMES = ["", "memory", "stale", "gradients"];

/**
 * @param {Page} page
 * @param {import("./types").GraphView} state
 * @param {import("./scene.js").Scene} picture
 * @param {(node: number) => void} go
 */
export function lenses(page, state, picture, go) {
  const legend = el("div", { class: "lens", role: "status", hidden: true });
  const select = el(
    "select",
    { "data-at": "lens" },
    ...NAMES.map((name) => el("option", { value: name }, page.t(`lens.${name || "none"}`))),
  );
  const views = { memory, stale, gradients };
  function show() {
    const lens = (select.value = page.lens.get()),
      made = lens
        ? views[/** @type {keyof views} */ (lens)](page, state, picture, go)
        : { words: [] };
    picture.paint(made.style ?? null);
    picture.tag(made.tag ?? null);
    picture.mark("hot", (key, path) => Boolean(made.hot?.(key, path)));
    picture.mark("dim", (key, path) => Boolean(made.dim && !made.hot?.(key, path)));
    legend.hidden = !lens;
    legend.replaceChildren(...made.words);
  }
  page.lens.on(show, page.signal);
  select.addEventListener("change", () => page.lens.set(select.value));
  show();
  return { element: el("label", "slider", page.t("lens"), select), legend };
}

const PATIENCE = 3_600_000; // ms that the user's backward may take

/**
 * A button that has the kernel run backward or read what is kept, and then draws it.
 * @param {Page} page @param {import("./types").GraphView} state @param {"backward" | "saved"} kind
 */
function offer(page, state, kind) {
  const { runs, reads } = state.lenses;
  if (!(kind === "saved" ? reads : runs) || !canRepaint(page, state)) return "";
  return waiting(page, page.t(`lens.run_${kind}`), async () => {
    const ran = await ask(page.model, { kind }, page.signal, page.t("no_kernel"), PATIENCE);
    await repaint(page, { ...state, ...ran }, {});
    /** @type {HTMLElement | null} */ (page.root.querySelector("[data-at=lens]"))?.focus(); // the button has gone
  });
}

/** @typedef {{words: (Node | string)[], tag?: (box: import("./states").Box) => string, style?: (item: import("./states").Box | import("./states").Path) => string, hot?: import("./scene.js").Test, dim?: boolean}} Lens */

/** @param {string} from @param {string} to a ramp between what its ends say */
const ramp = (from, to) =>
  el("span", "slider", from, el("span", { class: "ramp", "aria-hidden": "true" }), to);

/** @param {Page} page @param {import("./types").GraphView} state what large graphs leave out */
const unread = (page, state) => [prose(page.t("lens.unread")), offer(page, state, "saved")];

/** @param {string} words @param {() => void} act */
const link = (words, act) => button(el("code", null, words), act, "link");

/** @param {Page} page @param {import("./types").GraphView} state @returns {Lens} each storage of a box once, as a bar */
function memory(page, state) {
  const {
    lenses: { kept },
    layout,
  } = state;
  if (!kept) return { words: unread(page, state) };
  const { nodes } = kept;
  /** @type {Map<string, number>} */
  const known = new Map();
  /** @param {import("./states").Box} box */
  function bytes(box) {
    const storages = new Map(box.nodes.flatMap((n) => nodes[n] ?? []));
    if (box.kind === "output") return 0;
    if (!known.has(box.key))
      known.set(
        box.key,
        [...storages.values()].reduce((a, b) => a + b, 0),
      );
    return known.get(box.key) ?? 0;
  }
  const most = Math.max(1, ...layout.boxes.map(bytes));
  return {
    words: [page.t("kept_in_all", { size: size(kept.all) })],
    tag: (box) => (bytes(box) ? size(bytes(box)) : ""),
    style: (item) => (isPath(item) || !bytes(item) ? "" : `--t:${bytes(item) / most}`),
  };
}

/** @param {Page} page @param {import("./types").GraphView} state @param {import("./scene.js").Scene} picture @param {(node: number) => void} go @returns {Lens} */
function stale(page, state, picture, go) {
  const { stale: all, kept } = state.lenses;
  const nodes = new Set(all.flatMap((s) => [s.node, s.maker]));
  /** @param {import("./states").StaleState} parts */
  function row({ maker, ...s }) {
    return el(
      "li",
      null,
      el("code", "name", s.name),
      ` v${s.saved} → v${s.now}: `,
      page.t("lens.saved_by"),
      " ",
      link(s.of, () => go(s.node)),
      (s.by || maker !== null) && `, ${page.t("lens.changed_by")} `,
      maker !== null ? link(s.by || "…", () => go(maker)) : el("code", null, s.by),
      s.line !== null && ` (${page.t("line", { line: s.line })})`,
    );
  }
  return {
    words: [
      all.length || kept ? page.t(all.length ? "lens.stale_help" : "lens.stale_none") : "",
      all.length ? el("ul", null, ...all.map(row)) : "",
      ...(kept ? [] : unread(page, state)),
    ],
    dim: all.length > 0,
    hot: (key, path) =>
      path
        ? / → v/.test(path.label) || /^v\d/.test(path.label)
        : Boolean(picture.boxes.get(key)?.nodes.some((n) => nodes.has(n))),
  };
}

/** @param {Page} page @param {import("./types").GraphView} state @param {import("./scene.js").Scene} picture @param {(node: number) => void} go @returns {Lens} */
function gradients(page, state, picture, go) {
  const { lenses: facts, nodes, layout } = state,
    { norms, bad } = facts;
  if (!norms) return { words: [prose(facts.missing), offer(page, state, "backward")] };
  const all = numbers(norms),
    logs = layout.paths
      .map(({ edges }) => norm(edges))
      .filter((n) => n > 0)
      .map(Math.log10);
  const [low, high] = logs.reduce(
    ([a, b], n) => [Math.min(a, n), Math.max(b, n)],
    [Infinity, -Infinity],
  );
  /** @param {number[]} edges of an arrow that stands for several the largest: their sum may be anything */
  function norm(edges) {
    return Math.max(0, ...edges.map((e) => all[e]));
  }
  /** @param {number} id */
  function named(id) {
    const { label, name, scope } = nodes[id] ?? { name: `#${id}` };
    return label || (scope ? `${scope} ${name}` : name);
  }
  const [node, least] = facts.least ?? [];
  const told =
    bad !== null
      ? [page.t("lens.first_bad"), " ", link(named(bad), () => go(bad))]
      : node !== undefined &&
        least !== undefined && [
          page.t("lens.least", { size: number(least, 3) }),
          " ",
          link(named(node), () => go(node)),
        ];
  return {
    words: [
      told ? el("strong", bad === null ? null : "bad", ...told) : "",
      low <= high ? ramp(`|g| ${number(10 ** low, 3)}`, number(10 ** high, 3)) : "",
      el("span", "bad", page.t("lens.bad")),
      page.t("lens.zero"),
    ],
    style: (item) => {
      const n = isPath(item) && item.edges.length ? norm(item.edges) : NaN;
      return n > 0 ? `--t:${high > low ? (Math.log10(n) - low) / (high - low) : 1}` : "";
    },
    hot: (key, path) =>
      !path && bad !== null && Boolean(picture.boxes.get(key)?.nodes.includes(bad)),
  };
}
