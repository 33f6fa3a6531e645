import { ForwardBits, damaged, highestBit } from "./bits.js";

/** A finite-state entropy table (RFC 8878, 4.1): state -> symbol, and how to come to the next state. */
export class FseTable {
  /** @param {number} log the table has 2^log states @param {ArrayLike<number>} counts states per symbol; -1: rare */
  constructor(log, counts) {
    const size = 1 << log;
    this.log = log;
    this.symbols = new Uint8Array(size);
    this.bits = new Uint8Array(size);
    this.bases = new Uint16Array(size);
    let high = size;
    for (let symbol = 0; symbol < counts.length; symbol++) if (counts[symbol] < 0) this.symbols[--high] = symbol;
    const step = (size >> 1) + (size >> 3) + 3;
    let at = 0;
    for (let symbol = 0; symbol < counts.length; symbol++) {
      for (let i = 0; i < counts[symbol]; i++) {
        this.symbols[at] = symbol;
        do at = (at + step) & (size - 1);
        while (at >= high);
      }
    }
    const next = Array.from(counts, Math.abs);
    for (let state = 0; state < size; state++) {
      const number = next[this.symbols[state]]++;
      this.bits[state] = log - highestBit(number);
      this.bases[state] = (number << this.bits[state]) - size;
    }
  }
}

/** @param {number} symbol @returns {FseTable} the table that only knows this symbol */
export const oneSymbol = (symbol) => new FseTable(0, [...new Array(symbol).fill(0), 1]);

/**
 * @param {Uint8Array} data @param {number} maxLog @param {number} maxSymbol
 * @returns {{table: FseTable, size: number}} the table described at the beginning of the data, and its bytes there
 */
export function readFseTable(data, maxLog, maxSymbol) {
  const bits = new ForwardBits(data);
  const log = bits.take(4) + 5;
  if (log > maxLog) throw damaged(`a table has 2^${log} states, 2^${maxLog} are allowed`);
  const counts = [];
  let left = 1 << log;
  while (left > 0 && counts.length <= maxSymbol) {
    // A value up to left + 1 takes as many bits as that, or one less where the shorter form is free.
    const width = highestBit(left + 1) + 1;
    const short = (1 << width) - 2 - left;
    let value = bits.take(width - 1);
    if (value >= short) {
      value += bits.take(1) << (width - 1);
      if (value >= 1 << (width - 1)) value -= short;
    }
    counts.push(value - 1);
    left -= Math.abs(value - 1);
    for (let repeat = value === 1 ? 3 : 0; repeat === 3; ) {
      repeat = bits.take(2);
      for (let i = 0; i < repeat; i++) counts.push(0);
    }
  }
  if (left || counts.length > maxSymbol + 1) throw damaged("a table's counts do not add up");
  return { table: new FseTable(log, counts), size: (bits.at + 7) >> 3 };
}
