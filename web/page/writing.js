import { continuation, generate } from "../src/text/generate.js";
import { breathe, byId, element, note } from "./dom.js";

const TOKENS = 400;

/** Type a beginning, and the network continues it. @param {import("./live.js").Live} live @param {import("../src/text/tokenizers.js").Tokenizer} tokenizer */
export function startWriting(live, tokenizer) {
  const { metadata } = live.ticket;
  const [button, written, temperature] = [byId("write-start"), byId("written"), byId("temperature")];
  const source = typeof metadata.data === "string" ? ` Its mask was searched on ${metadata.data}.` : "";
  const loss = typeof metadata.loss === "number" ? ` Validation loss: ${metadata.loss.toFixed(2)} nats per token.` : "";
  byId("write-about").textContent = `Type a beginning; the network continues it, token by token, in this browser. At temperature 0 it always takes the likeliest token; higher is more varied.${source}${loss}`;
  /** @type {object | null} the text being written */
  let running = null;

  const write = async () => {
    const prompt = byId("prompt").value;
    const tokens = tokenizer.encode(prompt);
    const mine = (running = {});
    button.textContent = "Stop";
    written.replaceChildren(element("span", { class: "given" }, prompt));
    const rest = document.createTextNode("");
    written.append(rest);
    const produced = [];
    const start = performance.now();
    for (const token of generate(live.network, tokens, { count: TOKENS, temperature: Number(temperature.value) })) {
      produced.push(token);
      rest.data = continuation(tokenizer, tokens, produced);
      written.scrollTop = written.scrollHeight;
      await breathe();
      if (running !== mine) break;
    }
    const perSecond = produced.length / ((performance.now() - start) / 1000);
    note("write-note", `${produced.length} tokens, ${perSecond.toFixed(0)} per second.`);
    if (running === mine) stop();
  };
  const stop = () => {
    running = null;
    button.textContent = "Write";
  };
  button.addEventListener("click", () => {
    if (running) return stop();
    note("write-note");
    return write().catch((error) => {
      stop();
      note("write-note", error);
    });
  });
  temperature.addEventListener("input", () => {
    byId("temperature-shown").value = temperature.value;
  });
  byId("write").hidden = false;
}
