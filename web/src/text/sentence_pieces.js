import { encodeText } from "../bytes.js";
import { Merges } from "./merges.js";

const SPACE = "▁"; // what stands for a space in the vocabulary
const NORMALIZERS = `[{"type":"Prepend","prepend":"${SPACE}"},{"type":"Replace","pattern":{"String":" "},"content":"${SPACE}"}]`;
const DECODERS = `[{"type":"Replace","pattern":{"String":"${SPACE}"},"content":" "},{"type":"ByteFallback"},{"type":"Fuse"},{"type":"Strip","content":" ","start":1,"stop":0}]`;
const BYTE = /^<0x([0-9A-F]{2})>$/;

/** Byte pairs of SentencePiece, as Llama has them: a text starts with a space, and a character without a piece becomes its bytes. */
export class SentencePieces extends Merges {
  /** @param {any} definition of the `tokenizers` library @returns {boolean} whether it is of this kind */
  static fits({ model, pre_tokenizer: words, normalizer, decoder }) {
    const plain = !words && !model?.dropout && !model?.continuing_subword_prefix && !model?.end_of_word_suffix && !model?.ignore_merges;
    return plain && model?.type === "BPE" && model.byte_fallback && JSON.stringify(normalizer?.normalizers) === NORMALIZERS && JSON.stringify(decoder?.decoders) === DECODERS;
  }

  /** @param {string} text @returns {number[]} */
  encode(text) {
    const letters = [...(SPACE + text).replaceAll(" ", SPACE)];
    return this.tokens(letters.flatMap((letter) => (this.numbers.has(letter) ? [letter] : Array.from(encodeText(letter), byteName))));
  }

  /** @param {string[]} pieces @returns {string} */
  join(pieces) {
    let text = "";
    /** @type {number[]} */
    let bytes = [];
    for (const piece of [...pieces, ""]) {
      const byte = BYTE.exec(piece);
      if (byte) bytes.push(parseInt(byte[1], 16));
      else {
        text += fromBytes(bytes) + piece.replaceAll(SPACE, " ");
        bytes = [];
      }
    }
    return text.replace(/^ /, "");
  }
}

/** @param {number} byte */
const byteName = (byte) => `<0x${byte.toString(16).toUpperCase().padStart(2, "0")}>`;

/** @param {number[]} bytes @returns {string} as UTF-8; if they are not, a replacement character for each */
function fromBytes(bytes) {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(Uint8Array.from(bytes));
  } catch {
    return "\ufffd".repeat(bytes.length);
  }
}
