import { draw } from "../src/laws.js";
import { drawChart, keepDrawn } from "./chart.js";
import { byId, count, element, signed, small } from "./dom.js";

const MOST = 18;
const TARGETS = 200;

/** One weight as a sum of random numbers, kept or dropped. @param {bigint} seed */
export function startSumming(seed) {
  const numbers = draw(seed, "page.subset_sum", [MOST], { name: "uniform", scale: 1 });
  const [target, width, box] = [byId("target"), byId("count"), byId("width-chart")];
  const sums = subsetSums(numbers);
  const line = Array.from({ length: MOST }, (_, i) => [i + 1, meanError(sums.subarray(0, 2 ** (i + 1)))]);

  const show = () => {
    const [wanted, used] = [Number(target.value), Number(width.value)];
    const points = Array.from({ length: MOST }, (_, i) => [i + 1, Math.max(1e-9, Math.abs(sums[nearest(sums, 2 ** (i + 1), wanted)] - wanted))]);
    const best = nearest(sums, 2 ** used, wanted);
    byId("target-shown").value = signed(wanted, 2);
    byId("count-shown").value = String(used);
    byId("numbers").replaceChildren(
      ...Array.from(numbers.subarray(0, used), (number, i) => element("span", (best >> i) & 1 ? { class: "kept" } : {}, signed(number, 3))),
    );
    const error = Math.abs(sums[best] - wanted);
    byId("sum").value = `Nearest of ${count(2 ** used)} sums: ${signed(sums[best], 6)}, off by ${small(error)}`;
    drawChart(box, {
      x: [0.5, MOST + 0.5], y: [1e-7, 3], log: true,
      xTicks: [1, 3, 6, 9, 12, 15, 18].map((value) => [value, String(value)]),
      yTicks: [[1, "1"], [1e-2, "10⁻²"], [1e-4, "10⁻⁴"], [1e-6, "10⁻⁶"]],
      xLabel: "random numbers", yLabel: "distance",
      label: `The error falls from ${line[0][1].toFixed(2)} with 1 number to ${small(line[MOST - 1][1])} with ${MOST}.`,
      line, points: points.filter(([, y]) => y >= 1e-7), now: points[used - 1][1] >= 1e-7 ? points[used - 1] : undefined,
    });
  };
  target.addEventListener("input", show);
  width.addEventListener("input", show);
  keepDrawn(box, show);
}

/** @param {Float32Array} numbers @returns {Float64Array} sum i is of the numbers whose bit is set in i */
function subsetSums(numbers) {
  const sums = new Float64Array(2 ** numbers.length);
  numbers.forEach((number, n) => {
    for (let i = 0; i < 2 ** n; i++) sums[2 ** n + i] = sums[i] + number;
  });
  return sums;
}

/** @param {Float64Array} sums @param {number} count of the first ones @param {number} wanted @returns {number} */
function nearest(sums, count, wanted) {
  let best = 0;
  for (let i = 1; i < count; i++) if (Math.abs(sums[i] - wanted) < Math.abs(sums[best] - wanted)) best = i;
  return best;
}

/** Mean distance from evenly spaced targets in [-1, 1] to the nearest sum. @param {Float64Array} sums */
function meanError(sums) {
  const sorted = sums.slice().sort();
  let total = 0;
  let at = 0;
  for (let i = 0; i < TARGETS; i++) {
    const wanted = (2 * i + 1) / TARGETS - 1;
    while (at + 1 < sorted.length && Math.abs(sorted[at + 1] - wanted) <= Math.abs(sorted[at] - wanted)) at += 1;
    total += Math.abs(sorted[at] - wanted);
  }
  return total / TARGETS;
}
