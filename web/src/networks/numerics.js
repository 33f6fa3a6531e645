import { shown, TicketError } from "../errors.js";

// Vectors are Float32Array; sums run in float64 and are rounded once, when they are stored.

/** @typedef {Map<string, Float32Array>} State tensors of a network, by name */

/** x W + bias with W (in, out), as GPT-2 stores it. @param {State} state @param {string} name @param {Float32Array} x */
export function conv1d(state, name, x) {
  const weight = state.get(`${name}.weight`);
  const sums = new Float64Array(weight.length / x.length);
  const bias = state.get(`${name}.bias`);
  if (bias) sums.set(bias);
  for (let i = 0; i < x.length; i++) {
    const factor = x[i];
    if (factor === 0) continue; // after a ReLU, most are
    const row = i * sums.length;
    for (let j = 0; j < sums.length; j++) sums[j] += factor * weight[row + j];
  }
  return Float32Array.from(sums);
}

/** W x + bias with W (out, in), as torch's Linear stores it. @param {State} state @param {string} name @param {Float32Array} x */
export function linear(state, name, x) {
  const weight = state.get(`${name}.weight`);
  const bias = state.get(`${name}.bias`);
  const out = new Float32Array(weight.length / x.length);
  for (let j = 0; j < out.length; j++) {
    const row = j * x.length;
    let sum = bias ? bias[j] : 0;
    for (let i = 0; i < x.length; i++) sum += weight[row + i] * x[i];
    out[j] = sum;
  }
  return out;
}

/** @param {State} state @param {string} name @param {Float32Array} x @param {number} epsilon @returns {Float32Array} */
export function layerNorm(state, name, x, epsilon) {
  const [gain, shift] = [state.get(`${name}.weight`), state.get(`${name}.bias`)];
  let mean = 0;
  for (let i = 0; i < x.length; i++) mean += x[i];
  mean /= x.length;
  let variance = 0;
  for (let i = 0; i < x.length; i++) variance += (x[i] - mean) ** 2;
  const scale = 1 / Math.sqrt(variance / x.length + epsilon);
  return x.map((value, i) => (value - mean) * scale * (gain ? gain[i] : 1) + (shift ? shift[i] : 0));
}

/** @param {State} state @param {string} name @param {Float32Array} x @param {number} epsilon @returns {Float32Array} */
export function rmsNorm(state, name, x, epsilon) {
  const gain = state.get(`${name}.weight`);
  let square = 0;
  for (let i = 0; i < x.length; i++) square += x[i] * x[i];
  const scale = 1 / Math.sqrt(square / x.length + epsilon);
  return x.map((value, i) => value * scale * (gain ? gain[i] : 1));
}

/**
 * Softmax attention of one query over `count` tokens, head by head; several query heads may share a key head.
 * @param {Float32Array} query (heads · size) @param {Float32Array} keys (tokens, keyHeads · size) @param {Float32Array} values
 *   as the keys @param {{count: number, heads: number, keyHeads: number, scale: number}} shape scale: of the logits
 * @returns {Float32Array} as the query
 */
export function attend(query, keys, values, { count, heads, keyHeads, scale }) {
  const out = new Float32Array(query.length);
  const size = query.length / heads;
  const row = size * keyHeads;
  const logits = new Float32Array(count);
  for (let head = 0; head < heads; head++) {
    const first = head * size;
    const shared = Math.floor((head * keyHeads) / heads) * size;
    for (let token = 0; token < count; token++) {
      const at = token * row + shared;
      let sum = 0;
      for (let i = 0; i < size; i++) sum += query[first + i] * keys[at + i];
      logits[token] = sum * scale;
    }
    softmax(logits);
    for (let i = 0; i < size; i++) {
      let sum = 0;
      for (let token = 0; token < count; token++) sum += logits[token] * values[token * row + shared + i];
      out[first + i] = sum;
    }
  }
  return out;
}

/** In place. @param {Float32Array} x @param {number} [temperature] */
export function softmax(x, temperature = 1) {
  const top = x.reduce((most, value) => Math.max(most, value), -Infinity);
  for (let i = 0; i < x.length; i++) x[i] = Math.exp((x[i] - top) / temperature);
  const sum = x.reduce((total, value) => total + value, 0);
  for (let i = 0; i < x.length; i++) x[i] /= sum;
}

/** -log softmax(logits)[target], in nats. @param {Float32Array} logits @param {number} target */
export function crossEntropy(logits, target) {
  const top = logits.reduce((most, value) => Math.max(most, value), -Infinity);
  return Math.log(logits.reduce((sum, value) => sum + Math.exp(value - top), 0)) + top - logits[target];
}

/** @param {Float32Array} x @param {Float32Array} more added to x, in place */
export function add(x, more) {
  for (let i = 0; i < x.length; i++) x[i] += more[i];
}

/** @type {Record<string, (x: number) => number>} */
const ACTIVATIONS = {
  relu: (x) => Math.max(x, 0),
  gelu: (x) => 0.5 * x * (1 + erf(x / Math.SQRT2)),
  gelu_new: (x) => 0.5 * x * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3))),
  silu: (x) => x / (1 + Math.exp(-x)),
  tanh: Math.tanh,
};
ACTIVATIONS.gelu_pytorch_tanh = ACTIVATIONS.gelu_new;

/** @param {any} name @returns {(x: number) => number} */
export function activation(name) {
  if (!Object.hasOwn(ACTIVATIONS, name)) throw new TicketError(`activation ${shown(name)} is unknown`);
  return ACTIVATIONS[name];
}

/** The error function: e^(-x²) times a series whose terms are all of x's sign, so nothing cancels. @param {number} x */
function erf(x) {
  if (Math.abs(x) > 6) return Math.sign(x); // 1 - erf(6) < 1e-16
  let [term, sum] = [x, x];
  for (let n = 1; Math.abs(term) > 1e-17 * Math.abs(sum); n++) {
    term *= (2 * x * x) / (2 * n + 1);
    sum += term;
  }
  return (2 / Math.sqrt(Math.PI)) * Math.exp(-x * x) * sum;
}
