// Keys that are meant for a view and not for the notebook around it. JupyterLab looks at a key before the page does, in
// the capture phase at the document, and leaves those alone that come from an element with `data-lm-suppress-shortcuts`.

const SCROLL = /^(Arrow|Page|Home|End)/;

/** @type {WeakMap<EventTarget, string[]>} the keys that elements handle themselves */
const handled = new WeakMap();

/** @param {Element} element @param {string[]} keys */
export const claim = (element, keys) => void handled.set(element, keys);

/**
 * Until the signal, keep the notebook from handling keys that the focused element uses.
 * @param {Element} host @param {AbortSignal} signal
 */
export function claimKeys(host, signal) {
  /** @param {KeyboardEvent} event */
  function look(event) {
    const path = event.composedPath(),
      inside = path.slice(0, Math.max(0, path.indexOf(host)));
    const plain = !(event.ctrlKey || event.metaKey || event.altKey || event.shiftKey);
    host.toggleAttribute(
      "data-lm-suppress-shortcuts",
      inside.length > 0 &&
        plain &&
        inside.some((part, k) => part instanceof Element && uses(part, event.key, k === 0)),
    );
  }
  window.addEventListener("keydown", look, { capture: true, signal });
}

/** @param {Element} part @param {string} key @param {boolean} focused */
function uses(part, key, focused) {
  if (handled.get(part)?.includes(key)) return true;
  if (!focused) return false;
  if (part.matches("input, select, textarea")) return !["Escape", "Tab"].includes(key);
  if (part.matches("button, summary, a")) return key === "Enter" || key === " ";
  return (
    SCROLL.test(key) &&
    (part.scrollWidth > part.clientWidth || part.scrollHeight > part.clientHeight)
  );
}
