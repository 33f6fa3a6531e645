// The normal law. Storing to `out` rounds to float32; all else is float64, in the order that the format prescribes.

// Wichura's AS 241: numerators and denominators, the highest power first.
const CENTRE = [
  [2.5090809287301226727e3, 3.3430575583588128105e4, 6.7265770927008700853e4, 4.5921953931549871457e4,
   1.3731693765509461125e4, 1.9715909503065514427e3, 1.3314166789178437745e2, 3.387132872796366608],
  [5.226495278852854561e3, 2.8729085735721942674e4, 3.930789580009271061e4, 2.1213794301586595867e4,
   5.3941960214247511077e3, 6.871870074920579083e2, 4.2313330701600911252e1, 1.0],
];
const MIDDLE = [
  [7.7454501427834140764e-4, 2.27238449892691845833e-2, 2.4178072517745061177e-1, 1.27045825245236838258,
   3.64784832476320460504, 5.7694972214606914055, 4.6303378461565452959, 1.42343711074968357734],
  [1.05075007164441684324e-9, 5.475938084995344946e-4, 1.51986665636164571966e-2, 1.4810397642748007459e-1,
   6.8976733498510000455e-1, 1.6763848301838038494, 2.05319162663775882187, 1.0],
];
const FAR = [
  [2.01033439929228813265e-7, 2.71155556874348757815e-5, 1.2426609473880784386e-3, 2.6532189526576123093e-2,
   2.9656057182850489123e-1, 1.7848265399172913358, 5.4637849111641143699, 6.6579046435011037772],
  [2.04426310338993978564e-15, 1.4215117583164458887e-7, 1.8463183175100546818e-5, 7.868691311456132591e-4,
   1.48753612908506148525e-2, 1.3692988092273580531e-1, 5.9983220655588793769e-1, 1.0],
];
const ATANH = Array.from({ length: 12 }, (_, i) => 2 / (23 - 2 * i));

/** @param {Uint32Array} bits @param {number} scale @param {Float32Array} out */
export function normal(bits, scale, out) {
  for (let i = 0; i < bits.length; i++) {
    const q = (bits[i] + (0.5 - 2 ** 31)) * 2 ** -32;
    let z;
    if (Math.abs(q) <= 0.425) {
      z = q * ratio(CENTRE, 0.180625 - q * q);
    } else {
      const r = Math.sqrt(-log(0.5 - Math.abs(q)));
      z = r <= 5 ? ratio(MIDDLE, r - 1.6) : ratio(FAR, r - 5);
      if (q < 0) z = -z;
    }
    out[i] = z * scale;
  }
}

/** @param {number[][]} pair @param {number} x */
const ratio = (pair, x) => horner(pair[0], x) / horner(pair[1], x);

/** @param {number[]} coefficients @param {number} x */
function horner(coefficients, x) {
  let value = coefficients[0];
  for (let i = 1; i < coefficients.length; i++) value = value * x + coefficients[i];
  return value;
}

const double = new DataView(new ArrayBuffer(8));

/** Not Math.log, whose last bits differ between machines. @param {number} x a normal float64 above 0 */
function log(x) {
  double.setFloat64(0, x);
  const head = double.getUint32(0);
  let exponent = (head >>> 20) - 1022;
  double.setUint32(0, (head & 0xfffff) | (1022 << 20));
  let m = double.getFloat64(0); // x = m · 2^exponent, 0.5 <= m < 1
  if (m < 0.7071067811865476) {
    m *= 2;
    exponent -= 1;
  }
  const s = (m - 1) / (m + 1);
  return s * horner(ATANH, s * s) + exponent * 0.6931471805599453;
}
