import { TicketError } from "../errors.js";
import { LanguageNetwork } from "./language.js";
import { activation, add, attend, conv1d, layerNorm } from "./numerics.js";
import { checkSizes, loadState, perLayer, readConfig } from "./state.js";

const DEFAULTS = {
  vocab_size: 50257, n_positions: 1024, n_embd: 768, n_layer: 12, n_head: 12, n_inner: null,
  activation_function: "gelu_new", layer_norm_epsilon: 1e-5, scale_attn_weights: true,
  scale_attn_by_inverse_layer_idx: false, tie_word_embeddings: true,
};
const FIXED = { model_type: "gpt2", add_cross_attention: false, is_encoder_decoder: false };
const IGNORED = /_pdrop$|_token_id$|^summary_|^(use_cache|initializer_range|reorder_and_upcast_attn|n_ctx|task_specific_params)$/;

/** GPT-2 as transformers' GPT2LMHeadModel computes it. */
export class Gpt2 extends LanguageNetwork {
  /** @param {import("../ticket.js").Ticket} ticket */
  constructor(ticket) {
    const config = readConfig(ticket.settings.config, DEFAULTS, FIXED, IGNORED);
    config.n_inner ??= 4 * config.n_embd;
    checkSizes(config, ["vocab_size", "n_positions", "n_embd", "n_layer", "n_head", "n_inner"]);
    if (config.n_embd % config.n_head) throw new TicketError("n_embd must be a multiple of n_head");
    const names = { embedding: "transformer.wte", head: config.tie_word_embeddings ? "transformer.wte" : "lm_head", norm: "transformer.ln_f" };
    super(ticket, loadState(ticket, shapesOf(config)), names, {
      vocabulary: config.vocab_size, positions: config.n_positions, layers: config.n_layer, keyDim: config.n_embd,
    });
    this.config = config;
    this.activation = activation(config.activation_function);
    this.norm = (/** @type {string} */ name, /** @type {Float32Array} */ x) => layerNorm(this.state, name, x, config.layer_norm_epsilon);
  }

  /** @param {number} token @param {number} place */
  embed(token, place) {
    const x = super.embed(token);
    add(x, this.state.get("transformer.wpe.weight").subarray(place * x.length, (place + 1) * x.length));
    return x;
  }

  /** @param {number} layer @param {Float32Array} x @param {import("./language.js").Cache} cache @param {number} place */
  block(layer, x, { keys, values }, place) {
    const { n_head: heads, scale_attn_weights, scale_attn_by_inverse_layer_idx } = this.config;
    const { state } = this;
    const dim = x.length;
    const at = `transformer.h.${layer}`;
    const qkv = conv1d(state, `${at}.attn.c_attn`, this.norm(`${at}.ln_1`, x));
    keys.set(qkv.subarray(dim, 2 * dim), place * dim);
    values.set(qkv.subarray(2 * dim), place * dim);
    let scale = scale_attn_weights ? (dim / heads) ** -0.5 : 1;
    if (scale_attn_by_inverse_layer_idx) scale /= layer + 1;
    const mixed = attend(qkv.subarray(0, dim), keys, values, { count: place + 1, heads, keyHeads: heads, scale });
    add(x, conv1d(state, `${at}.attn.c_proj`, mixed));
    const hidden = conv1d(state, `${at}.mlp.c_fc`, this.norm(`${at}.ln_2`, x));
    add(x, conv1d(state, `${at}.mlp.c_proj`, hidden.map(this.activation)));
  }
}

/** @param {any} config @returns {Map<string, number[]>} */
function shapesOf(config) {
  const { vocab_size: vocabulary, n_positions: positions, n_embd: dim, n_inner: inner } = config;
  const layer = {
    "ln_1.weight": [dim], "ln_1.bias": [dim], "ln_2.weight": [dim], "ln_2.bias": [dim],
    "attn.c_attn.weight": [dim, 3 * dim], "attn.c_attn.bias": [3 * dim], "attn.c_proj.weight": [dim, dim], "attn.c_proj.bias": [dim],
    "mlp.c_fc.weight": [dim, inner], "mlp.c_fc.bias": [inner], "mlp.c_proj.weight": [inner, dim], "mlp.c_proj.bias": [dim],
  };
  const found = new Map(perLayer("transformer.h", config.n_layer, layer));
  if (!config.tie_word_embeddings) found.set("lm_head.weight", [vocabulary, dim]);
  found.set("transformer.wte.weight", [vocabulary, dim]).set("transformer.wpe.weight", [positions, dim]);
  return found.set("transformer.ln_f.weight", [dim]).set("transformer.ln_f.bias", [dim]);
}
