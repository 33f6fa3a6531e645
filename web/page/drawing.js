import { crossEntropy, softmax } from "../src/networks/numerics.js";
import { arrow, byId, element, note, percent } from "./dom.js";
import { paint } from "./looking.js";

const BRUSH = 0.045; // radius, of the drawing's width

/**
 * Draw a digit, and the network answers.
 * @param {import("./live.js").Live} live @param {{pixels: number[], label: number}[]} samples pixels from 0 to 1
 * @returns {{loss: () => number}} mean loss of the samples
 */
export function startDrawing(live, samples) {
  const { network, ticket } = live;
  const { image_size: size, num_channels: channels } = network.config;
  const { mean = 0, std = 1 } = ticket.metadata.pixels ?? {};
  const canvas = byId("digit");
  const context = canvas.getContext("2d", { willReadFrequently: true });
  const pen = { x: canvas.width / 2, y: canvas.height / 2, down: false };
  let shown = 0;
  /** @type {number[] | null} pixels of the sample on the canvas, if nothing was drawn over it */
  let sample = null;

  /** @param {ArrayLike<number>} pixels (size, size) from 0 to 1 @returns {Float32Array} what the network reads */
  const input = (pixels) => Float32Array.from({ length: channels * size * size }, (_, i) => (pixels[i % (size * size)] - mean) / std);
  const bars = Array.from({ length: network.classes }, (_, digit) => {
    const parts = [element("span", {}, String(digit)), element("i", { style: "--share:0" }), element("span", {}, "")];
    byId("digit-chances").append(...parts);
    return parts;
  });
  const answer = (/** @type {ArrayLike<number> | null} */ pixels) => {
    const chances = pixels ? network.logits(input(pixels)) : new Float32Array(network.classes);
    if (pixels) softmax(chances);
    const best = pixels ? chances.indexOf(Math.max(...chances)) : -1;
    byId("digit-answer").value = pixels ? String(best) : "–";
    bars.forEach((parts, digit) => {
      parts[1].setAttribute("style", `--share:${chances[digit].toFixed(4)}`);
      parts[2].textContent = pixels ? percent(chances[digit]) : "";
      for (const part of parts) part.classList.toggle("best", digit === best);
    });
  };
  const read = () => answer(sample ?? centred(context.getImageData(0, 0, canvas.width, canvas.height), size));
  const clear = () => {
    sample = null;
    context.fillStyle = "#000";
    context.fillRect(0, 0, canvas.width, canvas.height);
    note("draw-note");
    answer(null);
  };
  const stroke = (/** @type {number} */ x, /** @type {number} */ y) => {
    context.strokeStyle = "#fff";
    context.lineWidth = 2 * BRUSH * canvas.width;
    context.lineCap = "round";
    context.beginPath();
    context.moveTo(pen.x, pen.y);
    context.lineTo(x, y);
    context.stroke();
    [pen.x, pen.y] = [x, y];
    sample = null;
    read();
  };
  /** @param {PointerEvent} event @returns {[number, number]} */
  const place = (event) => [(event.offsetX / canvas.clientWidth) * canvas.width, (event.offsetY / canvas.clientHeight) * canvas.height];

  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    [pen.x, pen.y] = place(event);
    pen.down = true;
    stroke(pen.x, pen.y);
  });
  canvas.addEventListener("pointermove", (event) => pen.down && stroke(...place(event)));
  for (const name of ["pointerup", "pointercancel"]) canvas.addEventListener(name, () => (pen.down = false));
  canvas.addEventListener("keydown", (event) => {
    const move = arrow(event);
    if (!move) return;
    const step = canvas.width / 28;
    const [x, y] = [pen.x + move[0] * step, pen.y + move[1] * step].map((at) => Math.min(canvas.width, Math.max(0, at)));
    if (event.shiftKey) stroke(x, y);
    else [pen.x, pen.y] = [x, y];
  });
  byId("digit-clear").addEventListener("click", clear);
  byId("digit-sample").hidden = !samples.length;
  byId("digit-sample").addEventListener("click", () => {
    const { pixels, label } = samples[shown++ % samples.length];
    paint(canvas, canvas, (y, x) => Array(3).fill(255 * pixels[Math.floor((y * size) / canvas.height) * size + Math.floor((x * size) / canvas.width)]));
    sample = pixels;
    read();
    note("draw-note", `A ${label} that the search did not see, as the network reads it.`);
  });
  live.addEventListener("change", read);
  byId("draw").hidden = false;
  clear();
  const loss = () => samples.reduce((sum, { pixels, label }) => sum + crossEntropy(network.logits(input(pixels)), label), 0) / samples.length;
  return { loss };
}

/**
 * The drawing as the data have it: cut out, scaled to the middle, averaged to size × size.
 * @param {ImageData} drawn @param {number} size @returns {Float32Array | null} from 0 to 1; null if nothing is drawn
 */
function centred(drawn, size) {
  const { width, height, data } = drawn;
  let [left, top, right, bottom] = [width, height, -1, -1];
  for (let y = 0; y < height; y++)
    for (let x = 0; x < width; x++) {
      if (data[4 * (y * width + x)] < 64) continue;
      [left, right, top, bottom] = [Math.min(left, x), Math.max(right, x), Math.min(top, y), Math.max(bottom, y)];
    }
  if (right < 0) return null;
  const margin = Math.round(size / 7); // as MNIST: 4 of 28
  const scale = Math.max(right - left, bottom - top, width / 4) / (size - 2 * margin);
  const [x0, y0] = [(left + right) / 2 - (scale * size) / 2, (top + bottom) / 2 - (scale * size) / 2];
  const out = new Float32Array(size * size);
  const parts = 6; // samples per pixel in each direction
  for (let i = 0; i < out.length; i++)
    for (let part = 0; part < parts * parts; part++) {
      const x = Math.round(x0 + scale * ((i % size) + ((part % parts) + 0.5) / parts));
      const y = Math.round(y0 + scale * (Math.floor(i / size) + (Math.floor(part / parts) + 0.5) / parts));
      if (x >= 0 && y >= 0 && x < width && y < height) out[i] += data[4 * (y * width + x)] / 255 / parts ** 2;
    }
  return out;
}
