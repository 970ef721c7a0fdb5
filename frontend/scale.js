// What full colour stands for on a heat map: the same rule as views/theme.py.

/** @typedef {"robust" | "largest" | "own" | "log"} Scale */
/** @typedef {ArrayLike<number>} Values */
/**
 * How the cells of one map get their colours.
 * @typedef {{most: number, shares?: Values, beyond: number}} Colouring `shares`: colour by these, from -1 to 1, instead of
 *   by the values; `beyond`: how many cells lie outside
 */

export const NEGLIGIBLE = 1e-6; // of the limit: what finite differences leave of an exact zero is not worth a colour
const QUANTILE = 0.98; // of the sizes, that the robust limit covers
const OUTLYING = 2; // times the robust limit: a largest size below that is no outlier, and the limit itself
const DECADES = 16; // that a logarithmic scale covers at most below its largest number

/** @param {Values[]} arrays */
function sizesOf(arrays) {
  return arrays.flatMap((values) => Array.from(values, Math.abs).filter((size) => size < Infinity));
}

/** @param {number} most @param {number} size */
const larger = (most, size) => Math.max(most, size);

/**
 * The largest finite size in some arrays, 1 when there is none.
 * @param {...Values} arrays
 */
export const limit = (...arrays) => sizesOf(arrays).reduce(larger, 0) || 1;

/**
 * The limit of a scale that no outlier washes out: the 98th percentile of the sizes that are not negligible.
 * @param {Values[]} arrays
 * @param {number} negligible share of the largest size up to which one does not count
 */
function coveringLimit(arrays, negligible) {
  const sizes = sizesOf(arrays);
  const top = sizes.reduce(larger, 0) || 1;
  const sorted = sizes.filter((size) => size > negligible * top).sort((a, b) => a - b);
  const covering = sorted[Math.ceil(QUANTILE * (sorted.length - 1))] ?? top;
  return top <= OUTLYING * covering ? top : covering;
}

/** @param {...Values} arrays of Jacobians @returns {number} their robust limit */
export const robustLimit = (...arrays) => coveringLimit(arrays, NEGLIGIBLE);

/** @param {Values} values recorded ones, which know no noise of finite differences @returns {number} their robust limit */
export const recordedLimit = (values) => coveringLimit([values], 0);

/** @param {number} value @param {number} most */
export const isBeyond = (value, most) => Math.abs(value) > most;

/**
 * Signed shares of a logarithmic scale: ±1 for the largest size, near 0 for the smallest, 0 for nothing.
 * @param {Values} values
 * @param {number} most
 */
export function logarithmic(values, most) {
  const finite = sizesOf([values]).filter((size) => size > 0);
  const least = finite.reduce((least, size) => Math.min(least, size), most);
  const decades = Math.min(DECADES, Math.max(1, Math.ceil(Math.log10(most / least))));
  /** @param {number} value */
  function share(value) {
    if (value === 0 || Number.isNaN(value)) return value;
    const part = Number.isFinite(value) ? 1 + Math.log10(Math.abs(value) / most) / decades : 1;
    return Math.sign(value) * Math.max(part, 1 / DECADES);
  }
  return Float64Array.from(values, share);
}

/**
 * @param {Scale} scale
 * @param {Values[]} maps analytical, numerical, difference
 * @returns {Colouring[]} of each
 */
export function colourings(scale, maps) {
  const [analytical, numerical, difference] = maps;
  if (scale === "log") {
    const [both, far] = [limit(analytical, numerical), limit(difference)];
    return maps.map((values, k) => {
      const most = k === 2 ? far : both;
      return { most, shares: logarithmic(values, most), beyond: 0 };
    });
  }
  const common = scale === "largest" ? limit(...maps) : robustLimit(analytical, numerical);
  return maps.map((values, k) => {
    const most = k === 2 && scale === "own" ? limit(difference) : common;
    return { most, beyond: Array.from(values).filter((value) => isBeyond(value, most)).length };
  });
}
