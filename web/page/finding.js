import { drawChart, keepDrawn, ticks } from "./chart.js";
import { byId, count, element, percent } from "./dom.js";

/** How the mask was found: the loss while it was searched, and how much of each tensor it keeps. @param {import("../src/ticket.js").Ticket} ticket */
export function startFinding(ticket) {
  const { metadata } = ticket;
  const masked = [...ticket.tensors.values()].filter((tensor) => tensor.mask && tensor.size);
  if (!masked.length) return;
  byId("kept-shares").append(
    ...masked.flatMap(({ name, kept, size }) => {
      const share = kept / size;
      return [element("span", { title: name }, name), element("i", { style: `--share:${share.toFixed(4)}` }), element("span", {}, `${percent(share)} of ${count(size)}`)];
    }),
  );
  byId("finding").hidden = false;
  const curve = points(metadata.curve);
  if (curve.length < 2) return;
  byId("finding-title").textContent = "How the mask was found, and how much it keeps";
  byId("curve-figure").hidden = false;
  const [last, final] = [curve[curve.length - 1][0], typeof metadata.loss === "number" ? metadata.loss : null];
  byId("curve-caption").textContent =
    `Mean training loss over the search, ${count(last)} steps. Only the choice of weights was trained.` +
    (final === null ? "" : ` Validation loss at the end: ${final.toFixed(3)}.`);
  const box = byId("curve-chart");
  keepDrawn(box, () => {
    const top = Math.max(...curve.map(([, loss]) => loss), final ?? 0) * 1.08;
    drawChart(box, {
      x: [0, last], y: [0, top],
      yTicks: ticks(top, 5), xTicks: ticks(last, box.clientWidth < 450 ? 3 : 6), xLabel: "steps", yLabel: "loss in nats",
      label: `The loss falls from ${curve[0][1].toFixed(2)} to ${curve[curve.length - 1][1].toFixed(2)}.`,
      line: curve, mark: final === null ? undefined : { y: final, text: `validation: ${final.toFixed(2)}` },
    });
  });
}

/** What the file says is only data: pairs of finite numbers, or nothing. @param {unknown} curve @returns {number[][]} */
function points(curve) {
  const good = (/** @type {unknown} */ point) => Array.isArray(point) && point.length === 2 && point.every(Number.isFinite) && point[1] >= 0;
  return Array.isArray(curve) && curve.every(good) ? curve : [];
}
