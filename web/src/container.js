import { decodeText, hex, isCount, product } from "./bytes.js";
import { shown, TicketError } from "./errors.js";
import { parseJson } from "./json.js";
import { sha256 } from "./sha256.js";

const FORMAT = "strongticket ticket 3";
const DIGEST = 32;
const MAX_HEADER = 2 ** 26; // bytes
/** @type {Record<string, number>} */
const ITEM_SIZE = { U8: 1, F32: 4 };

/** @typedef {{type: string, shape: number[], data: Uint8Array}} StoredArray */

/** The arrays of a safetensors file that ends with its own SHA-256. @param {Uint8Array} file @returns {Map<string, StoredArray>} without the digest */
export function readContainer(file) {
  if (file.length < 8 + DIGEST) throw new TicketError(`the file has ${file.length} bytes: too short for a ticket`);
  const length = Number(new DataView(file.buffer, file.byteOffset).getBigUint64(0, true));
  if (length > Math.min(MAX_HEADER, file.length - 8 - DIGEST))
    throw new TicketError(`the header takes ${length} bytes, the file has ${file.length}: truncated, or not a ticket`);
  const header = parseJson(decodeText(file.subarray(8, 8 + length), "header"), "header");
  const format = header?.__metadata__?.format;
  const [, older] = /^strongticket ticket ([12])$/.exec(format) ?? [];
  const advice = older ? `: strongticket 0.${older} reads it; build or search it again with a newer version` : "";
  if (format !== FORMAT) throw new TicketError(`its format is ${shown(format)}, this reader knows "${FORMAT}"${advice}`);
  const digest = file.subarray(file.length - DIGEST);
  if (hex(sha256(file.subarray(0, -DIGEST))) !== hex(digest))
    throw new TicketError(`damaged: the sha256 in its last ${DIGEST} bytes is not that of the bytes before them`);
  const arrays = readArrays(header, file.subarray(8 + length));
  const stored = arrays.get("sha256");
  arrays.delete("sha256");
  if (!stored || stored.data.length !== DIGEST || stored.data.byteOffset !== digest.byteOffset)
    throw new TicketError(`tensor "sha256" is not the file's last ${DIGEST} bytes`);
  return arrays;
}

/** @param {any} header @param {Uint8Array} body @returns {Map<string, StoredArray>} */
function readArrays(header, body) {
  const { __metadata__: metadata, ...entries } = header;
  if (Object.keys(metadata).length !== 1) throw new TicketError("its metadata must have a format only");
  /** @type {Map<string, StoredArray>} */
  const arrays = new Map();
  let end = 0;
  const byOffset = Object.entries(entries).map(([name, entry]) => ({ name, ...checkedEntry(name, entry) }));
  byOffset.sort((a, b) => a.start - b.start || a.stop - b.stop);
  for (const { name, type, shape, start, stop } of byOffset) {
    const bytes = ITEM_SIZE[type] * product(shape);
    if (start !== end || stop - start !== bytes)
      throw new TicketError(`tensor "${name}" does not lie where its neighbours and its shape say`);
    end = stop;
    arrays.set(name, { type, shape, data: body.subarray(start, stop) });
  }
  if (end !== body.length) throw new TicketError(`the tensors have ${end} bytes, the file has ${body.length}`);
  return arrays;
}

/** @param {string} name @param {any} entry */
function checkedEntry(name, entry) {
  const { dtype: type, shape, data_offsets: offsets, ...rest } = entry ?? {};
  if (!Object.hasOwn(ITEM_SIZE, type)) throw new TicketError(`tensor "${name}" has type ${type}, expected U8 or F32`);
  const good = [shape, offsets].every((list) => Array.isArray(list) && list.every(isCount));
  if (!good || offsets.length !== 2 || Object.keys(rest).length)
    throw new TicketError(`tensor "${name}" needs a type, a shape and two offsets, and nothing else`);
  return { type, shape, start: offsets[0], stop: offsets[1] };
}
