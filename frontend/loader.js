// All that anywidget loads of a widget: it unpacks the module, which comes deflated since every saved widget stores it.

const window_ = /** @type {any} */ (globalThis);
/** @type {Map<string, Promise<any>>} what was unpacked on this page, by the checksum at the end of the packed bytes */
const modules = (window_[Symbol.for("nbautograd modules")] ??= new Map());

/** @param {DataView<ArrayBuffer>} packed */
async function unpack(packed) {
  const text = await new Response(
    new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate")),
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
  /** @type {DataView<ArrayBuffer>} */
  const packed = model.get("_module"),
    key = `${packed.byteLength} ${packed.getUint32(packed.byteLength - 4)}`;
  if (!modules.has(key)) modules.set(key, unpack(packed));
  return modules.get(key);
}

/** @param {any} context */
const initialize = async (context) => (await load(context.model)).initialize(context);

/** @param {any} context */
const render = async (context) => (await load(context.model)).render(context);

export default { initialize, render };
