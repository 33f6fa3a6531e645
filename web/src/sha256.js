// FIPS 180-4. Not WebCrypto's: a page opened from disk may not have it, and it only works asynchronously.

/** @param {(value: number) => number} root @returns {Int32Array} first 32 fraction bits of the roots of 64 primes */
function rootBits(root) {
  const primes = [];
  for (let n = 2; primes.length < 64; n++) if (primes.every((prime) => n % prime)) primes.push(n);
  return Int32Array.from(primes, (prime) => (root(prime) % 1) * 2 ** 32);
}

const ROUNDS = rootBits(Math.cbrt);
const START = rootBits(Math.sqrt).subarray(0, 8);

/** @param {...Uint8Array} parts @returns {Uint8Array} the SHA-256 of the parts one after the other, 32 bytes */
export function sha256(...parts) {
  const size = parts.reduce((sum, part) => sum + part.length, 0);
  const message = new Uint8Array(64 * Math.ceil((size + 9) / 64));
  let at = 0;
  for (const part of [...parts, [0x80]]) {
    message.set(part, at);
    at += part.length;
  }
  const blocks = new DataView(message.buffer);
  blocks.setUint32(message.length - 8, Math.floor(size / 2 ** 29));
  blocks.setUint32(message.length - 4, (8 * size) % 2 ** 32);
  const state = START.slice();
  const words = new Int32Array(64);
  for (let block = 0; block < message.length; block += 64) compress(state, words, blocks, block);
  const out = new DataView(new ArrayBuffer(32));
  state.forEach((word, i) => out.setUint32(4 * i, word));
  return new Uint8Array(out.buffer);
}

/** @param {Int32Array} state @param {Int32Array} words scratch, 64 @param {DataView} blocks @param {number} at where the block's 64 bytes begin */
function compress(state, words, blocks, at) {
  for (let i = 0; i < 16; i++) words[i] = blocks.getUint32(at + 4 * i);
  for (let i = 16; i < 64; i++) {
    const x = words[i - 15];
    const y = words[i - 2];
    const s0 = ((x >>> 7) | (x << 25)) ^ ((x >>> 18) | (x << 14)) ^ (x >>> 3);
    const s1 = ((y >>> 17) | (y << 15)) ^ ((y >>> 19) | (y << 13)) ^ (y >>> 10);
    words[i] = (words[i - 16] + s0 + words[i - 7] + s1) | 0;
  }
  let a = state[0];
  let b = state[1];
  let c = state[2];
  let d = state[3];
  let e = state[4];
  let f = state[5];
  let g = state[6];
  let h = state[7];
  for (let i = 0; i < 64; i++) {
    const s1 = ((e >>> 6) | (e << 26)) ^ ((e >>> 11) | (e << 21)) ^ ((e >>> 25) | (e << 7));
    const t1 = (h + s1 + ((e & f) ^ (~e & g)) + ROUNDS[i] + words[i]) | 0;
    const s0 = ((a >>> 2) | (a << 30)) ^ ((a >>> 13) | (a << 19)) ^ ((a >>> 22) | (a << 10));
    const t2 = (s0 + ((a & b) ^ (a & c) ^ (b & c))) | 0;
    h = g;
    g = f;
    f = e;
    e = (d + t1) | 0;
    d = c;
    c = b;
    b = a;
    a = (t1 + t2) | 0;
  }
  [a, b, c, d, e, f, g, h].forEach((word, i) => (state[i] += word));
}
