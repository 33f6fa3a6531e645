import { scalePart } from "../src/networks/state.js";

/** A ticket whose mask can be changed: the network, if it runs here, follows. Says "change" after each one. */
export class Live extends EventTarget {
  /** @type {Map<string, Float32Array>} */
  #random = new Map();

  /** @param {import("../src/ticket.js").Ticket} ticket @param {any} network null if this reader does not run it */
  constructor(ticket, network) {
    super();
    this.ticket = ticket;
    this.network = network;
    const isMatrix = (/** @type {string} */ name) => !network || network.state.has(name); // not a part of a code
    const masked = [...ticket.tensors.values()].filter((tensor) => tensor.mask && tensor.size && isMatrix(tensor.name));
    /** Masks as they are now. */
    this.masks = new Map(masked.map(({ name, mask }) => [name, mask.slice()]));
    /** The network's numbers as the file has them. */
    this.original = new Map(network ? masked.map(({ name }) => [name, network.state.get(name).slice()]) : []);
  }

  /** Random weights as the network uses them, query and key parts scaled. @param {string} name @returns {Float32Array} */
  random(name) {
    let weights = this.#random.get(name);
    if (!weights) {
      weights = this.ticket.random(name);
      const scaled = this.network ? (this.ticket.settings.parts[name] ?? []) : [];
      if (this.#code(name).absolute) weights = weights.map(Math.abs);
      for (const part of scaled) scalePart(weights, this.ticket.tensor(name).shape, part);
      this.#random.set(name, weights);
    }
    return weights;
  }

  /** @param {string} name @param {number} i */
  toggle(name, i) {
    this.#set(name, i, 1 - this.masks.get(name)[i]);
    this.dispatchEvent(new Event("change"));
  }

  /** The file's mask with a share of its bits flipped: the same ones for the same share, more for a larger one. @param {number} share */
  flip(share) {
    let state = 1;
    for (const [name, mask] of this.masks) {
      const original = this.ticket.tensor(name).mask;
      for (let i = 0; i < mask.length; i++) {
        state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
        const wanted = original[i] ^ Number(state < share * 2 ** 32);
        if (mask[i] !== wanted) this.#set(name, i, wanted);
      }
    }
    this.dispatchEvent(new Event("change"));
  }

  /** @param {string} name @param {number} i @param {number} kept */
  #set(name, i, kept) {
    this.masks.get(name)[i] = kept;
    if (!this.network) return;
    const [original, was] = [this.original.get(name)[i], this.ticket.tensor(name).mask[i]];
    const without = !was ? original : this.#code(name).draws ? original - this.random(name)[i] : 0;
    this.network.state.get(name)[i] = kept === was ? original : kept ? original + this.random(name)[i] : without;
  }

  /** @param {string} name @returns {import("../src/networks/codes.js").Code} */
  #code(name) {
    return this.ticket.settings.codes?.[name] ?? {};
  }
}
