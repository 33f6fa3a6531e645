import { TicketError } from "../errors.js";
import { parseJson } from "../json.js";
import { BytePairs } from "./byte_pairs.js";
import { SentencePieces } from "./sentence_pieces.js";

/** A tokenizer as the `tokenizers` library defines it, with its special tokens: of the kinds that this reader knows. */
export class Defined {
  /** @param {string} definition JSON */
  constructor(definition) {
    const parsed = parseJson(definition, "tokenizer");
    const kind = [BytePairs, SentencePieces].find(({ fits }) => fits(parsed));
    if (!kind) throw new TicketError("this reader only knows byte pairs of GPT-2's and of Llama's kind");
    this.inner = new kind(parsed);
    this.pieces = new Map([...this.inner.numbers].map(([piece, number]) => [number, piece]));
    const added = parsed.added_tokens ?? [];
    if (!added.every(isPlain)) throw new TicketError("this reader only knows special tokens that are taken as they are");
    /** @type {Map<string, number>} */
    this.special = new Map(added.map(({ content, id }) => [content, id]));
    this.specialNumbers = new Set(this.special.values());
    [this.first, this.last] = frame(parsed.post_processor);
  }

  /** @param {string} text @returns {number[]} */
  encode(text) {
    const special = [...this.special.keys()].map((each) => each.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&")).join("|");
    const parts = special ? text.split(new RegExp(`(${special})`)) : [text];
    const tokens = parts.filter(Boolean).flatMap((part) => (this.special.has(part) ? [this.special.get(part)] : this.inner.encode(part)));
    return [...this.first, ...tokens, ...this.last];
  }

  /** Without special tokens. @param {number[]} tokens @returns {string} */
  decode(tokens) {
    return this.inner.join(tokens.filter((token) => !this.specialNumbers.has(token)).map((token) => this.pieces.get(token) ?? ""));
  }
}

/** @param {any} token @returns {boolean} */
const isPlain = ({ content, special, normalized, lstrip, rstrip, single_word: word }) =>
  typeof content === "string" && content !== "" && special && !normalized && !lstrip && !rstrip && !word;

/** @param {any} processor @returns {[number[], number[]]} the tokens that it puts before and after a text */
function frame(processor) {
  if (!processor || processor.type === "ByteLevel") return [[], []];
  if (processor.type !== "TemplateProcessing") throw new TicketError(`this reader does not know the post-processor "${processor.type}"`);
  const { single, special_tokens: known } = processor;
  const at = single.findIndex((/** @type {any} */ part) => part.Sequence);
  const numbers = (/** @type {any[]} */ parts) => parts.flatMap((part) => known[part.SpecialToken.id].ids);
  return [numbers(single.slice(0, at)), numbers(single.slice(at + 1))];
}
