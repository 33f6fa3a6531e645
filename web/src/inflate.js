import { TicketError } from "./errors.js";

/**
 * Unpack deflated bytes with zlib's header, as the platform does it.
 * @param {Uint8Array} packed @param {string} what its name in errors @returns {Promise<Uint8Array>}
 */
export async function inflate(packed, what) {
  const atMost = Math.max(2 ** 20, 64 * packed.length);
  const found = await unpacked(packed, atMost);
  if (found && found.length > atMost) throw new TicketError(`the ${what} has more than ${atMost} bytes, which is the limit`);
  // Not every engine refuses bytes behind the stream; but a stream that needs its last byte has none behind it.
  if (!found || (await unpacked(packed.subarray(0, -1), atMost))) throw new TicketError(`the ${what} is damaged`);
  return found;
}

/** @param {Uint8Array} packed @param {number} atMost @returns {Promise<Uint8Array | null>} little more than that; null for a damaged stream */
async function unpacked(packed, atMost) {
  const reader = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate")).getReader();
  const parts = [];
  let size = 0;
  try {
    for (let part = await reader.read(); !part.done && size <= atMost; part = await reader.read()) {
      parts.push(part.value);
      size += part.value.length;
    }
    if (size > atMost) await reader.cancel();
  } catch {
    return null;
  }
  return new Uint8Array(await new Blob(parts).arrayBuffer());
}
