import { Cursor } from "../bytes.js";
import { TicketError } from "../errors.js";
import { damaged } from "./bits.js";
import { HuffmanTable, readHuffmanTable } from "./huffman.js";
import { SequenceState, readSequences } from "./sequences.js";
import { xxh64 } from "./xxhash.js";

const MAGIC = 0xfd2fb528;
const MAX_BLOCK = 1 << 17;

/**
 * One zstd frame (RFC 8878) that fills the data and declares its size.
 * @param {Uint8Array} data @param {{size?: number, atMost?: number}} expected bytes; a frame that declares others is refused
 * @returns {Uint8Array}
 */
export function unzstd(data, expected) {
  const cursor = new Cursor(data);
  const { size, hasChecksum } = readHeader(cursor);
  if (expected.size !== undefined ? size !== expected.size : !(size <= (expected.atMost ?? Infinity)))
    throw new TicketError(`zstd frame declares ${size} bytes, expected ${expected.size ?? `at most ${expected.atMost}`}`);
  const frame = new Frame(size);
  for (let last = false; !last; ) {
    const head = cursor.integer(3);
    last = Boolean(head & 1);
    const length = head >> 3;
    if (length > MAX_BLOCK) throw damaged(`a block has ${length} bytes`);
    const type = (head >> 1) & 3;
    if (type === 0) frame.append(cursor.take(length));
    else if (type === 1) frame.append(new Uint8Array(length).fill(cursor.integer(1)));
    else if (type === 2) frame.appendCompressed(cursor.take(length));
    else throw damaged("a block has an unknown type");
  }
  if (frame.used !== size) throw damaged(`it has ${frame.used} bytes and declares ${size}`);
  if (hasChecksum && BigInt(cursor.integer(4)) !== (xxh64(frame.out) & 0xffffffffn)) throw damaged("its checksum differs");
  if (cursor.left) throw damaged(`${cursor.left} bytes follow it`);
  return frame.out;
}

/** @param {Cursor} cursor @returns {{size: number, hasChecksum: boolean}} */
function readHeader(cursor) {
  if (cursor.integer(4) !== MAGIC) throw damaged("it does not begin as a zstd frame");
  const flags = cursor.integer(1);
  const single = Boolean(flags & 32);
  if (flags & 8) throw damaged("a reserved bit is set");
  if (!single) cursor.take(1); // the window: here it is the whole output
  if (cursor.integer([0, 1, 2, 4][flags & 3])) throw damaged("it needs a dictionary");
  const width = [single ? 1 : 0, 2, 4, 8][flags >> 6];
  if (!width) throw damaged("it does not declare its size");
  const size = width === 8 ? cursor.integer(4) + cursor.integer(4) * 2 ** 32 : cursor.integer(width);
  return { size: width === 2 ? size + 256 : size, hasChecksum: Boolean(flags & 4) };
}

/** The output, and what blocks leave for the blocks after them. */
class Frame {
  /** @type {HuffmanTable | null} */
  huffman = null;
  sequences = new SequenceState();
  used = 0;

  /** @param {number} size */
  constructor(size) {
    this.out = new Uint8Array(size);
  }

  /** @param {Uint8Array} bytes */
  append(bytes) {
    if (bytes.length > this.out.length - this.used) throw damaged("it is longer than declared");
    this.out.set(bytes, this.used);
    this.used += bytes.length;
  }

  /** @param {Uint8Array} block */
  appendCompressed(block) {
    const cursor = new Cursor(block);
    const literals = this.readLiterals(cursor);
    let read = 0;
    readSequences(cursor.take(cursor.left), this.sequences, (count, offset, length) => {
      if (count > literals.length - read) throw damaged("a block has too few literals");
      this.append(literals.subarray(read, read + count));
      read += count;
      if (offset < 1 || offset > this.used || length > this.out.length - this.used)
        throw damaged("a copy leads outside the output");
      for (const end = this.used + length; this.used < end; this.used++)
        this.out[this.used] = this.out[this.used - offset]; // byte by byte: a copy may read what it writes
    });
    this.append(literals.subarray(read));
  }

  /** @param {Cursor} cursor @returns {Uint8Array} */
  readLiterals(cursor) {
    const head = cursor.integer(1);
    const type = head & 3;
    const form = (head >> 2) & 3;
    if (type < 2) {
      const more = [0, 1, 0, 2][form];
      const size = more ? (head >> 4) + cursor.integer(more) * 16 : head >> 3;
      if (size > MAX_BLOCK) throw damaged(`a block has ${size} literals`);
      return type === 0 ? cursor.take(size) : new Uint8Array(size).fill(cursor.integer(1));
    }
    const range = 2 ** [10, 10, 14, 18][form];
    const sizes = (head >> 4) + cursor.integer([2, 2, 3, 4][form]) * 16;
    const size = sizes % range;
    if (size > MAX_BLOCK) throw damaged(`a block has ${size} literals`);
    let data = cursor.take(Math.floor(sizes / range));
    if (type === 2) {
      const read = readHuffmanTable(data);
      this.huffman = read.table;
      data = data.subarray(read.size);
    }
    if (!this.huffman) throw damaged("the first block repeats a Huffman code");
    return decodeLiterals(this.huffman, data, size, form !== 0);
  }
}

/** @param {HuffmanTable} table @param {Uint8Array} data @param {number} size @param {boolean} four streams, or one */
function decodeLiterals(table, data, size, four) {
  const out = new Uint8Array(size);
  if (!four) {
    table.decode(data, out);
    return out;
  }
  const cursor = new Cursor(data);
  const lengths = [cursor.integer(2), cursor.integer(2), cursor.integer(2)];
  const each = (size + 3) >> 2;
  if (3 * each > size) throw damaged("four streams for too few literals");
  for (let i = 0; i < 4; i++) {
    const stream = cursor.take(i < 3 ? lengths[i] : cursor.left);
    table.decode(stream, out.subarray(i * each, i < 3 ? (i + 1) * each : size));
  }
  return out;
}
