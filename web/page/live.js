import { readChoices, spread } from "../src/choices.js";
import { scalePart } from "../src/networks/state.js";

/** @typedef {{random: Float32Array, apart?: Float32Array}} Source random weights as the network uses them, query and key parts scaled.
 *   Of choices, the one of each connection that is nearest to 0, and how far apart the others are. */

/** A ticket whose masks and choices can be changed: the network, if it runs here, follows. Says "change" after each one. */
export class Live extends EventTarget {
  /** @type {Map<string, Source>} */
  #sources = new Map();

  /** @param {import("../src/ticket.js").Ticket} ticket @param {any} network null if this reader does not run it */
  constructor(ticket, network) {
    super();
    this.ticket = ticket;
    this.network = network;
    const isShown = ({ name, size, mask, choices }) => (mask || choices) && size && (!network || network.state.has(name)); // not a part of a code
    const shown = [...ticket.tensors.values()].filter(isShown);
    /** What is kept, as the file has it: 1 or 0 of a mask; of choices, the number of the weight, counted from the one nearest to 0. */
    this.stored = new Map(shown.map((tensor) => [tensor.name, tensor.mask ?? this.#choices(tensor)]));
    /** The same as it is now. */
    this.picks = new Map([...this.stored].map(([name, picks]) => [name, picks.slice()]));
    /** The network's numbers as the file has them. */
    this.original = new Map(network ? shown.map(({ name }) => [name, network.state.get(name).slice()]) : []);
  }

  /** Reads a tensor of choices. @param {import("../src/ticket.js").Tensor} tensor @returns {Int32Array} */
  #choices({ name, shape, choices }) {
    const { numbers, spacings } = readChoices(this.ticket.seed, name, shape, choices);
    const apart = spread(spacings, shape, choices.transposed);
    const picks = Int32Array.from(numbers, (number, i) => Math.round(number / apart[i]));
    this.#keep(name, { random: numbers.map((number, i) => number - picks[i] * apart[i]), apart });
    return picks;
  }

  /** @param {string} name @param {Source} source before its parts are scaled @returns {Source} */
  #keep(name, source) {
    for (const part of (this.network && this.ticket.settings.parts?.[name]) || [])
      for (const weights of Object.values(source)) scalePart(weights, this.ticket.tensor(name).shape, part);
    this.#sources.set(name, source);
    return source;
  }

  /** @param {string} name @returns {Source} */
  source(name) {
    return this.#sources.get(name) ?? this.#keep(name, { random: this.ticket.random(name) });
  }

  /** What the pick leaves of the random weights. @param {string} name @param {number} i @returns {number} */
  left(name, i) {
    const { random, apart } = this.source(name);
    const pick = this.picks.get(name)[i];
    return apart ? random[i] + pick * apart[i] : pick && random[i];
  }

  /** @param {string} name @param {number} i */
  toggle(name, i) {
    const stored = this.stored.get(name)[i];
    this.#set(name, i, this.picks.get(name)[i] === stored ? this.#flipped(name, stored) : stored);
    this.dispatchEvent(new Event("change"));
  }

  /** What is stored with a share of it flipped: the same for the same share, more for a larger one. @param {number} share */
  flip(share) {
    let state = 1;
    for (const [name, stored] of this.stored)
      for (let i = 0; i < stored.length; i++) {
        state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
        this.#set(name, i, state < share * 2 ** 32 ? this.#flipped(name, stored[i]) : stored[i]);
      }
    this.dispatchEvent(new Event("change"));
  }

  /** A bit turned over, or the weight on the other side of 0. @param {string} name @param {number} pick */
  #flipped(name, pick) {
    return this.source(name).apart ? -pick || 1 : 1 - pick;
  }

  /** @param {string} name @param {number} i @param {number} pick */
  #set(name, i, pick) {
    const [picks, was] = [this.picks.get(name), this.stored.get(name)[i]];
    if (picks[i] === pick) return;
    picks[i] = pick;
    if (!this.original.has(name)) return;
    const { random, apart } = this.source(name);
    const original = this.original.get(name)[i];
    const hasDraws = this.ticket.settings.codes?.[name]?.draws?.length; // then another draw may be under this one
    const isDropped = !apart && was && !pick && !hasDraws;
    this.network.state.get(name)[i] = isDropped ? 0 : original + (pick - was) * (apart ?? random)[i];
  }
}
