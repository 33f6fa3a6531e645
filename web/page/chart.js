import { count } from "./dom.js";

const SVG = "http://www.w3.org/2000/svg";
const MARGIN = { left: 58, right: 14, top: 14, bottom: 40 };
const HEIGHT = 260;

/**
 * @typedef {{x: [number, number], y: [number, number], log?: boolean, xTicks: [number, string][], yTicks: [number, string][],
 *   xLabel: string, yLabel?: string, label: string, line?: number[][], points?: number[][], now?: number[], mark?: {y: number, text: string}}} Chart
 *   ranges, ticks, a text that says what it shows; a line, points, the point of the moment, a level to compare with
 */

/** Draw a chart into its box, in the width that the box has now. @param {HTMLElement} box @param {Chart} chart */
export function drawChart(box, chart) {
  const width = Math.max(260, box.clientWidth - 16);
  const svg = make("svg", { viewBox: `0 0 ${width} ${HEIGHT}`, height: HEIGHT, role: "img", "aria-label": chart.label });
  const place = (value, [low, high], from, to) => from + ((value - low) / (high - low)) * (to - from);
  const scale = chart.log ? Math.log10 : (/** @type {number} */ value) => value;
  const x = (value) => place(value, chart.x, MARGIN.left, width - MARGIN.right);
  const y = (value) => place(scale(value), /** @type {[number, number]} */ (chart.y.map(scale)), HEIGHT - MARGIN.bottom, MARGIN.top);
  const text = (content, attributes) => {
    const made = make("text", attributes);
    made.textContent = content;
    svg.append(made);
  };
  for (const [value, name] of chart.yTicks) {
    svg.append(make("line", { class: "grid-line", x1: MARGIN.left, x2: width - MARGIN.right, y1: y(value), y2: y(value) }));
    text(name, { x: MARGIN.left - 8, y: y(value) + 4, "text-anchor": "end" });
  }
  for (const [value, name] of chart.xTicks) text(name, { x: x(value), y: HEIGHT - MARGIN.bottom + 18, "text-anchor": "middle" });
  text(chart.xLabel, { x: (MARGIN.left + width - MARGIN.right) / 2, y: HEIGHT - 5, "text-anchor": "middle" });
  if (chart.yLabel) text(chart.yLabel, { x: 4 - HEIGHT / 2 + MARGIN.bottom / 2, y: 12, transform: "rotate(-90)", "text-anchor": "middle" });
  const path = (points) => points.map(([px, py], i) => `${i ? "L" : "M"}${x(px).toFixed(1)} ${y(py).toFixed(1)}`).join("");
  if (chart.line?.length) svg.append(make("path", { class: "line", d: path(chart.line) }));
  for (const [px, py] of chart.points ?? []) svg.append(make("circle", { class: "point", cx: x(px), cy: y(py), r: 3.5 }));
  if (chart.now) svg.append(make("circle", { class: "point now", cx: x(chart.now[0]), cy: y(chart.now[1]), r: 6 }));
  if (chart.mark) {
    const at = y(chart.mark.y);
    svg.append(make("line", { class: "mark", x1: MARGIN.left, x2: width - MARGIN.right, y1: at, y2: at }));
    const under = at + 15 < HEIGHT - MARGIN.bottom; // there the curve, which comes down to the level, is not in the way
    text(chart.mark.text, { x: MARGIN.left + 6, y: under ? at + 15 : at - 6 });
  }
  box.replaceChildren(svg);
}

/** @param {string} tag @param {Record<string, string | number>} attributes */
function make(tag, attributes) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, String(value));
  return made;
}

/**
 * Labelled values from `low` to `top`, 1, 2 or 5 times a power of ten apart.
 * @param {number} top @param {number} most how many steps @param {number} [low] @returns {[number, string][]}
 */
export function ticks(top, most, low = 0) {
  const power = 10 ** Math.floor(Math.log10((top - low) / most));
  const step = power * ([1, 2, 5, 10].find((factor) => (top - low) / (power * factor) <= most) ?? 10);
  const first = Math.ceil(low / step - 1e-9);
  const values = Array.from({ length: Math.floor(top / step + 1e-9) - first + 1 }, (_, i) => Number(((first + i) * step).toPrecision(3)));
  return values.map((value) => [value, count(value).replace("-", "−")]);
}

/** Call `draw` now and whenever the box changes its width. @param {HTMLElement} box @param {() => void} draw */
export function keepDrawn(box, draw) {
  let width = -1;
  new ResizeObserver(() => {
    if (box.clientWidth === width) return;
    width = box.clientWidth;
    draw();
  }).observe(box);
}
