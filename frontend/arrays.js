// Arrays that Python sent, and places in tensors.

/** @typedef {import("./states").Packed} Packed */

/**
 * Position of a row-major element number in a tensor.
 * @param {number} flat
 * @param {number[]} sizes
 * @returns {number[]}
 */
export function unravel(flat, sizes) {
  const position = sizes.map(() => 0);
  for (let k = sizes.length - 1; k >= 0; k--) {
    position[k] = flat % sizes[k];
    flat = Math.floor(flat / sizes[k]);
  }
  return position;
}

/**
 * @param {number[]} position
 * @param {number[]} sizes
 */
export const ravel = (position, sizes) => position.reduce((flat, k, d) => flat * sizes[d] + k, 0);

/**
 * The numbers of an array that Python sent; copied, since a buffer may start anywhere.
 * @param {Packed} packed
 */
export function numbers({ dtype, buffer }) {
  const bytes = buffer.buffer.slice(buffer.byteOffset, buffer.byteOffset + buffer.byteLength);
  if (dtype === "uint8") return new Uint8Array(bytes);
  return dtype === "float32" ? new Float32Array(bytes) : new Float64Array(bytes);
}
