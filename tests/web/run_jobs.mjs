// A line of jobs in, a line of results out, until the input ends: starting node and warming up its code take longer.
import { createInterface } from "node:readline";
import { run } from "./jobs.js";

for await (const line of createInterface({ input: process.stdin })) {
  process.stdout.write(`${JSON.stringify(await run(JSON.parse(line)))}\n`);
}
