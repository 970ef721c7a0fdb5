// What every view uses: elements, arrays, questions to Python.

import { claim } from "./claims.js";

/** @typedef {import("./types").Model} Model */
/** @typedef {import("./types").Packed} Packed */
/** @typedef {Node | string | number | null | undefined | false} Child */

const TURNS = /[\u202a-\u202e\u2066-\u2069]/g; // what would turn the direction of the text behind it

const SVG = "http://www.w3.org/2000/svg";

/**
 * Give an element its attributes (or its class alone), listeners (`on`) and children. Text is always text, never markup.
 * @template {Element} E
 * @param {E} element
 * @param {Record<string, any> | string | null} [attributes]
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
      .map((c) => (c instanceof Node ? c : String(c).replace(TURNS, "\ufffd"))),
  );
  return element;
}

/**
 * @template {keyof HTMLElementTagNameMap} T
 * @param {T} tag
 * @param {Record<string, any> | string | null} [attributes]
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
 * @param {Record<string, any> | string | null} [attributes]
 * @param {...Child} children
 * @returns {SVGElementTagNameMap[T]}
 */
export const svg = (tag, attributes, ...children) =>
  /** @type {any} */ (fill(document.createElementNS(SVG, tag), attributes, children));

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
 * Position of a row-major element number in a tensor.
 * @param {number} flat
 * @param {number[]} sizes
 * @returns {number[]}
 */
export function unravel(flat, sizes) {
  const position = sizes.map(() => 0);
  for (let k = sizes.length - 1; k >= 0; k--) {
    position[k] = flat % sizes[k];
    flat = Math.floor(flat / sizes[k]);
  }
  return position;
}

/**
 * @param {number[]} position
 * @param {number[]} sizes
 */
export const ravel = (position, sizes) => position.reduce((flat, k, d) => flat * sizes[d] + k, 0);

/**
 * The numbers of an array that Python sent; copied, since a buffer may start anywhere.
 * @param {Packed} packed
 */
export function numbers({ dtype, buffer, values }) {
  if (values) return Float64Array.from(values, Number);
  const bytes = buffer.buffer.slice(buffer.byteOffset, buffer.byteOffset + buffer.byteLength);
  if (dtype === "uint8") return new Uint8Array(bytes);
  return dtype === "float32" ? new Float32Array(bytes) : new Float64Array(bytes);
}

/** @param {DataView} bytes deflated @returns {Promise<string>} */
export const inflate = (bytes) =>
  new Response(
    new Blob([/** @type {DataView<ArrayBuffer>} */ (bytes)])
      .stream()
      .pipeThrough(new DecompressionStream("deflate")),
  ).text();

/** @param {any} stored with bytes as `{"$b64": text}` @returns {any} the same with bytes */
export function restored(stored) {
  if (Array.isArray(stored)) return stored.map(restored);
  if (!stored || typeof stored !== "object") return stored;
  if ("$b64" in stored)
    return new DataView(Uint8Array.from(atob(stored.$b64), (c) => c.charCodeAt(0)).buffer);
  return Object.fromEntries(Object.entries(stored).map(([name, part]) => [name, restored(part)]));
}

/** @param {DataView} bytes a large state or answer, as Python packed it */
export const opened = async (bytes) => restored(JSON.parse(await inflate(bytes)));

let asked = 0;

/**
 * Ask Python a question and wait for its answer.
 * @param {Model} model
 * @param {{kind: string, [more: string]: any}} question
 * @param {AbortSignal} signal
 * @param {string} late what to say when no answer comes
 * @param {number} [patience] ms
 * @returns {Promise<{content: any, buffers: DataView[]}>}
 */
export function ask(model, question, signal, late, patience = 20_000) {
  const id = ++asked * 1_000_000 + Math.floor(Math.random() * 1_000_000);
  return new Promise((resolve, reject) => {
    const stop = () => (model.off("msg:custom", listen), clearTimeout(timer));
    const timer = setTimeout(() => (stop(), reject(new Error(late))), patience);
    /** @param {any} content @param {DataView[]} buffers */
    function listen(content, buffers) {
      if (content?.id !== id) return;
      stop();
      if (content.error) reject(new Error(content.error));
      else if (content.packed)
        opened(buffers[0]).then((whole) => resolve({ content: whole, buffers: [] }), reject);
      else resolve({ content, buffers });
    }
    signal.addEventListener("abort", () => (stop(), reject(new Error(late))), { once: true });
    model.on("msg:custom", listen);
    model.send({ ...question, id });
  });
}

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
