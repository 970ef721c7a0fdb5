// The Jacobian: analytical, numerical and difference side by side, with one cursor for all three.

import { chooser, mostTelling, verdictWord, wholeBlock } from "./blocks.js";
import { entryView } from "./entry.js";
import { explorer } from "./explorer.js";
import { cellSize, draw, legend, limit, logarithmic } from "./heatmap.js";
import { cellName, isPooled } from "./levels.js";
import { count, el, keys, number, shape } from "./shared.js";

/** @typedef {import("./types").Page} Page */
/** @typedef {import("./types").Block} Block */
/** @typedef {import("./explorer.js").Explorer} Explorer */

const NAMES = ["analytical", "numerical", "difference"];

/**
 * @param {Page} page
 * @param {{blocks: Block[], complete?: boolean}} state
 */
export function jacobianView(page, { blocks, complete }) {
  const cut = complete === false && el("p", null, page.t("incomplete"));
  if (!blocks.length) return el("div", "stack", cut, el("p", "faint", page.t("no_blocks")));
  const body = el("div", "stack");
  /** @type {AbortController | undefined} */
  let shown;
  /** @type {Block | undefined} */
  let current;
  const show = () => {
    const wanted = (page.selection().block ?? mostTelling(blocks)).join();
    const block = blocks.find((b) => `${b.output},${b.input}` === wanted) ?? blocks[0];
    if (current === block) return;
    current = block;
    shown?.abort();
    shown = new AbortController();
    const { signal } = shown,
      draw = () => signal.aborted || body.replaceChildren(blockView(page, block, signal));
    const coming = wholeBlock(page, block);
    if (!coming) return draw();
    body.replaceChildren(page.t("asking"));
    coming.then(draw, (problem) => signal.aborted || body.replaceChildren(problem.message));
  };
  page.signal.addEventListener("abort", () => shown?.abort(), { once: true });
  page.onSelect(show);
  show();
  return el("div", "stack jacobian", cut, blocks.length > 1 && chooser(page, blocks), body);
}

/**
 * @param {Page} page
 * @param {Block} block
 * @param {AbortSignal} signal
 */
function blockView(page, block, signal) {
  const reading = el("div", { class: "reading", role: "status" }),
    note = el("p", "faint note");
  const say = (/** @type {string} */ sentence) => (
    (note.textContent = sentence),
    (note.hidden = !sentence)
  );
  const moved = () => (
    pictures.paint(),
    reading.replaceChildren(...readingOf(page, block, explore))
  );
  const zoomed = () => {
    const [rows, cols] = explore.top().step.map(count);
    say(
      isPooled(explore.top())
        ? page.t(explore.opens() ? "pooled" : "pooled_frozen", { rows, cols })
        : "",
    );
    out.hidden = !explore.zoomed();
    pictures.rescale();
    moved();
  };
  const explore = explorer(page, block, signal, { moved, zoomed, say });
  const out = el("button", { class: "button", on: { click: explore.out } }, page.t("zoom_out"));
  const pictures = threeMaps(page, block, explore, signal);
  const toWorst = () => (explore.toWorst(), pictures.maps.focus());
  handleKeys(pictures.maps, explore, toWorst);
  const chosen = el("div");
  let last = "";
  const follow = (/** @type {import("./types").Selection} */ selection) => {
    const entry =
      selection.block?.join() === `${block.output},${block.input}` ? selection.entry : undefined;
    if (last === String(entry)) return;
    last = String(entry);
    chosen.replaceChildren(entry ? entryView(page, block, entry, signal) : "");
    explore.follow(selection);
  };
  page.onSelect(follow, signal);
  zoomed();
  follow(page.selection());
  return el(
    "div",
    "stack",
    heading(page, block, block.worst ? toWorst : null, out),
    pictures.maps,
    pictures.scale,
    reading,
    note,
    chosen,
  );
}

/**
 * The three heat maps and their scale.
 * @param {Page} page @param {Block} block @param {Explorer} explore @param {AbortSignal} signal
 */
function threeMaps(page, block, explore, signal) {
  let how = "same"; // the scale of the difference: that of all three, its own, or a logarithmic one
  const canvases = NAMES.map(() => el("canvas", { "aria-hidden": "true" }));
  const figures = canvases.map((canvas, k) =>
    el(
      "figure",
      null,
      el("figcaption", null, page.word("panel", NAMES[k])),
      el("div", "frame", canvas),
    ),
  );
  const maps = el(
    "div",
    {
      class: "maps",
      tabindex: "0",
      role: "application",
      "aria-roledescription": page.t("heat_map"),
      "aria-label": page.t("heat_map_help", { output: block.output_name, input: block.input_name }),
    },
    ...figures,
  );
  const scale = el("div", "bar");
  const choice = el(
    "select",
    { on: { change: () => ((how = choice.value), rescale(), paint()) } },
    ...["same", "own", "log"].map((id) => el("option", { value: id }, page.t(`scale_${id}`))),
  );
  const chooses = el("label", "slider", page.word("panel", "difference"), choice);
  const room = () => figures[0].clientWidth || 200;
  /** @type {number[]} */
  let most = [1, 1, 1];
  /** @type {Float64Array | undefined} */
  let shares;
  const rescale = () => {
    const [a, n, d] = explore.top().values,
      both = limit(a, n),
      far = limit(d);
    most = [both, both, how === "own" ? far : both];
    shares = how === "log" ? logarithmic(d, far) : undefined;
    scale.replaceChildren(
      legend(
        page,
        both,
        page.t(how === "same" ? "scale" : `scale_${how}_on`, { most: number(far, 2) }),
        signal,
      ),
      chooses,
    );
  };
  const paint = () => {
    const { rows, cols, values } = explore.top();
    const look = {
      colours: page.colours(),
      width: room(),
      cursor: explore.cursor(),
      mark: explore.mark(),
      font: getComputedStyle(maps).fontFamily,
    };
    canvases.forEach((canvas, k) =>
      draw(
        canvas,
        { rows, cols, values: values[k] },
        { ...look, most: most[k], shares: k === 2 ? shares : undefined },
      ),
    );
  };
  const watcher = new ResizeObserver(paint);
  watcher.observe(maps);
  signal.addEventListener("abort", () => watcher.disconnect(), { once: true });
  page.onTheme(paint, signal);
  for (const canvas of canvases) pointer(canvas, explore, room);
  return { maps, scale, paint, rescale };
}

/** @param {HTMLElement} maps @param {Explorer} explore @param {() => void} toWorst */
function handleKeys(maps, explore, toWorst) {
  keys(maps, {
    ArrowUp: () => explore.by(-1, 0),
    ArrowDown: () => explore.by(1, 0),
    ArrowLeft: () => explore.by(0, -1),
    ArrowRight: () => explore.by(0, 1),
    Home: () => explore.by(0, -Infinity),
    End: () => explore.by(0, Infinity),
    PageUp: () => explore.by(-Infinity, 0),
    PageDown: () => explore.by(Infinity, 0),
    Enter: explore.choose,
    w: toWorst,
    Escape: explore.out,
  });
}

/** @param {HTMLCanvasElement} canvas @param {Explorer} explore @param {() => number} room */
function pointer(canvas, explore, room) {
  let frame = 0;
  const under = (/** @type {MouseEvent} */ event) => {
    const [w, h] = cellSize(explore.top().rows, explore.top().cols, room());
    return /** @type {[number, number]} */ ([
      Math.floor(event.offsetY / h),
      Math.floor(event.offsetX / w),
    ]);
  };
  canvas.addEventListener("pointermove", (event) => {
    const cell = under(event);
    cancelAnimationFrame(frame);
    frame = requestAnimationFrame(() => explore.move(...cell));
  });
  canvas.addEventListener("click", (event) => {
    cancelAnimationFrame(frame);
    explore.move(...under(event));
    explore.choose();
  });
}

/** @param {Page} page @param {Block} block @param {Explorer} explore the entry under the cursor in words */
function readingOf(page, block, explore) {
  const level = explore.top(),
    [row, col] = explore.cursor();
  const facts = NAMES.map((name, k) =>
    el(
      "span",
      "fact",
      el("span", "faint", page.word("panel", name)),
      " ",
      el("b", null, number(level.values[k][row * level.cols + col], 6)),
    ),
  );
  return [el("code", "entry", cellName(block, level, [row, col])), ...facts];
}

/**
 * @param {Page} page
 * @param {Block} block
 * @param {(() => void) | null} toWorst
 * @param {Node} out
 */
function heading(page, block, toWorst, out) {
  const sizes = (/** @type {number[]} */ all, /** @type {boolean | undefined} */ pairs) =>
    pairs
      ? `${shape(all.slice(0, -1)) || page.t("scalar")} ${page.t("complex")}`
      : shape(all) || page.t("scalar");
  const facts = [
    `${sizes(block.output_shape, block.output_complex)} × ${sizes(block.input_shape, block.input_complex)}`,
    page.word("structure", block.structure),
  ];
  if (block.wrong !== undefined)
    facts.push(
      page.t("wrong_entries", { wrong: count(block.wrong), entries: count(block.entries) }),
    );
  return el(
    "div",
    "bar",
    el("h4", null, el("code", null, `d ${block.output_name} / d ${block.input_name}`)),
    block.verdict && verdictWord(page, block.verdict),
    el("span", "faint facts", facts.join(" · ")),
    out,
    toWorst &&
      el("button", { class: "button", title: "w", on: { click: toWorst } }, page.t("worst_entry")),
  );
}
