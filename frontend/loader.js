// All that anywidget loads of a widget: it unpacks the module, which comes deflated since every saved widget stores it.

/** @typedef {typeof import("./widget.js").default} Module */
/** @typedef {{model: import("./types").Model, el: HTMLElement, signal?: AbortSignal}} Context of anywidget */

const shared = /** @type {Record<symbol, Map<string, Promise<Module>> | undefined>} */ (
  /** @type {unknown} */ (globalThis)
);
/** What was unpacked on this page, by the checksum at the end of the packed bytes. */
const modules = (shared[Symbol.for("nbautograd modules")] ??= new Map());

/** @param {DataView} packed @returns {Promise<Module>} */
async function unpack(packed) {
  const text = await new Response(
    new Blob([/** @type {DataView<ArrayBuffer>} */ (packed)])
      .stream()
      .pipeThrough(new DecompressionStream("deflate")),
  ).text();
  const address = URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
  try {
    return (await import(address)).default;
  } finally {
    URL.revokeObjectURL(address);
  }
}

/** @param {import("./types").Model} model */
function load(model) {
  const packed = model.get("_module"),
    key = `${packed.byteLength} ${packed.getUint32(packed.byteLength - 4)}`;
  const known = modules.get(key) ?? unpack(packed);
  modules.set(key, known);
  return known;
}

/**
 * Put the view in the place of the stored report as soon as the module is there. anywidget is given the end at once: it
 * takes a model for failed whose `initialize` is not done 2 s after the model came, and then drops its messages.
 * @param {{model: import("./types").Model, signal?: AbortSignal}} context
 */
function initialize({ model, signal }) {
  const end = new AbortController();
  signal?.addEventListener("abort", () => end.abort(), { once: true });
  /** @param {Module} module */
  const begin = (module) => module.initialize({ model, signal: end.signal });
  Promise.resolve()
    .then(() => load(model))
    .then(begin)
    .catch((problem) => console.warn("nbautograd: the stored report stays.", problem));
  return () => end.abort();
}

/** @param {Context} context */
const render = async (context) => (await load(context.model)).render(context);

export default { initialize, render };
