// A document as Python built it, drawn in a live view: the same tree as that of the stored report, views/document.py.

import { blockNameView } from "./blocks.js";
import { copyButton, sayingButton } from "./clipboard.js";
import { button, el, prose, svg, term } from "./dom.js";
import { mapsView } from "./jacobian.js";
import { applyThere, cellBelow } from "./notebook.js";
import { arrowHead, boxGroup, pathGroup } from "./scene.js";
import { smallMap } from "./values.js";
import { TONES } from "./verdicts.js";

/** @typedef {import("./types").Page} Page */
/** @typedef {import("./tree").Block} Block */
/** @typedef {import("./tree").Span} Span */
/** @typedef {import("./tree").Cell} Cell */

/** @param {string} tone */
const toneClass = (tone) => TONES[tone] ?? "plain";

/**
 * @param {Page} page
 * @param {Block[]} blocks
 * @returns {HTMLElement[]}
 */
export const documentView = (page, blocks) => blocks.map((block) => blockView(page, block));

/**
 * @param {Page} page
 * @param {Block} block
 * @returns {HTMLElement}
 */
function blockView(page, block) {
  switch (block.kind) {
    case "paragraph":
      return paragraphView(page, block);
    case "table":
      return tableView(page, block);
    case "fold":
      return el(
        "details",
        { class: block.strong === false ? null : "part", open: block.opened },
        el(
          "summary",
          null,
          spanView(page, block.title),
          block.beside && el("span", "faint", ` ${block.beside}`),
        ),
        el("div", "stack", ...documentView(page, block.body)),
      );
    case "change":
      return changeView(page, block);
    case "verbatim":
      return el("pre", { tabindex: "0" }, block.words);
    case "item":
      return el("div", "item", ...documentView(page, block.body));
    case "card":
      return el("div", `banner ${toneClass(block.tone)}`, ...documentView(page, block.body));
    case "beside":
      return el(
        "div",
        "beside",
        ...block.parts.map((part) => el("section", null, ...documentView(page, part))),
      );
    case "drawing":
      return el(
        "figure",
        null,
        el("figcaption", null, el("code", null, block.title)),
        block.layout && drawing(block.layout),
      );
    case "heatmaps":
      return mapsView(page, block.block);
  }
}

/** @type {Record<string, string>} */
const LOOKS = { small: "faint", faint: "faint", head: "headline" };

/** @param {Page} page @param {import("./tree").Paragraph} paragraph */
function paragraphView(page, { spans, look }) {
  const shown = spans.map((span) => spanView(page, span, true)).filter((span) => span !== null);
  const ways = spans.every((span) => typeof span !== "string" && span.kind === "link");
  return el("p", { class: ways ? "links" : LOOKS[look ?? ""], hidden: !shown.length }, ...shown);
}

/**
 * @param {Page} page
 * @param {Span} span
 * @param {boolean} [sentence] whether backticks in plain words become code
 * @returns {Node | string | null}
 */
function spanView(page, span, sentence = false) {
  if (typeof span === "string") return sentence ? prose(span) : span;
  switch (span.kind) {
    case "chip":
      return el("span", `verdict ${toneClass(span.tone)}`, span.words);
    case "strong":
      return el("strong", null, prose(span.words));
    case "code":
      return el("code", null, span.words);
    case "faint":
      return el("span", "faint", prose(span.words));
    case "term":
      return term(span.words, span.meaning);
    case "sentence":
      return prose(span.words);
    case "lines":
      return el("span", null, ...span.lines.map((line) => el("span", "fact-line", line)));
    case "branch":
      return branchView(span.depth);
    case "thumbnail":
      return thumbnailView(page, span);
    case "link":
      return linkView(page, span);
    case "blockname":
      return blockNameView(page, span);
  }
}

/** @param {number} depth of a row that stands inside others; the stylesheet moves the row to the right */
function branchView(depth) {
  return depth ? el("span", { class: "branch", "aria-hidden": "true" }, "└") : null;
}

/**
 * @param {Page} page
 * @param {import("./tree").Table} table
 */
function tableView(page, { header, rows, caption, right = [], wrap = true }) {
  const columns = Math.max(0, ...rows.map((row) => row.length));
  const named = wrap && columns > 2 && header.slice(1).every((cell) => cell !== ""); // its rows can be read alone
  /** @param {Cell} cell @param {number} k @param {"col" | "row" | ""} scope of a heading */
  function cellView(cell, k, scope) {
    const words = [cell].flat().map((span) => spanView(page, span));
    const look = right.includes(k) ? "num" : null;
    // an empty heading would be announced as one
    if (!scope || cell === "")
      return el(
        "td",
        {
          class: look,
          "data-heading": (named && header[k] && headingWords(page, header[k])) || null,
        },
        ...words,
      );
    return el("th", { scope, class: look }, ...words);
  }
  /** @param {Cell[]} row */
  function rowView(row) {
    const cells =
      row.length === 1 && columns > 1
        ? [
            el(
              "td",
              { colspan: columns, class: typeof row[0] === "string" ? "faint" : null },
              ...[row[0]].flat().map((s) => spanView(page, s)),
            ),
          ]
        : row.map((cell, k) => cellView(cell, k, k ? "" : "row"));
    return el("tr", null, ...cells);
  }
  return el(
    "div",
    { class: "scroll", tabindex: "0", role: "group", "aria-label": caption ?? null },
    el(
      "table",
      ["grid", named && "named", !wrap && "wide", rows.some(isInTree) && "nested"]
        .filter(Boolean)
        .join(" "),
      caption && el("caption", "hidden", caption),
      header.length > 0 &&
        el("thead", null, el("tr", null, ...header.map((cell, k) => cellView(cell, k, "col")))),
      el("tbody", null, ...foldable(page, rows, rows.map(rowView))),
    ),
  );
}

/** @param {Page} page @param {Cell} cell @returns {string} what a heading says before each cell where a narrow page stacks them */
function headingWords(page, cell) {
  const words = [cell]
    .flat()
    .map((span) => (typeof span === "string" ? span : "words" in span ? span.words : ""))
    .join("");
  return words && words + page.t("colon");
}

/** @param {Cell[]} row @returns {number | null} how deep a row of a tree stands, null in other tables */
function depthOf([first]) {
  const branch = [first].flat().find((span) => typeof span !== "string" && span?.kind === "branch");
  return branch ? /** @type {import("./tree").Branch} */ (branch).depth : null;
}

/** @param {Cell[]} row */
const isInTree = (row) => depthOf(row) !== null;

/**
 * Give each row of a tree that others stand in a button that folds them.
 * @param {Page} page
 * @param {Cell[][]} rows
 * @param {HTMLTableRowElement[]} drawn
 */
function foldable(page, rows, drawn) {
  const depths = rows.map(depthOf);
  /** @type {Set<number>} */
  const folded = new Set();
  /** @param {number} k @returns {number} the row after the last one inside row k */
  function endOf(k) {
    const next = depths.findIndex((depth, j) => j > k && (depth ?? 0) <= (depths[k] ?? 0));
    return next < 0 ? rows.length : next;
  }
  function show() {
    drawn.forEach((row) => (row.hidden = false));
    for (const k of folded) drawn.slice(k + 1, endOf(k)).forEach((row) => (row.hidden = true));
  }
  /** @param {number} k */
  function foldButton(k) {
    const name = page.t("inside_count", { count: endOf(k) - k - 1 });
    const sign = button("", toggle, "link fold");
    sign.setAttribute("aria-label", name);
    sign.setAttribute("aria-expanded", "true");
    function toggle() {
      const open = folded.delete(k);
      if (!open) folded.add(k);
      sign.setAttribute("aria-expanded", String(open));
      show();
    }
    return sign;
  }
  depths.forEach((depth, k) => {
    drawn[k].style.setProperty("--depth", String(depth ?? 0));
    if (depth !== null && endOf(k) > k + 1) {
      const cell = drawn[k].cells[0],
        branch = cell.querySelector(".branch");
      branch ? branch.after(foldButton(k)) : cell.prepend(foldButton(k));
    }
  });
  return drawn;
}

/**
 * @param {Page} page
 * @param {import("./tree").Thumbnail} span
 */
function thumbnailView(page, span) {
  return smallMap(page, span.alt, span.array, span, span.most, span.floor);
}

/**
 * A way to another part of the view, where there is such a part, or to the page of a code.
 * @param {Page} page
 * @param {import("./tree").Link} link
 */
function linkView(page, { words, tab = "", block, line, place, url }) {
  if (url) return el("a", { href: url, target: "_blank", title: words }, page.t("code_page"));
  if (place) return placeLink(words, place);
  if (!page.tabs.includes(tab)) return null;
  return button(words, () => {
    page.select({ ...(block && page.reach(block)), ...(line && { line }) });
    page.show(tab);
  });
}

/**
 * A way to the output with the card of this place, if the notebook still shows it.
 * @param {string} words
 * @param {string} place
 */
function placeLink(words, place) {
  const name = el("code", null, words);
  function go() {
    const [card] = document.getElementsByClassName(`nbag-at-${place}`);
    card?.scrollIntoView({ block: "center" });
  }
  return button(name, go, "link");
}

/**
 * What goes and what comes instead; what was tried can be copied, and put into a cell below.
 * @param {Page} page
 * @param {import("./tree").Change} change
 */
function changeView(page, change) {
  const { before, after, note = "", tried } = change,
    below = tried && cellBelow(page, change);
  const [gone, come] = outdent(
    [before, after].map((text) => (text ? text.replace(/\n$/, "").split("\n") : [])),
  );
  /** @param {string} text @param {string} kind @param {string} mark */
  const line = (text, kind, mark) =>
    el("span", { class: kind }, el("span", "mark", mark), ` ${text}`);
  const copied = after.replace(/\n$/, "");
  const others = [
    tried && copyButton(page, page.t("copy_line"), () => copied),
    below &&
      sayingButton(page.t("cell_below"), below, {
        done: page.t("cell_is_below"),
        failed: (reason) => reason,
      }),
  ].filter((one) => one);
  const marked = "nbautogradLab" in document.documentElement.dataset && !page.unmarked,
    applicable = tried && before.trim() && marked;
  return el(
    "div",
    "fix",
    el(
      "pre",
      { tabindex: "0", "aria-label": page.t("fix.change") },
      el(
        "code",
        null,
        ...gone.map((text) => line(text, "before", "-")),
        ...come.map((text) => line(text, "after", "+")),
      ),
    ),
    el(
      "div",
      "bar",
      ...(applicable
        ? [
            sayingButton(
              page.t("apply_and_run"),
              () => applyThere(page, change),
              { done: "", failed: (reason) => reason },
              "button primary",
            ),
            others.length > 0 &&
              el("details", "menu", el("summary", null, page.t("more")), ...others),
          ]
        : others),
      el("span", "faint", prose(note)),
    ),
  );
}

/**
 * Take away the spaces that all lines begin with.
 * @param {string[][]} texts
 */
function outdent(texts) {
  const margins = texts
    .flat()
    .filter((line) => line.trim())
    .map((line) => line.length - line.trimStart().length);
  return texts.map((lines) => lines.map((line) => line.slice(Math.min(...margins))));
}

/** @param {import("./scene.js").Layout} layout */
function drawing({ width, height, boxes, paths, title, description }) {
  return svg(
    "svg",
    {
      width,
      height,
      viewBox: `0 0 ${width} ${height}`,
      class: "drawing still",
      role: "img",
      "aria-label": description || title,
    },
    arrowHead(),
    ...paths.map(pathGroup),
    ...boxes.map(boxGroup),
  );
}
