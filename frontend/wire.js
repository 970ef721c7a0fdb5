// What comes from Python: states and answers to questions, always JSON, deflated, its bytes in base64.

/** @typedef {import("./types").Model} Model */

/** @param {DataView | string} stored deflated, or in a frozen copy, which is deflated as a whole, as it is @returns {Promise<string>} */
export const inflate = async (stored) =>
  typeof stored === "string"
    ? stored
    : new Response(
        new Blob([/** @type {DataView<ArrayBuffer>} */ (stored)])
          .stream()
          .pipeThrough(new DecompressionStream("deflate")),
      ).text();

/** @param {unknown} stored with bytes as `{"$b64": text}` @returns {unknown} the same with bytes */
export function restored(stored) {
  if (Array.isArray(stored)) return stored.map(restored);
  if (!stored || typeof stored !== "object") return stored;
  if ("$b64" in stored)
    return new DataView(Uint8Array.from(atob(String(stored.$b64)), (c) => c.charCodeAt(0)).buffer);
  return Object.fromEntries(Object.entries(stored).map(([name, part]) => [name, restored(part)]));
}

/**
 * @template T
 * @param {DataView} bytes a state or an answer, as Python encoded it
 * @returns {Promise<T>}
 */
export async function decode(bytes) {
  return /** @type {T} */ (restored(JSON.parse(await inflate(bytes))));
}

let asked = 0;

/**
 * Ask Python a question and wait for its answer.
 * @param {Model} model
 * @template {keyof import("./states").Answers} K
 * @param {import("./types").Question<K>} question
 * @param {AbortSignal} signal
 * @param {string} late what to say when no answer comes
 * @param {number} [patience] ms
 * @returns {Promise<import("./states").Answers[K]>}
 */
export function ask(model, question, signal, late, patience = 20_000) {
  const id = ++asked * 1_000_000 + Math.floor(Math.random() * 1_000_000);
  return new Promise((resolve, reject) => {
    const stop = () => (model.off("msg:custom", listen), clearTimeout(timer));
    const timer = setTimeout(() => (stop(), reject(new Error(late))), patience);
    /** @type {import("./types").Listener} */
    function listen(content, buffers) {
      if (content?.id !== id) return;
      stop();
      if (content.error) reject(new Error(content.error));
      else decode(buffers[0]).then(resolve, reject);
    }
    signal.addEventListener("abort", () => (stop(), reject(new Error(late))), { once: true });
    model.on("msg:custom", listen);
    model.send({ ...question, id });
  });
}
