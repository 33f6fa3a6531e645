import { TicketError } from "../errors.js";
import { softmax } from "../networks/numerics.js";

/**
 * The continuation of a prompt, one token at a time.
 * @param {import("../networks/language.js").LanguageNetwork} network @param {number[]} prompt at least one token
 * @param {{count?: number, temperature?: number, random?: () => number}} [options] temperature 0 takes the likeliest token
 * @returns {Generator<number>}
 */
export function* generate(network, prompt, { count = 200, temperature = 0.8, random = Math.random } = {}) {
  if (!prompt.length) throw new TicketError("the prompt is empty: give at least one token to start from");
  const tokens = [...prompt];
  let session = network.session();
  let unread = tokens;
  for (let i = 0; i < count; i++) {
    if (session.length + unread.length > network.context) {
      // Every position has moved: nothing of the cache can be kept.
      session = network.session();
      unread = tokens.slice(-network.context);
    }
    let logits = new Float32Array();
    for (const token of unread) logits = session.read(token);
    const token = pick(logits, temperature, random);
    if (network.ends.includes(token)) return;
    yield token;
    tokens.push(token);
    unread = [token];
  }
}

/**
 * The text of the tokens after a prompt. All is decoded: a token's text may depend on those before it.
 * @param {import("./tokenizers.js").Tokenizer} tokenizer @param {number[]} prompt @param {number[]} tokens @returns {string}
 */
export function continuation(tokenizer, prompt, tokens) {
  return tokenizer.decode([...prompt, ...tokens]).slice(tokenizer.decode(prompt).length);
}

/** @param {Float32Array} logits @param {number} temperature @param {() => number} random @returns {number} */
export function pick(logits, temperature, random) {
  if (temperature === 0) return logits.indexOf(Math.max(...logits));
  const chances = logits.slice();
  softmax(chances, temperature);
  let left = random();
  const token = chances.findIndex((chance) => (left -= chance) < 0);
  return token < 0 ? chances.length - 1 : token;
}
