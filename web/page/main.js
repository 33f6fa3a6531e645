import { TicketError } from "../src/errors.js";
import { LanguageNetwork } from "../src/networks/language.js";
import { buildNetwork } from "../src/networks/network.js";
import { Vit } from "../src/networks/vit.js";
import { generate } from "../src/text/generate.js";
import { readTokenizer } from "../src/text/tokenizers.js";
import { readTicket } from "../src/ticket.js";
import { startAttention } from "./attention.js";
import { breathe, byId, count, element, fromBase64, note, percent, show, size } from "./dom.js";
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
 * @typedef {{name: string, kind: string, seed: string, file: string | null, sample: string, attention: any}} PageData
 *   file: base64, null if no page can run it; sample: a text; attention: see attention.js
 */

async function start() {
  /** @type {PageData} */
  const data = JSON.parse(byId("page-data").textContent);
  if (data.file) await startTicket(data);
  if (data.attention) await startAttention(data.attention);
  if (data.attention || !["search", "task", "model"].includes(data.kind)) startSumming(BigInt(data.seed));
  document.documentElement.dataset.ready = "yes";
}

/** @param {PageData} data */
async function startTicket(data) {
  const file = fromBase64(data.file);
  const ticket = await readTicket(file);
  const tensors = [...ticket.tensors.values()];
  for (const [i, tensor] of tensors.entries()) {
    note("status", `Drawing the weights: ${tensor.name} (${i + 1} of ${tensors.length}) …`);
    await breathe();
    ticket.weights(tensor.name);
  }
  introduce(ticket, tensors, data.name, file.length);
  const network = runnable(ticket);
  const live = new Live(ticket, network);
  if (network instanceof LanguageNetwork) startLanguage(live, data.sample);
  if (network instanceof Vit) startImages(live);
  startLooking(live);
  startFinding(ticket);
  if (tensors.some((tensor) => tensor.choices)) document.documentElement.dataset.kept = "choices";
}

/** @param {import("../src/ticket.js").Ticket} ticket @param {import("../src/ticket.js").Tensor[]} tensors @param {string} name @param {number} bytes */
function introduce(ticket, tensors, name, bytes) {
  const sum = (/** @type {any[]} */ list, field) => list.reduce((total, tensor) => total + tensor[field], 0);
  const [masked, chosen] = [tensors.filter((tensor) => tensor.mask), sum(tensors.filter((tensor) => tensor.choices), "size")];
  const [random, kept, trained] = [sum(masked, "size"), sum(masked, "kept"), sum(tensors.filter((t) => t.numbers), "size")];
  const drawn = [
    random || !chosen ? `drawn ${count(random)} random weights from the seed ${ticket.seed} and kept ${count(kept)} of them` : "",
    chosen ? `drawn many random weights for each of ${count(chosen)} connections from the seed ${ticket.seed} and kept one for each` : "",
  ];
  const learned = trained ? `${count(trained)} numbers were trained.` : "None was trained.";
  const target = ticket.kind === "model" ? `They stand in for the numbers of a trained ${ticket.settings.class}. ` : "";
  byId("lead").replaceChildren(
    `Your browser has just ${drawn.filter(Boolean).join(", and ")}. ${learned} ${target}`,
    "The file that says which to keep, ", element("code", {}, name),
    `, takes ${size(bytes)}; as float32, ${chosen ? "the kept weights" : "the random weights"} would take ${size(4 * (random + chosen + trained))}.`,
  );
  show("facts", { size: size(bytes), random: count(random), share: percent(kept / Math.max(random, 1)), tensors: tensors.length });
  if (chosen) show("facts", { "random-name": "connections", random: count(chosen), "share-name": "of many random weights, kept for each", share: 1 });
  note("status");
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

/** @param {Live} live @param {string} sample */
function startLanguage(live, sample) {
  let tokenizer;
  try {
    tokenizer = readTokenizer(live.ticket);
  } catch (error) {
    return note("status", error);
  }
  const { network } = live;
  if (live.ticket.kind === "model") byId("prompt").value = STORY;
  try {
    tokenizer.encode(byId("prompt").value);
  } catch {
    byId("prompt").value = tokenizer.decode([0]); // a letter that the network knows
  }
  startWriting(live, tokenizer);
  const own = () => {
    const given = tokenizer.encode(byId("prompt").value);
    return tokenizer.decode([...given, ...generate(network, given, { count: OWN_TOKENS, temperature: 0 })]);
  };
  byId("sample").value = sample || own();
  const loss = () => {
    const tokens = tokenizer.encode(byId("sample").value).slice(0, SAMPLE_TOKENS);
    if (tokens.length < 2) throw new TicketError("the sample needs at least two tokens");
    return network.loss(tokens);
  };
  const about =
    `Mean loss per token over the first ${SAMPLE_TOKENS} tokens of the sample text, which you can change.` +
    `${sample ? "" : " The network wrote this sample itself."} ${guessing(network.vocabulary, "tokens")}`;
  return startFlipping(live, { loss, chance: Math.log(network.vocabulary), about });
}

/** What a loss in nats means. @param {number} choices @param {string} what */
const guessing = (choices, what) =>
  `The loss is −ln of the probability given to the right answer, in nats: guessing among ${count(choices)} ${what} costs ln ${count(choices)} = ${Math.log(choices).toFixed(2)}.`;

/** @param {Live} live */
function startImages(live) {
  const images = imagesOf(live.ticket.metadata, live.network);
  const drawing = startDrawing(live, images);
  byId("sample-label").hidden = true;
  if (!images.length) return;
  const about = `Mean loss of ${images.length} images that the search did not see. ${guessing(live.network.classes, "digits")}`;
  startFlipping(live, { loss: drawing.loss, chance: Math.log(live.network.classes), about });
}

/** The grey images that the search kept aside; what does not look like one is left out. @param {any} metadata @param {Vit} network */
function imagesOf({ samples }, { config: { image_size: side, num_channels: channels }, classes }) {
  const read = (/** @type {any} */ sample) => {
    try {
      return { pixels: Array.from(fromBase64(sample.pixels), (grey) => grey / 255), label: sample.label };
    } catch {
      return { pixels: [], label: -1 };
    }
  };
  const isGood = ({ pixels, label }) => channels === 1 && pixels.length === side * side && Number.isInteger(label) && label >= 0 && label < classes;
  return Array.isArray(samples) ? samples.map(read).filter(isGood) : [];
}

start().catch((error) => {
  note("status", error);
  if (!(error instanceof TicketError)) throw error;
});
