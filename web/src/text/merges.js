/**
 * Merge neighbours until no pair of them has a rank: the lowest rank first, of equal ranks the leftmost.
 * @param {string[]} pieces changed in place @param {Map<string, number>} ranks "a b" -> rank @returns {string[]}
 */
export function merge(pieces, ranks) {
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

/** @param {any} merges pairs, or "a b" texts, as the `tokenizers` library writes them @returns {Map<string, number>} */
export const readRanks = (merges) => new Map(merges.map((pair, rank) => [Array.isArray(pair) ? pair.join(" ") : pair, rank]));
