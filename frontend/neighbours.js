// Where the arrow keys lead.

/** @typedef {import("./scene.js").Box} Box */

/**
 * The box that an arrow key leads to: along an edge up or down, to the nearest in the same layer left or right.
 * @param {{boxes: Box[], paths: import("./scene.js").Path[]}} layout
 * @param {string} key
 * @param {"up" | "down" | "left" | "right"} way
 */
export function neighbour({ boxes, paths }, key, way) {
  if (way === "down") return paths.find((p) => p.source === key)?.target ?? key;
  if (way === "up") return paths.find((p) => p.target === key)?.source ?? key;
  const from = boxes.find((box) => box.key === key);
  if (!from) return key;
  /** @param {Box} b */
  function centre(b) {
    return b.x + b.width / 2;
  }
  const beside = boxes.filter(
    (b) =>
      b.y < from.y + from.height &&
      from.y < b.y + b.height &&
      (way === "left" ? centre(b) < centre(from) : centre(b) > centre(from)),
  );
  beside.sort((a, b) => Math.abs(centre(a) - centre(from)) - Math.abs(centre(b) - centre(from)));
  return beside[0]?.key ?? key;
}
