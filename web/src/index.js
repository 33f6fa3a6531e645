export { TicketError } from "./errors.js";
export { LanguageNetwork } from "./networks/language.js";
export { buildNetwork } from "./networks/network.js";
export { Vit } from "./networks/vit.js";
export { continuation, generate } from "./text/generate.js";
export { readTokenizer } from "./text/tokenizers.js";
export { Ticket, readTicket } from "./ticket.js";
