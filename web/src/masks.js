import { Model, SCALE, decodeAns } from "./ans.js";
import { Cursor, product } from "./bytes.js";
import { TicketError } from "./errors.js";
import { unzstd } from "./zstd/zstd.js";

const FULL = 16; // class of lines that keep everything; class 0 keeps nothing

/**
 * @param {string} codec @param {Uint8Array} data @param {number[]} shape @param {number} kept
 * @returns {Uint8Array} 1 for each weight that is kept, 0 for the others, in C order
 */
export function decodeMask(codec, data, shape, kept) {
  const size = product(shape);
  const cursor = new Cursor(data);
  const mask = readMask(codec, cursor, shape, size, kept);
  if (cursor.left) throw new TicketError(`mask data has ${cursor.left} bytes too many`);
  checkKept(mask, kept);
  return mask;
}

/** @param {Uint8Array} mask @param {number} kept */
export function checkKept(mask, kept) {
  const found = mask.reduce((sum, bit) => sum + bit, 0);
  if (found !== kept) throw new TicketError(`the mask keeps ${found} weights where ${kept} are declared`);
}

/** @param {string} codec @param {Cursor} cursor @param {number[]} shape @param {number} size @param {number} kept */
function readMask(codec, cursor, shape, size, kept) {
  if (codec === "zstd") return unpack(unzstd(cursor.take(cursor.left), { size: (size + 7) >> 3 }), size);
  if (codec === "ans") return ansMask(cursor, size, probability(kept, size));
  const [kind, layout] = codec.split("-");
  if (!["ans-rows", "ans-columns", "owner-rows", "owner-columns"].includes(codec))
    throw new TicketError(`unknown mask codec "${codec}"`);
  if (shape.length < 2 || !size) throw new TicketError(`codec "${codec}" needs two axes and at least one weight`);
  const [rows, columns] = shape.slice(-2);
  const length = layout === "rows" ? columns : rows;
  const lines = (kind === "ans" ? classLines : ownerLines)(cursor, size / length, length);
  return layout === "rows" ? lines : transposed(lines, columns, rows);
}

/** @param {Uint8Array} lines matrices (rows, columns), one after the other @param {number} rows @param {number} columns */
function transposed(lines, rows, columns) {
  const out = new Uint8Array(lines.length);
  for (let first = 0; first < lines.length; first += rows * columns)
    for (let i = 0; i < rows; i++)
      for (let j = 0; j < columns; j++) out[first + j * rows + i] = lines[first + i * columns + j];
  return out;
}

/** @param {Uint8Array} packed @param {number} size @returns {Uint8Array} */
function unpack(packed, size) {
  if (size % 8 && packed[packed.length - 1] >> size % 8) throw new TicketError("unused bits of a packed mask are not 0");
  const mask = new Uint8Array(size);
  for (let i = 0; i < size; i++) mask[i] = (packed[i >> 3] >> (i & 7)) & 1;
  return mask;
}

/** @param {number} kept @param {number} size @returns {number} times SCALE */
function probability(kept, size) {
  if (kept === 0 || kept === size) return kept ? SCALE : 0;
  const rounded = (2n * BigInt(kept) * BigInt(SCALE) + BigInt(size)) / (2n * BigInt(size));
  return Math.min(Math.max(Number(rounded), 1), SCALE - 1);
}

/** @param {Cursor} cursor @param {number} size @param {number} chance @returns {Uint8Array} */
function ansMask(cursor, size, chance) {
  if (chance === 0 || chance === SCALE) return new Uint8Array(size).fill(chance ? 1 : 0);
  return unpack(decodeAns(cursor, (size + 7) >> 3, Model.mask(chance)), size);
}

/** @param {Cursor} cursor @param {number} count @param {number} length @returns {Uint8Array} lines one after the other */
function classLines(cursor, count, length) {
  const classes = byteString(cursor, count);
  const highest = classes.reduce((most, one) => Math.max(most, one), 0);
  if (highest > FULL) throw new TicketError(`a line has class ${highest}, the highest is ${FULL}`);
  const lines = new Uint8Array(count * length);
  for (let one = 1; one <= FULL; one++) {
    const inside = [];
    for (let line = 0; line < count; line++) if (classes[line] === one) inside.push(line);
    if (!inside.length) continue;
    const size = inside.length * length;
    const bits = one === FULL ? new Uint8Array(size).fill(1) : ansMask(cursor, size, cursor.integer(2));
    inside.forEach((line, i) => lines.set(bits.subarray(i * length, (i + 1) * length), line * length));
  }
  return lines;
}

/** @param {Cursor} cursor @param {number} count @param {number} length @returns {Uint8Array} lines one after the other */
function ownerLines(cursor, count, length) {
  const width = length < 2 ** 8 ? 1 : length < 2 ** 16 ? 2 : 8;
  const owners = new Float64Array(count);
  for (let byte = 0; byte < width; byte++) {
    const plane = byteString(cursor, count);
    for (let line = 0; line < count; line++) owners[line] += plane[line] * 2 ** (8 * byte);
  }
  const lines = new Uint8Array(count * length);
  owners.forEach((owner, line) => {
    if (owner > length) throw new TicketError(`line ${line} keeps weight ${owner}, it has ${length} weights`);
    if (owner < length) lines[line * length + owner] = 1;
  });
  return lines;
}

/** @param {Cursor} cursor @param {number} count @returns {Uint8Array} */
function byteString(cursor, count) {
  const mode = cursor.integer(1);
  if (mode === 0) return unzstd(cursor.take(cursor.integer(4)), { size: count });
  if (mode !== 1 && mode !== 2) throw new TicketError(`byte string has unknown mode ${mode}`);
  const values = cursor.integer(1) + 1;
  if (mode === 2) return decodeAns(cursor, count, Model.uniform(values));
  const pairs = cursor.take(2 * values);
  if (values === 1) return new Uint8Array(count).fill(pairs[0]);
  return decodeAns(cursor, count, Model.table(pairs));
}
