// What the tests ask of the JavaScript modules, the same in node and in a browser. Bytes travel as base64.
import { blake2b } from "../../web/src/blake2b.js";
import { hex } from "../../web/src/bytes.js";
import { Factors, TicketError, buildNetwork, continuation, generate, readTicket, readTokenizer } from "../../web/src/index.js";
import { parseJson } from "../../web/src/json.js";
import { draw } from "../../web/src/laws.js";
import { decodeMask } from "../../web/src/masks.js";
import { sha256 } from "../../web/src/sha256.js";
import { unzstd } from "../../web/src/zstd/zstd.js";

const fromBase64 = (text) => {
  const letters = atob(text);
  const bytes = new Uint8Array(letters.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = letters.charCodeAt(i);
  return bytes;
};
const toBase64 = (array) => {
  const bytes = new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
  let text = "";
  for (let i = 0; i < bytes.length; i += 4096) text += String.fromCharCode(...bytes.subarray(i, i + 4096));
  return btoa(text);
};
const refusal = (work) => {
  try {
    work();
    return "accepted";
  } catch (error) {
    if (error instanceof TicketError) return `refused: ${error.message}`;
    return `crashed: ${error.stack}`;
  }
};

const JOBS = {
  sha256: ({ data }) => hex(sha256(fromBase64(data))),
  blake2b: ({ data, person }) => blake2b(fromBase64(data), 16, fromBase64(person)).map((word) => word.toString(16)),
  unzstd: ({ frame, size }) => toBase64(unzstd(fromBase64(frame), { size })),
  refuses_zstd: ({ frames, size }) => frames.map((frame) => refusal(() => unzstd(fromBase64(frame), { size }))),
  json: ({ text }) => JSON.parse(JSON.stringify(parseJson(text, "text"), (_, value) => (typeof value === "bigint" ? String(value) : value))),
  refuses_json: ({ texts }) => texts.map((text) => refusal(() => parseJson(text, "text"))),
  draw: ({ seed, name, shape, law, scale }) => hex(sha256(new Uint8Array(draw(BigInt(seed), name, shape, { name: law, scale }).buffer))),
  mask: ({ codec, data, shape, kept }) => hex(sha256(decodeMask(codec, fromBase64(data), shape, kept))),
  tensors: ({ file }) => {
    const ticket = readTicket(fromBase64(file));
    return Object.fromEntries([...ticket.tensors.keys()].map((name) => [name, toBase64(ticket.weights(name))]));
  },
  folded: ({ file }) => {
    const factors = new Factors(readTicket(fromBase64(file)));
    return Object.fromEntries([...factors.shapes.keys()].map((name) => [name, toBase64(factors.fold(name))]));
  },
  refuses: ({ files }) => files.map((file) => refusal(() => readTicket(fromBase64(file)).verify())),
  refuses_network: ({ file }) => refusal(() => buildNetwork(readTicket(fromBase64(file)))),
  language: ({ file, tokens }) => {
    const session = buildNetwork(readTicket(fromBase64(file))).session();
    return tokens.map((token) => [...session.read(token)]);
  },
  images: ({ file, images }) => {
    const network = buildNetwork(readTicket(fromBase64(file)));
    return images.map((image) => [...network.logits(Float32Array.from(image))]);
  },
  tokens: ({ file, text }) => {
    const tokenizer = readTokenizer(readTicket(fromBase64(file)));
    const tokens = tokenizer.encode(text);
    return { tokens, text: tokenizer.decode(tokens) };
  },
  continue: ({ file, prompt, count }) => [...generate(buildNetwork(readTicket(fromBase64(file))), prompt, { count, temperature: 0 })],
  write: ({ file, prompt, count }) => {
    const ticket = readTicket(fromBase64(file));
    const tokenizer = readTokenizer(ticket);
    const given = tokenizer.encode(prompt);
    return continuation(tokenizer, given, [...generate(buildNetwork(ticket), given, { count, temperature: 0 })]);
  },
};

export const run = (jobs) => jobs.map((job) => JOBS[job.do](job));
globalThis.run = run;
