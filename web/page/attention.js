import { readTicket } from "../src/ticket.js";
import { drawChart, keepDrawn, ticks } from "./chart.js";
import { byId, count, element, fromBase64, show, signed, small } from "./dom.js";
import { paint, palette } from "./looking.js";

const DIGITS = 7;

/**
 * @typedef {{file: string, target: {query_key: number[][], value_output: number[][]}, numbers: any}} Attention
 *   file: a ticket of one attention head, base64; target: the trained head's products; numbers: those of `strongticket demo --json`
 * @typedef {{rows: number, units: number, kept: (row: number, unit: number) => number, weight: (row: number, unit: number) => number}} Matrix
 *   between the inputs or outputs (rows) and the hidden units
 */

/** A ticket of the paper's attention layer: its certificate, one weight, the masks, both matrices. @param {Attention} data */
export async function startAttention({ file, target, numbers }) {
  const ticket = await readTicket(fromBase64(file));
  const [query, key, value, output] = ["query", "key", "value", "output"].map((name) => readMatrix(ticket, name));
  show("attention", {
    certified: small(numbers.certified_error), attacked: small(numbers.attacked_error),
    tested: small(Math.max(...Object.values(numbers.largest_test_error))),
    kept: count(numbers.kept), weights: count(numbers.weights), seconds: numbers.build_seconds.toFixed(1),
    width: numbers.width, "target-width": numbers.target_width,
  });
  showWeight(value, output, target.value_output[0][0]);
  showMasks({ query, key, value, output });
  showMatrices([
    ["query × key", target.query_key, (i, j) => product(query, i, key, j) / Math.sqrt(query.units)],
    ["value × output", target.value_output, (i, j) => product(value, i, output, j)],
  ]);
}

/** A tensor of one head; the output's rows come last. @param {import("../src/ticket.js").Ticket} ticket @param {string} name @returns {Matrix} */
function readMatrix(ticket, name) {
  const { shape, mask } = ticket.tensor(name);
  const weights = ticket.weights(name);
  const [rows, units] = name === "output" ? [shape[2], shape[1]] : [shape[1], shape[2]];
  const at = (/** @type {number} */ row, /** @type {number} */ unit) => (name === "output" ? unit * rows + row : row * units + unit);
  return { rows, units, kept: (row, unit) => mask[at(row, unit)], weight: (row, unit) => weights[at(row, unit)] };
}

/** @param {Matrix} one @param {number} i @param {Matrix} other @param {number} j @returns {number} the sum over all units */
function product(one, i, other, j) {
  let sum = 0;
  for (let unit = 0; unit < one.units; unit++) sum += one.weight(i, unit) * other.weight(j, unit);
  return sum;
}

/** What the units add to the first entry of value × output. @param {Matrix} value @param {Matrix} output @param {number} wanted */
function showWeight(value, output, wanted) {
  const [points, line] = [[], [[0, 0]]];
  let sum = 0;
  for (let unit = 0; unit < value.units; unit++) {
    const part = value.weight(0, unit) * output.weight(0, unit);
    sum += part;
    if (part) points.push([unit + 1, part]);
    line.push([unit + 1, sum]);
  }
  byId("weight-caption").textContent =
    `Each hidden unit offers the product of two random weights. Of these ${value.units}, the masks keep ${points.length} (points), and they add up ` +
    `(line) to ${signed(sum, DIGITS)}. The trained weight is ${signed(wanted, DIGITS)}: off by ${small(Math.abs(sum - wanted))}.`;
  const heights = [...points, ...line].map(([, y]) => y).concat(wanted);
  const [low, high] = [Math.min(...heights), Math.max(...heights)];
  const margin = 0.08 * (high - low);
  const box = byId("weight-chart");
  keepDrawn(box, () =>
    drawChart(box, {
      x: [0, value.units + 0.5], y: [low - margin, high + margin],
      xTicks: ticks(value.units, 8), yTicks: ticks(high + margin, 5, low - margin), xLabel: "hidden unit", yLabel: "sum so far",
      label: `The sum of ${points.length} random products ends on the trained weight ${signed(wanted, DIGITS)}.`,
      line, points, mark: { y: wanted, text: `trained weight: ${signed(wanted, 4)}` },
    }),
  );
}

/** @param {Record<string, Matrix>} matrices */
function showMasks(matrices) {
  const draw = () => {
    const tone = palette();
    for (const [name, { rows, units, kept }] of Object.entries(matrices))
      paint(byId(`mask-${name}`), { height: rows, width: units }, (row, unit) => (kept(row, unit) ? tone.kept : tone.dropped));
  };
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  draw();
}

/** @param {[string, number[][], (i: number, j: number) => number][]} matrices name, of the trained layer, entry of the ticket's */
function showMatrices(matrices) {
  const add = (/** @type {string} */ tag, /** @type {string[]} */ ...cells) =>
    byId("attention-matrices").append(element("tr", {}, ...cells.map((cell) => element(tag, {}, cell))));
  for (const [name, trained, entry] of matrices) {
    add("th", name, "trained", "ticket", "difference");
    for (const [i, numbers] of trained.entries())
      for (const [j, wanted] of numbers.entries())
        add("td", `(${i + 1}, ${j + 1})`, signed(wanted, DIGITS), signed(entry(i, j), DIGITS), small(Math.abs(entry(i, j) - wanted)));
  }
}
