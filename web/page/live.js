import { Factors } from "../src/networks/factors.js";
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
    /** How a built network's tensors follow from those of the ticket; null if they are the same. */
    this.factors = network && ticket.kind === "pretrained" ? new Factors(ticket) : null;
    const isShown = (/** @type {string} */ name) => !network || this.factors || network.state.has(name); // not a part of a code
    const masked = [...ticket.tensors.values()].filter((tensor) => tensor.mask && tensor.size && isShown(tensor.name));
    /** Masks as they are now. */
    this.masks = new Map(masked.map(({ name, mask }) => [name, mask.slice()]));
    /** The numbers of a searched network as the file has them. */
    this.original = new Map(network && !this.factors ? masked.map(({ name }) => [name, network.state.get(name).slice()]) : []);
  }

  /** Random weights as the network uses them, query and key parts scaled. @param {string} name @returns {Float32Array} */
  random(name) {
    let weights = this.#random.get(name);
    if (!weights) {
      weights = this.ticket.random(name);
      const scaled = this.network ? (this.ticket.settings.parts?.[name] ?? []) : [];
      for (const part of scaled) scalePart(weights, this.ticket.tensor(name).shape, part);
      this.#random.set(name, weights);
    }
    return weights;
  }

  /** Whether the file stores the mask: a left factor's follows from its weights. @param {string} name */
  isStored(name) {
    return !this.factors || name.endsWith(".right");
  }

  /** @param {string} name @param {number} i */
  toggle(name, i) {
    this.#set(name, i, 1 - this.masks.get(name)[i]);
    this.#changed(new Set([name]));
  }

  /** The file's mask with a share of its bits flipped: the same ones for the same share, more for a larger one. @param {number} share */
  flip(share) {
    let state = 1;
    const changed = new Set();
    for (const [name, mask] of this.masks) {
      if (!this.isStored(name)) continue;
      const original = this.ticket.tensor(name).mask;
      for (let i = 0; i < mask.length; i++) {
        state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
        const wanted = original[i] ^ Number(state < share * 2 ** 32);
        if (mask[i] === wanted) continue;
        this.#set(name, i, wanted);
        changed.add(name);
      }
    }
    this.#changed(changed);
  }

  /** @param {string} name @param {number} i @param {number} kept */
  #set(name, i, kept) {
    this.masks.get(name)[i] = kept;
    if (!this.original.has(name)) return;
    const [original, was] = [this.original.get(name)[i], this.ticket.tensor(name).mask[i]];
    const hasDraws = this.ticket.settings.codes?.[name]?.draws?.length; // then another draw may be under this one
    const without = !was ? original : hasDraws ? original - this.random(name)[i] : 0;
    this.network.state.get(name)[i] = kept === was ? original : kept ? original + this.random(name)[i] : without;
  }

  /** @param {Set<string>} names of the tensors with changed masks */
  #changed(names) {
    const masked = (/** @type {string} */ name) => {
      const mask = this.masks.get(name);
      return this.random(name).map((weight, i) => (mask[i] ? weight : 0));
    };
    const { factors } = this;
    if (factors) for (const name of new Set([...names].map((each) => factors.tensorOf.get(each)))) this.network.state.get(name).set(factors.fold(name, masked));
    this.dispatchEvent(new Event("change"));
  }
}
