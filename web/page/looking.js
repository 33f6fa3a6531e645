import { arrow, byId, count, element, percent, signed } from "./dom.js";

const WINDOW = 64; // rows and columns shown at a time

/** Random weights, the mask or the choices, and what is kept, as pictures; a click flips one. @param {import("./live.js").Live} live */
export function startLooking(live) {
  const [select, row, column, mask] = ["tensor", "row", "column", "mask"].map(byId);
  const names = [...live.picks.keys()];
  if (!names.length) return;
  for (const name of names) select.append(element("option", { value: name }, name));
  const matrix = (/** @type {number} */ side) => names.find((name) => isMatrix(live.ticket.tensor(name).shape, side));
  select.value = matrix(WINDOW) ?? matrix(1) ?? names[0];
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
    const [{ random }, picks] = [live.source(select.value), live.picks.get(select.value)];
    const tone = palette();
    const left = (/** @type {number} */ i) => live.left(select.value, i);
    const largest = (/** @type {(i: number) => number} */ number) => {
      let top = Number.MIN_VALUE;
      for (let y = 0; y < v.height; y++) for (let x = 0; x < v.width; x++) top = Math.max(top, Math.abs(number(v.at(y, x))));
      return top;
    };
    const top = largest((i) => random[i]);
    const [mostPick, mostLeft] = v.law ? [1, top] : [largest((i) => picks[i]), largest(left)];
    const picked = (/** @type {number} */ pick) => (!v.law ? tone.weight(pick / mostPick) : pick ? tone.kept : tone.dropped);
    paint(byId("random-weights"), v, (y, x) => tone.weight(random[v.at(y, x)] / top));
    paint(mask, v, (y, x) => (cursor.shown && y === cursor.y && x === cursor.x ? tone.cursor : picked(picks[v.at(y, x)])));
    paint(byId("left"), v, (y, x) => tone.weight(left(v.at(y, x)) / mostLeft));
    const size = `${count(v.rows)} × ${count(v.columns)}`;
    byId("random-caption").textContent = `Random: ${v.law ? described(v.law) : "of the many weights of a connection the one nearest to 0"}`;
    byId("mask-caption").textContent = v.law
      ? `Mask: ${percent(/** @type {Uint8Array} */ (picks).reduce((sum, bit) => sum + bit, 0) / picks.length)} of ${size} kept`
      : `Choices: which of its weights each of ${size} connections keeps, counted from there`;
    byId("left-caption").textContent = v.law ? "What is left: random × mask" : "What is left: the weights that are kept";
  };

  const say = () => {
    const v = view();
    const i = v.at(cursor.y, cursor.x);
    const pick = live.picks.get(select.value)[i];
    const said = v.law ? `${signed(live.source(select.value).random[i], 4)}, ${pick ? "kept" : "dropped"}` : `weight ${signed(pick, 0)}, ${signed(live.left(select.value, i), 4)}`;
    byId("place").textContent = `Row ${v.top + cursor.y}, column ${v.left + cursor.x}: ${said}.`;
  };
  const toggle = () => {
    live.toggle(select.value, view().at(cursor.y, cursor.x));
    say();
  };
  const moveTo = (/** @type {number} */ x, /** @type {number} */ y) => {
    const v = view();
    [cursor.x, cursor.y] = [Math.min(v.width - 1, Math.max(0, x)), Math.min(v.height - 1, Math.max(0, y))];
  };

  const range = () => {
    const v = view();
    for (const [slider, end] of [[row, v.rows - v.height], [column, v.columns - v.width]]) {
      slider.max = String(end);
      slider.disabled = end === 0;
      byId(`${slider.id}-shown`).value = slider.value;
    }
    moveTo(cursor.x, cursor.y);
    draw();
  };

  select.addEventListener("change", () => {
    row.value = column.value = "0";
    range();
  });
  row.addEventListener("input", range);
  column.addEventListener("input", range);
  mask.addEventListener("click", (event) => {
    const [box, v] = [mask.getBoundingClientRect(), view()];
    moveTo(Math.floor(((event.clientX - box.left) / box.width) * v.width), Math.floor(((event.clientY - box.top) / box.height) * v.height));
    toggle();
  });
  mask.addEventListener("keydown", (event) => {
    const move = arrow(event);
    if (!move) return;
    moveTo(cursor.x + move[0], cursor.y + move[1]);
    (event.key === " " ? toggle : say)();
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

/** Whether it is a matrix whose sides are at least so long. @param {number[]} shape @param {number} least */
const isMatrix = (shape, least) => shape.length === 2 && shape.every((side) => side >= least);

/** What the weights are drawn from, in words. @param {{name: string, scale: number}} law */
function described({ name, scale }) {
  const about = `±${Number(scale.toPrecision(3))}`;
  if (name === "normal") return `normal, standard deviation ${about.slice(1)}`;
  const words = { hadamard: "signs of an orthogonal (Hadamard) matrix,", signed: "random signs,", uniform: "uniform within" };
  return `${words[name] ?? `${name},`} ${about}`;
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
  const weight = (share) => ground.map((from, i) => from + ((share < 0 ? minus : plus)[i] - from) * Math.min(1, Math.abs(share)));
  return { kept: rgb("--kept"), dropped: rgb("--dropped"), cursor: minus, weight };
}
