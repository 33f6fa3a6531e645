import { TicketError } from "../errors.js";

// A code says what a weight matrix is made of besides one masked tensor: a mask of only those weights that a sparse
// source leaves free, later draws that are added, and further masks that make small integers, by which the weights
// are multiplied.

/** @typedef {{dropped: number, locked: number, count: number}} Free */
/** @typedef {{masks?: Record<string, number>, draws?: string[], free?: Free}} Code */

/** @param {any} codes @param {Map<string, number[]>} matrices @returns {Map<string, number[]>} name -> shape of the further tensors */
export function codeShapes(codes, matrices) {
  const found = new Map();
  for (const [name, code] of Object.entries(codes)) {
    const { masks = {}, draws = [], free, ...rest } = code;
    const good = Array.isArray(draws) && [...Object.values(masks), free?.count ?? 0].every(Number.isSafeInteger);
    if (!matrices.has(name) || !good || Object.keys(rest).length)
      throw new TicketError(`the code of "${name}" must be of a weight matrix and have masks, draws and free`);
    for (const draw of draws) found.set(draw, matrices.get(name));
    for (const [part, count] of Object.entries(masks)) found.set(`${name}:${part}`, [count]);
    if (free) found.set(`${name}:source`, matrices.get(name)).set(`${name}:free`, [free.count]);
  }
  return found;
}

/**
 * A matrix before its parts are scaled, and the integers to multiply it by after that.
 * @param {import("../ticket.js").Ticket} ticket @param {string} name @param {Code} code
 * @returns {{weights: Float32Array, levels: Int32Array | null}}
 */
export function readCoded(ticket, name, { masks = {}, draws = [], free }) {
  const weights = ticket.weights(name);
  if (free) keepFree(weights, ticket.weights(`${name}:source`), ticket.weights(`${name}:free`), free);
  for (const draw of draws) ticket.weights(draw).forEach((weight, i) => (weights[i] += weight));
  const parts = new Map(Object.keys(masks).map((part) => [part, ticket.weights(`${name}:${part}`)]));
  const levels = parts.size ? readLevels(weights, parts) : null;
  return { weights, levels };
}

/**
 * Drop what a sparse source or the mask of its free weights drops.
 * @param {Float32Array} weights @param {Float32Array} source number per weight, from -1 to 1, that decides
 * @param {Float32Array} chosen not 0 for a free weight that is kept @param {Free} free
 */
function keepFree(weights, source, chosen, { dropped, locked }) {
  let at = 0;
  source.forEach((number, i) => {
    const isFree = number >= 2 * dropped - 1 && number < 1 - 2 * locked;
    const kept = isFree ? chosen[at++] !== 0 : number >= 1 - 2 * locked;
    if (!kept) weights[i] = 0;
  });
  if (at !== chosen.length) throw new TicketError(`a code says that ${chosen.length} weights are free; its fractions leave ${at}`);
}

/**
 * The integer of each weight: its length in bits, its lower bits and its sign are masks over the weights that have them.
 * @param {Float32Array} weights 0 where the integer is @param {Map<string, Float32Array>} masks not 0 for 1
 * @returns {Int32Array}
 */
function readLevels(weights, masks) {
  const places = [];
  weights.forEach((weight, i) => weight !== 0 && places.push(i));
  const longest = [...masks.keys()].filter((part) => part.startsWith("length")).length;
  const steps = Array.from({ length: longest }, (_, i) => i);
  const expected = [...steps.map((i) => `length${i + 1}`), ...steps.map((i) => `bit${i}`), ...(masks.has("sign") ? ["sign"] : [])];
  if (masks.size !== expected.length || !expected.every((part) => masks.has(part)))
    throw new TicketError(`a code has the masks ${[...masks.keys()]}, expected ${expected}`);
  /** @param {string} part @param {(k: number) => boolean} has @param {(k: number, bit: number) => void} set */
  const read = (part, has, set) => {
    const mask = masks.get(part);
    let at = 0;
    for (let k = 0; k < places.length; k++) if (has(k)) set(k, Number(mask[at++] !== 0));
    if (at !== mask.length) throw new TicketError(`mask "${part}" of a code has ${mask.length} entries, expected ${at}`);
  };
  const length = new Int32Array(places.length).fill(1);
  for (const i of steps) read(`length${i + 1}`, (k) => length[k] >= i + 1, (k, bit) => (length[k] = i + 1 + bit));
  const size = length.map((bits) => 1 << (bits - 1));
  for (const i of steps.reverse()) read(`bit${i}`, (k) => length[k] > i + 1, (k, bit) => (size[k] |= bit << i));
  if (masks.has("sign")) read("sign", () => true, (k, bit) => (size[k] *= bit ? -1 : 1));
  const levels = new Int32Array(weights.length);
  places.forEach((place, k) => (levels[place] = size[k]));
  return levels;
}
