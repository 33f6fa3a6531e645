import { TicketError } from "../errors.js";
import { Gpt2 } from "./gpt2.js";
import { Llama } from "./llama.js";
import { Vit } from "./vit.js";

/** model_type of a searched network -> its class @type {Map<string, any>} */
const FAMILIES = new Map([["gpt2", Gpt2], ["llama", Llama], ["mistral", Llama], ["qwen2", Llama], ["vit", Vit]]);

/**
 * The network of a ticket, ready to run.
 * @param {import("../ticket.js").Ticket} ticket @returns {import("./language.js").LanguageNetwork | Vit}
 */
export function buildNetwork(ticket) {
  if (ticket.kind !== "search") throw new TicketError(`this reader does not run tickets of kind "${ticket.kind}"`);
  const { config, parts, trained, codes = {}, module, ...rest } = ticket.settings;
  if (typeof module === "string") throw new TicketError(`the ticket is of a ${module}, which a file cannot create`);
  if (!config || !parts || !codes || !Array.isArray(trained) || Object.keys(rest).length)
    throw new TicketError("settings must have exactly config, parts and trained");
  const family = FAMILIES.get(config.model_type);
  if (!family) throw new TicketError(`this reader does not run networks of type ${JSON.stringify(config.model_type)}`);
  return new family(ticket);
}
