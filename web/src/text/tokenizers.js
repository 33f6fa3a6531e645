import { TicketError } from "../errors.js";
import { Defined } from "./defined.js";

/** @typedef {{encode: (text: string) => number[], decode: (tokens: number[]) => string}} Tokenizer */

/** Every character of the training text is a token. @param {string} vocabulary @returns {Tokenizer} */
function characters(vocabulary) {
  const letters = [...vocabulary];
  const numbers = new Map(letters.map((letter, i) => [letter, i]));
  const numberOf = (/** @type {string} */ letter) => {
    if (!numbers.has(letter)) throw new TicketError(`character ${JSON.stringify(letter)} is not one of the ${numbers.size} it was trained on`);
    return numbers.get(letter);
  };
  return { encode: (text) => [...text].map(numberOf), decode: (tokens) => tokens.map((token) => letters[token]).join("") };
}

/** The tokenizer that a language ticket carries. @param {import("../ticket.js").Ticket} ticket @returns {Tokenizer} */
export function readTokenizer(ticket) {
  const { kind, vocabulary, tokenizer, "tokenizer.json": file } = ticket.metadata.tokenizer ?? {};
  if (kind === "characters" && typeof vocabulary === "string") return characters(vocabulary);
  const definition = ticket.kind === "model" ? file : kind === "bpe" ? tokenizer : undefined;
  if (typeof definition === "string") return new Defined(definition);
  if (kind === "named") throw new TicketError("the ticket names its tokenizer but does not contain it");
  throw new TicketError("the ticket has no tokenizer, so it reads no text");
}
