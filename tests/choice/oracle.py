"""A reader of blocks of choices from the docstrings alone, one number at a time, and tensors to try it on."""

import hashlib
import math
import struct
from dataclasses import dataclass

import numpy as np

# To code a tensor with, and further options.
STEPS = ((0.3, {}), (1.0, {"shrink": True}), (2.0**-20, {}), (0.05, {"transposed": True}))
CODES = {4: (2, 1), 8: (5, 2), 64: (33, 10)}  # octal 5, 2; 13, 04; 103, 024 without their lowest bit


def philox(counter: list[int], key: list[int]) -> list[int]:
    """Philox 4x32-10 (Salmon et al. 2011)."""
    (a, b, c, d), (k0, k1) = counter, key
    for _ in range(10):
        p, q = 0xD2511F53 * a, 0xCD9E8D57 * c
        a, b, c, d = q >> 32 ^ b ^ k0, q % 2**32, p >> 32 ^ d ^ k1, p % 2**32
        k0, k1 = (k0 + 0x9E3779B9) % 2**32, (k1 + 0xBB67AE85) % 2**32
    return [a, b, c, d]


def offset(seed: int, name: str, i: int) -> int:
    """Offset number i of a tensor, 16 bits."""
    text = (1).to_bytes(4, "little") + seed.to_bytes(8, "little") + name.encode()
    digest = hashlib.blake2b(text, digest_size=16, person=b"strongticket").digest()
    counter = [i // 8 % 2**32, i // 8 >> 32, 0, 0]
    word = philox(counter, list(struct.unpack("<2I", digest[:8])))[i // 2 % 4]
    return word >> 16 if i % 2 else word & 0xFFFF


@dataclass
class Read:
    numbers: np.ndarray  # float32
    values: np.ndarray  # v
    deltas: np.ndarray  # Δ of each row
    has_number: np.ndarray  # False at exact zeros


def read_block(data: bytes, shape: tuple[int, int], first: int, seed: int, name: str) -> Read:
    """The numbers of a block whose first row has the number `first`; asserts that nothing is left over."""
    rows, columns = shape
    read = Read(np.zeros(shape, np.float32), np.zeros(shape, int), np.zeros(rows), np.zeros(shape, bool))
    if not data:
        return read
    packing, more, unit, least, first_token, tokens, word_count = struct.unpack_from("<BBfhBBI", data)
    states, offset_bits, lane_count = (1, 4, 8, 64)[packing & 3], packing >> 2 & 3, 2 ** (packing >> 4)
    digits, by_parity, width = (more & 3) + 1, more >> 2 & 1, more >> 3
    rest = data[14:]

    def packed(count: int, width: int) -> list[int]:
        nonlocal rest
        size = -(-count * width // 8)
        all_bits, rest = int.from_bytes(rest[:size], "little"), rest[size:]
        return [all_bits >> i * width & 2**width - 1 for i in range(count)]

    scales = packed(rows, width) if width else [1] * rows
    codes = packed(2 ** (offset_bits + by_parity) * tokens, digits + 4)
    tables = [slots(codes[i : i + tokens], digits) for i in range(0, len(codes), tokens)]
    lanes, words = packed(lane_count, 32), packed(word_count, 16)
    raw, raw_bytes = int.from_bytes(rest, "little"), len(rest)
    at = bit = i = 0
    path = [0] * columns
    for r in range(rows):
        if not scales[r]:
            continue
        exponent = least + scales[r] - 1
        root = [1.0, 1.189207115002721, 1.4142135623730951, 1.681792830507429][exponent % 4]
        spacing = np.float32(math.ldexp(unit * root, exponent // 4))
        read.deltas[r] = float(spacing) * (1 if states == 1 else 2)
        for j in range(columns):
            o, parity = offset(seed, name, (first + r) * columns + j), path[j] & 1
            kind = o >> 16 - offset_bits
            x = lanes[i % lane_count]
            token, f, place = tables[2 * kind + parity if by_parity else kind][x % 4096]
            x = f * (x // 4096) + place
            if x < 2**16:
                x, at = x << 16 | words[at], at + 1
            lanes[i % lane_count] = x
            i += 1
            token += first_token
            if token == 0:
                continue
            size, bits = token >> 1, 0
            if token >= 16:
                p, part = 3 + (token - 16) // 8, (token - 16) // 2 % 4
                bits = p - 2
                size = (4 + part << bits) + (raw >> bit & 2**bits - 1)
                bit += bits
            k = size if token % 2 else -size
            v = k
            if states > 1:
                h0, h1 = CODES[states]
                v = 2 * k + parity
                path[j] = path[j] >> 1 ^ parity * h0 ^ k % 2 * h1
            read.values[r, j], read.has_number[r, j] = v, True
            read.numbers[r, j] = (np.float32(v) + np.float32((2 * o - 65535) / 2**17)) * spacing
    assert lanes == [2**16] * lane_count
    assert (at, -(-bit // 8)) == (word_count, raw_bytes)
    return read


def slots(codes: list[int], digits: int) -> list[tuple[int, int, int]]:
    """(token, its frequency, place in it) of each of the 4096 slots."""
    weights = [2**digits + (code - 1) % 2**digits << (code - 1 >> digits) if code else 0 for code in codes]
    found = [1 + weight * (4096 - len(codes)) // max(sum(weights), 1) for weight in weights]
    found[weights.index(max(weights))] += 4096 - sum(found)
    return [(token, f, place) for token, f in enumerate(found) for place in range(f)]


def tensors() -> dict[str, np.ndarray]:
    """Targets of all kinds, float32."""
    rng = np.random.default_rng(0)
    normal = rng.standard_normal((40, 33))
    some_zero = normal * (rng.random(normal.shape) < 0.6)
    some_zero[[0, 7]] = 0
    made = {
        "normal": normal,
        "heavy tails": rng.standard_t(1.5, (30, 40)),
        "rows of all sizes": normal * np.exp2(rng.integers(-40, 40, (40, 1))),
        "some zeros": some_zero,
        "zeros": np.zeros((5, 7)),
        "ones": np.ones((9, 35)),
        "one number": np.array(0.3),
        "one row": normal[:1],
        "one column": normal[:, :1],
        "one axis": normal[0],
        "three axes": normal.reshape(8, 5, 33),
        "huge": normal * 2.0**123,
        "the largest": np.sign(normal) * 2.0**126,
        "tiny": normal * 2.0**-125,
        "denormal": normal * 2.0**-140,
        "denormal rows": normal * np.where(np.arange(40) % 3, 1, 2.0**-145)[:, None],
        "no rows": np.zeros((0, 4)),
        "no columns": np.zeros((4, 0)),
        "two lanes": rng.standard_normal((90, 92)),
    }
    return {name: np.asarray(array, np.float32) for name, array in made.items()}
