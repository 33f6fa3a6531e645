import { TicketError } from "../errors.js";
import { LanguageNetwork } from "./language.js";
import { activation, add, attend, linear, rmsNorm } from "./numerics.js";
import { checkSizes, loadState, perLayer, readConfig } from "./state.js";

const DEFAULTS = {
  model_type: "llama", vocab_size: 0, hidden_size: 0, intermediate_size: 0, num_hidden_layers: 0, num_attention_heads: 0,
  num_key_value_heads: null, head_dim: null, hidden_act: "silu", max_position_embeddings: 2048, rms_norm_eps: 1e-6,
  tie_word_embeddings: false, rope_parameters: {}, attention_bias: false, mlp_bias: false, sliding_window: null,
};
const FIXED = { use_sliding_window: false, is_encoder_decoder: false };
const IGNORED = /_dropout$|_token_id$|^(use_cache|initializer_range|pretraining_tp|max_window_layers|layer_types)$/;

/** Llama, Mistral and Qwen2 as transformers computes them: RMS norms, rotated queries and keys, a gated feed-forward. */
export class Llama extends LanguageNetwork {
  /** @param {import("../ticket.js").Ticket} ticket */
  constructor(ticket) {
    const config = readConfig(ticket.settings.config, DEFAULTS, FIXED, IGNORED);
    config.num_key_value_heads ??= config.num_attention_heads;
    config.head_dim ??= config.hidden_size / config.num_attention_heads;
    checkSizes(config, ["vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads"]);
    checkSizes(config, ["num_key_value_heads", "head_dim", "max_position_embeddings"]);
    const { num_attention_heads: heads, num_key_value_heads: keyHeads, head_dim: size } = config;
    if (heads % keyHeads || size % 2) throw new TicketError("key heads must divide the heads, and a head's size be even");
    const names = { embedding: "model.embed_tokens", head: config.tie_word_embeddings ? "model.embed_tokens" : "lm_head", norm: "model.norm" };
    super(ticket, loadState(ticket, shapesOf(config)), names, {
      vocabulary: config.vocab_size, positions: config.max_position_embeddings, layers: config.num_hidden_layers, keyDim: keyHeads * size,
    });
    if (config.sliding_window !== null && config.sliding_window < this.context)
      throw new TicketError("this reader does not know a sliding window shorter than the context");
    this.config = config;
    this.activation = activation(config.hidden_act);
    this.turns = turns(config);
    this.norm = (/** @type {string} */ name, /** @type {Float32Array} */ x) => rmsNorm(this.state, name, x, config.rms_norm_eps);
  }

  /** @param {number} layer @param {Float32Array} x @param {import("./language.js").Cache} cache @param {number} place */
  block(layer, x, { keys, values }, place) {
    const { num_attention_heads: heads, num_key_value_heads: keyHeads, head_dim: size } = this.config;
    const at = `model.layers.${layer}`;
    const before = this.norm(`${at}.input_layernorm`, x);
    const [query, key, value] = ["q", "k", "v"].map((name) => linear(this.state, `${at}.self_attn.${name}_proj`, before));
    this.rotate(query, place);
    this.rotate(key, place);
    keys.set(key, place * this.keyDim);
    values.set(value, place * this.keyDim);
    const mixed = attend(query, keys, values, { count: place + 1, heads, keyHeads, scale: size ** -0.5 });
    add(x, linear(this.state, `${at}.self_attn.o_proj`, mixed));
    const after = this.norm(`${at}.post_attention_layernorm`, x);
    const [gate, up] = ["gate", "up"].map((name) => linear(this.state, `${at}.mlp.${name}_proj`, after));
    add(x, linear(this.state, `${at}.mlp.down_proj`, up.map((number, i) => number * this.activation(gate[i]))));
  }

  /** Turn each head's pairs (i, i + size/2) by their angles at this place. @param {Float32Array} x changed in place @param {number} place */
  rotate(x, place) {
    const size = this.config.head_dim;
    const half = size / 2;
    for (let i = 0; i < half; i++) {
      const angle = Math.fround(place * this.turns[i]);
      const [cosine, sine] = [Math.cos(angle), Math.sin(angle)];
      for (let at = i; at < x.length; at += size) {
        const [a, b] = [x[at], x[at + half]];
        x[at] = a * cosine - b * sine;
        x[at + half] = b * cosine + a * sine;
      }
    }
  }
}

/** @param {any} config @returns {Float32Array} the angle per place of each pair of a head, rounded as torch does */
function turns({ head_dim: size, rope_parameters: rope }) {
  const { rope_theta: theta = 10000, rope_type: type = "default", ...rest } = rope;
  if (type !== "default" || Object.keys(rest).length) throw new TicketError(`rotary positions of type "${type}" are unknown`);
  return Float32Array.from({ length: size / 2 }, (_, i) => 1 / Math.fround(theta ** Math.fround((2 * i) / size)));
}

/** @param {any} config @returns {Map<string, number[]>} */
function shapesOf(config) {
  const { vocab_size: vocabulary, hidden_size: dim, intermediate_size: inner, head_dim: size } = config;
  const [queries, keys] = [config.num_attention_heads * size, config.num_key_value_heads * size];
  const maps = {
    "self_attn.q_proj": [queries, dim], "self_attn.k_proj": [keys, dim], "self_attn.v_proj": [keys, dim],
    "self_attn.o_proj": [dim, queries], "mlp.gate_proj": [inner, dim], "mlp.up_proj": [inner, dim], "mlp.down_proj": [dim, inner],
  };
  const layer = { "input_layernorm.weight": [dim], "post_attention_layernorm.weight": [dim] };
  for (const [name, shape] of Object.entries(maps)) {
    layer[`${name}.weight`] = shape;
    const isQwen = config.model_type === "qwen2" && /[qkv]_proj/.test(name);
    if (isQwen || (name.startsWith("self_attn") ? config.attention_bias : config.mlp_bias)) layer[`${name}.bias`] = [shape[0]];
  }
  const found = new Map(perLayer("model.layers", config.num_hidden_layers, layer));
  if (!config.tie_word_embeddings) found.set("lm_head.weight", [vocabulary, dim]);
  return found.set("model.embed_tokens.weight", [vocabulary, dim]).set("model.norm.weight", [dim]);
}
