// The backward graph: the laid-out picture that the static report shows, to pan, zoom, search, step through and open.

import { camera, READABLE } from "./camera.js";
import { el, keys, prose } from "./dom.js";
import { searchField } from "./find.js";
import { canRepaint, foldButtons, repaint, unfold, wholeButton } from "./folds.js";
import { legend } from "./legend.js";
import { lenses } from "./lenses.js";
import { minimap } from "./minimap.js";
import { boxDetail, linked } from "./node.js";
import { outline } from "./outline.js";
import { overview } from "./overview.js";
import { exportButtons } from "./image_export.js";
import { scene } from "./scene.js";
import { stepper } from "./backward_steps.js";
import { highlightUses } from "./tensor_uses.js";
import { neighbour } from "./neighbours.js";
import { whyButton, whyNone } from "./none_gradients.js";

/** @typedef {import("./types").Page} Page */
/** @typedef {import("./scene.js").Box} Box */

const STEP = 50, // px of a picture's width: nearly the same room asks for the same picture
  AROUND = 34; // px of it that are margins

/**
 * @param {Page} page
 * @param {import("./types").GraphView} state
 */
export function graphView(page, state) {
  if (!state.layout.boxes.length)
    return el("p", "faint", page.t("no_graph"), " ", prose(state.notes.join(" ")));
  const place = el("div", "stack");
  let end = new AbortController();
  page.signal.addEventListener("abort", () => end.abort(), { once: true });
  let latest = state;
  /** @param {import("./types").GraphView} next @param {number | undefined} node */
  function again(next, node, fresh = true) {
    latest = { ...next, again };
    end.abort();
    end = new AbortController();
    const { signal } = end;
    /** @type {Page} */
    const local = {
      ...page,
      signal,
      onTheme: (f, until = signal) => page.onTheme(f, until),
      onSelect: (f, until = signal) => page.onSelect(f, until),
    };
    const at = /** @type {ShadowRoot} */ (place.getRootNode()).activeElement?.getAttribute(
      "data-at",
    );
    place.replaceChildren(
      pictureView(
        local,
        { ...latest, start: fresh ? undefined : state.place?.() },
        node,
        (made) => (state.place = made),
      ),
    );
    if (at) /** @type {HTMLElement | null} */ (place.querySelector(`[data-at=${at}]`))?.focus();
  }
  again(state, undefined);
  onRoom(page, place, (room) => turn(page, latest, room));
  return place;
}

/**
 * Tell how wide a view is, whenever that changes.
 * @param {Page} page @param {HTMLElement} place @param {(room: number) => void} tell
 */
function onRoom(page, place, tell) {
  let last = 0;
  const watcher = new ResizeObserver(() => {
    const room = place.clientWidth;
    if (room && room !== last) tell((last = room));
  });
  watcher.observe(place);
  page.signal.addEventListener("abort", () => watcher.disconnect(), { once: true });
}

/**
 * Have a long chain wrapped anew where the columns do not fit the room while their words can be read, and again where
 * there is more room.
 * @param {Page} page @param {import("./types").GraphView} state @param {number} room px
 */
function turn(page, state, room) {
  const wide = Math.floor((room / READABLE - AROUND) / STEP) * STEP;
  const wanted = wide < state.widest ? wide : null;
  const fits = state.layout.width <= wide + AROUND && !state.wide;
  if (fits || wanted === (state.wide ?? null) || !canRepaint(page, state)) return;
  repaint(page, state, { wide: wanted }).catch(() => {}); // the picture that is there can be panned
}

/**
 * The view of one layout of the graph.
 * @param {Page} page
 * @param {import("./types").GraphView} state
 * @param {number | undefined} node where to go first
 * @param {(place: () => import("./camera.js").Place) => void} placed told how to learn where the view is
 */
function pictureView(page, state, node, placed) {
  const { layout } = state;
  const picture = scene(page, layout),
    afar = overview(page, layout, picture);
  const frame = el(
      "div",
      { class: "graph-frame", title: layout.description },
      afar.canvas,
      picture.drawing,
    ),
    holder = el("div", "graph-holder", frame);
  const view = camera(
    page,
    picture.drawing,
    frame,
    layout,
    {
      draw: (part, scale) => picture.look(afar.look(part, scale) ? null : part),
      see: (rect, whole) => map.look(rect, whole),
      textless: afar.paints,
    },
    state.start,
  );
  const map = minimap(layout, frame, view.centre);
  holder.append(map.element);
  placed(view.place);
  const walk = walker(page, state, picture, view.reveal);
  /** @param {(box: Box | undefined) => void} go */
  function to(go) {
    /** @param {string} key */
    return (key) => {
      picture.pin(key);
      go(picture.boxes.get(key));
    };
  }
  const steps = stepper(page, state, picture, to(view.follow), walk.visit);
  const search = searchField(page, state, picture, to(view.find));
  /** @param {number | null} id */
  function boxOf(id) {
    return layout.boxes.find((b) => b.nodes.includes(id ?? -1));
  }
  const lens = lenses(page, state, picture, (id) => {
    const box = boxOf(id);
    if (box) walk.visit(box.key);
  });
  const why = whyNone(page, state, picture, walk.see);
  /** @param {Event} event */
  function boxAt(event) {
    return /** @type {Element} */ (event.target).closest?.(".box")?.getAttribute("data-key");
  }
  picture.drawing.addEventListener("click", (event) => {
    const key = boxAt(event);
    if (view.dragged()) return;
    if (afar.far()) view.near(event);
    else if (key) walk.visit(key);
  });
  highlightUses(layout, picture, boxAt, steps.say);
  keys(picture.drawing, walk.keys);
  const whole = el(
    "div",
    "stack graph",
    el(
      "div",
      "bar",
      steps.element,
      el("span", "grow"),
      search,
      exportButtons(page, layout, frame),
      view.buttons,
    ),
    el("div", "bar", lens.element, why.element),
    lens.legend,
    why.answer,
    holder,
    steps.said,
    steps.panel,
    legend(page, layout),
    Boolean(layout.note || state.opened?.length) &&
      el("div", "bar", layout.note && el("p", "faint", layout.note), wholeButton(page, state)),
    walk.detail,
    ...state.notes.map((note) => el("p", "faint", prose(note))),
    outline(
      page,
      state,
      picture,
      walk.look,
      canRepaint(page, state) ? (box) => void unfold(page, state, box).catch(() => {}) : null,
    ),
  );
  keys(whole, {
    "[": () => steps.by(-1),
    "]": () => steps.by(1),
    "/": () => search.querySelector("input")?.focus(),
  });
  /** @param {number | undefined} id */
  function follow(id) {
    const box = id === undefined ? undefined : boxOf(id);
    if (box && !picture.boxes.get(picture.stop())?.nodes.includes(id ?? -1)) walk.see(box.key);
    return box;
  }
  page.onSelect((selection) => void follow(selection.node));
  const first = follow(node);
  const open = first ?? (state.open === undefined ? undefined : boxOf(state.open));
  if (open)
    requestAnimationFrame(() =>
      requestAnimationFrame(() => (first ? walk.visit : walk.look)(open.key)),
    ); // once the frame has its size
  return whole;
}

/**
 * Which box is focused, where the keys lead, and which box is open.
 * @param {Page} page
 * @param {import("./types").GraphView} state
 * @param {import("./scene.js").Scene} picture
 * @param {(box: Box | undefined) => void} reveal
 */
function walker(page, state, picture, reveal) {
  const { layout } = state;
  const detail = el("div", { class: "detail", hidden: true });
  const first = picture.stop();
  picture.mark("chosen", (key, path) => !path && !detail.hidden && key === picture.stop());
  /** @param {string} key */
  function see(key) {
    picture.pin(key);
    reveal(picture.boxes.get(key));
  }
  /** @param {string} key */
  function go(key) {
    see(key);
    picture.pin(key)?.focus({ preventScroll: true });
  }
  /** @param {boolean} open */
  function show(open) {
    detail.hidden = !open;
    state.open = open ? picture.boxes.get(picture.stop())?.nodes[0] : undefined;
    picture.mark("chosen", (key, path) => !path && open && key === picture.stop());
  }
  const close = () => (show(false), go(picture.stop()));
  function open() {
    const box = picture.boxes.get(picture.stop());
    if (!box) return;
    show(true);
    detail.replaceChildren(
      boxDetail(
        page,
        state,
        box,
        close,
        el("span", "group", whyButton(page, state, box), foldButtons(page, state, box)),
      ),
    );
    if (box.nodes.length) page.select({ node: box.nodes[0], ...linked(page, state, box.nodes) });
  }
  /** @param {"up" | "down" | "left" | "right"} way */
  function along(way) {
    return () => go(neighbour(layout, picture.stop(), way));
  }
  const actions = {
    ArrowDown: along("down"),
    ArrowUp: along("up"),
    ArrowLeft: along("left"),
    ArrowRight: along("right"),
    Home: () => go(first),
    Enter: open,
    " ": open,
    Escape: close,
  };
  return {
    detail,
    see,
    /** @param {string} key */
    look: (key) => (see(key), open()),
    /** @param {string} key */
    visit: (key) => (go(key), open()),
    keys: actions,
  };
}
