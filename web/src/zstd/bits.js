import { TicketError } from "../errors.js";

/** @param {string} why */
export const damaged = (why) => new TicketError(`zstd frame is damaged: ${why}`);

/** @param {number} value above 0 @returns {number} position of its highest set bit */
export const highestBit = (value) => 31 - Math.clz32(value);

/** Bits of a zstd stream, which is read from its end to its beginning. */
export class BackwardBits {
  /** @param {Uint8Array} data its last byte has a 1 above the first bit to read */
  constructor(data) {
    if (!data.length || !data[data.length - 1]) throw damaged("a bit stream has no end mark");
    this.data = data;
    this.left = 8 * (data.length - 1) + highestBit(data[data.length - 1]);
  }

  /** @param {number} count at most 24 @returns {number} the next bits, which stay; zeros follow the last one */
  peek(count) {
    const from = this.left - count;
    const at = from >> 3; // below 0 before the first byte: undefined counts as 0
    const data = this.data;
    const word = data[at] | (data[at + 1] << 8) | (data[at + 2] << 16) | (data[at + 3] << 24);
    return (word >>> (from & 7)) & ((1 << count) - 1);
  }

  /** @param {number} count at most 32 @returns {number} */
  take(count) {
    if (count > 24) return this.take(count - 16) * 65536 + this.take(16);
    const bits = this.peek(count);
    this.left -= count; // below 0: more was taken than there is
    return bits;
  }
}

/** Bits from the beginning on, the lowest of a byte first. */
export class ForwardBits {
  /** @param {Uint8Array} data */
  constructor(data) {
    this.data = data;
    this.at = 0;
  }

  /** @param {number} count at most 16 @returns {number} */
  take(count) {
    const byte = this.at >> 3;
    const word = this.data[byte] | (this.data[byte + 1] << 8) | (this.data[byte + 2] << 16);
    const bits = (word >>> (this.at & 7)) & ((1 << count) - 1);
    this.at += count;
    if (this.at > 8 * this.data.length) throw damaged("a table ends early");
    return bits;
  }
}
