import { TicketError } from "./errors.js";

/** Reads little-endian fields one after the other; what is not there is an error. */
export class Cursor {
  /** @param {Uint8Array} data */
  constructor(data) {
    this.data = data;
    this.at = 0;
  }

  get left() {
    return this.data.length - this.at;
  }

  /** @param {number} size @returns {Uint8Array} the next bytes, shared with the data */
  take(size) {
    if (size > this.left) throw new TicketError(`data ends early: ${size} bytes are needed, ${this.left} are left`);
    this.at += size;
    return this.data.subarray(this.at - size, this.at);
  }

  /** @param {number} size bytes, at most 6: the integer is exact @returns {number} */
  integer(size) {
    return this.take(size).reduceRight((value, byte) => value * 256 + byte, 0);
  }
}

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

/** @param {Uint8Array} bytes @returns {string} lower-case hexadecimal */
export const hex = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");

/** @param {number | bigint} value @param {number} size @returns {Uint8Array} little-endian */
export function littleEndian(value, size) {
  const out = new Uint8Array(size);
  let rest = BigInt(value);
  for (let i = 0; i < size; i++, rest >>= 8n) out[i] = Number(rest & 255n);
  return out;
}

/** @param {Uint8Array} a @param {Uint8Array} b */
export const sameBytes = (a, b) => a.length === b.length && a.every((byte, i) => byte === b[i]);

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
