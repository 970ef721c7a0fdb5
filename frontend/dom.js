// Elements, and the keys that they handle.

import { claim } from "./shortcuts.js";

/** @typedef {Node | string | null | undefined | false} Child */
/** @typedef {{[E in keyof HTMLElementEventMap]?: (event: HTMLElementEventMap[E]) => void}} Listeners */
/** @typedef {{[name: string]: string | number | boolean | null | undefined | Listeners}} Attributes */

const TURNS = /[\u202a-\u202e\u2066-\u2069]/g; // what would turn the direction of the text behind it

// what is read as one word and may not be broken at its hyphens: options, small numbers; as in views/markup.py
const WHOLE = /((?<![\w-])--?[A-Za-z][\w-]*|-?\d[\d.]*e-\d+)/;
// what goes with the word behind it, as in views/markup.py; nothing that Python source can have
const DERIVATIVE = /\bd ([^\s/[\]]+(?: \d+)?(?:\[[\d,]*\])?(?:\.\w+)?) \/ d (?=\S)/g,
  UNIT = /(?<=\d) (?=(?:[kMGT]?B|ms|s)\b|%(?![\s\w(]))/g;

const SVG = "http://www.w3.org/2000/svg";

/**
 * Give an element its attributes (or its class alone), listeners (`on`) and children. Text is always text, never markup.
 * @template {Element} E
 * @param {E} element
 * @param {Attributes | string | null} [attributes]
 * @param {Child[]} [children]
 * @returns {E}
 */
export function fill(element, attributes, children = []) {
  for (const [name, value] of Object.entries(
    typeof attributes === "string" ? { class: attributes } : (attributes ?? {}),
  )) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "on")
      for (const [event, listener] of Object.entries(value))
        element.addEventListener(event, listener);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(
    ...children
      .filter((c) => c !== null && c !== undefined && c !== false)
      .flatMap((c) => (c instanceof Node ? c : text(element, String(c).replace(TURNS, "\ufffd")))),
  );
  return element;
}

/**
 * Words as they go into an element of a page: those that may not be broken stand in one of their own.
 * @param {Element} element
 * @param {string} words
 * @returns {(Node | string)[]}
 */
function text(element, words) {
  if (!(element instanceof HTMLElement) || element.matches("option,pre,style")) return [words];
  return words
    .replace(DERIVATIVE, "d\u00a0$1 / d\u00a0")
    .replace(UNIT, "\u00a0")
    .split(WHOLE)
    .map((part, k) =>
      k % 2
        ? Object.assign(document.createElement("span"), { className: "whole", textContent: part })
        : part,
    );
}

/**
 * @template {keyof HTMLElementTagNameMap} T
 * @param {T} tag
 * @param {Attributes | string | null} [attributes]
 * @param {...Child} children
 * @returns {HTMLElementTagNameMap[T]}
 */
export const el = (tag, attributes, ...children) =>
  fill(document.createElement(tag), attributes, children);

/**
 * A small button with a sign on it.
 * @param {string} sign @param {string} name @param {() => void} act
 */
export const icon = (sign, name, act) =>
  el("button", { class: "button icon", "aria-label": name, title: name, on: { click: act } }, sign);

/**
 * A button with words on it.
 * @param {Child} words @param {() => void} act @param {string} [look]
 */
export const button = (words, act, look = "button") =>
  el("button", { class: look, on: { click: act } }, words);

/**
 * @template {keyof SVGElementTagNameMap} T
 * @param {T} tag
 * @param {Attributes | string | null} [attributes]
 * @param {...Child} children
 * @returns {SVGElementTagNameMap[T]}
 */
export const svg = (tag, attributes, ...children) =>
  /** @type {SVGElementTagNameMap[T]} */ (
    /** @type {unknown} */ (fill(document.createElementNS(SVG, tag), attributes, children))
  );

/**
 * A sentence with its code between backticks set as code.
 * @param {string} sentence
 */
export function prose(sentence) {
  const parts = sentence.split(/`([^`\n]+)`/);
  return fill(
    document.createDocumentFragment().appendChild(el("span")),
    null,
    parts.map((p, k) => (k % 2 ? el("code", null, p) : p)),
  );
}

/**
 * Words with their meaning on hover.
 * @param {string} words @param {string} meaning
 */
export const term = (words, meaning) => el("span", { class: "term", title: meaning }, words);

/**
 * Keys that a view handles go no further, so that the notebook does not act on them too.
 * @param {Element} element
 * @param {Record<string, (event: KeyboardEvent) => void>} actions by key
 */
export function keys(element, actions) {
  claim(element, Object.keys(actions));
  element.addEventListener("keydown", (event) => {
    const e = /** @type {KeyboardEvent} */ (event);
    if (e.target !== element && /** @type {Element} */ (e.target).matches(":read-write")) return; // it is being typed
    const action =
      Object.hasOwn(actions, e.key) && !e.ctrlKey && !e.metaKey && !e.altKey
        ? actions[e.key]
        : null;
    if (!action) return;
    e.preventDefault();
    e.stopPropagation();
    action(e);
  });
}
