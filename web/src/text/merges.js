/** Pieces of text with their numbers, and which neighbours become one piece. */
export class Merges {
  /** @param {any} definition of the `tokenizers` library; merges are pairs, or "a b" texts */
  constructor({ model }) {
    /** @type {Map<string, number>} */
    this.numbers = new Map(Object.entries(model.vocab));
    this.ranks = new Map(model.merges.map((pair, rank) => [Array.isArray(pair) ? pair.join(" ") : pair, rank]));
  }

  /**
   * Merges neighbours until no pair of them has a rank: the lowest rank first, of equal ranks the leftmost.
   * @param {string[]} pieces changed in place @returns {number[]}
   */
  tokens(pieces) {
    const rank = (/** @type {number} */ i) => (i + 1 < pieces.length ? (this.ranks.get(`${pieces[i]} ${pieces[i + 1]}`) ?? Infinity) : Infinity);
    const found = pieces.map((_, i) => rank(i)); // of each piece with the next
    for (;;) {
      const best = found.reduce((least, each) => Math.min(least, each), Infinity);
      if (best === Infinity) return pieces.map((piece) => this.numbers.get(piece));
      const at = found.indexOf(best);
      pieces.splice(at, 2, pieces[at] + pieces[at + 1]);
      found.splice(at, 1);
      for (const i of [at - 1, at]) if (i >= 0) found[i] = rank(i);
    }
  }
}
