// A model without a kernel: what a widget stored, and the answers that were kept with it.

/** @typedef {import("./types").Model} Model */

/** @param {any} question the same text as Python makes of it */
const key = (question) => JSON.stringify(Object.entries(question).sort());

/** @param {any} stored bytes as text back to bytes @returns {any} */
function unpack(stored) {
  if (Array.isArray(stored)) return stored.map(unpack);
  if (!stored || typeof stored !== "object") return stored;
  if ("$b64" in stored) return new DataView(Uint8Array.from(atob(stored.$b64), (c) => c.charCodeAt(0)).buffer);
  return Object.fromEntries(Object.entries(stored).map(([name, part]) => [name, unpack(part)]));
}

/**
 * @param {any} traits as they were stored, `{"$b64": text}` for bytes
 * @returns {Model}
 */
export function frozenModel(traits) {
  const values = unpack(traits), answers = values.state.answers ?? {};
  /** @type {Map<string, Set<(...args: any[]) => void>>} */
  const listeners = new Map();
  const heard = (/** @type {string} */ event) => listeners.get(event) ?? new Set();
  const tell = (/** @type {string} */ event, /** @type {any[]} */ ...args) => [...heard(event)].forEach((listener) => listener(...args));
  return {
    get: (name) => values[name],
    set: (name, value) => ((values[name] = value), tell(`change:${name}`)),
    save_changes: () => {},
    send: ({ id, ...question }) => void Promise.resolve().then(() => tell("msg:custom", { id, ...(answers[key(question)] ?? { error: values._labels.frozen }) }, [])),
    on: (event, listener) => void listeners.set(event, heard(event).add(listener)),
    off: (event, listener) => void heard(event).delete(listener),
    knows: (question) => key(question) in answers,
  };
}
