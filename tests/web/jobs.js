// What the tests ask of the JavaScript modules, the same in node and in a browser. Bytes travel as base64.
import { fromBase64 } from "../../web/page/dom.js";
import { blake2b } from "../../web/src/blake2b.js";
import { readBlock } from "../../web/src/block.js";
import { bytesOf, hex } from "../../web/src/bytes.js";
import { TicketError, buildNetwork, continuation, generate, readTicket, readTokenizer } from "../../web/src/index.js";
import { inflate } from "../../web/src/inflate.js";
import { parseJson } from "../../web/src/json.js";
import { draw } from "../../web/src/laws.js";
import { decodeMask } from "../../web/src/masks.js";
import { randomOffsets, tensorKey } from "../../web/src/philox.js";
import { sha256 } from "../../web/src/sha256.js";

const toBase64 = (array) => {
  const bytes = new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
  let text = "";
  for (let i = 0; i < bytes.length; i += 4096) text += String.fromCharCode(...bytes.subarray(i, i + 4096));
  return btoa(text);
};
const answer = async (work) => {
  try {
    return (await work()) ?? "accepted";
  } catch (error) {
    if (error instanceof TicketError) return `refused: ${error.message}`;
    return `crashed: ${error.stack}`;
  }
};
const answers = (list, work) => Promise.all(list.map((each) => answer(() => work(each))));
const refusals = (list, work) => answers(list, async (each) => void (await work(each)));
const ticketOf = (file) => readTicket(fromBase64(file));
const networkOf = async (file) => buildNetwork(await ticketOf(file));
const offsets = (seed, name, first, count) => randomOffsets(tensorKey(BigInt(seed), name), first, count);
/** With a number before and behind it that must stay as it is. */
const block = (data, { seed, name, first, rows, columns }) => {
  const all = new Float32Array(rows * columns + 2).fill(7);
  const out = all.subarray(1, -1).fill(0);
  readBlock(fromBase64(data), offsets(seed, name, first * columns, rows * columns), columns, out);
  if (all[0] !== 7 || all[all.length - 1] !== 7) throw new Error("wrote out of bounds");
  return out;
};

const JOBS = {
  sha256: ({ data }) => hex(sha256(fromBase64(data))),
  blake2b: ({ data, person }) => blake2b(fromBase64(data), 16, fromBase64(person)).map((word) => word.toString(16)),
  inflate: async ({ data }) => toBase64(await inflate(fromBase64(data), "text")),
  refuses_inflate: ({ texts }) => refusals(texts, (text) => inflate(fromBase64(text), "text")),
  json: ({ text }) => JSON.parse(JSON.stringify(parseJson(text, "text"), (_, value) => (typeof value === "bigint" ? String(value) : value))),
  refuses_json: ({ texts }) => refusals(texts, (text) => parseJson(text, "text")),
  draw: ({ seed, name, shape, law, scale }) => hex(sha256(bytesOf(draw(BigInt(seed), name, shape, { name: law, scale })))),
  offsets: ({ seed, name, first, count }) => [...offsets(seed, name, first, count)],
  masks: ({ masks }) => answers(masks, ({ lines, data, shape, kept }) => hex(sha256(decodeMask(lines, fromBase64(data), shape, kept)))),
  blocks: ({ blocks, ...about }) => answers(blocks, (data) => toBase64(block(data, about))),
  tensors: async ({ file }) => {
    const ticket = await ticketOf(file);
    return Object.fromEntries([...ticket.tensors.keys()].map((name) => [name, toBase64(ticket.weights(name))]));
  },
  refuses: ({ files }) => refusals(files, async (file) => (await ticketOf(file)).verify()),
  refuses_network: async ({ file }) => (await refusals([file], networkOf))[0],
  language: async ({ file, tokens }) => {
    const session = (await networkOf(file)).session();
    return tokens.map((token) => [...session.read(token)]);
  },
  images: async ({ file, images }) => {
    const network = await networkOf(file);
    return images.map((image) => [...network.logits(Float32Array.from(image))]);
  },
  tokens: async ({ file, text }) => {
    const tokenizer = readTokenizer(await ticketOf(file));
    const tokens = tokenizer.encode(text);
    return { tokens, text: tokenizer.decode(tokens) };
  },
  continue: async ({ file, prompt, count }) => [...generate(await networkOf(file), prompt, { count, temperature: 0 })],
  write: async ({ file, prompt, count }) => {
    const ticket = await ticketOf(file);
    const tokenizer = readTokenizer(ticket);
    const given = tokenizer.encode(prompt);
    return continuation(tokenizer, given, [...generate(buildNetwork(ticket), given, { count, temperature: 0 })]);
  },
};

export const run = async (jobs) => {
  const results = [];
  for (const job of jobs) results.push(await JOBS[job.do](job));
  return results;
};
globalThis.run = run;
