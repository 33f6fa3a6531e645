import { encodeText } from "../bytes.js";
import { Merges } from "./merges.js";

// GPT-2's words: a pair is only merged inside one.
const WORDS = /'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+/gu;

/** Bytes as printable characters: those that are printable stay, the others get the characters from 256 on. */
const LETTERS = (() => {
  const printable = (/** @type {number} */ byte) => (byte > 32 && byte < 127) || (byte > 160 && byte !== 173);
  let more = 256;
  return Array.from({ length: 256 }, (_, byte) => String.fromCharCode(printable(byte) ? byte : more++));
})();

const BYTES = new Map(LETTERS.map((letter, byte) => [letter, byte]));

/** Byte-level byte pairs, as GPT-2 has them. */
export class BytePairs extends Merges {
  /** @param {any} definition of the `tokenizers` library @returns {boolean} whether it is of this kind */
  static fits({ model, pre_tokenizer: words, normalizer }) {
    return model?.type === "BPE" && words?.type === "ByteLevel" && !words.add_prefix_space && !normalizer && !model.byte_fallback;
  }

  /** @param {string} text @returns {number[]} */
  encode(text) {
    return (text.match(WORDS) ?? []).flatMap((word) => this.tokens(Array.from(encodeText(word), (byte) => LETTERS[byte])));
  }

  /** @param {string[]} pieces @returns {string} */
  join(pieces) {
    return new TextDecoder().decode(Uint8Array.from(pieces.join(""), (letter) => BYTES.get(letter)));
  }
}
