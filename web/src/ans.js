import { Cursor, countOnes } from "./bytes.js";
import { TicketError } from "./errors.js";

// constriction's AnsCoder: 32-bit words, 64-bit state, 24-bit probabilities.

const TOTAL = 2 ** 24;
const FREE = TOTAL - 256; // what is left after one unit for each byte value
const CHUNK = 2 ** 21; // bytes in one stream
export const SCALE = 65536; // probabilities are multiples of 1 / SCALE

/** Integer probabilities of the 256 byte values. */
export class Model {
  /** @param {number[]} weights 256 integers that add up to at most FREE; the first of the largest gets the rest */
  constructor(weights) {
    const rest = weights.reduce((left, weight) => left - weight, FREE);
    weights[weights.indexOf(Math.max(...weights))] += rest;
    this.starts = new Uint32Array(257);
    weights.forEach((weight, value) => {
      this.starts[value + 1] = this.starts[value] + weight + 1;
    });
  }

  /** @param {number} probability of each of a byte's bits to be 1, times SCALE */
  static mask(probability) {
    const one = BigInt(probability);
    const byOnes = Array.from({ length: 9 }, (_, ones) =>
      Number((BigInt(FREE) * one ** BigInt(ones) * (BigInt(SCALE) - one) ** BigInt(8 - ones)) >> 128n),
    );
    return new Model(Array.from({ length: 256 }, (_, value) => byOnes[countOnes(value)]));
  }

  /** @param {Uint8Array} pairs value, weight, value, weight, ... */
  static table(pairs) {
    const total = pairs.reduce((sum, byte, i) => sum + (i % 2 ? byte : 0), 0);
    if (!total) throw new TicketError("byte string has a table without weights");
    const weights = new Array(256).fill(0);
    for (let i = 0; i < pairs.length; i += 2) weights[pairs[i]] = Math.floor((FREE * pairs[i + 1]) / total);
    return new Model(weights);
  }

  /** @param {number} values below which all are alike */
  static uniform(values) {
    return new Model(Array.from({ length: 256 }, (_, value) => (value < values ? Math.floor(FREE / values) : 0)));
  }
}

/** @param {Cursor} cursor @param {number} count @param {Model} model @returns {Uint8Array} that many bytes */
export function decodeAns(cursor, count, model) {
  const out = new Uint8Array(count);
  for (let first = 0; first < count; first += CHUNK) {
    const words = new Cursor(cursor.take(4 * cursor.integer(4)));
    decodeChunk(words, out.subarray(first, first + CHUNK), model.starts);
  }
  return out;
}

/** @param {Cursor} cursor words only @param {Uint8Array} out @param {Uint32Array} starts */
function decodeChunk(cursor, out, starts) {
  const { data } = cursor;
  const words = new DataView(data.buffer, data.byteOffset, data.length);
  let next = data.length - 4; // words are taken from the end
  if (data.length && !words.getUint32(next, true)) throw new TicketError("ANS stream is damaged: its last word is 0");
  // The state is high * 2^32 + low.
  let high = 0;
  let low = 0;
  const refill = () => {
    high = low;
    low = words.getUint32(next, true);
    next -= 4;
  };
  while (high === 0 && next >= 0) refill();
  for (let i = 0; i < out.length; i++) {
    const rest = low & 0xffffff;
    let value = 0;
    for (let half = 128; half; half >>= 1) if (starts[value + half] <= rest) value += half;
    out[i] = value;
    // (state >> 24) * frequency + rest - start in two parts: no intermediate exceeds 2^53.
    const frequency = starts[value + 1] - starts[value];
    const above = high * 256 + (low >>> 24);
    const part = (above & 0xffff) * frequency + rest - starts[value];
    const upper = Math.floor(above / 65536) * frequency + Math.floor(part / 65536);
    high = Math.floor(upper / 65536);
    low = ((upper % 65536) * 65536 + (part % 65536)) >>> 0;
    if (high === 0 && next >= 0) refill();
  }
  if (high || low || next >= 0) throw new TicketError(`ANS stream holds more than its ${out.length} bytes`);
}
