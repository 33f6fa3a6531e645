// What the coders of masks and of choices share: states of 32 bits from 2^16 on, words of 16 bits, packed whole numbers.

/** Where a state begins and, after reading, ends. */
export const LOWEST = 2 ** 16;

/** @param {Uint8Array} data @param {number} at @param {number} count @returns {Uint32Array} so many states, as in the bytes from `at` on */
export const readStates = (data, at, count) => new Uint32Array(data.slice(at, at + 4 * count).buffer);

/** @param {Uint8Array} data @param {number} at @param {number} count @returns {Uint16Array} */
export const readWords = (data, at, count) => new Uint16Array(data.slice(at, at + 2 * count).buffer);

/**
 * Whole numbers of `width` bits each, the lowest bit first.
 * @param {Uint8Array} data @param {number} at of the first byte @param {number} count @param {number} width at most 32
 * @returns {Uint32Array}
 */
export function unpack(data, at, count, width) {
  const out = new Uint32Array(count);
  for (let i = 0, bit = 0; i < count; i++)
    for (let b = 0; b < width; b++, bit++) out[i] |= ((data[at + (bit >>> 3)] >> (bit & 7)) & 1) << b;
  return out;
}
