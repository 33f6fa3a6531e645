import { TicketError } from "../errors.js";
import { crossEntropy } from "./numerics.js";

/**
 * A network that reads tokens one after the other and predicts the next. What is changed in `state` changes it.
 * A family defines embed(token, place), block(layer, x, cache, place), which changes x in place, and logits(x).
 */
export class LanguageNetwork {
  /**
   * @param {Map<string, Float32Array>} state tensors by name
   * @param {{vocabulary: number, context: number, layers: number, keyDim: number, ends: number[]}} about keyDim: numbers in
   *   a token's keys; ends: tokens that end a text
   */
  constructor(state, { vocabulary, context, layers, keyDim, ends }) {
    this.state = state;
    this.vocabulary = vocabulary;
    this.context = context;
    this.layers = layers;
    this.keyDim = keyDim;
    this.ends = ends;
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

/** @param {import("../ticket.js").Ticket} ticket @param {number} positions that the network has @returns {number} */
export function contextOf(ticket, positions) {
  const { context } = ticket.metadata;
  return Number.isSafeInteger(context) && context > 0 ? Math.min(context, positions) : positions;
}

/** @param {import("../ticket.js").Ticket} ticket @returns {number[]} tokens after which a built network has nothing to say */
export function endsOf(ticket) {
  const { eos_token_id: ends } = ticket.settings.config;
  return ticket.kind === "pretrained" ? [ends].flat().filter(Number.isSafeInteger) : [];
}
