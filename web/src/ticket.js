import { bytesOf, encodeText, hex, littleEndian, product } from "./bytes.js";
import { cutBlocks, readChoices } from "./choices.js";
import { readContainer } from "./container.js";
import { TicketError } from "./errors.js";
import { checkedLaw, draw } from "./laws.js";
import { decodeMask } from "./masks.js";
import { sha256 } from "./sha256.js";
import { readIndex } from "./ticket_index.js";

const MAX_WEIGHTS = 2 ** 28; // a gigabyte of float32

/**
 * A masked tensor has `mask` and `law`, one of choices `choices`, a trained one `numbers`.
 * @typedef {{name: string, shape: number[], size: number, kept: number, checksum: string, mask?: Uint8Array,
 *   law?: import("./laws.js").Law, choices?: import("./choices.js").Choices, numbers?: Float32Array}} Tensor
 */

/** Read a `.ticket` file; a TicketError says why one is refused. @param {Uint8Array} file @returns {Promise<Ticket>} */
export async function readTicket(file) {
  const arrays = readContainer(file);
  const [index, coded] = ["index", "data"].map((name) => {
    const found = arrays.get(name);
    arrays.delete(name);
    if (found?.type !== "U8" || found.shape.length !== 1) throw new TicketError(`tensor "${name}" is missing, or not U8 with one axis`);
    return found.data;
  });
  const { records, ...rest } = await readIndex(index);
  checkSizes(records, coded.length, Math.min(Math.max(2 ** 24, 1024 * file.length), MAX_WEIGHTS));
  /** @type {Map<string, Tensor>} */
  const tensors = new Map();
  let end = 0;
  for (const record of records) {
    const { name, shape, checksum, kept = product(shape), lines, blocks } = record;
    const data = coded.subarray(end, (end += codedBytes(record)));
    tensors.set(name, about(`tensor "${name}"`, () => {
      const tensor = { name, shape, checksum, kept, size: product(shape) };
      if (lines !== undefined) return { ...tensor, law: checkedLaw(record.law, record.scale), mask: decodeMask(lines, data, shape, kept) };
      if (blocks) return { ...tensor, choices: cutBlocks(data, blocks, shape, record.transposed) };
      return { ...tensor, numbers: trained(arrays, name, shape) };
    }));
  }
  for (const name of arrays.keys()) throw new TicketError(`tensor "${name}" is in the file but not in its index`);
  return new Ticket(rest, tensors);
}

/** A seed, masks and choices, and what kind of network they make. */
export class Ticket {
  /** @param {Omit<import("./ticket_index.js").Index, "records">} index @param {Map<string, Tensor>} tensors */
  constructor({ recipeText, recipe, certificate, metadata }, tensors) {
    this.recipeText = recipeText;
    this.seed = recipe.seed;
    this.kind = recipe.kind;
    this.settings = recipe.settings;
    this.certificate = certificate;
    this.metadata = metadata;
    this.tensors = tensors;
  }

  /** @param {string} name @returns {Tensor} */
  tensor(name) {
    const found = this.tensors.get(name);
    if (!found) throw new TicketError(`the ticket has no tensor "${name}"`);
    return found;
  }

  /** All random weights of a masked tensor, kept or not. @param {string} name @returns {Float32Array} */
  random(name) {
    const { shape, law } = this.tensor(name);
    if (!law) throw new TicketError(`tensor "${name}" has no mask`);
    return draw(this.seed, name, shape, law);
  }

  /** Random where kept and +0 elsewhere, one of many random weights, or trained; compared with its checksum. @param {string} name @returns {Float32Array} */
  weights(name) {
    const { shape, checksum } = this.tensor(name);
    const { numbers, digests } = about(`tensor "${name}"`, () => this.#regenerated(name));
    const text = encodeText(name);
    const [length, ...sizes] = [text.length, shape.length, ...shape].map(littleEndian);
    if (hex(sha256(sha256(this.recipeText), length, text, ...sizes, ...digests)).slice(0, 32) !== checksum)
      throw new TicketError(`tensor "${name}" is not what was saved: its checksum differs`);
    return numbers;
  }

  /** @param {string} name @returns {{numbers: Float32Array, digests: Uint8Array[]}} of its blocks */
  #regenerated(name) {
    const { shape, mask, choices, numbers } = this.tensor(name);
    if (choices) return readChoices(this.seed, name, shape, choices);
    const found = mask ? this.random(name) : numbers.slice();
    if (mask) for (let i = 0; i < mask.length; i++) if (!mask[i]) found[i] = 0;
    return { numbers: found, digests: [sha256(bytesOf(found))] };
  }

  /** Regenerate every tensor; TicketError names the first that differs. @returns {{tensors: number, weights: number, kept: number}} */
  verify() {
    const all = [...this.tensors.values()];
    for (const { name } of all) this.weights(name);
    const sum = (/** @type {"size" | "kept"} */ field) => all.reduce((total, tensor) => total + tensor[field], 0);
    return { tensors: all.length, weights: sum("size"), kept: sum("kept") };
  }
}

/** @param {import("./ticket_index.js").TensorRecord[]} records @param {number} coded @param {number} maxWeights */
function checkSizes(records, coded, maxWeights) {
  let total = 0;
  for (const { name, shape, kept = 0 } of records) {
    total += product(shape);
    if (!(total <= maxWeights) || shape.some((size) => size > maxWeights))
      throw new TicketError(`tensor "${name}" of shape ${shape} exceeds the limit of ${maxWeights} weights`);
    if (kept > product(shape)) throw new TicketError(`tensor "${name}" keeps ${kept} of ${product(shape)} weights`);
  }
  const declared = records.reduce((sum, record) => sum + codedBytes(record), 0);
  if (declared !== coded) throw new TicketError(`the index declares ${declared} bytes of data, the file has ${coded}`);
}

/** How much of the data belongs to a tensor. @param {import("./ticket_index.js").TensorRecord} record @returns {number} */
const codedBytes = ({ bytes = 0, blocks = [] }) => blocks.reduce((sum, size) => sum + size, bytes);

/** @param {Map<string, import("./container.js").StoredArray>} arrays @param {string} name @param {number[]} shape */
function trained(arrays, name, shape) {
  const found = arrays.get(`float:${name}`);
  arrays.delete(`float:${name}`);
  if (found?.type !== "F32" || found.shape.join() !== shape.join())
    throw new TicketError(`the index declares float32 numbers of shape [${shape}], the file has others`);
  const numbers = new Float32Array(found.data.slice().buffer); // slice: a view must start at a multiple of 4
  if (!numbers.every(Number.isFinite)) throw new TicketError("trained numbers must be finite");
  return numbers;
}

/** @template T @param {string} what @param {() => T} work @returns {T} */
function about(what, work) {
  try {
    return work();
  } catch (error) {
    throw error instanceof TicketError ? new TicketError(`${what}: ${error.message}`) : error;
  }
}
