#!/usr/bin/env node
// node web/check.js F.ticket: reads the file, regenerates every tensor, compares every checksum.
import { readFileSync } from "node:fs";
import { TicketError, readTicket } from "./src/index.js";

const [path] = process.argv.slice(2);
if (!path) {
  console.error("usage: node web/check.js F.ticket");
  process.exit(2);
}
try {
  const ticket = await readTicket(new Uint8Array(readFileSync(path)));
  const { tensors, weights, kept } = ticket.verify();
  console.log(`${path}: ${ticket.kind}, seed ${ticket.seed}: ${tensors} tensors, ${weights} weights, ${kept} kept; all checksums equal`);
} catch (error) {
  if (!(error instanceof TicketError) && error.code === undefined) throw error;
  console.error(`error: ${path}: ${error.message}`);
  process.exit(1);
}
