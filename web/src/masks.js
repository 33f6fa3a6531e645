import { product, transpose } from "./bytes.js";
import { shown, TicketError } from "./errors.js";
import { LOWEST, readStates, readWords, unpack } from "./rans.js";

/**
 * @param {string} lines how the mask is cut: "all", "rows" or "columns" @param {Uint8Array} data @param {number[]} shape
 * @param {number} kept @returns {Uint8Array} 1 for each weight that is kept, 0 for the others, in C order
 */
export function decodeMask(lines, data, shape, kept) {
  const size = product(shape);
  if (lines === "all") return readLines(data, [kept], size);
  if (!["rows", "columns"].includes(lines) || shape.length < 2 || !size)
    throw new TicketError(`a mask of shape [${shape}] is not coded by ${shown(lines)}`);
  const [rows, columns] = shape.slice(-2);
  const length = lines === "rows" ? columns : rows;
  const { counts, end } = readCounts(data, size / length);
  const found = counts.reduce((sum, count) => sum + count, 0);
  if (found !== kept || counts.some((count) => count > length))
    throw new TicketError(`the lines of the mask keep ${found} weights where ${kept} are declared`);
  const mask = readLines(data.subarray(end), counts, length);
  return lines === "rows" ? mask : transpose(mask, columns, rows);
}

/** @param {Uint8Array} data @param {number} count @returns {{counts: Float64Array, end: number}} kept weights of each line, and where they end */
function readCounts(data, count) {
  const width = data[4];
  const end = 5 + Math.ceil((count * width) / 8);
  if (!(width <= 32 && end <= data.length)) throw new TicketError("a mask ends within its counts");
  const [least] = readStates(data, 0, 1);
  return { counts: Float64Array.from(unpack(data, 5, count, width), (more) => least + more), end };
}

/**
 * Where k of the m weights that are left of a line are kept, the next one is kept with probability k / m.
 * @param {Uint8Array} data @param {ArrayLike<number>} counts @param {number} length of a line @returns {Uint8Array} lines one after the other
 */
function readLines(data, counts, length) {
  if (data.length % 2 || data.length === 2) throw new TicketError(`the stream of a mask has ${data.length} bytes`);
  let x = data.length ? readStates(data, 0, 1)[0] : LOWEST;
  const words = readWords(data, 4, (data.length - 4) / 2);
  const mask = new Uint8Array(counts.length * length);
  let at = 0;
  for (let line = 0; line < counts.length; line++) {
    let kept = counts[line];
    for (let left = length; kept; left--) {
      let bit = 1;
      if (kept < left) {
        const share = Math.min(Math.max(Math.floor((kept * 65536) / left), 1), 65535);
        const place = x & 65535;
        bit = place < share ? 1 : 0;
        x = bit ? share * (x >>> 16) + place : (65536 - share) * (x >>> 16) + place - share;
        if (x < LOWEST) {
          if (at === words.length) throw new TicketError("the stream of a mask ends early");
          x = x * 65536 + words[at++];
        }
      }
      mask[(line + 1) * length - left] = bit;
      kept -= bit;
    }
  }
  if (x !== LOWEST || at !== words.length) throw new TicketError("the stream of a mask is damaged");
  return mask;
}
