import { Cursor } from "../bytes.js";
import { BackwardBits, damaged } from "./bits.js";
import { FseTable, oneSymbol, readFseTable } from "./fse.js";

// A sequence: copy so many literals, then so many bytes from so far back (RFC 8878, 3.1.1.3.2).

/** @param {number} first @param {number[]} bits of each code @returns {number[]} each code's smallest value */
const bases = (first, bits) => bits.map((_, i) => bits.slice(0, i).reduce((sum, width) => sum + 2 ** width, first));

const LITERAL_BITS = [...new Array(16).fill(0), 1, 1, 1, 1, 2, 2, 3, 3, 4, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16];
const MATCH_BITS = [
  ...new Array(32).fill(0), 1, 1, 1, 1, 2, 2, 3, 3, 4, 4, 5, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16,
];
const LITERAL_BASES = bases(0, LITERAL_BITS);
const MATCH_BASES = bases(3, MATCH_BITS);

/** In the order of their bits in the mode byte: literal lengths, offsets, match lengths. */
const KINDS = [
  {
    maxLog: 9,
    maxSymbol: 35,
    usual: new FseTable(6, [
      4, 3, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 3, 2, 1, 1, 1, 1, 1, -1, -1, -1, -1,
    ]),
  },
  {
    maxLog: 8,
    maxSymbol: 31,
    usual: new FseTable(5, [
      1, 1, 1, 1, 1, 1, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1,
    ]),
  },
  {
    maxLog: 9,
    maxSymbol: 52,
    usual: new FseTable(6, [1, 4, 3, 2, 2, 2, 2, 2, 2, ...new Array(37).fill(1), ...new Array(7).fill(-1)]),
  },
];

/** What the sequences of a block leave for those of the next. */
export class SequenceState {
  /** @type {(FseTable | null)[]} */
  tables = [null, null, null];
  offsets = [1, 4, 8];
}

/**
 * @param {Uint8Array} data the sequences section of a block
 * @param {SequenceState} state
 * @param {(literals: number, offset: number, length: number) => void} copy
 */
export function readSequences(data, state, copy) {
  const cursor = new Cursor(data);
  let count = cursor.integer(1);
  if (count === 255) count = cursor.integer(2) + 0x7f00;
  else if (count > 127) count = (count - 128) * 256 + cursor.integer(1);
  if (!count) {
    if (cursor.left) throw damaged("a block is longer than its content");
    return;
  }
  const modes = cursor.integer(1);
  if (modes & 3) throw damaged("a block has unknown modes");
  const tables = KINDS.map((kind, i) => {
    state.tables[i] = readTable((modes >> (6 - 2 * i)) & 3, kind, cursor, state.tables[i]);
    return state.tables[i];
  });
  const bits = new BackwardBits(cursor.take(cursor.left));
  const states = tables.map((table) => bits.take(table.log));
  const [literals, offsets, matches] = tables;
  for (let i = 0; i < count; i++) {
    const offsetCode = offsets.symbols[states[1]];
    const offsetValue = 2 ** offsetCode + bits.take(offsetCode);
    const matchCode = matches.symbols[states[2]];
    const length = MATCH_BASES[matchCode] + bits.take(MATCH_BITS[matchCode]);
    const literalCode = literals.symbols[states[0]];
    const literal = LITERAL_BASES[literalCode] + bits.take(LITERAL_BITS[literalCode]);
    copy(literal, nextOffset(state.offsets, offsetValue, literal === 0), length);
    if (i + 1 < count)
      for (const kind of [0, 2, 1]) {
        const table = tables[kind];
        states[kind] = table.bases[states[kind]] + bits.take(table.bits[states[kind]]);
      }
    if (bits.left < 0) break;
  }
  if (bits.left) throw damaged("sequences have another length");
}

/** @param {number} mode @param {(typeof KINDS)[0]} kind @param {Cursor} cursor @param {FseTable | null} last */
function readTable(mode, kind, cursor, last) {
  if (mode === 0) return kind.usual;
  if (mode === 1) {
    const symbol = cursor.integer(1);
    if (symbol > kind.maxSymbol) throw damaged(`symbol ${symbol} is unknown`);
    return oneSymbol(symbol);
  }
  if (mode === 2) {
    const { table, size } = readFseTable(cursor.data.subarray(cursor.at), kind.maxLog, kind.maxSymbol);
    cursor.take(size);
    return table;
  }
  if (!last) throw damaged("the first block repeats a table");
  return last;
}

/** @param {number[]} last the last three, changed @param {number} value @param {boolean} noLiterals */
function nextOffset(last, value, noLiterals) {
  if (value > 3) {
    last.unshift(value - 3);
    last.pop();
    return last[0];
  }
  const index = value - 1 + Number(noLiterals);
  const offset = index < 3 ? last[index] : last[0] - 1;
  last.splice(Math.min(index, 2), 1);
  last.unshift(offset);
  return offset;
}
