import { TicketError } from "./errors.js";

// JSON.parse rounds a 64-bit seed and lets a repeated key pass; a ticket allows neither.

const NUMBER = /-?(?:0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?/y;
const STRING = /"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/y;
const SPACE = /[ \t\n\r]*/y;
const WORDS = new Map([["true", true], ["false", false], ["null", null]]);

/**
 * Objects have no prototype, so no key means anything special; integers beyond 2^53 become BigInt.
 * @param {string} text @param {string} what its name in errors @returns {any}
 */
export function parseJson(text, what) {
  let at = 0;
  const fail = (/** @type {string} */ why) => new TicketError(`${what} is not valid JSON: ${why} at character ${at}`);
  const match = (/** @type {RegExp} */ pattern) => {
    pattern.lastIndex = at;
    const found = pattern.exec(text);
    if (found) at += found[0].length;
    return found;
  };
  /** @param {string} character @returns {boolean} */
  const next = (character) => {
    match(SPACE);
    if (text[at] !== character) return false;
    at += 1;
    return true;
  };
  const need = (/** @type {string} */ character) => {
    if (!next(character)) throw fail(`expected ${character}`);
  };
  const string = () => {
    match(SPACE);
    const found = match(STRING);
    if (!found) throw fail("expected a string");
    return JSON.parse(found[0]);
  };
  const object = () => {
    const result = Object.create(null);
    if (next("}")) return result;
    do {
      const key = string();
      if (key in result) throw fail(`key ${JSON.stringify(key)} appears twice`);
      need(":");
      result[key] = value();
    } while (next(","));
    need("}");
    return result;
  };
  const array = () => {
    /** @type {any[]} */
    const result = [];
    if (next("]")) return result;
    do result.push(value());
    while (next(","));
    need("]");
    return result;
  };
  /** @returns {any} */
  const value = () => {
    if (next("{")) return object();
    if (next("[")) return array();
    if (text[at] === '"') return string();
    for (const [word, meaning] of WORDS) {
      if (text.startsWith(word, at)) {
        at += word.length;
        return meaning;
      }
    }
    const found = match(NUMBER);
    if (!found) throw fail("expected a value");
    const number = Number(found[0]);
    const whole = found[1] === undefined && found[2] === undefined;
    return whole && !Number.isSafeInteger(number) ? BigInt(found[0]) : number;
  };
  try {
    const result = value();
    match(SPACE);
    if (at !== text.length) throw fail("expected the end");
    return result;
  } catch (error) {
    if (error instanceof RangeError) throw fail("too deeply nested");
    throw error;
  }
}

/** @param {string} text @param {string} what @param {...string[]} fields @returns {any} an object with exactly these fields, or those of another list */
export function parseRecord(text, what, ...fields) {
  const record = parseJson(text, what);
  const found = record && typeof record === "object" && !Array.isArray(record) ? Object.keys(record).sort().join() : "";
  const expected = fields.map((each) => [...each].sort().join());
  if (!expected.includes(found)) throw new TicketError(`${what}: expected an object with ${expected.join(" or ")}, got ${found}`);
  return record;
}
