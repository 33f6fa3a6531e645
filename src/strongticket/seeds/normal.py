"""Random bits -> normal weights: a quantile function of + - * / and sqrt alone, the same on every machine."""

import math

import numpy as np

from strongticket.compiled import kernel

# Wichura's AS 241 (PPND16): rational approximations of the normal quantile, relative error about 1e-16.
CENTRE = (
    (2.5090809287301226727e3, 3.3430575583588128105e4, 6.7265770927008700853e4,
     4.5921953931549871457e4, 1.3731693765509461125e4, 1.9715909503065514427e3,
     1.3314166789178437745e2, 3.3871328727963666080e0),
    (5.2264952788528545610e3, 2.8729085735721942674e4, 3.9307895800092710610e4,
     2.1213794301586595867e4, 5.3941960214247511077e3, 6.8718700749205790830e2,
     4.2313330701600911252e1, 1.0),
)  # fmt: skip
MIDDLE = (
    (7.74545014278341407640e-4, 2.27238449892691845833e-2, 2.41780725177450611770e-1,
     1.27045825245236838258e0, 3.64784832476320460504e0, 5.76949722146069140550e0,
     4.63033784615654529590e0, 1.42343711074968357734e0),
    (1.05075007164441684324e-9, 5.47593808499534494600e-4, 1.51986665636164571966e-2,
     1.48103976427480074590e-1, 6.89767334985100004550e-1, 1.67638483018380384940e0,
     2.05319162663775882187e0, 1.0),
)  # fmt: skip
FAR = (
    (2.01033439929228813265e-7, 2.71155556874348757815e-5, 1.24266094738807843860e-3,
     2.65321895265761230930e-2, 2.96560571828504891230e-1, 1.78482653991729133580e0,
     5.46378491116411436990e0, 6.65790464350110377720e0),
    (2.04426310338993978564e-15, 1.42151175831644588870e-7, 1.84631831751005468180e-5,
     7.86869131145613259100e-4, 1.48753612908506148525e-2, 1.36929880922735805310e-1,
     5.99832206555887937690e-1, 1.0),
)  # fmt: skip
_ATANH = tuple(2.0 / (2 * i + 1) for i in range(11, -1, -1))  # 2 atanh(s) = 2 (s + s^3/3 + s^5/5 + ...)


@kernel
def normal(bits: np.ndarray, std: float, out: np.ndarray) -> None:
    """32 bits k -> quantile at (2k + 1) * 2^-33, times std in float64, rounded once to float32."""
    # The centre's formula for all, then the tails anew: without a branch the compiler takes several at once.
    for i in range(bits.size):
        q = _offset(bits[i])
        out[i] = np.float32(q * _ratio(CENTRE, 0.180625 - q * q) * std)
    tails, count = np.empty(bits.size, np.int64), 0
    for i in range(bits.size):
        tails[count] = i
        count += abs(_offset(bits[i])) > 0.425
    for i in tails[:count]:
        q = _offset(bits[i])
        r = math.sqrt(-_log(0.5 - abs(q)))
        z = _ratio(MIDDLE, r - 1.6) if r <= 5.0 else _ratio(FAR, r - 5.0)
        out[i] = np.float32(math.copysign(z, q) * std)


@kernel
def _offset(k: np.uint32) -> float:
    """Probability - 1/2, exact."""
    return (float(k) + (0.5 - 2.0**31)) * 2.0**-32


@kernel
def _log(x: float) -> float:
    """Natural logarithm of 0 < x < 0.1 to about 1 ulp: x = m * 2^e, log m = 2 atanh((m - 1) / (m + 1))."""
    m, exponent = math.frexp(x)
    if m < 0.7071067811865476:
        m *= 2.0
        exponent -= 1
    s = (m - 1.0) / (m + 1.0)
    return s * _horner(_ATANH, s * s) + exponent * 0.6931471805599453


@kernel
def _ratio(pair: tuple[tuple[float, ...], tuple[float, ...]], x: float) -> float:
    return _horner(pair[0], x) / _horner(pair[1], x)


@kernel
def _horner(coefficients: tuple[float, ...], x: float) -> float:
    """Polynomial, the highest power's coefficient first."""
    value = coefficients[0]
    for i in range(1, len(coefficients)):
        value = value * x + coefficients[i]
    return value
