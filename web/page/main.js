import { TicketError } from "../src/errors.js";
import { LanguageNetwork } from "../src/networks/language.js";
import { buildNetwork } from "../src/networks/network.js";
import { Vit } from "../src/networks/vit.js";
import { generate } from "../src/text/generate.js";
import { readTokenizer } from "../src/text/tokenizers.js";
import { readTicket } from "../src/ticket.js";
import { breathe, byId, count, element, note, percent, size } from "./dom.js";
import { startDrawing } from "./drawing.js";
import { startFinding } from "./finding.js";
import { startFlipping } from "./flipping.js";
import { Live } from "./live.js";
import { startLooking } from "./looking.js";
import { startSumming } from "./summing.js";
import { startWriting } from "./writing.js";

const SAMPLE_TOKENS = 256;
const OWN_TOKENS = 100; // of a sample that the network writes
const STORY = "Once upon a time";

/**
 * @typedef {{name: string, file: string, sample: any, made: [string, string][], next: {page: string, text: string} | null}} PageData
 *   file: base64; next: a page to go on to
 */

async function start() {
  /** @type {PageData} */
  const data = JSON.parse(byId("page-data").textContent);
  const file = Uint8Array.from(atob(data.file), (letter) => letter.charCodeAt(0));
  const ticket = readTicket(file);
  const tensors = [...ticket.tensors.values()];
  for (const [i, tensor] of tensors.entries()) {
    note("status", `Drawing the weights: ${tensor.name} (${i + 1} of ${tensors.length}) …`);
    await breathe();
    ticket.weights(tensor.name);
  }
  introduce(ticket, tensors, data.name, file.length);
  startSumming(ticket.seed);
  const network = runnable(ticket);
  const live = new Live(ticket, network);
  if (network instanceof LanguageNetwork) startLanguage(live, data.sample);
  if (network instanceof Vit) startImages(live, data.sample);
  startLooking(live);
  startFinding(ticket);
  if (data.next) {
    byId("next").append(element("a", { href: data.next.page }, data.next.text));
    byId("next").hidden = false;
  }
  byId("made").append(element("dl", {}, ...data.made.map(([name, value]) => element("div", {}, element("dt", {}, name), element("dd", {}, value)))));
  document.documentElement.dataset.ready = "yes";
}

/** @param {import("../src/ticket.js").Ticket} ticket @param {import("../src/ticket.js").Tensor[]} tensors @param {string} name @param {number} bytes */
function introduce(ticket, tensors, name, bytes) {
  const sum = (/** @type {any[]} */ list, field) => list.reduce((total, tensor) => total + tensor[field], 0);
  const masked = tensors.filter((tensor) => tensor.mask);
  const [random, kept, trained] = [sum(masked, "size"), sum(masked, "kept"), sum(tensors.filter((t) => t.numbers), "size")];
  const learned = trained ? `${count(trained)} numbers were trained.` : "None was trained.";
  const made = ticket.kind === "pretrained" ? numbersMade(ticket.settings) : 0;
  const products = made ? `Multiplied in pairs of matrices, they stand in for the ${count(made)} numbers of a trained ${ticket.settings.class}. ` : "";
  byId("lead").replaceChildren(
    `Your browser has just drawn ${count(random)} random weights from the seed ${ticket.seed} and kept ${count(kept)} of them. ${learned} ${products}`,
    "The file that says which to keep, ", element("code", {}, name),
    `, takes ${size(bytes)}; as float32, ${made ? "the trained numbers" : "the random weights"} would take ${size(4 * (made || random + trained))}.`,
  );
  const facts = [
    [size(bytes), "the whole ticket"], [count(random), "random weights"], [percent(kept / Math.max(random, 1)), "of them kept"],
    [`${tensors.length} of ${tensors.length}`, "checksums equal"],
  ];
  byId("facts").append(...facts.map(([value, what]) => element("div", {}, element("dt", {}, what), element("dd", {}, value))));
  byId("facts").hidden = false;
  note("status");
}

/** @param {any} settings of a built ticket @returns {number} how many numbers its network has; 0 if they do not say */
function numbersMade({ tensors }) {
  const sizes = Object.values(tensors ?? {}).map((entry) => (entry?.[1] ?? []).reduce((product, size) => product * size, 1));
  return sizes.reduce((sum, each) => sum + each, 0) || 0;
}

/** @param {import("../src/ticket.js").Ticket} ticket the network, or null with a note that says why not */
function runnable(ticket) {
  try {
    return buildNetwork(ticket);
  } catch (error) {
    if (!(error instanceof TicketError)) throw error;
    note("status", `Here you can look at its weights: ${error.message}.`);
    return null;
  }
}

/** @param {Live} live @param {{text?: string}} sample */
function startLanguage(live, sample) {
  let tokenizer;
  try {
    tokenizer = readTokenizer(live.ticket);
  } catch (error) {
    return note("status", error);
  }
  const { network } = live;
  const built = live.ticket.kind === "pretrained";
  if (built) byId("prompt").value = STORY;
  startWriting(live, tokenizer);
  const own = () => {
    const given = tokenizer.encode(STORY);
    return tokenizer.decode([...given, ...generate(network, given, { count: OWN_TOKENS, temperature: 0 })]);
  };
  byId("sample").value = sample?.text || (built ? own() : "");
  const loss = () => {
    const tokens = tokenizer.encode(byId("sample").value).slice(0, SAMPLE_TOKENS);
    if (tokens.length < 2) throw new TicketError("the sample needs at least two tokens");
    let [sum, predicted] = [0, 0];
    for (let at = 0; at + 1 < tokens.length; at += network.context) {
      const window = tokens.slice(at, at + network.context);
      if (window.length < 2) break;
      sum += network.loss(window) * (window.length - 1);
      predicted += window.length - 1;
    }
    return sum / predicted;
  };
  const about =
    `Mean loss per token over the first ${SAMPLE_TOKENS} tokens of the sample text, which you can change.` +
    `${built && !sample?.text ? " The network wrote this sample itself." : ""} ${guessing(network.vocabulary, "tokens")}`;
  return startFlipping(live, { loss, chance: Math.log(network.vocabulary), about });
}

/** What a loss in nats means. @param {number} choices @param {string} what */
const guessing = (choices, what) =>
  `The loss is −ln of the probability given to the right answer, in nats: guessing among ${count(choices)} ${what} costs ln ${count(choices)} = ${Math.log(choices).toFixed(2)}.`;

/** @param {Live} live @param {{images?: {pixels: number[], label: number}[]}} sample */
function startImages(live, sample) {
  const images = sample?.images ?? [];
  const drawing = startDrawing(live, images);
  byId("sample-label").hidden = true;
  if (!images.length) return;
  const about = `Mean loss of ${images.length} images that the search did not see. ${guessing(live.network.classes, "digits")}`;
  startFlipping(live, { loss: drawing.loss, chance: Math.log(live.network.classes), about });
}

start().catch((error) => {
  note("status", error);
  if (!(error instanceof TicketError)) throw error;
});
