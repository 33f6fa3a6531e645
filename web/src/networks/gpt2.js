import { TicketError } from "../errors.js";
import { activation, add, attend, crossEntropy, layerNorm, rowsTimes, timesColumns } from "./numerics.js";
import { checkSizes, loadState, readConfig } from "./state.js";

const DEFAULTS = {
  vocab_size: 50257, n_positions: 1024, n_embd: 768, n_layer: 12, n_head: 12, n_inner: null,
  activation_function: "gelu_new", layer_norm_epsilon: 1e-5, scale_attn_weights: true,
  scale_attn_by_inverse_layer_idx: false, tie_word_embeddings: true,
};
const FIXED = { model_type: "gpt2", add_cross_attention: false, is_encoder_decoder: false };
const IGNORED = /_pdrop$|_token_id$|^summary_|^(use_cache|initializer_range|reorder_and_upcast_attn|n_ctx|task_specific_params)$/;

/** GPT-2 as transformers' GPT2LMHeadModel computes it, one token at a time. */
export class Gpt2 {
  /** @param {import("../ticket.js").Ticket} ticket of kind "search" */
  constructor(ticket) {
    const config = readConfig(ticket.settings.config, DEFAULTS, FIXED, IGNORED);
    config.n_inner ??= 4 * config.n_embd;
    checkSizes(config, ["vocab_size", "n_positions", "n_embd", "n_layer", "n_head", "n_inner"]);
    if (config.n_embd % config.n_head) throw new TicketError("n_embd must be a multiple of n_head");
    this.config = config;
    this.activation = activation(config.activation_function);
    const context = ticket.metadata.context;
    this.context = Number.isSafeInteger(context) ? Math.min(context, config.n_positions) : config.n_positions;
    /** Tensors by name; what is changed here changes the network. */
    this.state = loadState(ticket, matrices(config), others(config));
  }

  get vocabulary() {
    return this.config.vocab_size;
  }

  /** Reads tokens one after the other; a new one starts at the first position. */
  session() {
    return new Session(this);
  }

  /** @param {number[]} tokens at most `context` @returns {number} mean loss of each token after those before it, in nats */
  loss(tokens) {
    const session = this.session();
    let sum = 0;
    for (let i = 0; i + 1 < tokens.length; i++) sum += crossEntropy(session.read(tokens[i]), tokens[i + 1]);
    return sum / (tokens.length - 1);
  }
}

/** A text being read: keys and values of its tokens are kept. */
class Session {
  /** @param {Gpt2} network */
  constructor(network) {
    this.network = network;
    const { n_layer: layers, n_embd: dim } = network.config;
    const cache = () => Array.from({ length: layers }, () => new Float32Array(network.context * dim));
    this.keys = cache();
    this.values = cache();
    this.length = 0;
  }

  /** @param {number} token @returns {Float32Array} logits of the token after it */
  read(token) {
    const { state, config, context } = this.network;
    const { n_embd: dim, vocab_size: vocabulary } = config;
    if (this.length >= context) throw new TicketError(`the network reads at most ${context} tokens`);
    if (!(token >= 0 && token < vocabulary)) throw new TicketError(`token ${token} is not one of ${vocabulary}`);
    const embedding = state.get("transformer.wte.weight");
    const place = this.length * dim;
    const x = embedding.slice(token * dim, (token + 1) * dim);
    add(x, state.get("transformer.wpe.weight").subarray(place, place + dim));
    for (let layer = 0; layer < config.n_layer; layer++) this.block(layer, x);
    this.length += 1;
    const normed = new Float32Array(dim);
    this.norm("transformer.ln_f", x, normed);
    const logits = new Float32Array(vocabulary);
    timesColumns(normed, state.get("lm_head.weight") ?? embedding, undefined, logits);
    return logits;
  }

  /** @param {number} layer @param {Float32Array} x changed in place */
  block(layer, x) {
    const { config, activation } = this.network;
    const dim = x.length;
    const at = `transformer.h.${layer}`;
    const normed = new Float32Array(dim);
    const out = new Float32Array(dim);
    this.norm(`${at}.ln_1`, x, normed);
    const qkv = new Float32Array(3 * dim);
    this.times(`${at}.attn.c_attn`, normed, qkv);
    this.keys[layer].set(qkv.subarray(dim, 2 * dim), this.length * dim);
    this.values[layer].set(qkv.subarray(2 * dim), this.length * dim);
    let scale = config.scale_attn_weights ? (dim / config.n_head) ** -0.5 : 1;
    if (config.scale_attn_by_inverse_layer_idx) scale /= layer + 1;
    const query = qkv.subarray(0, dim);
    attend(query, this.keys[layer], this.values[layer], this.length + 1, config.n_head, scale, normed);
    this.times(`${at}.attn.c_proj`, normed, out);
    add(x, out);
    this.norm(`${at}.ln_2`, x, normed);
    const inner = new Float32Array(config.n_inner);
    this.times(`${at}.mlp.c_fc`, normed, inner);
    for (let i = 0; i < inner.length; i++) inner[i] = activation(inner[i]);
    this.times(`${at}.mlp.c_proj`, inner, out);
    add(x, out);
  }

  /** @param {string} name @param {Float32Array} x @param {Float32Array} out */
  times(name, x, out) {
    const { state } = this.network;
    rowsTimes(x, state.get(`${name}.weight`), state.get(`${name}.bias`), out);
  }

  /** @param {string} name @param {Float32Array} x @param {Float32Array} out */
  norm(name, x, out) {
    const { state, config } = this.network;
    layerNorm(x, state.get(`${name}.weight`), state.get(`${name}.bias`), config.layer_norm_epsilon, out);
  }
}

/** @param {any} config @returns {Map<string, number[]>} */
function matrices(config) {
  const { vocab_size: vocabulary, n_embd: dim, n_inner: inner } = config;
  const found = new Map([
    ["transformer.wte.weight", [vocabulary, dim]],
    ["transformer.wpe.weight", [config.n_positions, dim]],
  ]);
  for (const [name, shape] of blocks(config, { "attn.c_attn": [dim, 3 * dim], "attn.c_proj": [dim, dim],
    "mlp.c_fc": [dim, inner], "mlp.c_proj": [inner, dim] })) found.set(`${name}.weight`, shape);
  if (!config.tie_word_embeddings) found.set("lm_head.weight", [vocabulary, dim]);
  return found;
}

/** @param {any} config @returns {Map<string, number[]>} */
function others(config) {
  const { n_embd: dim, n_inner: inner } = config;
  const found = new Map(blocks(config, { "ln_1.weight": [dim], "ln_1.bias": [dim], "ln_2.weight": [dim],
    "ln_2.bias": [dim], "attn.c_attn.bias": [3 * dim], "attn.c_proj.bias": [dim], "mlp.c_fc.bias": [inner],
    "mlp.c_proj.bias": [dim] }));
  return found.set("transformer.ln_f.weight", [dim]).set("transformer.ln_f.bias", [dim]);
}

/** @param {any} config @param {Record<string, number[]>} shapes @returns {[string, number[]][]} of all layers */
function blocks(config, shapes) {
  const layers = Array.from({ length: config.n_layer }, (_, layer) => `transformer.h.${layer}`);
  return layers.flatMap((at) => Object.entries(shapes).map(([name, shape]) => [`${at}.${name}`, shape]));
}
