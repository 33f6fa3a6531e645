import { TicketError } from "./errors.js";

// JSON.parse rounds a 64-bit seed and lets a repeated key pass; a ticket allows neither.

const PARTS = /"(?:[^"\\]|\\.)*"(\s*:)?|-?\d[\d.eE+-]*/g; // strings, of which keys are followed by a colon, and numbers
const BIG = "\u0000whole number"; // key of an object that stands for one beyond 2^53

/**
 * Objects have no prototype, so no key means anything special; integers beyond 2^53 become BigInt.
 * @param {string} text @param {string} what its name in errors @returns {any}
 */
export function parseJson(text, what) {
  let keys = 0; // in the text, less those in objects
  const marked = text.replace(PARTS, (part, colon) => {
    if (/^-?[1-9]\d{15,}$/.test(part) && !Number.isSafeInteger(Number(part))) return `{${JSON.stringify(BIG)}:"${part}"}`;
    if (colon) keys += 1;
    return part;
  });
  /** @param {string} _ @param {any} value */
  const revive = (_, value) => {
    if (value === null || typeof value !== "object" || Array.isArray(value)) return value;
    if (BIG in value) return BigInt(value[BIG]);
    keys -= Object.keys(value).length;
    return Object.assign(Object.create(null), value);
  };
  try {
    const parsed = JSON.parse(marked, revive);
    if (keys) throw new Error("a key appears twice");
    return parsed;
  } catch (error) {
    throw new TicketError(`${what} is not valid JSON: ${error.message}`);
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
