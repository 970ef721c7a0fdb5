// A model without a kernel: what a widget stored, and the answers that were kept with it.

import { decode, restored } from "./wire.js";

/** @typedef {import("./types").Model} Model */

/** @param {import("./types").Question} question the same text as Python makes of it */
const key = (question) => JSON.stringify(Object.entries(question).sort());

/**
 * @param {any} traits as they were stored, `{"$b64": text}` for bytes
 * @returns {Promise<Model>}
 */
export async function frozenModel(traits) {
  const values = restored(traits),
    answers = (await decode(values.state)).answers ?? {};
  /** @type {Map<string, Set<(...args: any[]) => void>>} */
  const listeners = new Map();
  const heard = (/** @type {string} */ event) => listeners.get(event) ?? new Set();
  const tell = (/** @type {string} */ event, /** @type {any[]} */ ...args) =>
    [...heard(event)].forEach((listener) => listener(...args));
  return {
    get: (name) => values[name],
    set: (name, value) => ((values[name] = value), tell(`change:${name}`)),
    save_changes: () => {},
    send: ({ id, ...question }) => {
      const kept = answers[key(question)];
      void Promise.resolve().then(() =>
        kept
          ? tell("msg:custom", { id }, [kept])
          : tell("msg:custom", { id, error: values._labels.frozen }, []),
      );
    },
    on: (event, listener) => void listeners.set(event, heard(event).add(listener)),
    off: (event, listener) => void heard(event).delete(listener),
    knows: (question) => key(question) in answers,
  };
}
