import { blake2b } from "./blake2b.js";
import { encodeText, littleEndian } from "./bytes.js";

const GENERATOR = 1;
const PERSON = encodeText("strongticket");
const ROUNDS = 10;
// The multipliers, as 16-bit digits from the lowest, and what is added to the key after a round.
const FIRST = [0x6c93, 0xe14c, 0x470e, 0xd2e7];
const SECOND = [0x1157, 0x9512, 0x8263, 0xca5a];
const STEPS = [0x9e3779b97f4a7c15n, 0xbb67ae8584caa73bn];

/** @param {bigint} seed @param {string} name @returns {[bigint, bigint]} the tensor's key */
export function tensorKey(seed, name) {
  const message = Uint8Array.from([GENERATOR, 0, 0, 0, ...littleEndian(seed), ...encodeText(name)]);
  const [k0, k1] = blake2b(message, 16, PERSON);
  return [k0, k1];
}

/**
 * Philox 4×64 with 10 rounds: the 32-bit numbers that weights 0 .. count - 1 of a tensor are made of.
 * @param {[bigint, bigint]} key @param {number} count @returns {Uint32Array}
 */
export function randomBits(key, count) {
  // Low and high halves of both words of the key, for each round.
  const keys = new Uint32Array(BigUint64Array.from({ length: 2 * ROUNDS }, (_, i) => key[i % 2] + BigInt(i >> 1) * STEPS[i % 2]).buffer);
  const blocks = Math.ceil(count / 8);
  const out = new Uint32Array(8 * blocks);
  const [p, q] = [new Uint32Array(4), new Uint32Array(4)];
  for (let block = 0; block < blocks; block++) {
    // Counter words as low and high halves; the first is block + 1.
    let [a, b, c, d, e, f, g, h] = [(block + 1) >>> 0, Math.floor((block + 1) / 2 ** 32), 0, 0, 0, 0, 0, 0];
    for (let at = 0; at < keys.length; at += 4) {
      multiply(FIRST, a, b, p);
      multiply(SECOND, e, f, q);
      a = (q[2] ^ c ^ keys[at]) >>> 0;
      b = (q[3] ^ d ^ keys[at + 1]) >>> 0;
      e = (p[2] ^ g ^ keys[at + 2]) >>> 0;
      f = (p[3] ^ h ^ keys[at + 3]) >>> 0;
      [c, d, g, h] = [q[0], q[1], p[0], p[1]];
    }
    out.set([a, b, c, d, e, f, g, h], 8 * block);
  }
  return out.subarray(0, count);
}

/**
 * out = m · x as four 32-bit words, by 16-bit digits: every sum is below 2^35, exact in a float64.
 * @param {number[]} m four digits @param {number} low @param {number} high halves of x @param {Uint32Array} out
 */
function multiply(m, low, high, out) {
  const [x0, x1, x2, x3] = [low & 0xffff, low >>> 16, high & 0xffff, high >>> 16];
  const [m0, m1, m2, m3] = m;
  const s0 = m0 * x0;
  const s1 = m0 * x1 + m1 * x0 + Math.floor(s0 / 65536);
  const s2 = m0 * x2 + m1 * x1 + m2 * x0 + Math.floor(s1 / 65536);
  const s3 = m0 * x3 + m1 * x2 + m2 * x1 + m3 * x0 + Math.floor(s2 / 65536);
  const s4 = m1 * x3 + m2 * x2 + m3 * x1 + Math.floor(s3 / 65536);
  const s5 = m2 * x3 + m3 * x2 + Math.floor(s4 / 65536);
  const s6 = m3 * x3 + Math.floor(s5 / 65536);
  [out[0], out[1]] = [(s0 & 0xffff) | (s1 << 16), (s2 & 0xffff) | (s3 << 16)];
  [out[2], out[3]] = [(s4 & 0xffff) | (s5 << 16), s6];
}

/**
 * Philox 4×32 with 10 rounds: numbers first, first + 1, … of the 16-bit offsets of a tensor's choices.
 * @param {[bigint, bigint]} key @param {number} first @param {number} count @returns {Uint16Array}
 */
export function randomOffsets([key], first, count) {
  const halves = [Number(key & 0xffffffffn), Number(key >> 32n)];
  const keys = Int32Array.from({ length: 2 * ROUNDS }, (_, i) => halves[i % 2] + Math.imul(i >> 1, i % 2 ? 0xbb67ae85 : 0x9e3779b9));
  const skip = first % 8;
  const out = new Int32Array(4 * Math.ceil((skip + count) / 8));
  for (let at = 0, counter = (first - skip) / 8; at < out.length; at += 4, counter++) {
    let [a, b, c, d] = [counter | 0, Math.floor(counter / 2 ** 32) | 0, 0, 0];
    for (let round = 0; round < keys.length; round += 2) {
      const left = upperHalf(a, 0xd251, 0x1f53) ^ d ^ keys[round + 1];
      d = Math.imul(a, 0xd2511f53);
      a = upperHalf(c, 0xcd9e, 0x8d57) ^ b ^ keys[round];
      b = Math.imul(c, 0xcd9e8d57);
      c = left;
    }
    [out[at], out[at + 1], out[at + 2], out[at + 3]] = [a, b, c, d];
  }
  return new Uint16Array(out.buffer, 2 * skip, count);
}

/** The upper 32 of the 64 bits of x · (65536 · high + low), by 16-bit digits. @param {number} x @param {number} high @param {number} low */
function upperHalf(x, high, low) {
  const [x0, x1] = [x & 0xffff, x >>> 16];
  const middle = Math.imul(x1, low) + (Math.imul(x0, low) >>> 16);
  return Math.imul(x1, high) + (middle >>> 16) + ((Math.imul(x0, high) + (middle & 0xffff)) >>> 16);
}
