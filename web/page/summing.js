import { draw } from "../src/laws.js";
import { drawChart, keepDrawn } from "./chart.js";
import { byId, count, element, signed, small } from "./dom.js";

const MOST = 18;
const LEAST = 1e-7; // distance that the chart shows

/** One weight as a sum of random numbers, kept or dropped. @param {bigint} seed */
export function startSumming(seed) {
  const numbers = draw(seed, "page.subset_sum", [MOST], { name: "uniform", scale: 1 });
  const [target, width, box] = [byId("target"), byId("count"), byId("width-chart")];
  const sums = subsetSums(numbers);

  const show = () => {
    const [wanted, used] = [Number(target.value), Number(width.value)];
    const distance = (/** @type {number} */ numbers) => Math.abs(sums[nearest(sums, 2 ** numbers, wanted)] - wanted);
    const points = Array.from({ length: MOST }, (_, i) => [i + 1, Math.max(LEAST, distance(i + 1))]);
    const best = nearest(sums, 2 ** used, wanted);
    byId("target-shown").value = signed(wanted, 2);
    byId("count-shown").value = String(used);
    byId("numbers").replaceChildren(
      ...Array.from(numbers.subarray(0, used), (number, i) => element("span", (best >> i) & 1 ? { class: "kept" } : {}, signed(number, 3))),
    );
    byId("sum").value = `Nearest of ${count(2 ** used)} sums: ${signed(sums[best], 6)}, off by ${small(distance(used))}`;
    drawChart(box, {
      x: [0.5, MOST + 0.5], y: [LEAST, 3], log: true,
      xTicks: [1, 3, 6, 9, 12, 15, 18].map((value) => [value, String(value)]),
      yTicks: [[1, "1"], [1e-2, "10⁻²"], [1e-4, "10⁻⁴"], [1e-6, "10⁻⁶"]],
      xLabel: "random numbers", yLabel: "distance",
      label: `The distance falls from ${small(points[0][1])} with 1 number to ${small(points[MOST - 1][1])} with ${MOST}.`,
      line: points, points, now: points[used - 1],
    });
  };
  target.addEventListener("input", show);
  width.addEventListener("input", show);
  byId("width").hidden = false;
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
