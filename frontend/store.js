// A value that views listen to: what is selected, the theme, the lens.

/**
 * @template T
 * @typedef {object} Store
 * @property {() => T} get
 * @property {(next: T) => void} set tells every listener, unless the value is the same
 * @property {(listener: (value: T) => void, until?: AbortSignal) => void} on
 */

/**
 * @template T
 * @param {T} value to begin with
 * @returns {Store<T>}
 */
export function store(value) {
  /** @type {Set<(value: T) => void>} */
  const listeners = new Set();
  return {
    get: () => value,
    set(next) {
      if (next === value) return;
      value = next;
      for (const listener of [...listeners]) listener(value);
    },
    on(listener, until) {
      listeners.add(listener);
      until?.addEventListener("abort", () => listeners.delete(listener), { once: true });
    },
  };
}
