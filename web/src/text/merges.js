/** Pieces of text with their numbers, and which neighbours become one piece. */
export class Merges {
  /** @param {any} definition of the `tokenizers` library; merges are pairs, or "a b" texts */
  constructor({ model }) {
    /** @type {Map<string, number>} */
    this.numbers = new Map(Object.entries(model.vocab));
    this.ranks = new Map(model.merges.map((pair, rank) => [Array.isArray(pair) ? pair.join(" ") : pair, rank]));
  }

  /** @param {string[]} pieces @returns {number[]} */
  tokens(pieces) {
    return merge(pieces, this.ranks).map((piece) => this.numbers.get(piece));
  }
}

/**
 * Merge neighbours until no pair of them has a rank: the lowest rank first, of equal ranks the leftmost.
 * @param {string[]} pieces changed in place @param {Map<string, number>} ranks "a b" -> rank @returns {string[]}
 */
function merge(pieces, ranks) {
  const rank = (/** @type {number} */ i) => (i < 0 || i + 1 >= pieces.length ? Infinity : (ranks.get(`${pieces[i]} ${pieces[i + 1]}`) ?? Infinity));
  const found = pieces.map((_, i) => rank(i)); // of each piece with the next
  for (;;) {
    let at = -1;
    let best = Infinity;
    for (let i = 0; i < found.length; i++) if (found[i] < best) [best, at] = [found[i], i];
    if (at < 0) return pieces;
    pieces.splice(at, 2, pieces[at] + pieces[at + 1]);
    found.splice(at, 1);
    for (const i of [at - 1, at]) if (i >= 0) found[i] = rank(i);
  }
}
