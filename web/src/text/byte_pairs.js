import { encodeText } from "../bytes.js";
import { TicketError } from "../errors.js";
import { parseJson } from "../json.js";

// GPT-2's words: a pair is only merged inside one.
const WORDS = /'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+/gu;

/** Bytes as printable characters: those that are printable stay, the others get the characters from 256 on. */
const LETTERS = (() => {
  const printable = (/** @type {number} */ byte) => (byte > 32 && byte < 127) || (byte > 160 && byte !== 173);
  let more = 256;
  return Array.from({ length: 256 }, (_, byte) => String.fromCharCode(printable(byte) ? byte : more++));
})();

/** A byte-level byte-pair tokenizer, as the `tokenizers` library writes it. */
export class BytePairs {
  /** @param {string} definition JSON */
  constructor(definition) {
    const { model, pre_tokenizer: words, normalizer, added_tokens: added } = parseJson(definition, "tokenizer");
    if (model?.type !== "BPE" || words?.type !== "ByteLevel" || words.add_prefix_space || normalizer || added?.length)
      throw new TicketError("this reader only knows byte-level byte-pair tokenizers without additions");
    /** @type {Map<string, number>} */
    this.numbers = new Map(Object.entries(model.vocab));
    this.pieces = new Map([...this.numbers].map(([piece, number]) => [number, piece]));
    /** @type {Map<string, number>} pair -> rank, the lowest is merged first */
    this.ranks = new Map(model.merges.map((pair, rank) => [Array.isArray(pair) ? pair.join(" ") : pair, rank]));
    this.bytes = new Map(LETTERS.map((letter, byte) => [letter, byte]));
  }

  /** @param {string} text @returns {number[]} */
  encode(text) {
    return (text.match(WORDS) ?? []).flatMap((word) => {
      const pieces = this.merged(Array.from(encodeText(word), (byte) => LETTERS[byte]));
      return pieces.map((piece) => this.numbers.get(piece));
    });
  }

  /** @param {string[]} pieces @returns {string[]} */
  merged(pieces) {
    for (;;) {
      let best = Infinity;
      let at = -1;
      for (let i = 0; i + 1 < pieces.length; i++) {
        const rank = this.ranks.get(`${pieces[i]} ${pieces[i + 1]}`) ?? Infinity;
        if (rank < best) [best, at] = [rank, i];
      }
      if (at < 0) return pieces;
      pieces.splice(at, 2, pieces[at] + pieces[at + 1]);
    }
  }

  /** @param {number[]} tokens @returns {string} */
  decode(tokens) {
    const letters = tokens.map((token) => this.pieces.get(token) ?? "").join("");
    return new TextDecoder().decode(Uint8Array.from(letters, (letter) => this.bytes.get(letter)));
  }
}
