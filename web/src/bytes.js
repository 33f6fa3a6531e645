import { TicketError } from "./errors.js";

/** @param {number[]} shape @returns {number} */
export const product = (shape) => shape.reduce((total, size) => total * size, 1);

/** @param {any} value @returns {boolean} */
export const isCount = (value) => Number.isSafeInteger(value) && value >= 0;

/** @param {number} value an integer from 0 to 2^31 - 1 @returns {number} ones in its binary form */
export function countOnes(value) {
  let ones = 0;
  for (; value; value >>= 1) ones += value & 1;
  return ones;
}

/** @param {Float32Array} numbers @returns {Uint8Array} the same memory */
export const bytesOf = (numbers) => new Uint8Array(numbers.buffer, numbers.byteOffset, numbers.byteLength);

/** @param {Uint8Array} bytes @returns {string} lower-case hexadecimal */
export const hex = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");

/** @param {number | bigint} value @returns {Uint8Array} 8 bytes, little-endian */
export const littleEndian = (value) => new Uint8Array(new BigUint64Array([BigInt(value)]).buffer);

/** @param {Uint8Array} bytes @param {string} what @returns {string} strict UTF-8 */
export function decodeText(bytes, what) {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new TicketError(`${what} is not UTF-8`);
  }
}

/** @param {string} text @returns {Uint8Array} */
export const encodeText = (text) => new TextEncoder().encode(text);

/** @template {Uint8Array | Float32Array} T @param {T} matrices (rows, columns), one after the other @param {number} rows @param {number} columns @returns {T} */
export function transpose(matrices, rows, columns) {
  const out = matrices.slice();
  for (let first = 0; first < out.length; first += rows * columns)
    for (let i = 0; i < rows; i++)
      for (let j = 0; j < columns; j++) out[first + j * rows + i] = matrices[first + i * columns + j];
  return /** @type {T} */ (out);
}
