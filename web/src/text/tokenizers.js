import { TicketError } from "../errors.js";
import { Defined } from "./defined.js";

/** @typedef {{encode: (text: string) => number[], decode: (tokens: number[]) => string}} Tokenizer */

/** Every character of the training text is a token. */
class Characters {
  /** @param {string} vocabulary */
  constructor(vocabulary) {
    this.characters = [...vocabulary];
    this.numbers = new Map(this.characters.map((character, i) => [character, i]));
  }

  /** @param {string} text @returns {number[]} */
  encode(text) {
    return [...text].map((character) => {
      const token = this.numbers.get(character);
      if (token === undefined)
        throw new TicketError(`character ${JSON.stringify(character)} is not one of the ${this.numbers.size} it was trained on`);
      return token;
    });
  }

  /** @param {number[]} tokens @returns {string} */
  decode(tokens) {
    return tokens.map((token) => this.characters[token]).join("");
  }
}

/** The tokenizer that a language ticket carries. @param {import("../ticket.js").Ticket} ticket @returns {Tokenizer} */
export function readTokenizer(ticket) {
  const { kind, vocabulary, tokenizer, "tokenizer.json": file } = ticket.metadata.tokenizer ?? {};
  if (kind === "characters" && typeof vocabulary === "string") return new Characters(vocabulary);
  const definition = ticket.kind === "model" ? file : kind === "bpe" ? tokenizer : undefined;
  if (typeof definition === "string") return new Defined(definition);
  if (kind === "named") throw new TicketError("the ticket names its tokenizer but does not contain it");
  throw new TicketError("the ticket has no tokenizer, so it reads no text");
}
