// Draws every chart of the page as SVG in the page's own colours. Pointer or arrow keys read values, the legend
// hides curves, a button switches the y axis between logarithmic and linear. Text is never parsed as markup.
(() => {
  "use strict";
  const NAMESPACE = "http://www.w3.org/2000/svg";
  const DASHES = { data: "", fit: "7 4", bound: "9 3 2 3", printed: "2 4" };
  const SUPERSCRIPT = { "-": "⁻", 0: "⁰", 1: "¹", 2: "²", 3: "³", 4: "⁴", 5: "⁵", 6: "⁶", 7: "⁷", 8: "⁸", 9: "⁹" };

  const svg = (name, attributes = {}, children = []) => {
    const element = document.createElementNS(NAMESPACE, name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    element.append(...children);
    return element;
  };
  const html = (name, className, children = []) => {
    const element = document.createElement(name);
    element.className = className;
    element.append(...children);
    return element;
  };

  // n_K has a subscript, n^(1/4) an exponent: [text, "", "sub" or "sup"].
  const pieces = (text) => {
    const found = [];
    let end = 0;
    for (const match of text.matchAll(/(?<=\b[A-Za-zγδ])_([A-Za-z0-9]+)|\^\(([^()]+)\)/g)) {
      found.push([text.slice(end, match.index), ""], match[1] ? [match[1], "sub"] : [match[2], "sup"]);
      end = match.index + match[0].length;
    }
    return [...found, [text.slice(end), ""]].filter(([part]) => part);
  };
  const htmlText = (text) => pieces(text).map(([part, kind]) => (kind ? html(kind, "", [part]) : part));
  const svgText = (text, attributes) => {
    let raised = 0;
    const parts = pieces(text).map(([part, kind]) => {
      const level = { "": 0, sub: 3, sup: -5 }[kind];
      const tspan = svg("tspan", { dy: level - raised, "font-size": kind ? "75%" : "100%" }, [part]);
      raised = level;
      return tspan;
    });
    return svg("text", attributes, parts);
  };

  const power = (exponent) => "10" + [...String(exponent)].map((digit) => SUPERSCRIPT[digit]).join("");
  const plain = (value) => String(value).replace("-", "−");
  const readable = (value) => {
    if (value === 0 || (Math.abs(value) >= 1e-3 && Math.abs(value) < 1e5)) return plain(Number(value.toPrecision(4)));
    const [mantissa, exponent] = value.toExponential(2).split("e");
    return `${plain(Number(mantissa))}·${power(Number(exponent))}`;
  };

  // A scale maps values to pixels; null where a logarithm has no value.
  const makeScale = (low, high, from, to, logarithmic) => {
    const position = logarithmic ? Math.log10 : Number;
    const [start, span] = [position(low), position(high) - position(low) || 1];
    const scale = (value) =>
      logarithmic && !(value > 0) ? null : from + ((position(value) - start) / span) * (to - from);
    return Object.assign(scale, { low, high, logarithmic });
  };
  const linearTicks = (low, high, count) => {
    const rough = (high - low) / Math.max(1, count);
    const unit = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((factor) => factor * unit).find((size) => size >= rough);
    const first = Math.ceil(low / step - 1e-9);
    const total = Math.min(50, Math.floor(high / step + 1e-9) - first + 1);
    return Array.from({ length: Math.max(0, total) }, (_, i) => {
      const value = Number(((first + i) * step).toPrecision(12));
      return [value, readable(value)];
    });
  };
  const logTicks = (low, high, count) => {
    const [first, last] = [Math.ceil(Math.log10(low) - 1e-9), Math.floor(Math.log10(high) + 1e-9)];
    if (last - first < 1) {
      const ticks = linearTicks(low, high, count).filter(([value]) => value > 0);
      return ticks.length ? ticks : [[low, readable(low)], [high, readable(high)]];
    }
    const step = Math.max(1, Math.ceil((last - first) / count));
    const exponents = Array.from({ length: Math.floor((last - first) / step) + 1 }, (_, i) => first + i * step);
    return exponents.map((k) => [10 ** k, Math.abs(k) < 4 ? readable(10 ** k) : power(k)]);
  };
  const range = (values, logarithmic) => {
    const usable = logarithmic ? values.filter((value) => value > 0) : values;
    let [low, high] = [Math.min(...usable), Math.max(...usable)];
    if (!usable.length) [low, high] = [1, 10];
    if (logarithmic) {
      const room = high > low ? (high / low) ** 0.04 : 2;
      return [low / room, high * room];
    }
    const room = high > low ? 0.04 * (high - low) : Math.abs(high) || 1;
    return [low - room, high + room];
  };

  const MARKERS = {
    o: (r) => svg("circle", { r }),
    s: (r) => svg("rect", { x: -r, y: -r, width: 2 * r, height: 2 * r }),
    "^": (r) => svg("path", { d: `M0${-1.2 * r}L${1.1 * r} ${r}H${-1.1 * r}Z` }),
    D: (r) => svg("path", { d: `M0${-1.3 * r}L${1.3 * r} 0L0 ${1.3 * r}L${-1.3 * r} 0Z` }),
    x: (r) => svg("path", { d: `M${-r} ${-r}L${r} ${r}M${-r} ${r}L${r} ${-r}`, class: "cross" }),
  };
  const hasMarkers = (curve) => curve.kind === "data" && curve.shape === "line" && curve.marker !== "";
  const hasLine = (curve) => curve.line && curve.shape !== "bars";

  const linePath = (points, steps) => {
    let path = "";
    let previous = null;
    for (const point of points) {
      if (point === null || point.some((value) => value === null)) {
        previous = null;
        continue;
      }
      const [x, y] = point.map((value) => value.toFixed(1));
      if (previous === null) path += `M${x} ${y}`;
      else if (steps) path += `H${((point[0] + previous[0]) / 2).toFixed(1)}V${y}H${x}`;
      else path += `L${x} ${y}`;
      previous = point;
    }
    return path;
  };

  const drawCurve = (curve, x, y, bottom) => {
    const group = svg("g", { class: `curve series-${curve.colour} ${curve.kind}` });
    const points = curve.x.map((value, i) => [x(value), y(curve.y[i])]);
    if (curve.band) {
      const edge = (values) => values.map((value, i) => [x(curve.x[i]), y(value) ?? bottom]);
      const outline = [...edge(curve.band[0]), ...edge(curve.band[1]).reverse()];
      group.append(svg("path", { class: "band", d: `${linePath(outline)}Z` }));
    }
    if (curve.shape === "bars") {
      const gaps = points.slice(1).map((point, i) => Math.abs(point[0] - points[i][0]));
      const width = 0.8 * Math.min(40, ...gaps);
      const zero = y(0) ?? bottom;
      points.forEach(([left, top], i) => {
        if (left === null || top === null || curve.y[i] === 0) return;
        const [upper, height] = [Math.min(top, zero), Math.abs(top - zero)];
        group.append(svg("rect", { class: "bar", x: left - width / 2, y: upper, width, height }));
      });
    }
    if (hasLine(curve))
      group.append(
        svg("path", {
          class: "line", d: linePath(points, curve.shape === "steps"), "stroke-dasharray": DASHES[curve.kind],
        }),
      );
    if (hasMarkers(curve)) {
      const crowded = points.length > 150;
      for (const [left, top] of points) {
        if (left === null || top === null) continue;
        const marker = MARKERS[curve.marker](crowded ? 2.2 : 3.3);
        marker.setAttribute("transform", `translate(${left.toFixed(1)} ${top.toFixed(1)})`);
        marker.classList.add("marker");
        group.append(marker);
      }
    }
    return group;
  };

  const legendKey = (curve) => {
    const parts = [];
    if (curve.shape === "bars") parts.push(svg("rect", { class: "bar", x: 6, y: 1, width: 12, height: 10 }));
    if (hasLine(curve))
      parts.push(svg("path", { class: "line", d: "M0 6H24", "stroke-dasharray": DASHES[curve.kind] }));
    if (hasMarkers(curve)) {
      const marker = MARKERS[curve.marker](3);
      marker.setAttribute("transform", "translate(12 6)");
      marker.classList.add("marker");
      parts.push(marker);
    }
    const group = svg("g", { class: `curve series-${curve.colour} ${curve.kind}` }, parts);
    return svg("svg", { width: 24, height: 12, "aria-hidden": "true" }, [group]);
  };

  class PlotView {
    constructor(element, chart, alt) {
      Object.assign(this, { element, chart, logY: chart.log_y, hidden: new Set(), index: null, rows: [] });
      element.replaceChildren();
      this.controls = html("div", "plot-controls");
      this.picture = svg("svg", { class: "picture", role: "img", "aria-label": alt, tabindex: 0 });
      this.tip = html("div", "plot-tip");
      this.tip.setAttribute("role", "status");
      this.tip.hidden = true;
      element.append(this.controls, this.picture, this.tip);
      this.addLegend();
      this.addSwitch();
      this.picture.addEventListener("pointermove", (event) => this.point(event));
      this.picture.addEventListener("pointerleave", () => this.show(null));
      this.picture.addEventListener("blur", () => this.show(null));
      this.picture.addEventListener("keydown", (event) => this.press(event));
      new ResizeObserver(() => this.draw()).observe(element);
      this.draw();
    }

    addLegend() {
      const listed = new Set();
      for (const curve of this.chart.curves) {
        if (!curve.legend || listed.has(curve.name)) continue;
        listed.add(curve.name);
        const button = html("button", "legend-entry", [legendKey(curve), html("span", "", htmlText(curve.name))]);
        button.type = "button";
        button.setAttribute("aria-pressed", "true");
        button.addEventListener("click", () => {
          if (!this.hidden.delete(curve.name)) this.hidden.add(curve.name);
          button.setAttribute("aria-pressed", String(!this.hidden.has(curve.name)));
          this.draw();
        });
        this.controls.append(button);
      }
    }

    addSwitch() {
      const values = this.chart.curves.flatMap((curve) => curve.y);
      if (this.chart.curves.some((curve) => curve.shape === "bars") || !values.every((y) => y > 0)) return;
      const button = html("button", "axis-switch");
      button.type = "button";
      const label = () => (button.textContent = this.logY ? "linear y axis" : "logarithmic y axis");
      button.addEventListener("click", () => {
        this.logY = !this.logY;
        label();
        this.draw();
      });
      label();
      this.controls.append(button);
    }

    visible() {
      return this.chart.curves.filter((curve) => !this.hidden.has(curve.name));
    }

    yRange(curves) {
      const { chart } = this;
      if (chart.y_range && this.logY === chart.log_y && (!this.logY || chart.y_range[0] > 0)) return chart.y_range;
      // On a linear axis, bounds far above the data would flatten it.
      const data = curves.filter((curve) => curve.kind === "data");
      const shown = this.logY === chart.log_y || !data.length ? curves : data;
      const values = shown.flatMap((curve) => [...curve.y, ...(curve.band ? curve.band.flat() : [])]);
      return range(shown.some((curve) => curve.shape === "bars") ? [...values, 0] : values, this.logY);
    }

    draw() {
      const width = this.element.clientWidth;
      const height = Number(this.element.dataset.height);
      if (!width) return;
      const narrow = width < 500;
      const { chart } = this;
      const curves = this.visible();
      const box = { right: width - 16, top: 12, bottom: height - 52 };
      const xs = chart.curves.flatMap((curve) => curve.x);
      const y = makeScale(...this.yRange(curves.length ? curves : chart.curves), box.bottom, box.top, this.logY);
      const rows = Math.max(2, Math.floor((box.bottom - box.top) / 45));
      const ticks = (this.logY ? logTicks : linearTicks)(y.low, y.high, rows);
      box.left = 36 + 7 * Math.max(3, ...ticks.map(([, label]) => label.length));
      const x = makeScale(...range(xs, chart.log_x), box.left, box.right, chart.log_x);
      const clip = `${this.element.id}-clip`;
      const area = svg("rect", {
        x: box.left, y: box.top, width: Math.max(0, box.right - box.left), height: box.bottom - box.top,
      });
      this.guide = svg("path", { class: "guide", d: "" });
      this.picture.setAttribute("width", width);
      this.picture.setAttribute("height", height);
      this.picture.replaceChildren(
        svg("clipPath", { id: clip }, [area]),
        this.axes(x, y, ticks, box, narrow),
        svg("g", { "clip-path": `url(#${clip})` }, [
          ...curves.map((curve) => drawCurve(curve, x, y, box.bottom)), this.guide,
        ]),
      );
      this.fitTitles(width, height);
      this.rows = this.readings(curves, x, y);
      Object.assign(this, { box, width });
      this.show(null);
    }

    axes(x, y, yTicks, box, narrow) {
      const { chart } = this;
      const group = svg("g", { class: "axes-group" });
      const count = Math.max(2, Math.floor((box.right - box.left) / (narrow ? 60 : 90)));
      let ticks = (chart.log_x ? logTicks : linearTicks)(x.low, x.high, count);
      if (chart.x_ticks) ticks = chart.x_ticks.map((value) => [value, readable(value)]);
      let free = -Infinity; // labels that would overlap are left out
      for (const [value, label] of ticks) {
        const at = x(value);
        if (at === null || at < box.left - 1 || at > box.right + 1) continue;
        group.append(svg("path", { class: "grid", d: `M${at.toFixed(1)} ${box.top}V${box.bottom}` }));
        if (at - 4 * label.length < free) continue;
        free = at + 4 * label.length + 8;
        group.append(svg("text", { x: at, y: box.bottom + 18, "text-anchor": "middle" }, [label]));
      }
      for (const [value, label] of yTicks) {
        const at = y(value);
        if (at === null || at < box.top - 1 || at > box.bottom + 1) continue;
        group.append(svg("path", { class: "grid", d: `M${box.left} ${at.toFixed(1)}H${box.right}` }));
        group.append(svg("text", { x: box.left - 8, y: at + 4, "text-anchor": "end" }, [label]));
      }
      const middleX = narrow ? (box.right + 16) / 2 : (box.left + box.right) / 2;
      const middleY = (box.top + box.bottom) / 2;
      const title = { class: "axis-title", "text-anchor": "middle" };
      group.append(svgText(chart.x_label, { ...title, x: middleX, y: box.bottom + 42 }));
      group.append(svgText(chart.y_label, { ...title, transform: `translate(14 ${middleY}) rotate(-90)` }));
      return group;
    }

    // A long title gets smaller letters rather than losing its ends.
    fitTitles(width, height) {
      const titles = this.picture.querySelectorAll(".axis-title");
      for (const [title, room] of [[titles[0], width - 8], [titles[1], height - 8]]) {
        const length = title.getComputedTextLength();
        if (length > room) title.style.fontSize = `${(0.8 * room) / length}rem`;
      }
    }

    // What can be read: all curves at one x; of a cloud of points, each point.
    readings(curves, x, y) {
      const rows = new Map();
      for (const curve of curves)
        curve.x.forEach((value, i) => {
          const at = [x(value), y(curve.y[i])];
          if (at.includes(null)) return;
          const cloud = !curve.line && curve.x.length > 150;
          const key = cloud ? `${curve.name} ${i}` : value;
          if (!rows.has(key)) rows.set(key, { x: value, left: at[0], top: cloud ? at[1] : null, entries: [] });
          rows.get(key).entries.push([curve, curve.y[i]]);
        });
      return [...rows.values()].sort((a, b) => a.left - b.left);
    }

    point(event) {
      const frame = this.picture.getBoundingClientRect();
      const [left, top] = [event.clientX - frame.left, event.clientY - frame.top];
      const distance = (row) => Math.hypot(row.left - left, row.top === null ? 0 : row.top - top);
      let best = null;
      this.rows.forEach((row, i) => {
        if (best === null || distance(row) < distance(this.rows[best])) best = i;
      });
      this.show(best);
    }

    press(event) {
      const last = this.rows.length - 1;
      const next = {
        ArrowRight: this.index === null ? 0 : Math.min(last, this.index + 1),
        ArrowLeft: this.index === null ? last : Math.max(0, this.index - 1),
        Home: 0, End: last, Escape: null,
      }[event.key];
      if (next === undefined) return;
      event.preventDefault();
      this.show(next);
    }

    show(index) {
      this.index = index;
      const row = index === null ? undefined : this.rows[index];
      this.tip.hidden = row === undefined;
      this.guide.setAttribute("d", row ? `M${row.left.toFixed(1)} ${this.box.top}V${this.box.bottom}` : "");
      if (!row) return;
      const lines = row.entries.slice(0, 12).map(([curve, value]) =>
        html("div", "", [legendKey(curve), html("span", "", htmlText(curve.name)), html("b", "", [readable(value)])]),
      );
      const head = html("div", "tip-head", [...htmlText(this.chart.x_label), `: ${readable(row.x)}`]);
      this.tip.replaceChildren(head, ...lines);
      const right = row.left > this.width / 2;
      this.tip.style.left = right ? "auto" : `${row.left + 12}px`;
      this.tip.style.right = right ? `${this.width - row.left + 12}px` : "auto";
      this.tip.style.top = `${this.picture.offsetTop + 16}px`;
    }
  }

  const charts = [...document.querySelectorAll(".plot-data")];
  for (const data of charts) {
    const element = document.getElementById(data.dataset.plot);
    new PlotView(element, JSON.parse(data.textContent), element.dataset.alt);
  }
  document.documentElement.dataset.plots = `drawn ${charts.length}`;
})();
