import { TicketError } from "./errors.js";
import { LOWEST, readStates, readWords, unpack } from "./rans.js";

// A block of choices: rows of numbers spacing · (v + u), u the random offset of a number. Its bytes say which v is kept.

const HEADER = 14; // bytes
const TOKENS = 224;
const ROOTS = [1, 1.189207115002721, 1.4142135623730951, 1.681792830507429]; // 2^(i/4)
// Trellises: with one state every v may be kept; else states by number, and what an odd v and an odd ⌊v/2⌋ turn over.
const TRELLISES = [null, { states: 4, h0: 2, h1: 1 }, { states: 8, h0: 5, h1: 2 }, { states: 64, h0: 33, h1: 10 }];

/** By token: k without its raw bits, and how many of these follow. Token 0, the number 0, has no k. */
const SMALLEST = new Int32Array(TOKENS);
const RAW_BITS = new Uint8Array(TOKENS);
for (let token = 1; token < TOKENS; token++) {
  const bits = token < 16 ? 0 : 1 + ((token - 16) >> 3);
  const size = token < 16 ? token >> 1 : (4 + ((token >> 1) & 3)) << bits;
  SMALLEST[token] = token & 1 ? size : -size;
  RAW_BITS[token] = bits;
}

/**
 * Read a block, whatever its bytes: numbers or an error, and only the checksum says whether they are right.
 * @param {Uint8Array} data @param {Uint16Array} offsets of all numbers @param {number} columns @param {Float32Array} out
 *   rows of numbers, all 0 @returns {Float32Array} the spacing of each row
 */
export function readBlock(data, offsets, columns, out) {
  const rows = columns ? out.length / columns : 0;
  if (!data.length) return new Float32Array(rows);
  if (data.length < HEADER) throw new TicketError("a block of choices is too short");
  const header = new DataView(data.buffer, data.byteOffset, HEADER);
  const [packing, more, unit, least] = [header.getUint8(0), header.getUint8(1), header.getFloat32(2, true), header.getInt16(6, true)];
  const [first, tokens, words] = [header.getUint8(8), header.getUint8(9), header.getUint32(10, true)];
  const [offsetBits, lanes] = [(packing >> 2) & 3, 1 << (packing >> 4)];
  const [digits, byParity, width] = [(more & 3) + 1, (more >> 2) & 1, more >> 3];
  const classes = 1 << (offsetBits + byParity);
  const tables = HEADER + Math.ceil((rows * width) / 8);
  const streams = tables + Math.ceil((classes * tokens * (digits + 4)) / 8);
  const raw = streams + 4 * lanes + 2 * words;
  const fits = offsetBits < 3 && width <= 16 && tokens && first + tokens <= TOKENS && lanes <= columns && raw <= data.length;
  if (!fits || !(unit > 0 && unit < Infinity)) throw new TicketError("a block of choices does not fit its sizes");
  const scales = width ? unpack(data, HEADER, rows, width) : new Uint32Array(rows).fill(1);
  const codes = unpack(data, tables, classes * tokens, digits + 4);
  const block = {
    spacings: Float32Array.from(scales, (scale) => scale && spacingOf(unit, least + scale - 1)),
    table: slots(codes, classes, first, digits),
    trellis: TRELLISES[packing & 3], offsetBits, byParity,
    lanes: new Int32Array(readStates(data, streams, lanes)),
    words: readWords(data, streams + 4 * lanes, words),
    raw: new Int32Array((data.length - raw + 11) >> 2), // two words more than needed, which are read of damaged bytes
  };
  new Uint8Array(block.raw.buffer).set(data.subarray(raw));
  const read = readNumbers(block, offsets, columns, out);
  if (read.words !== words || read.rawBytes !== data.length - raw || block.lanes.some((x) => x !== LOWEST))
    throw new TicketError("a block of choices is damaged");
  return block.spacings;
}

/** @param {number} unit @param {number} exponent in quarters of an octave */
const spacingOf = (unit, exponent) => unit * ROOTS[exponent & 3] * 2 ** Math.min(Math.max(exponent >> 2, -1000), 1000);

/**
 * What the lowest 12 bits of a state mean, by class: token, place among its slots, frequency - 1, from the highest bits.
 * @param {Uint32Array} codes of the frequencies of all classes @param {number} classes @param {number} first token @param {number} digits
 */
function slots(codes, classes, first, digits) {
  const table = new Int32Array(classes * 4096);
  const tokens = codes.length / classes;
  for (let at = 0, slot = 0; at < codes.length; at += tokens)
    frequencies(codes.subarray(at, at + tokens), digits).forEach((frequency, i) => {
      for (let place = 0; place < frequency; place++) table[slot++] = ((first + i) << 24) | (place << 12) | (frequency - 1);
    });
  return table;
}

/** @param {Uint32Array} codes @param {number} digits @returns {number[]} at least 1 each, 4096 together */
function frequencies(codes, digits) {
  const one = 1 << digits;
  const weights = Array.from(codes, (code) => code && (one + ((code - 1) % one)) * 2 ** Math.floor((code - 1) / one));
  const total = Math.max(weights.reduce((sum, weight) => sum + weight, 0), 1);
  const found = weights.map((weight) => 1 + Math.floor((weight * (4096 - codes.length)) / total));
  found[weights.indexOf(Math.max(...weights))] += 4096 - found.reduce((sum, frequency) => sum + frequency, 0);
  return found;
}

/**
 * @param {any} block @param {Uint16Array} offsets @param {number} columns @param {Float32Array} out
 * @returns {{words: number, rawBytes: number}} how many were read, or should have been
 */
function readNumbers({ spacings, table, trellis, offsetBits, byParity, lanes, words, raw }, offsets, columns, out) {
  const [offsetShift, classShift, mask] = [16 - offsetBits, 12 + byParity, lanes.length - 1];
  const lastRaw = raw.length - 2;
  const following = nextStates(trellis);
  const twice = trellis ? 1 : 0; // v is 2k + 1 or 2k, as the state says; without a trellis k
  const states = new Uint8Array(columns);
  let [at, rawAt, rawBit] = [0, 0, 0];
  for (let row = 0, i = 0, lane = 0; row < spacings.length; row++) {
    const spacing = spacings[row];
    if (spacing === 0) {
      i += columns;
      continue;
    }
    for (let column = 0; column < columns; column++, i++) {
      const offset = offsets[i];
      const state = states[column];
      let x = lanes[lane];
      const slot = table[((offset >>> offsetShift) << classShift) | ((state & byParity) << 12) | (x & 4095)];
      x = (Math.imul((slot & 4095) + 1, x >>> 12) + ((slot >>> 12) & 4095)) | 0;
      if (x >>> 16 === 0) {
        x = (x << 16) | (at < words.length ? words[at] : 0);
        at++;
      }
      lanes[lane] = x;
      lane = (lane + 1) & mask;
      const token = slot >>> 24;
      if (token === 0) continue;
      let k = SMALLEST[token];
      if (token > 15) {
        const bits = RAW_BITS[token];
        const place = rawAt < lastRaw ? rawAt : lastRaw;
        const more = ((raw[place] >>> rawBit) | ((raw[place + 1] << 1) << (31 - rawBit))) & ((1 << bits) - 1);
        k += k > 0 ? more : -more;
        rawBit += bits;
        rawAt += rawBit >> 5;
        rawBit &= 31;
      }
      states[column] = following[(state << 1) | (k & 1)];
      out[i] = Math.fround(Math.fround((k << twice) + (state & twice)) + (2 * offset - 65535) / 131072) * spacing;
    }
  }
  return { words: at, rawBytes: 4 * rawAt + Math.ceil(rawBit / 8) };
}

/** @param {{states: number, h0: number, h1: number} | null} trellis @returns {Uint8Array} by twice the state, plus 1 if k is odd */
function nextStates(trellis) {
  const { states, h0, h1 } = trellis ?? { states: 1, h0: 0, h1: 0 };
  return Uint8Array.from({ length: 2 * states }, (_, i) => (i >> 2) ^ ((i >> 1) & 1 ? h0 : 0) ^ (i & 1 ? h1 : 0));
}
