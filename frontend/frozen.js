// A model without a kernel: what a widget stored, and the answers that were kept with it.

import { decode, restored } from "./wire.js";

/** @typedef {import("./types").Model} Model */

/** @param {import("./types").Question} question the same text as Python makes of it */
const key = (question) => JSON.stringify(Object.entries(question).sort());

/**
 * @param {unknown} traits as they were stored, `{"$b64": text}` for bytes
 * @returns {Promise<Model>}
 */
export async function frozenModel(traits) {
  const values = /** @type {import("./states").Traits} */ (restored(traits));
  /** @type {{answers?: Record<string, DataView>}} */
  const { answers = {} } = await decode(values.state);
  /** @type {Map<string, Set<import("./types").Listener>>} */
  const listeners = new Map();
  /** @param {string} event */
  function heard(event) {
    return listeners.get(event) ?? new Set();
  }
  /** @param {string} event @param {import("./types").Reply} reply @param {DataView[]} buffers */
  function tell(event, reply, buffers) {
    for (const listener of [...heard(event)]) listener(reply, buffers);
  }
  return {
    get: (name) => values[name],
    set: (name, value) => {
      values[name] = value;
      tell(`change:${name}`, { id: 0 }, []);
    },
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
