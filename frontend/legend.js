// The legend: what the boxes, the edges and the signs in this picture mean; only those that occur.

import { el, svg } from "./dom.js";

/** @typedef {import("./scene.js").Layout} Layout */

/** @type {import("./states").Box["kind"][]} */
const KINDS = ["output", "op", "function", "leaf", "group", "portal", "ghost"];
const STYLES = ["bad", "zero", "none"];

/**
 * @param {import("./types").Page} page
 * @param {Layout} layout
 */
export function legend(page, layout) {
  const whole = el("details", "key-fold", el("summary", null, page.t("key")));
  whole.addEventListener(
    "toggle",
    () => whole.children.length > 1 || whole.append(list(page, layout)),
  );
  return whole;
}

/** @param {import("./types").Page} page @param {Layout} layout */
function list(page, { boxes, paths }) {
  const kinds = new Set(boxes.map((box) => box.kind)),
    styles = new Set(paths.map((path) => path.style));
  const texts = [
    ...boxes.flatMap((box) => box.lines.map((l) => l.text)),
    ...paths.map((p) => p.label),
  ];
  /** @param {RegExp} sign */
  function has(sign) {
    return texts.some((text) => sign.test(text));
  }
  /** @param {Node} sign @param {string} id */
  function row(sign, id) {
    return el("li", null, sign, " ", page.t(`key.${id}`));
  }
  /** @param {string} text @param {string} id */
  function written(text, id) {
    return row(el("code", null, text), id);
  }
  return el(
    "ul",
    "columns key",
    ...KINDS.filter((kind) => kinds.has(kind)).map((kind) => row(boxSign(kind), kind)),
    paths.length > 0 && row(edgeSign(""), "edge"),
    ...STYLES.filter((style) => styles.has(style)).map((style) => row(edgeSign(style), style)),
    has(/^✗/) && written("✗", "wrong"),
    has(/\|g\|/) && written("|g|", "norm"),
    has(/Σ/) && written("Σ n", "sum"),
    has(/(^| )×\d/) && written("×n", "times"),
  );
}

/** @param {string} kind */
const boxSign = (kind) =>
  svg(
    "svg",
    { class: "sign", width: 28, height: 16, viewBox: "0 0 28 16", "aria-hidden": "true" },
    svg(
      "g",
      { class: `box ${kind}` },
      svg("rect", {
        x: 1.5,
        y: 1.5,
        width: 25,
        height: 13,
        rx: kind === "leaf" || kind === "output" ? 6.5 : 3,
      }),
    ),
  );

/** @param {string} style */
const edgeSign = (style) =>
  svg(
    "svg",
    { class: "sign", width: 28, height: 16, viewBox: "0 0 28 16", "aria-hidden": "true" },
    svg(
      "g",
      { class: `edge ${style}` },
      svg("path", { d: "M1,8H21" }),
      svg("path", { d: "M16,4L21,8L16,12" }),
    ),
  );
