// The whole graph as a file: SVG, and PNG painted from it. Made on the page, of what the page has; nothing is fetched.

import { el, svg } from "./dom.js";
import { arrowHead, boxGroup, pathGroup } from "./scene.js";

/** @typedef {import("./types").Page} Page */
/** @typedef {import("./scene.js").Layout} Layout */

const SHAPE = ["fill", "stroke", "stroke-width", "stroke-dasharray"];
const TEXT = ["fill", "font-size", "font-weight", "font-family"];
const LONGEST = 16_000,
  MOST = 100_000_000; // px of a side and of all of a PNG that browsers can paint

/**
 * @param {Page} page
 * @param {Layout} layout
 * @param {HTMLElement} frame
 */
export function exportButtons(page, layout, frame) {
  /** @param {string} name @param {(text: string) => void} act */
  function way(name, act) {
    return el(
      "button",
      {
        class: "button",
        title: page.t("save_as", { format: name }),
        on: { click: () => act(document_(layout, frame)) },
      },
      name,
    );
  }
  return el(
    "span",
    "group",
    way("SVG", (text) => save(new Blob([text], { type: "image/svg+xml" }), "graph.svg")),
    way("PNG", (text) => paint(text, layout)),
  );
}

/** @param {Blob} blob @param {string} name */
function save(blob, name) {
  const url = URL.createObjectURL(blob);
  el("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

/**
 * The drawing with its looks written on it, so that it stands on its own.
 * @param {Layout} layout
 * @param {HTMLElement} frame
 */
function document_({ width, height, boxes, paths, title, description }, frame) {
  const drawing = svg(
    "svg",
    {
      xmlns: "http://www.w3.org/2000/svg",
      width,
      height,
      viewBox: `0 0 ${width} ${height}`,
      class: "drawing",
      role: "img",
    },
    svg("title", null, title),
    svg("desc", null, description),
    arrowHead(),
    svg("rect", { width, height, fill: getComputedStyle(frame).backgroundColor }),
    ...paths.map(pathGroup),
    ...boxes.map(boxGroup),
  );
  const hidden = el("div", "hidden", drawing);
  frame.append(hidden);
  for (const part of drawing.querySelectorAll("g > rect, path, text")) {
    const style = getComputedStyle(part);
    for (const name of part.tagName === "text" ? TEXT : SHAPE)
      part.setAttribute(name, style.getPropertyValue(name));
  }
  hidden.remove();
  drawing.removeAttribute("class");
  for (const part of drawing.querySelectorAll("*"))
    for (const { name } of [...part.attributes])
      if (/^(class|role|tabindex|aria|data)/.test(name)) part.removeAttribute(name);
  return new XMLSerializer().serializeToString(drawing);
}

/** @param {string} text @param {Layout} layout */
async function paint(text, { width, height }) {
  const scale = Math.min(2, LONGEST / width, LONGEST / height, Math.sqrt(MOST / width / height));
  const canvas = el("canvas", {
    width: Math.round(width * scale),
    height: Math.round(height * scale),
  });
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
  await image.decode();
  canvas.getContext("2d")?.drawImage(image, 0, 0, canvas.width, canvas.height);
  canvas.toBlob((blob) => blob && save(blob, "graph.png"));
}
