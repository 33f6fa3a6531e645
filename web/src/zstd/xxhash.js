// XXH64 with seed 0: the optional checksum of a zstd frame.

const WORD = (1n << 64n) - 1n;
const [P1, P2, P3, P4, P5] = [
  0x9e3779b185ebca87n, 0xc2b2ae3d27d4eb4fn, 0x165667b19e3779f9n, 0x85ebca77c2b2ae63n, 0x27d4eb2f165667c5n,
];

/** @param {bigint} x @param {bigint} by */
const turn = (x, by) => ((x << by) | (x >> (64n - by))) & WORD;
/** @param {bigint} lane @param {bigint} input */
const round = (lane, input) => (turn((lane + input * P2) & WORD, 31n) * P1) & WORD;

/** @param {Uint8Array} data @returns {bigint} */
export function xxh64(data) {
  const view = new DataView(data.buffer, data.byteOffset, data.length);
  let at = 0;
  let hash = P5;
  if (data.length >= 32) {
    const lanes = [(P1 + P2) & WORD, P2, 0n, -P1 & WORD];
    for (; at + 32 <= data.length; at += 32)
      for (let i = 0; i < 4; i++) lanes[i] = round(lanes[i], view.getBigUint64(at + 8 * i, true));
    hash = [1n, 7n, 12n, 18n].reduce((sum, by, i) => (sum + turn(lanes[i], by)) & WORD, 0n);
    for (const lane of lanes) hash = ((hash ^ round(0n, lane)) * P1 + P4) & WORD;
  }
  hash = (hash + BigInt(data.length)) & WORD;
  for (; at + 8 <= data.length; at += 8)
    hash = (turn(hash ^ round(0n, view.getBigUint64(at, true)), 27n) * P1 + P4) & WORD;
  for (; at + 4 <= data.length; at += 4)
    hash = (turn(hash ^ ((BigInt(view.getUint32(at, true)) * P1) & WORD), 23n) * P2 + P3) & WORD;
  for (; at < data.length; at++) hash = (turn(hash ^ ((BigInt(data[at]) * P5) & WORD), 11n) * P1) & WORD;
  hash = ((hash ^ (hash >> 33n)) * P2) & WORD;
  hash = ((hash ^ (hash >> 29n)) * P3) & WORD;
  return hash ^ (hash >> 32n);
}
