import { shown, TicketError } from "../errors.js";
import { codeShapes, readCoded } from "./codes.js";

/**
 * The tensors of a network.
 * @param {import("../ticket.js").Ticket} ticket @param {Map<string, number[]>} shapes of all its parameters, by name. A searched
 *   network has biases and gains, which have one axis, only if they were trained: else biases are 0 and gains 1
 * @returns {Map<string, Float32Array>} by name
 */
export function loadState(ticket, shapes) {
  if (ticket.kind === "model") {
    checkShapes(shapes, ticket);
    return new Map([...shapes.keys()].map((name) => [name, ticket.weights(name)]));
  }
  const { parts, trained, codes = {} } = ticket.settings;
  for (const name of trained)
    if (!shapes.has(name)) throw new TicketError(`trained names "${name}", which is not a parameter of the network`);
  const matrices = new Map([...shapes].filter(([name, shape]) => shape.length > 1 && !trained.includes(name)));
  checkShapes(new Map([...matrices, ...codeShapes(codes, matrices), ...trained.map((name) => [name, shapes.get(name)])]), ticket);
  for (const [name, scaled] of Object.entries(parts)) {
    if (!matrices.has(name)) throw new TicketError(`parts names "${name}", which is not a weight matrix of the network`);
    scaled.forEach(checkPart);
  }
  const state = new Map(trained.map((name) => [name, ticket.weights(name)]));
  for (const [name, shape] of matrices) {
    const { weights, levels } = readCoded(ticket, name, codes[name] ?? {});
    for (const part of parts[name] ?? []) scalePart(weights, shape, part);
    levels?.forEach((level, i) => (weights[i] *= level));
    state.set(name, weights);
  }
  return state;
}

/** @param {Map<string, number[]>} expected @param {import("../ticket.js").Ticket} ticket */
function checkShapes(expected, { tensors }) {
  for (const name of new Set([...expected.keys(), ...tensors.keys()])) {
    const [wanted, found] = [expected.get(name)?.join(), tensors.get(name)?.shape.join()];
    if (wanted !== found) throw new TicketError(`tensor "${name}": the network has shape [${wanted}], the ticket [${found}]`);
  }
}

/** @param {any} part */
function checkPart(part) {
  const [axis, start, stop, factor] = Array.isArray(part) ? part : [];
  if (!((axis === 0 || axis === 1) && start >= 0 && start < stop && Number.isFinite(factor) && part.length === 4))
    throw new TicketError(`part ${shown(part)} must be axis 0 or 1, start < stop and a finite factor`);
}

/**
 * Rows (axis 0) or columns (axis 1) start .. stop of a matrix times a float32 factor, in place.
 * @param {Float32Array} weights @param {number[]} shape @param {[number, number, number, number]} part
 */
export function scalePart(weights, shape, [axis, start, stop, factor]) {
  const columns = weights.length / shape[0];
  const scale = Math.fround(factor);
  for (let i = 0; i < weights.length; i++) {
    const place = axis === 0 ? Math.floor(i / columns) : i % columns;
    if (place >= start && place < stop) weights[i] *= scale;
  }
}

/**
 * @param {any} config @param {Record<string, any>} defaults of the settings that this network follows
 * @param {Record<string, any>} fixed what others must be, if they are given @param {RegExp} ignored settings without effect
 */
export function readConfig(config, defaults, fixed, ignored) {
  for (const [name, value] of Object.entries(config)) {
    if (name in fixed && shown(value) !== shown(fixed[name]))
      throw new TicketError(`${name} must be ${shown(fixed[name])}, got ${shown(value)}`);
    if (!(name in fixed) && !(name in defaults) && !ignored.test(name))
      throw new TicketError(`config has an entry "${name}" that this reader does not know`);
  }
  return { ...defaults, ...config };
}

/** @param {string} at @param {number} layers @param {Record<string, number[]>} shapes of one layer @returns {[string, number[]][]} of all */
export function perLayer(at, layers, shapes) {
  const names = Array.from({ length: layers }, (_, layer) => `${at}.${layer}`);
  return names.flatMap((layer) => Object.entries(shapes).map(([name, shape]) => [`${layer}.${name}`, shape]));
}

/** @param {Record<string, any>} config @param {string[]} names of settings that must be sizes */
export function checkSizes(config, names) {
  for (const name of names)
    if (!Number.isSafeInteger(config[name]) || config[name] < 1 || config[name] > 2 ** 24)
      throw new TicketError(`${name} must be a size, got ${shown(config[name])}`);
}
