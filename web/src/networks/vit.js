import { TicketError } from "../errors.js";
import { activation, add, attend, layerNorm, linear } from "./numerics.js";
import { checkSizes, loadState, perLayer, readConfig } from "./state.js";

const DEFAULTS = {
  hidden_size: 768, num_hidden_layers: 12, num_attention_heads: 12, intermediate_size: 3072, hidden_act: "gelu",
  layer_norm_eps: 1e-12, image_size: 224, patch_size: 16, num_channels: 3, qkv_bias: true,
};
const FIXED = { model_type: "vit", is_encoder_decoder: false };
const IGNORED = /_dropout_prob$|^pooler_|^(initializer_range|encoder_stride|num_labels|id2label|label2id|problem_type)$/;

const HEAD = "classifier.weight";
const CLASS_TOKEN = "vit.embeddings.cls_token";
const POSITIONS = "vit.embeddings.position_embeddings";

/** A vision transformer as transformers' ViTForImageClassification computes it. */
export class Vit {
  /** @param {import("../ticket.js").Ticket} ticket */
  constructor(ticket) {
    const config = readConfig(ticket.settings.config, DEFAULTS, FIXED, IGNORED);
    checkSizes(config, ["hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size"]);
    checkSizes(config, ["image_size", "patch_size", "num_channels"]);
    if (config.hidden_size % config.num_attention_heads || config.image_size % config.patch_size)
      throw new TicketError("heads must divide the width, patches the image");
    this.config = config;
    this.activation = activation(config.hidden_act);
    this.norm = (/** @type {string} */ name, /** @type {Float32Array} */ x) => layerNorm(this.state, name, x, config.layer_norm_eps);
    this.classes = ticket.tensor(HEAD).shape[0];
    this.tokens = (config.image_size / config.patch_size) ** 2 + 1;
    /** Tensors by name; what is changed here changes the network. */
    this.state = loadState(ticket, shapesOf(config, this.classes, this.tokens));
  }

  /** @param {Float32Array} image (channels, height, width) @returns {Float32Array} one logit per class */
  logits(image) {
    const { image_size: size, num_channels: channels, num_hidden_layers: layers } = this.config;
    if (image.length !== channels * size * size)
      throw new TicketError(`an image has ${channels} × ${size} × ${size} numbers, got ${image.length}`);
    const tokens = this.embed(image);
    for (let layer = 0; layer < layers; layer++) this.block(`vit.layers.${layer}`, tokens);
    return linear(this.state, "classifier", this.norm("vit.layernorm", tokens[0]));
  }

  /** @param {Float32Array} image @returns {Float32Array[]} the class token and the patches, with their positions */
  embed(image) {
    const { image_size: size, patch_size: patch, num_channels: channels, hidden_size: dim } = this.config;
    const tokens = [this.state.get(CLASS_TOKEN).slice()];
    for (let top = 0; top < size; top += patch)
      for (let left = 0; left < size; left += patch) {
        const pixels = [];
        for (let c = 0; c < channels; c++)
          for (let y = top; y < top + patch; y++)
            pixels.push(...image.subarray((c * size + y) * size + left, (c * size + y) * size + left + patch));
        tokens.push(linear(this.state, "vit.embeddings.patch_embeddings.projection", Float32Array.from(pixels)));
      }
    const places = this.state.get(POSITIONS);
    tokens.forEach((token, i) => add(token, places.subarray(i * dim, (i + 1) * dim)));
    return tokens;
  }

  /** @param {string} at @param {Float32Array[]} tokens changed in place */
  block(at, tokens) {
    const { hidden_size: dim, num_attention_heads: heads } = this.config;
    const normed = tokens.map((token) => this.norm(`${at}.layernorm_before`, token));
    const [queries, keys, values] = ["q", "k", "v"].map((name) => {
      const all = new Float32Array(tokens.length * dim);
      normed.forEach((token, i) => all.set(linear(this.state, `${at}.attention.${name}_proj`, token), i * dim));
      return all;
    });
    const shape = { count: tokens.length, heads, keyHeads: heads, scale: (dim / heads) ** -0.5 };
    tokens.forEach((token, i) => {
      const mixed = attend(queries.subarray(i * dim, (i + 1) * dim), keys, values, shape);
      add(token, linear(this.state, `${at}.attention.o_proj`, mixed));
      const hidden = linear(this.state, `${at}.mlp.fc1`, this.norm(`${at}.layernorm_after`, token));
      add(token, linear(this.state, `${at}.mlp.fc2`, hidden.map(this.activation)));
    });
  }
}

/** @param {any} config @param {number} classes @param {number} tokens @returns {Map<string, number[]>} */
function shapesOf(config, classes, tokens) {
  const { hidden_size: dim, intermediate_size: inner, num_channels: channels, patch_size: patch } = config;
  const layer = { "mlp.fc1.weight": [inner, dim], "mlp.fc1.bias": [inner], "mlp.fc2.weight": [dim, inner], "mlp.fc2.bias": [dim] };
  for (const name of ["q", "k", "v", "o"]) {
    layer[`attention.${name}_proj.weight`] = [dim, dim];
    if (config.qkv_bias || name === "o") layer[`attention.${name}_proj.bias`] = [dim];
  }
  for (const norm of ["before", "after"]) layer[`layernorm_${norm}.weight`] = layer[`layernorm_${norm}.bias`] = [dim];
  const patches = "vit.embeddings.patch_embeddings.projection";
  return new Map([
    ...perLayer("vit.layers", config.num_hidden_layers, layer),
    [CLASS_TOKEN, [1, 1, dim]], [POSITIONS, [1, tokens, dim]], [`${patches}.weight`, [dim, channels, patch, patch]], [`${patches}.bias`, [dim]],
    ["vit.layernorm.weight", [dim]], ["vit.layernorm.bias", [dim]], [HEAD, [classes, dim]], ["classifier.bias", [classes]],
  ]);
}
