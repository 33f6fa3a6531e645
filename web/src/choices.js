import { readBlock } from "./block.js";
import { bytesOf, product, transpose } from "./bytes.js";
import { TicketError } from "./errors.js";
import { randomOffsets, tensorKey } from "./philox.js";
import { sha256 } from "./sha256.js";

const BLOCK = 2 ** 19; // numbers of a block at least,
const LEAST_ROWS = 512; // and rows

/** Every connection has many random weights, and the file says which one is kept. @typedef {{blocks: Uint8Array[], transposed: boolean}} Choices */

/** @param {Uint8Array} data @param {number[]} sizes of the blocks @param {number[]} shape @param {boolean} transposed @returns {Choices} */
export function cutBlocks(data, sizes, shape, transposed) {
  const expected = blockEnds(matrixShape(shape, transposed)).length - 1;
  if (sizes.length !== expected) throw new TicketError(`${sizes.length} blocks of choices: expected ${expected}`);
  let end = 0;
  return { blocks: sizes.map((size) => data.subarray(end, (end += size))), transposed };
}

/**
 * @param {bigint} seed @param {string} name @param {number[]} shape @param {Choices} choices
 * @returns {{numbers: Float32Array, digests: Uint8Array[], spacings: Float32Array}} the tensor; of each block, as it is coded, the
 *   sha256 of its numbers; of each row, as it is coded, the distance between the random weights of a connection
 */
export function readChoices(seed, name, shape, { blocks, transposed }) {
  const [rows, columns] = matrixShape(shape, transposed);
  const ends = blockEnds([rows, columns]);
  const key = tensorKey(seed, name);
  const [matrix, spacings] = [new Float32Array(rows * columns), new Float32Array(rows)];
  const digests = blocks.map((block, i) => {
    const [first, last] = [columns * ends[i], columns * ends[i + 1]];
    const out = matrix.subarray(first, last);
    spacings.set(readBlock(block, randomOffsets(key, first, last - first), columns, out), ends[i]);
    return sha256(bytesOf(out));
  });
  return { numbers: transposed ? transpose(matrix, rows, columns) : matrix, digests, spacings };
}

/** The spacing of each number. @param {Float32Array} spacings of the rows @param {number[]} shape @param {boolean} transposed @returns {Float32Array} */
export function spread(spacings, shape, transposed) {
  const [rows, columns] = matrixShape(shape, transposed);
  const matrix = Float32Array.from({ length: rows * columns }, (_, i) => spacings[Math.floor(i / columns)]);
  return transposed ? transpose(matrix, rows, columns) : matrix;
}

/** @param {number[]} shape @param {boolean} transposed @returns {number[]} its axes cut in two where that is most nearly square; one axis is one column */
function matrixShape(shape, transposed) {
  const cuts = shape.slice(1).map((_, i) => [product(shape.slice(0, i + 1)), product(shape.slice(i + 1))]);
  const [first, ...others] = cuts.length ? cuts : [[product(shape), 1]];
  const [rows, columns] = others.reduce((best, sides) => (Math.max(...sides) < Math.max(...best) ? sides : best), first);
  const matrix = rows === 1 ? [columns, 1] : [rows, columns];
  return transposed ? matrix.reverse() : matrix;
}

/** @param {number[]} matrix rows and columns @returns {number[]} 0, and the rows at which its blocks end: equal parts */
function blockEnds([rows, columns]) {
  const parts = Math.max(1, Math.floor(Math.min((rows * columns) / BLOCK, rows / LEAST_ROWS)));
  return Array.from({ length: parts + 1 }, (_, i) => Math.floor((rows * i) / parts));
}
