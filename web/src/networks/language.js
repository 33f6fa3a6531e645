import { TicketError } from "../errors.js";
import { crossEntropy, linear } from "./numerics.js";

/**
 * A network that reads tokens one after the other and predicts the next. What is changed in `state` changes it.
 * A family defines norm(name, x) and block(layer, x, cache, place), which changes x in place.
 */
export class LanguageNetwork {
  /**
   * @param {import("../ticket.js").Ticket} ticket @param {Map<string, Float32Array>} state tensors by name
   * @param {{embedding: string, head: string, norm: string}} names of tensors; norm: the last one
   * @param {{vocabulary: number, positions: number, layers: number, keyDim: number}} sizes keyDim: numbers in a token's keys
   */
  constructor(ticket, state, names, { vocabulary, positions, layers, keyDim }) {
    const { context } = ticket.metadata;
    this.state = state;
    this.names = names;
    this.vocabulary = vocabulary;
    this.context = Number.isSafeInteger(context) && context > 0 ? Math.min(context, positions) : positions;
    this.layers = layers;
    this.keyDim = keyDim;
    /** Tokens after which a built network has nothing to say. */
    this.ends = ticket.kind === "model" ? [ticket.settings.config.eos_token_id].flat().filter(Number.isSafeInteger) : [];
  }

  /** @param {number} token @returns {Float32Array} */
  embed(token) {
    const weights = this.state.get(`${this.names.embedding}.weight`);
    const dim = weights.length / this.vocabulary;
    return weights.slice(token * dim, (token + 1) * dim);
  }

  /** @param {Float32Array} x */
  logits(x) {
    return linear(this.state, this.names.head, this.norm(this.names.norm, x));
  }

  /** Reads tokens one after the other; a new one starts at the first position. */
  session() {
    return new Session(this);
  }

  /** @param {number[]} tokens @returns {number} mean loss of each after those before it in its window of `context`, in nats */
  loss(tokens) {
    let session = this.session();
    let sum = 0;
    for (let i = 0; i + 1 < tokens.length; i++) {
      if (session.length === this.context) session = this.session();
      sum += crossEntropy(session.read(tokens[i]), tokens[i + 1]);
    }
    return sum / (tokens.length - 1);
  }
}

/** @typedef {{keys: Float32Array, values: Float32Array}} Cache of the tokens read so far, in one layer */

/** A text being read. */
class Session {
  /** @param {LanguageNetwork} network */
  constructor(network) {
    this.network = network;
    const size = network.context * network.keyDim;
    /** @type {Cache[]} */
    this.caches = Array.from({ length: network.layers }, () => ({ keys: new Float32Array(size), values: new Float32Array(size) }));
    this.length = 0;
  }

  /** @param {number} token @returns {Float32Array} logits of the token after it */
  read(token) {
    const { network } = this;
    if (this.length >= network.context) throw new TicketError(`the network reads at most ${network.context} tokens`);
    if (!(token >= 0 && token < network.vocabulary)) throw new TicketError(`token ${token} is not one of ${network.vocabulary}`);
    const x = network.embed(token, this.length);
    this.caches.forEach((cache, layer) => network.block(layer, x, cache, this.length));
    this.length += 1;
    return network.logits(x);
  }
}
