// RFC 7693 without a key. BigInt is fast enough for the few bytes that name a tensor.

const WORD = (1n << 64n) - 1n;
const START = [
  0x6a09e667f3bcc908n, 0xbb67ae8584caa73bn, 0x3c6ef372fe94f82bn, 0xa54ff53a5f1d36f1n,
  0x510e527fade682d1n, 0x9b05688c2b3e6c1fn, 0x1f83d9abfb41bd6bn, 0x5be0cd19137e2179n,
];
// Order of the message words in each round, a hexadecimal digit per word; rounds 11 and 12 repeat the first two.
const ORDERS = [
  "0123456789abcdef", "ea489fd61c02b753", "b8c052fdae367194", "7931dcbe265a40f8", "905724afe1bc683d",
  "2c6a0b834d75fe19", "c51fed4a0763928b", "db7ec13950f4862a", "6fe9b308c2d714a5", "a2847615fb9e3cd0",
];
const MIXES = [
  [0, 4, 8, 12], [1, 5, 9, 13], [2, 6, 10, 14], [3, 7, 11, 15],
  [0, 5, 10, 15], [1, 6, 11, 12], [2, 7, 8, 13], [3, 4, 9, 14],
];

/**
 * @param {Uint8Array} message @param {number} size bytes of the digest, a multiple of 8 @param {Uint8Array} person
 *   personalisation, at most 16 bytes @returns {bigint[]} the digest as little-endian 64-bit words
 */
export function blake2b(message, size, person) {
  const state = START.slice();
  state[0] ^= 0x01010000n ^ BigInt(size);
  words(person, 16).forEach((word, i) => (state[6 + i] ^= word));
  for (let at = 0; at === 0 || at < message.length; at += 128) {
    const end = Math.min(at + 128, message.length);
    compress(state, words(message.subarray(at, end), 128), BigInt(end), end === message.length);
  }
  return state.slice(0, size / 8);
}

/** @param {Uint8Array} bytes @param {number} size with zeros behind them @returns {BigUint64Array} */
function words(bytes, size) {
  const padded = new Uint8Array(size);
  padded.set(bytes);
  return new BigUint64Array(padded.buffer);
}

/** @param {bigint[]} state @param {BigUint64Array} block @param {bigint} count bytes so far @param {boolean} last */
function compress(state, block, count, last) {
  const v = [...state, ...START];
  v[12] ^= count;
  if (last) v[14] ^= WORD;
  const turn = (/** @type {bigint} */ x, /** @type {bigint} */ by) => ((x >> by) | (x << (64n - by))) & WORD;
  for (let round = 0; round < 12; round++) {
    const order = ORDERS[round % 10];
    MIXES.forEach(([a, b, c, d], i) => {
      const x = block[parseInt(order[2 * i], 16)];
      const y = block[parseInt(order[2 * i + 1], 16)];
      v[a] = (v[a] + v[b] + x) & WORD;
      v[d] = turn(v[d] ^ v[a], 32n);
      v[c] = (v[c] + v[d]) & WORD;
      v[b] = turn(v[b] ^ v[c], 24n);
      v[a] = (v[a] + v[b] + y) & WORD;
      v[d] = turn(v[d] ^ v[a], 16n);
      v[c] = (v[c] + v[d]) & WORD;
      v[b] = turn(v[b] ^ v[c], 63n);
    });
  }
  for (let i = 0; i < 8; i++) state[i] ^= v[i] ^ v[i + 8];
}
