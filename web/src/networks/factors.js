import { product } from "../bytes.js";
import { TicketError } from "../errors.js";

const FEW = 4; // rows up to which a matrix is made like a vector
const FEW_UNITS = 30;
const MAX_UNITS = { paper: 40, shared: 30 }; // for each row
const ROWS = { paper: [16, 64], shared: [16, 96] }; // of a piece, at least and at most
const FIELDS = "attention,base,class,config,layouts,library,options,rebuilt,tensors";

/**
 * Rows start .. stop of a matrix's smaller side: left (rows, units) times right (columns, units), transposed.
 * @typedef {{left: string, right: string, start: number, stop: number, columns: number, units: number, transposed: boolean}} Piece
 */

/** The tensors of a built network, each made of pieces: products of two pruned random factors. */
export class Factors {
  /** @param {import("../ticket.js").Ticket} ticket of kind "pretrained" */
  constructor(ticket) {
    this.ticket = ticket;
    const { settings } = ticket;
    if (Object.keys(settings).sort().join() !== FIELDS) throw new TicketError(`settings must have exactly ${FIELDS}`);
    if (settings.base !== null) throw new TicketError("the ticket is partial: the rest of its network is a trained model");
    if (settings.attention !== "linear") throw new TicketError("this reader does not run attention made of products");
    if (!Array.isArray(settings.layouts) || !settings.tensors)
      throw new TicketError("layouts must be a list and tensors an object");
    const layouts = settings.layouts.map(checkedLayout);
    /** @type {Map<string, number[]>} name of a tensor of the network -> its shape */
    this.shapes = new Map();
    /** @type {Map<string, Piece[]>} by the tensor's name */
    this.pieces = new Map();
    /** @type {Map<string, string>} name of a factor -> the tensor that it is a part of */
    this.tensorOf = new Map();
    const expected = new Map();
    for (const [name, entry] of Object.entries(settings.tensors)) {
      const [layout, shape] = Array.isArray(entry) ? entry : [];
      if (!layouts[layout] || !Array.isArray(shape) || !shape.every((size) => Number.isSafeInteger(size) && size > 0))
        throw new TicketError(`tensor "${name}" must have a layout and positive sizes`);
      if (name.endsWith("running_var")) throw new TicketError("this reader does not know running variances");
      const pieces = cut(name, matrixShape(shape), layouts[layout], ticket.tensors.size);
      this.shapes.set(name, shape);
      this.pieces.set(name, pieces);
      for (const { left, right, start, stop, columns, units } of pieces) {
        this.tensorOf.set(left, name).set(right, name);
        expected.set(left, `${[stop - start, units]}`).set(right, `${[columns, units]}`);
      }
    }
    for (const name of new Set([...expected.keys(), ...ticket.tensors.keys()]))
      if (ticket.tensors.get(name)?.shape.join() !== expected.get(name))
        throw new TicketError(`tensor "${name}" must have shape [${expected.get(name)}], got [${ticket.tensors.get(name)?.shape}]`);
  }

  /**
   * A tensor of the network. Products of float32 numbers are exact in float64, the sum runs over ascending units, and the
   * result is rounded once: the same bits as the library's.
   * @param {string} name @param {(factor: string) => Float32Array} [weights] of a factor; by default those of the ticket
   * @returns {Float32Array}
   */
  fold(name, weights = (factor) => this.ticket.weights(factor)) {
    const [rows, columns] = matrixShape(this.shapes.get(name));
    const out = new Float32Array(rows * columns);
    for (const piece of this.pieces.get(name)) foldPiece(piece, weights(piece.left), weights(piece.right), columns, out);
    return out;
  }
}

/** @param {Piece} piece @param {Float32Array} left @param {Float32Array} right @param {number} width of the matrix @param {Float32Array} out */
function foldPiece({ start, stop, columns, units, transposed }, left, right, width, out) {
  const byUnit = new Float32Array(right.length); // (units, columns), so that sums run along memory
  for (let column = 0; column < columns; column++)
    for (let unit = 0; unit < units; unit++) byUnit[unit * columns + column] = right[column * units + unit];
  const sums = new Float64Array(columns);
  for (let row = start; row < stop; row++) {
    sums.fill(0);
    for (let unit = 0; unit < units; unit++) {
      const weight = left[(row - start) * units + unit];
      if (weight === 0) continue; // a unit serves few rows
      const at = unit * columns;
      for (let column = 0; column < columns; column++) sums[column] += weight * byUnit[at + column];
    }
    if (!transposed) out.set(sums, row * width);
    else for (let column = 0; column < columns; column++) out[column * width + row] = sums[column];
  }
}

/** @param {number[]} shape @returns {[number, number]} its axes cut in two where that is most nearly square; a vector is one row */
function matrixShape(shape) {
  if (shape.length < 2) return [1, product(shape)];
  /** @type {[number, number][]} */
  const cuts = shape.slice(1).map((_, i) => [product(shape.slice(0, i + 1)), product(shape.slice(i + 1))]);
  return cuts.reduce((best, sides) => (Math.max(...sides) < Math.max(...best) ? sides : best));
}

/** @typedef {{units: number, problems: number, share: number | null, paper: boolean, axis: number | null, apart: number[]}} Layout */

/** @param {any} layout @returns {Layout} */
function checkedLayout(layout) {
  const { units, problems, share, paper, axis = null, apart = [], ...rest } = layout ?? {};
  const most = paper ? MAX_UNITS.paper : MAX_UNITS.shared;
  const good = units >= 1 && units <= most && Number.isSafeInteger(problems) && problems > 0 && [null, 1, 2, 3].includes(share) && [null, 0, 1].includes(axis);
  const ascending = Array.isArray(apart) && apart.every((row, i) => Number.isSafeInteger(row) && row > (apart[i - 1] ?? -1));
  if (!good || !ascending || (paper && apart.length) || typeof paper !== "boolean" || Object.keys(rest).length)
    throw new TicketError("a layout of the settings is not valid");
  return { units, problems, share, paper, axis, apart };
}

/** @param {string} name @param {[number, number]} shape @param {Layout} layout @param {number} most pieces @returns {Piece[]} */
function cut(name, [rows, columns], { units, problems, paper, axis, apart }, most) {
  const transposed = axis === null ? rows > columns : axis === 1;
  const [smaller, larger] = transposed ? [columns, rows] : [rows, columns];
  if (apart.some((row) => row >= smaller)) throw new TicketError(`tensor "${name}" has ${smaller} rows, and row ${apart.at(-1)} is to be apart`);
  const [low, high] = paper ? ROWS.paper : ROWS.shared;
  const height = Math.max(low, Math.min(high, Math.floor(problems / larger)));
  /** @type {Piece[]} */
  const pieces = [];
  let first = 0;
  for (const end of [...apart.flatMap((row) => [row, row + 1]), smaller]) {
    const [size, count] = [end - first, Math.ceil((end - first) / height)];
    if (!(pieces.length + count <= most)) throw new TicketError(`tensor "${name}" would need ${count} pieces, the ticket has fewer`);
    for (let i = 0; i < count; i++) {
      const [start, stop] = [first + Math.floor((size * i) / count), first + Math.floor((size * (i + 1)) / count)];
      const perRow = paper && smaller === 1 ? Math.min(2 * units, MAX_UNITS.paper) : !paper && stop - start <= FEW ? FEW_UNITS : units;
      const at = `${name}.${pieces.length}`;
      pieces.push({ left: `${at}.left`, right: `${at}.right`, start, stop, columns: larger, units: toEven(perRow * (stop - start)), transposed });
    }
    first = end;
  }
  return pieces;
}

/** @param {number} x @returns {number} rounded, halves to the even number */
const toEven = (x) => (x % 1 === 0.5 ? 2 * Math.round(x / 2) : Math.round(x));
