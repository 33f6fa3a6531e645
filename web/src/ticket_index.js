import { decodeText, encodeText, hex, isCount } from "./bytes.js";
import { TicketError } from "./errors.js";
import { inflate } from "./inflate.js";
import { parseRecord } from "./json.js";

const GENERATOR = 1;
const FLOAT_FIELDS = ["name", "checksum", "shape"];
const MASK_FIELDS = [...FLOAT_FIELDS, "kept", "lines", "bytes", "law", "scale"];
const CHOICE_FIELDS = [...FLOAT_FIELDS, "blocks", "transposed"];

/**
 * @typedef {{name: string, checksum: string, shape: number[], kept?: number, lines?: string, bytes?: number, law?: string,
 *   scale?: number, blocks?: number[], transposed?: boolean}} TensorRecord one tensor's line; a trained one has the first three fields
 * @typedef {{generator: number, kind: string, seed: bigint, settings: any}} Recipe
 * @typedef {{recipeText: Uint8Array, recipe: Recipe, certificate: any, metadata: any, records: TensorRecord[]}} Index
 */

/** @param {Uint8Array} packed @returns {Promise<Index>} every field checked */
export async function readIndex(packed) {
  const lines = decodeText(await inflate(packed, "index"), "index").split("\n");
  const recipe = parseRecord(lines[0], "recipe", ["generator", "kind", "seed", "settings"]);
  if (recipe.generator !== GENERATOR)
    throw new TicketError(`its weights come from generator ${recipe.generator}, this reader has generator ${GENERATOR}`);
  recipe.seed = typeof recipe.seed === "bigint" || isCount(recipe.seed) ? BigInt(recipe.seed) : -1n;
  if (recipe.seed < 0n || recipe.seed >= 1n << 64n) throw new TicketError("seed must be an integer from 0 to 2^64 - 1");
  if (typeof recipe.kind !== "string" || !isObject(recipe.settings)) throw new TicketError("the recipe needs a kind and settings");
  const extras = parseRecord(lines[1] ?? "", "line 2 of the index", ["certificate", "metadata"]);
  if (!isObject(extras.metadata) || (extras.certificate !== null && !isObject(extras.certificate)))
    throw new TicketError("line 2 of the index: metadata must be an object, certificate an object or null");
  const records = lines.slice(2).map((line, i) => checkedRecord(line, `line ${i + 3} of the index`));
  for (let i = 1; i < records.length; i++)
    if (order(records[i - 1].name) >= order(records[i].name))
      throw new TicketError(`tensor "${records[i].name}" is repeated or out of order`);
  return { recipeText: encodeText(lines[0]), recipe, ...extras, records };
}

/** @param {string} line @param {string} where @returns {TensorRecord} */
function checkedRecord(line, where) {
  const record = parseRecord(line, where, FLOAT_FIELDS, MASK_FIELDS, CHOICE_FIELDS);
  const { name, checksum, shape, kept, bytes, blocks, transposed } = record;
  if (typeof name !== "string" || typeof checksum !== "string" || decodeText(encodeText(name), where) !== name)
    throw new TicketError(`${where}: name and checksum must be texts`);
  if (!Array.isArray(shape) || shape.length > 32 || !shape.every(isCount))
    throw new TicketError(`tensor "${name}": shape must be a list of at most 32 sizes`);
  if ("lines" in record && !(isCount(kept) && isCount(bytes))) throw new TicketError(`tensor "${name}": kept and bytes must be counts`);
  if ("blocks" in record && !(Array.isArray(blocks) && blocks.every(isCount) && typeof transposed === "boolean"))
    throw new TicketError(`tensor "${name}": blocks must be a list of sizes, transposed true or false`);
  return record;
}

/** What sorts names by Unicode code point, which is the order of UTF-8 bytes. @param {string} name */
const order = (name) => hex(encodeText(name));

/** @param {any} value */
const isObject = (value) => value !== null && typeof value === "object" && !Array.isArray(value);
