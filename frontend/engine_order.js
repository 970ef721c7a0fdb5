// The engine's order over boxes: which run together, what is ready before each step, what has arrived.

/** @typedef {import("./scene.js").Layout} Layout */
/** @typedef {ReturnType<typeof engineOrder>} EngineOrder */

/**
 * A leaf that is drawn at each of its uses runs once; what goes through a portal arrives at its far end.
 * @param {Layout} layout
 */
export function engineOrder({ boxes, paths, order }) {
  /** @param {string} key */
  function base(key) {
    return key.split(".")[0];
  }
  /** @type {Map<string, string[]>} */
  const together = new Map();
  for (const key of order) together.get(base(key))?.push(key) ?? together.set(base(key), [key]);
  const steps = [...together.values()];
  const first = new Map([...together.keys()].map((key, k) => [key, k]));
  const place = new Map(steps.flatMap((keys, k) => keys.map((key) => [key, k])));
  const ofNode = new Map(
    boxes
      .filter((b) => b.kind !== "portal" && place.has(b.key))
      .flatMap((b) => b.nodes.map((n) => [n, place.get(b.key)])),
  );
  const boxOf = new Map(boxes.map((box) => [box.key, box]));
  /** @param {string} key */
  function into(key) {
    return boxOf.get(key)?.kind === "portal"
      ? ofNode.get(boxOf.get(key)?.nodes[0] ?? -1)
      : first.get(base(key));
  }
  /** @type {number[][]} by step, the steps that send it a gradient */
  const from = steps.map(() => []);
  for (const { source, target } of paths) {
    const [a, b] = [place.get(source), into(target)];
    if (a !== undefined && b !== undefined && a !== b) from[b].push(a);
  }
  const last = from.map((sources) => Math.max(-1, ...sources)); // the step after which it is ready
  return {
    steps,
    place,
    from,
    ofNode,
    into,
    /** @param {number} at @returns {number[]} what stood in the queue just before step `at` ran, that one first */
    ready: (at) =>
      steps
        .map((_, k) => k)
        .slice(at - 1)
        .filter((k) => last[k] < at - 1),
  };
}
