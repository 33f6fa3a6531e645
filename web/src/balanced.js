import { TicketError } from "./errors.js";

const MAX_UNITS = 64; // of a tuple
const GROUP = 16; // tuples at most among which units are swapped
const PASSES = 4;
const MOMENTS = 9; // of a tuple with three rows
const SHAPE = 0.3; // what orthogonality and norm count beside the sum

/**
 * The mask that follows from a matrix of random weights: each unit (column) keeps the rows of one tuple.
 * @param {Uint8Array} data one byte, the rows in a tuple at most @param {number[]} shape @param {() => Float32Array} draw
 * @returns {Uint8Array}
 */
export function balancedMask(data, shape, draw) {
  const share = data[0];
  if (data.length !== 1 || share < 1 || share > 3) throw new TicketError('codec "balanced" needs one byte, 1 to 3');
  if (shape.length !== 2 || !shape[0] || !shape[1])
    throw new TicketError('codec "balanced" needs two axes and at least one weight');
  const [rows, units] = shape;
  const tuples = tuplesOf(rows, units, share);
  if (tuples.some((tuple) => tuple.units > MAX_UNITS)) throw new TicketError(`more than ${MAX_UNITS} units for a tuple`);
  const weights = draw();
  const owner = tuples.flatMap((tuple) => Array(tuple.units).fill(tuple));
  const groups = Math.ceil(tuples.length / GROUP);
  const start = (/** @type {number} */ group) => Math.floor((tuples.length * group) / groups);
  for (let group = 0; group < groups; group++)
    swap(weights, units, tuples.slice(start(group), start(group + 1)), owner);
  const mask = new Uint8Array(rows * units);
  owner.forEach((tuple, u) => {
    for (let i = 0; i < tuple.rows; i++) mask[(tuple.row + i) * units + u] = 1;
  });
  return mask;
}

/**
 * moments: the sum of each of its rows over its units, then for each row its products with the rows up to itself.
 * @typedef {{row: number, rows: number, unit: number, units: number, moments: Float64Array, cost: number}} Tuple
 */

/** @param {number} rows @param {number} units @param {number} share @returns {Tuple[]} */
function tuplesOf(rows, units, share) {
  const count = Math.ceil(rows / share);
  const edge = (/** @type {number} */ i) => Math.floor((rows * i) / count);
  const largest = Math.ceil(rows / count);
  const parts = [0];
  for (let i = 0; i < count; i++) {
    const size = edge(i + 1) - edge(i);
    parts.push(parts[i] + 2 * size + (size < largest ? 1 : 0));
  }
  const first = parts.map((part) => Math.floor((units * part) / parts[count]));
  return Array.from({ length: count }, (_, i) => ({
    row: edge(i), rows: edge(i + 1) - edge(i), unit: first[i], units: first[i + 1] - first[i],
    moments: new Float64Array(MOMENTS), cost: 0,
  }));
}

/** How far from balance. @param {Float64Array} moments @param {number} rows @param {number} units */
function costOf(moments, rows, units) {
  let cost = 0;
  for (let i = 0, at = rows; i < rows; i++, at += i) {
    cost += moments[i] * moments[i];
    const off = moments[at + i] - units / 3;
    cost += SHAPE * (off * off);
    for (let j = 0; j < i; j++) cost += 2 * SHAPE * (moments[at + j] * moments[at + j]);
  }
  return cost;
}

/** @param {Float32Array} weights @param {number} width @param {Tuple[]} group @param {Tuple[]} owner changed in place */
function swap(weights, width, group, owner) {
  for (const tuple of group) {
    const { row, rows, unit, units, moments } = tuple;
    for (let u = unit; u < unit + units; u++)
      for (let i = 0, at = rows; i < rows; i++, at += i) {
        const weight = weights[(row + i) * width + u];
        moments[i] += weight;
        for (let j = 0; j <= i; j++) moments[at + j] += weight * weights[(row + j) * width + u];
      }
    tuple.cost = costOf(moments, rows, units);
  }
  const last = group[group.length - 1];
  const [start, end] = [group[0].unit, last.unit + last.units];
  const [changed, opposite] = [new Float64Array(MOMENTS), new Float64Array(MOMENTS)];
  for (let pass = 0, swapped = true; pass < PASSES && swapped; pass++) {
    swapped = false;
    for (let u = start; u < end; u++)
      for (let v = u + 1; v < end; v++) {
        const [one, other] = [owner[u], owner[v]];
        if (one === other) continue;
        const oneCost = exchanged(weights, width, one, u, v, changed);
        const otherCost = exchanged(weights, width, other, v, u, opposite);
        if (!(oneCost + otherCost < one.cost + other.cost)) continue;
        one.moments.set(changed);
        other.moments.set(opposite);
        [one.cost, other.cost] = [oneCost, otherCost];
        [owner[u], owner[v]] = [other, one];
        swapped = true;
      }
  }
}

/**
 * The tuple's moments and cost if one unit leaves and another comes.
 * @param {Float32Array} weights @param {number} width @param {Tuple} tuple @param {number} leaves @param {number} comes
 * @param {Float64Array} out its moments @returns {number} its cost
 */
function exchanged(weights, width, { row, rows, units, moments }, leaves, comes, out) {
  for (let i = 0, at = rows; i < rows; i++, at += i) {
    const before = weights[(row + i) * width + leaves];
    const after = weights[(row + i) * width + comes];
    out[i] = moments[i] - before + after;
    for (let j = 0; j <= i; j++)
      out[at + j] = moments[at + j] - before * weights[(row + j) * width + leaves] + after * weights[(row + j) * width + comes];
  }
  return costOf(out, rows, units);
}
