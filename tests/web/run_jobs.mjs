import { readFileSync } from "node:fs";
import { run } from "./jobs.js";

process.stdout.write(JSON.stringify(run(JSON.parse(readFileSync(0, "utf-8")))));
