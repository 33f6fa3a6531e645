import { arrow, byId, count, element, percent, signed } from "./dom.js";

const WINDOW = 64; // rows and columns shown at a time

/** Random weights, the mask and their product as pictures; a click flips a bit. @param {import("./live.js").Live} live */
export function startLooking(live) {
  const [select, row, column, mask] = ["tensor", "row", "column", "mask"].map(byId);
  const names = [...live.masks.keys()];
  if (!names.length) return;
  for (const name of names) select.append(element("option", { value: name }, name));
  const stored = names.filter((name) => live.isStored(name));
  select.value = stored.find((name) => fills(live.ticket.tensor(name).shape)) ?? stored[0] ?? names[0];
  const cursor = { x: 0, y: 0, shown: false };

  /** The part of the tensor that is shown: a matrix of all axes but the last, times the last. */
  const view = () => {
    const { shape, size, law } = live.ticket.tensor(select.value);
    const columns = shape.length > 1 ? shape[shape.length - 1] : size;
    const rows = size / columns;
    const [height, width] = [Math.min(rows, WINDOW), Math.min(columns, WINDOW)];
    const [top, left] = [Math.min(Number(row.value), rows - height), Math.min(Number(column.value), columns - width)];
    return { rows, columns, height, width, top, left, law, at: (y, x) => (top + y) * columns + left + x };
  };

  const draw = () => {
    const v = view();
    const [weights, bits] = [live.random(select.value), live.masks.get(select.value)];
    let top = 0;
    for (let y = 0; y < v.height; y++) for (let x = 0; x < v.width; x++) top = Math.max(top, Math.abs(weights[v.at(y, x)]));
    const tone = palette();
    paint(byId("random-weights"), v, (y, x) => tone.weight(weights[v.at(y, x)] / top));
    paint(mask, v, (y, x) => (cursor.shown && y === cursor.y && x === cursor.x ? tone.cursor : bits[v.at(y, x)] ? tone.kept : tone.dropped));
    paint(byId("left"), v, (y, x) => tone.weight(bits[v.at(y, x)] ? weights[v.at(y, x)] / top : 0));
    const kept = bits.reduce((sum, bit) => sum + bit, 0);
    byId("random-caption").textContent = `Random: ${described(v.law)}`;
    byId("mask-caption").textContent = `Mask: ${percent(kept / bits.length)} of ${count(v.rows)} × ${count(v.columns)} kept`;
    byId("left-caption").textContent = "What is left: random × mask";
  };

  const say = () => {
    const v = view();
    const i = v.at(cursor.y, cursor.x);
    const bit = live.masks.get(select.value)[i] ? "kept" : "dropped";
    byId("place").textContent = `Row ${v.top + cursor.y}, column ${v.left + cursor.x}: ${signed(live.random(select.value)[i], 4)}, ${bit}.`;
  };
  const toggle = () => {
    live.toggle(select.value, view().at(cursor.y, cursor.x));
    say();
  };

  const range = () => {
    const v = view();
    for (const [slider, end] of [[row, v.rows - v.height], [column, v.columns - v.width]]) {
      slider.max = String(end);
      slider.disabled = end === 0;
      byId(`${slider.id}-shown`).value = slider.value;
    }
    [cursor.x, cursor.y] = [Math.min(cursor.x, v.width - 1), Math.min(cursor.y, v.height - 1)];
    draw();
  };

  select.addEventListener("change", () => {
    row.value = column.value = "0";
    range();
  });
  row.addEventListener("input", range);
  column.addEventListener("input", range);
  mask.addEventListener("click", (event) => {
    const box = mask.getBoundingClientRect();
    const v = view();
    cursor.x = Math.min(v.width - 1, Math.floor(((event.clientX - box.left) / box.width) * v.width));
    cursor.y = Math.min(v.height - 1, Math.floor(((event.clientY - box.top) / box.height) * v.height));
    toggle();
  });
  mask.addEventListener("keydown", (event) => {
    const move = arrow(event);
    if (!move) return;
    const v = view();
    cursor.x = Math.min(v.width - 1, Math.max(0, cursor.x + move[0]));
    cursor.y = Math.min(v.height - 1, Math.max(0, cursor.y + move[1]));
    if (event.key === " ") toggle();
    else say();
    draw();
  });
  for (const [event, shown] of [["focus", true], ["blur", false]])
    mask.addEventListener(event, () => {
      cursor.shown = shown && mask.matches(":focus-visible");
      draw();
    });
  live.addEventListener("change", draw);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  byId("look").hidden = false;
  range();
}

/** Whether a matrix fills the pictures. @param {number[]} shape */
const fills = (shape) => shape.length === 2 && shape.every((side) => side >= WINDOW);

/** What the weights are drawn from, in words. @param {{name: string, scale: number}} law */
function described({ name, scale }) {
  const about = `±${Number(scale.toPrecision(3))}`;
  const words = {
    hadamard: `signs of an orthogonal (Hadamard) matrix, ${about}`,
    signed: `random signs, ${about}`,
    uniform: `uniform within ${about}`,
    normal: `normal, standard deviation ${about.slice(1)}`,
    "one-sided": `uniform from ${Number((scale / 2).toPrecision(3))} to ${about.slice(1)}`,
  };
  return words[name] ?? `${name}, ${about}`;
}

/** @param {HTMLCanvasElement} canvas @param {{height: number, width: number}} size @param {(y: number, x: number) => number[]} colour */
export function paint(canvas, { height, width }, colour) {
  canvas.width = width;
  canvas.height = height;
  const context = canvas.getContext("2d");
  const image = context.createImageData(width, height);
  for (let y = 0; y < height; y++)
    for (let x = 0; x < width; x++) image.data.set([...colour(y, x), 255], 4 * (y * width + x));
  context.putImageData(image, 0, 0);
}

/** The page's colours of the moment, light or dark. */
export function palette() {
  const style = getComputedStyle(document.documentElement);
  const rgb = (name) => {
    const hex = style.getPropertyValue(name).trim();
    return [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
  };
  const [ground, plus, minus] = ["--raised", "--series-1", "--series-2"].map(rgb);
  return {
    kept: rgb("--kept"),
    dropped: rgb("--dropped"),
    cursor: rgb("--series-2"),
    weight: (share) => ground.map((from, i) => from + ((share < 0 ? minus : plus)[i] - from) * Math.min(1, Math.abs(share))),
  };
}
