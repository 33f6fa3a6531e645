// What the page's sections share: its elements, numbers as a person writes them, and time for the browser to paint.

/** @param {string} id @returns {any} the element; the page is ours, so it is there */
export const byId = (id) => document.getElementById(id);

/** @param {string} tag @param {Record<string, string | number>} attributes @param {...(Node | string)} children @returns {HTMLElement} */
export function element(tag, attributes, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, String(value));
  made.append(...children);
  return made;
}

/** Show a part of the page with these values in it. @param {string} id @param {Record<string, string | number>} values by data-shown */
export function show(id, values) {
  for (const [name, value] of Object.entries(values))
    for (const place of byId(id).querySelectorAll(`[data-shown=${name}]`)) place.textContent = value;
  byId(id).hidden = false;
}

/** @param {string} text @returns {Uint8Array} */
export const fromBase64 = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));

/** @param {number} value @returns {string} */
export const count = (value) => value.toLocaleString("en-US");

/** @param {number} bytes @returns {string} */
export function size(bytes) {
  if (bytes < 1000) return `${bytes} B`;
  return bytes < 1e6 ? `${(bytes / 1e3).toFixed(1)} kB` : `${(bytes / 1e6).toFixed(1)} MB`;
}

/** @param {number} share @returns {string} */
export const percent = (share) => `${Number((100 * share).toPrecision(2))} %`;

/** @param {number} value @param {number} digits @returns {string} with a real minus sign */
export const signed = (value, digits) => value.toFixed(digits).replace("-", "−");

/** @param {number} value above 0 @returns {string} 0.039, or 3.9 × 10⁻⁵ */
export function small(value) {
  if (value >= 1e-3) return String(Number(value.toPrecision(2)));
  const [digits, power] = value.toExponential(1).split("e-");
  return `${digits} × 10⁻${[...power].map((digit) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[Number(digit)]).join("")}`;
}

/** Show what went wrong under the controls that caused it, or that nothing did. @param {string} id @param {unknown} [error] */
export function note(id, error) {
  const shown = byId(id);
  shown.textContent = error === undefined ? "" : error instanceof Error ? error.message : String(error);
  shown.classList.toggle("wrong", error instanceof Error);
}

const MOVES = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1], " ": [0, 0] };

/** Where an arrow key or the space bar leads, which then does nothing else. @param {KeyboardEvent} event @returns {number[] | undefined} */
export function arrow(event) {
  if (event.key in MOVES) event.preventDefault();
  return MOVES[event.key];
}

/** Lets the browser paint and react before more is computed; a timer too, since hidden pages do not paint. */
export const breathe = () =>
  new Promise((resolve) => {
    requestAnimationFrame(resolve);
    setTimeout(resolve, 50);
  });
