"""Random weights from docs/ticket-format.md alone (sections 3 and 4), one at a time in plain Python."""

import hashlib
import itertools
import math
import struct

from strongticket.seeds.normal import CENTRE, FAR, MIDDLE

WORD = 2**64 - 1


def weights(seed: int, name: str, shape: list[int], law: str, scale: float) -> list[bytes]:
    """A tensor's weights as float32 bytes."""
    if law == "constant":
        return math.prod(shape) * [struct.pack("<f", scale)]
    if law == "hadamard":
        return hadamard(seed, name, shape, scale)
    count = math.prod(shape)
    text = (1).to_bytes(4, "little") + seed.to_bytes(8, "little") + name.encode()
    key = struct.unpack("<QQ", hashlib.blake2b(text, digest_size=16, person=b"strongticket").digest())
    out = []
    for i in range(count):
        if i % 8 == 0:
            words = philox(i // 8 + 1, *key)
        u = words[i // 2 % 4] >> 32 * (i % 2) & 0xFFFFFFFF
        if law == "uniform":
            a = struct.unpack("<f", struct.pack("<f", scale))[0]
            value = (2 * (u >> 8) + 1 - 2**24) * (2.0**-24 * a)  # 48 bits: exact in float64, rounded by pack
        elif law == "signed":
            value = scale if u >> 31 else -scale
        else:
            value = quantile((u + 0.5 - 2**31) * 2.0**-32) * scale
        out.append(struct.pack("<f", value))
    return out


def hadamard(seed: int, name: str, shape: list[int], scale: float) -> list[bytes]:
    rows = shape[0] if len(shape) > 1 else 1
    columns = math.prod(shape[1:]) if len(shape) > 1 else math.prod(shape)
    long_side, short_side = max(rows, columns), min(rows, columns)
    n = 1
    while n < short_side:
        n *= 2
    size = long_side + -(-long_side // n) * short_side
    t = [int(w == struct.pack("<f", 1.0)) for w in weights(seed, name, [size], "signed", 1.0)]
    out = []
    for row, column in itertools.product(range(rows), range(columns)):
        long, short = (row, column) if rows > columns else (column, row)
        odd = t[long] + t[long_side + long // n * short_side + short] + (long % n & short).bit_count()
        out.append(struct.pack("<f", -scale if odd % 2 else scale))
    return out


def philox(c0: int, k0: int, k1: int) -> list[int]:
    c1 = c2 = c3 = 0
    for _ in range(10):
        p, q = 0xD2E7470EE14C6C93 * c0, 0xCA5A826395121157 * c2
        c0, c1, c2, c3 = (q >> 64) ^ c1 ^ k0, q & WORD, (p >> 64) ^ c3 ^ k1, p & WORD
        k0, k1 = k0 + 0x9E3779B97F4A7C15 & WORD, k1 + 0xBB67AE8584CAA73B & WORD
    return [c0, c1, c2, c3]


def horner(coefficients, x: float) -> float:
    value = coefficients[0]
    for c in coefficients[1:]:
        value = value * x + c
    return value


def quantile(q: float) -> float:
    def ratio(pair, x):
        return horner(pair[0], x) / horner(pair[1], x)

    if abs(q) <= 0.425:
        return q * ratio(CENTRE, 0.180625 - q * q)
    m, e = math.frexp(0.5 - abs(q))
    if m < 0.7071067811865476:
        m, e = 2 * m, e - 1
    s = (m - 1) / (m + 1)
    log = s * horner([2 / odd for odd in range(23, 0, -2)], s * s) + e * 0.6931471805599453
    r = math.sqrt(-log)
    return math.copysign(ratio(MIDDLE, r - 1.6) if r <= 5 else ratio(FAR, r - 5), q)
