// All that anywidget loads of a widget: it unpacks the module, which comes deflated since every saved widget stores it.

/** @type {Promise<any> | undefined} */
let loaded;

/** @param {import("./types").Model} model */
async function unpack(model) {
  const packed = new Blob([model.get("_module")]).stream().pipeThrough(new DecompressionStream("deflate"));
  const address = URL.createObjectURL(new Blob([await new Response(packed).text()], { type: "text/javascript" }));
  try {
    return (await import(address)).default;
  } finally {
    URL.revokeObjectURL(address);
  }
}

/** @param {any} context */
const initialize = async (context) => (await (loaded ??= unpack(context.model))).initialize(context);

/** @param {any} context */
const render = async (context) => (await (loaded ??= unpack(context.model))).render(context);

export default { initialize, render };
