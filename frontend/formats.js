// Numbers, shapes, indices, sizes and times as people write them; the same strings as core/formats.py.

const NOTHING = "–"; // in place of a number that there is not
/** @type {Record<string, string>} as Python and as JavaScript write them */
const NOT_FINITE = {
  nan: "NaN",
  inf: "∞",
  "-inf": "-∞",
  NaN: "NaN",
  Infinity: "∞",
  "-Infinity": "-∞",
};
const MOST_DIGITS = 17; // with these two numbers that differ look different
const NARROW = 0.45; // by which a minus or a point is narrower than a digit, as a share of it
const WHOLE = 1e-6; // relative; what finite differences may leave of a whole number
const HUGE = 1e6; // from here on a whole number is written with an exponent

/**
 * A number short enough to read: `1.0`, `0.3333`, `3e-10`.
 * @param {import("./states").Figure | undefined} value a number, "nan", "inf", "-inf", or [real, imaginary]
 * @param {number} [digits]
 * @returns {string}
 */
export function number(value, digits = 4) {
  if (value === null || value === undefined) return NOTHING;
  if (Array.isArray(value)) {
    const imaginary = number(value[1], digits);
    return `${number(value[0], digits)}${imaginary.startsWith("-") ? "" : "+"}${imaginary}j`;
  }
  if (typeof value !== "number") return NOT_FINITE[value] ?? String(value);
  if (!Number.isFinite(value)) return NOT_FINITE[String(value)];
  if (Number.isInteger(value) && Math.abs(value) < HUGE) return (value || 0).toFixed(1);
  const { text, power, long } = rounded(value, digits);
  return long || text.includes(".") || power >= digits - 1 ? text : `${text}.0`;
}

/** @param {number} value @param {number} digits */
function rounded(value, digits) {
  const [mantissa, power] = value
    .toExponential(digits - 1)
    .split("e")
    .map(Number);
  const long = value !== 0 && (power < -4 || power >= digits);
  const text = long ? `${mantissa}e${power}` : String(Number(value.toPrecision(digits)));
  return { text, power, long };
}

/** @param {import("./states").Figure | undefined} value the size of an error, with two digits */
export const error = (value) => number(value, 2);

/**
 * Two numbers with as many digits as it takes for different ones to look different.
 * @param {import("./states").Figure} first @param {import("./states").Figure} second @param {number} [digits]
 * @returns {[string, string]}
 */
export function compared(first, second, digits = 4) {
  for (let more = digits; more <= MOST_DIGITS; more++) {
    const [one, other] = [number(first, more), number(second, more)];
    if (one !== other) return [one, other];
  }
  return [number(first, digits), number(second, digits)];
}

/**
 * A number for a cell of a heat map: `2`, `-.5`, `3e-10`; what only rounding makes whole keeps its zeros, `-1.0`.
 * @param {number} value
 * @param {number} [room] digits whose room it may take where that can be
 */
export function short(value, room = 5) {
  if (!Number.isFinite(value)) return NOT_FINITE[String(value)];
  let text = "";
  for (const digits of [3, 2, 1]) {
    const near = rounded(value, digits);
    text = near.text;
    if (Math.abs(Number(text) - value) > WHOLE * Math.abs(value))
      text = near.long
        ? value.toExponential(digits - 1).replace("e+", "e")
        : value.toPrecision(digits);
    text = text.replace(/^(-?)0\./, "$1.");
    if (text.length - NARROW * (text.match(/[-.]/g) ?? []).length <= room) break;
  }
  return text;
}

/** @param {number} whole */
export const count = (whole) => (whole < 1e8 ? whole.toLocaleString("en-US") : number(whole, 3));

/** @param {number[]} sizes */
export const shape = (sizes) => sizes.join("×");

/**
 * @param {number[]} position
 * @param {boolean} [pair] the last number is the real or the imaginary part
 * @returns {string}
 */
export function index(position, pair = false) {
  if (pair)
    return `${index(position.slice(0, -1))}.${["real", "imag"][position[position.length - 1]]}`;
  return position.length ? `[${position.join(",")}]` : "";
}

/**
 * An element of a block's output or input, such as `out[0,2]`, or `out[0,2].imag` of a complex one.
 * @param {import("./states").BlockState} block @param {"output" | "input"} side @param {number[]} position
 */
export const element = (block, side, position) =>
  block[`${side}_name`] + index(position, block[`${side}_complex`]);

/** @param {number} bytes */
export function size(bytes) {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let value = bytes;
  while (value >= 999.5 && units.length > 1) {
    value /= 1000;
    units.shift();
  }
  const whole = units[0] === "B" || value >= 99.95;
  return `${whole ? Math.floor(value + 0.5) : number(Math.floor(value * 10 + 0.5) / 10)} ${units[0]}`;
}

/** @param {number} seconds */
export function milliseconds(seconds) {
  const ms = seconds * 1000;
  return ms >= 10 ? String(Math.floor(ms + 0.5)) : number(ms, 2);
}

/** @param {number} seconds */
export function time(seconds) {
  if (seconds < 1) return `${milliseconds(seconds)} ms`;
  const whole = Math.floor(seconds + 0.5);
  if (whole < 60) return `${seconds < 10 ? number(seconds, 2) : whole} s`;
  return `${Math.floor(whole / 60)} min ${whole % 60} s`;
}
