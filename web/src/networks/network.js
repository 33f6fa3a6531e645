import { shown, TicketError } from "../errors.js";
import { Gpt2 } from "./gpt2.js";
import { Llama } from "./llama.js";
import { Vit } from "./vit.js";

/** model_type -> the network, and the class of transformers that it computes as @type {Map<string, [any, string]>} */
const FAMILIES = new Map([
  ["gpt2", [Gpt2, "GPT2LMHeadModel"]], ["llama", [Llama, "LlamaForCausalLM"]], ["mistral", [Llama, "MistralForCausalLM"]],
  ["qwen2", [Llama, "Qwen2ForCausalLM"]], ["vit", [Vit, "ViTForImageClassification"]],
]);

/** The network of a ticket, ready to run. @param {import("../ticket.js").Ticket} ticket @returns {import("./language.js").LanguageNetwork | Vit} */
export function buildNetwork(ticket) {
  const { kind, settings } = ticket;
  if (kind === "search") checkSearched(settings);
  else if (kind === "model") checkModel(settings);
  else throw new TicketError(`this reader does not run tickets of kind "${kind}"`);
  const [family, name] = FAMILIES.get(settings.config?.model_type) ?? [];
  if (!family) throw new TicketError(`this reader does not run networks of type ${shown(settings.config?.model_type)}`);
  if (kind === "model" && (settings.class !== name || Object.keys(settings.options).length))
    throw new TicketError(`this reader does not run a ${settings.class}: it knows ${name}`);
  return new family(ticket);
}

/** @param {any} settings */
function checkModel({ library, class: name, config, options, attention, base, by, per_row: units, rebuilt, tensors, ...rest }) {
  if (![options, rebuilt, tensors].every((each) => each && typeof each === "object") || units === undefined || Object.keys(rest).length)
    throw new TicketError("settings must have exactly attention, base, by, class, config, library, options, per_row, rebuilt and tensors");
  if (base !== null) throw new TicketError("the ticket is partial: the rest of its network is a trained model");
  if (by !== "choice" || attention !== "linear") throw new TicketError("this reader runs only tickets made by choice, not by subset sums");
  if (library !== "transformers") throw new TicketError(`this reader does not run a ${name}`);
}

/** @param {any} settings */
function checkSearched({ config, parts, trained, codes = {}, module, ...rest }) {
  if (typeof module === "string") throw new TicketError(`the ticket is of a ${module}, which a file cannot create`);
  if (!config || !parts || !codes || !Array.isArray(trained) || Object.keys(rest).length)
    throw new TicketError("settings must have exactly config, parts and trained");
}
