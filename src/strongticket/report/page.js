// Draws every plot of the page, and again when the theme or the width class changes.
(() => {
  "use strict";
  const root = document.documentElement;
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const narrow = matchMedia("(max-width: 600px)");
  const touch = matchMedia("(pointer: coarse)");
  const plots = [...document.querySelectorAll(".plot-data")].map((data) => ({
    element: document.getElementById(data.dataset.plot),
    figure: JSON.parse(data.textContent),
  }));

  // "var(--name)" inside a figure becomes the page's colour of the moment.
  const colour = (name) => getComputedStyle(root).getPropertyValue(name).trim();
  const resolve = (value) => {
    if (typeof value === "string") return value.replace(/var\((--[\w-]+)\)/g, (_, name) => colour(name));
    if (Array.isArray(value)) return value.map(resolve);
    if (value && typeof value === "object")
      return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, resolve(inner)]));
    return value;
  };

  const axis = () => ({
    gridcolor: colour("--line"), linecolor: colour("--line"), zeroline: false, automargin: true,
    exponentformat: "power", minorloglabels: "none", ticks: "outside", tickcolor: colour("--line"),
  });

  const themed = (layout) => {
    const axes = new Set(["xaxis", "yaxis", ...Object.keys(layout).filter((key) => /^[xy]axis\d+$/.test(key))]);
    const theme = {
      autosize: true,
      font: { family: colour("--plain"), size: narrow.matches ? 12 : 14, color: colour("--ink") },
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
      margin: narrow.matches ? { l: 52, r: 14, t: 14, b: 56 } : { l: 76, r: 30, t: 26, b: 66 },
      colorway: [1, 2, 3, 4, 5, 6].map((i) => colour(`--series-${i}`)),
      hoverlabel: { bgcolor: colour("--raised"), bordercolor: colour("--line"), font: { color: colour("--ink") } },
      legend: { orientation: "h", x: 0, y: 1.02, yanchor: "bottom" },
      dragmode: touch.matches ? false : "zoom", // a finger on a plot must still scroll the page
    };
    const merged = { ...theme, ...layout, legend: { ...theme.legend, ...layout.legend } };
    for (const key of axes) {
      const title = layout[key]?.title;
      merged[key] = { ...axis(), ...layout[key] };
      if (title) merged[key].title = { font: { size: theme.font.size, color: colour("--muted") }, ...title };
    }
    return merged;
  };

  const draw = async () => {
    root.dataset.plots = "drawing";
    for (const { element, figure } of plots) {
      const { data, layout } = resolve(figure);
      element.querySelector("noscript")?.remove();
      await Plotly.react(element, data, themed(layout), {
        responsive: true, displayModeBar: false, // dragging zooms, a double click goes back
      });
    }
    root.dataset.plots = `drawn ${plots.length}`;
  };

  dark.addEventListener("change", draw);
  narrow.addEventListener("change", draw);
  draw();
})();
