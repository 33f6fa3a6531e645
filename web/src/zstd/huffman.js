import { BackwardBits, damaged, highestBit } from "./bits.js";
import { readFseTable } from "./fse.js";

const MAX_BITS = 11;

/** A Huffman code (RFC 8878, 4.2): the next `bits` bits -> a symbol and the length of its code. */
export class HuffmanTable {
  /** @param {number[]} weights of symbols 0, 1, ...; the last symbol's follows from the others */
  constructor(weights) {
    const sum = weights.reduce((total, weight) => total + (weight ? 1 << (weight - 1) : 0), 0);
    if (!sum) throw damaged("a Huffman code has no symbols");
    this.bits = highestBit(sum) + 1;
    const rest = (1 << this.bits) - sum;
    if (this.bits > MAX_BITS || rest !== 1 << highestBit(rest)) throw damaged("a Huffman code is not complete");
    const all = [...weights, highestBit(rest) + 1];
    this.symbols = new Uint8Array(1 << this.bits);
    this.lengths = new Uint8Array(1 << this.bits);
    let at = 0;
    for (let weight = 1; weight <= this.bits; weight++) {
      for (let symbol = 0; symbol < all.length; symbol++) {
        if (all[symbol] !== weight) continue;
        const end = at + (1 << (weight - 1));
        this.symbols.fill(symbol, at, end);
        this.lengths.fill(this.bits + 1 - weight, at, end);
        at = end;
      }
    }
  }

  /** @param {Uint8Array} stream @param {Uint8Array} out filled exactly, or the stream is damaged */
  decode(stream, out) {
    const bits = new BackwardBits(stream);
    for (let i = 0; i < out.length; i++) {
      const code = bits.peek(this.bits);
      out[i] = this.symbols[code];
      bits.left -= this.lengths[code];
    }
    if (bits.left) throw damaged("a Huffman stream has another length");
  }
}

/** @param {Uint8Array} data @returns {{table: HuffmanTable, size: number}} as described at the beginning of the data */
export function readHuffmanTable(data) {
  const head = data[0];
  const size = head < 128 ? head + 1 : 1 + ((head - 126) >> 1);
  if (!(size <= data.length)) throw damaged("a Huffman table ends early");
  if (head < 128) return { table: new HuffmanTable(codedWeights(data.subarray(1, size))), size };
  const weights = Array.from({ length: head - 127 }, (_, i) => (data[1 + (i >> 1)] >> (i % 2 ? 0 : 4)) & 15);
  return { table: new HuffmanTable(weights), size };
}

/** @param {Uint8Array} data @returns {number[]} weights from two interleaved FSE states */
function codedWeights(data) {
  const { table, size } = readFseTable(data, 6, 255);
  const bits = new BackwardBits(data.subarray(size));
  const weights = [];
  let state = bits.take(table.log);
  let other = bits.take(table.log);
  while (weights.length < 255) {
    weights.push(table.symbols[state]);
    state = table.bases[state] + bits.take(table.bits[state]);
    if (bits.left < 0) {
      weights.push(table.symbols[other]);
      break;
    }
    [state, other] = [other, state];
  }
  if (weights.length > 255 || weights.some((weight) => weight > MAX_BITS + 1))
    throw damaged("a Huffman table has too many symbols");
  return weights;
}
