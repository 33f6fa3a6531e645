import { drawChart, keepDrawn, ticks } from "./chart.js";
import { breathe, byId, note, percent } from "./dom.js";

const SHARES = [0, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5];

/**
 * Flip a part of the masks or choices and watch the loss of a sample rise.
 * @param {import("./live.js").Live} live @param {{loss: () => number, chance: number, about: string}} sample chance: the loss of guessing
 */
export function startFlipping(live, sample) {
  const [slider, box] = [byId("flipped"), byId("flip-chart")];
  /** @type {Map<number, number>} place on the slider -> loss */
  const losses = new Map();
  let now = 0;

  const draw = () => {
    const points = [...losses].sort(([a], [b]) => a - b);
    const top = Math.max(sample.chance, ...losses.values()) * 1.12;
    drawChart(box, {
      x: [-0.3, SHARES.length - 0.7], y: [0, top], yTicks: ticks(top, 6),
      xTicks: SHARES.map((share, i) => [i, String(100 * share)]),
      xLabel: "% of the mask flipped", yLabel: "loss in nats",
      label: `Loss of the sample by flipped share: ${points.map(([i, loss]) => `${percent(SHARES[i])}: ${loss.toFixed(2)}`).join(", ")}`,
      line: points, points, now: losses.has(now) ? [now, losses.get(now)] : undefined,
      mark: { y: sample.chance, text: `guessing: ${sample.chance.toFixed(2)}` },
    });
  };

  const measure = () => {
    try {
      const loss = sample.loss();
      losses.set(now, loss);
      byId("loss").value = `${loss.toFixed(3)} nats`;
      note("flip-note");
    } catch (error) {
      note("flip-note", error);
    }
    draw();
  };
  const set = (place) => {
    now = place;
    slider.value = String(place);
    byId("flipped-shown").value = percent(SHARES[place]);
    live.flip(SHARES[place]); // says "change", and what hears it measures
  };

  let waiting = false; // one measurement for many changes
  const later = async () => {
    if (waiting) return;
    waiting = true;
    await breathe();
    waiting = false;
    measure();
  };
  live.addEventListener("change", later);
  slider.addEventListener("input", () => set(Number(slider.value)));
  byId("flip-reset").addEventListener("click", () => set(0));
  byId("flip-all").addEventListener("click", async () => {
    for (let place = 0; place < SHARES.length; place++) {
      set(place);
      await breathe();
      await breathe();
    }
    set(0);
  });
  byId("sample").addEventListener("input", () => {
    losses.clear();
    later();
  });
  byId("flip-caption").textContent = sample.about;
  byId("flip").hidden = false;
  keepDrawn(box, draw);
  measure();
}
