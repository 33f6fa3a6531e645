import { countOnes, product } from "./bytes.js";
import { shown, TicketError } from "./errors.js";
import { normal } from "./normal.js";
import { randomBits, tensorKey } from "./philox.js";

const TINY = 2 ** -126; // smallest normal float32
const HUGE = (2 - 2 ** -23) * 2 ** 127;

/** @typedef {{name: string, scale: number}} Law */

/**
 * @typedef {(bits: Uint32Array, scale: number, out: Float32Array) => void} PerWeight
 * @type {Record<string, {low: number, high: number, fill?: PerWeight}>} the bounds of a law's scale, and how a weight follows
 *   from its 32 random bits
 */
const LAWS = {
  uniform: { low: TINY * 2 ** 24, high: HUGE, fill: uniform },
  normal: { low: TINY * 2 ** 32, high: HUGE / 8, fill: normal },
  signed: { low: TINY, high: HUGE, fill: (bits, scale, out) => bits.forEach((each, i) => (out[i] = each >>> 31 ? scale : -scale)) },
  hadamard: { low: TINY, high: HUGE },
  constant: { low: TINY, high: HUGE, fill: (_, scale, out) => out.fill(scale) },
};

/** @param {any} name @param {any} scale @returns {Law} */
export function checkedLaw(name, scale) {
  if (typeof name !== "string" || !Object.hasOwn(LAWS, name)) throw new TicketError(`unknown law ${shown(name)}`);
  const number = typeof scale === "bigint" ? Number(scale) : scale;
  const { low, high } = LAWS[name];
  if (typeof number !== "number" || !(number >= low && number <= high))
    throw new TicketError(`the scale of ${name} must be from ${low} to ${high}, got ${shown(scale)}`);
  return { name, scale: number };
}

/**
 * The tensor's random weights, before any mask: a function of seed, name and shape alone.
 * @param {bigint} seed @param {string} name @param {number[]} shape @param {Law} law @returns {Float32Array}
 */
export function draw(seed, name, shape, law) {
  const out = new Float32Array(product(shape));
  const key = tensorKey(seed, name);
  const { fill } = LAWS[law.name];
  if (fill) fill(randomBits(key, out.length), law.scale, out);
  else if (out.length) hadamard(key, shape, law.scale, out);
  return out;
}

/** @type {PerWeight} */
function uniform(bits, scale, out) {
  const step = Math.fround(scale) * 2 ** -24;
  for (let i = 0; i < bits.length; i++) out[i] = (((bits[i] >>> 7) | 1) - 2 ** 24) * step;
}

/**
 * Blocks of Hadamard's matrix along the longer side, with random signs.
 * @param {[bigint, bigint]} key @param {number[]} shape @param {number} scale @param {Float32Array} out
 */
function hadamard(key, shape, scale, out) {
  const rows = shape.length > 1 ? shape[0] : 1;
  const columns = out.length / rows;
  const [longSide, shortSide] = [Math.max(rows, columns), Math.min(rows, columns)];
  let n = 1;
  while (n < shortSide) n *= 2;
  const bits = randomBits(key, longSide + Math.ceil(longSide / n) * shortSide);
  for (let row = 0, i = 0; row < rows; row++) {
    for (let column = 0; column < columns; column++, i++) {
      const [long, short] = rows > columns ? [row, column] : [column, row];
      const signs = (bits[long] ^ bits[longSide + Math.floor(long / n) * shortSide + short]) >>> 31;
      out[i] = (signs + countOnes(long % n & short)) % 2 ? -scale : scale;
    }
  }
}
