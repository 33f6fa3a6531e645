"""A reader written from docs/ticket-format.md alone, in plain Python: what the page says is what the library does."""

import bisect
import hashlib
import itertools
import json
import math
import struct
from pathlib import Path

import numpy as np
import pytest
import zstandard
from tests.masks_of_all_kinds import masks_of_all_kinds

from strongticket.seeds import Constant, Hadamard, Normal, OneSided, SignedConstant, Uniform, draw
from strongticket.seeds.normal import CENTRE, FAR, MIDDLE
from strongticket.ticket import Ticket, balance

WORD = 2**64 - 1


def read_ticket(data: bytes) -> dict[str, bytes]:
    """Sections 1, 2 and 6: every tensor's float32 bytes, its checksum compared."""
    assert hashlib.sha256(data[:-32]).digest() == data[-32:]
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    metadata = header.pop("__metadata__")
    body = {n: data[8 + length :][slice(*entry["data_offsets"])] for n, entry in header.items()}
    recipe_line, _, *lines = zstandard.decompress(body["index"]).split(b"\n")
    recipe, coded, tensors = json.loads(recipe_line), body["masks"], {}
    assert recipe["generator"] == 1
    assert metadata == {"format": "strongticket ticket 2"}
    for tensor in map(json.loads, lines):
        name, shape = tensor["name"], tensor["shape"]
        if "codec" in tensor:
            part, coded = coded[: tensor["bytes"]], coded[tensor["bytes"] :]
            drawn = weights(recipe["seed"], name, shape, tensor["law"], tensor["scale"])
            if tensor["codec"] == "balanced":
                mask = balanced(part, *shape, [struct.unpack("<f", weight)[0] for weight in drawn])
            else:
                mask = read_mask(tensor["codec"], part, shape, tensor["kept"])
            assert sum(mask) == tensor["kept"]
            content = b"".join(w if keep else bytes(4) for w, keep in zip(drawn, mask, strict=True))
        else:
            content = body[f"float:{name}"]
        text = name.encode()
        checked = hashlib.sha256(recipe_line).digest() + len(text).to_bytes(8, "little") + text
        checked += b"".join(size.to_bytes(8, "little") for size in [len(shape), *shape]) + content
        assert hashlib.sha256(checked).hexdigest()[:32] == tensor["checksum"]
        tensors[name] = content
    assert not coded
    return tensors


def balanced(data: bytes, rows: int, units: int, weights: list[float]) -> list[int]:
    """Section 5, the codec `balanced`: each unit keeps the rows of the tuple that has it."""
    (share,) = data
    count = -(-rows // share)
    edges = [rows * t // count for t in range(count + 1)]
    members = [range(edges[t], edges[t + 1]) for t in range(count)]
    parts = [0]
    for rows_of in members:
        parts.append(parts[-1] + 2 * len(rows_of) + (len(rows_of) < -(-rows // count)))
    first = [units * part // parts[-1] for part in parts]
    owner = [t for t in range(count) for _ in range(first[t], first[t + 1])]

    def w(i: int, u: int) -> float:
        return weights[i * units + u]

    def cost(t: int, sums: list[float], gram: list[list[float]]) -> float:
        value = 0.0
        for i in range(len(sums)):
            value += sums[i] * sums[i]
            d = gram[i][i] - (first[t + 1] - first[t]) / 3
            value += 0.3 * (d * d)
            for j in range(i):
                value += 2 * 0.3 * (gram[i][j] * gram[i][j])
        return value

    def exchanged(t: int, u: int, v: int) -> tuple:
        sums, gram, r = state[t][0], state[t][1], members[t]
        new_sums = [sums[i] - w(r[i], u) + w(r[i], v) for i in range(len(r))]
        new_gram = [
            [gram[i][j] - w(r[i], u) * w(r[j], u) + w(r[i], v) * w(r[j], v) for j in range(i + 1)]
            for i in range(len(r))
        ]
        return new_sums, new_gram, cost(t, new_sums, new_gram)

    state = []
    for t, r in enumerate(members):
        sums, gram = [0.0] * len(r), [[0.0] * (i + 1) for i in range(len(r))]
        for u in range(first[t], first[t + 1]):
            for i in range(len(r)):
                sums[i] += w(r[i], u)
                for j in range(i + 1):
                    gram[i][j] += w(r[i], u) * w(r[j], u)
        state.append((sums, gram, cost(t, sums, gram)))
    groups = math.ceil(count / 16)
    for group in range(groups):
        begin, end = first[count * group // groups], first[count * (group + 1) // groups]
        for _ in range(4):
            before = list(owner)
            for u in range(begin, end):
                for v in range(u + 1, end):
                    s, t = owner[u], owner[v]
                    if s != t:
                        one, other = exchanged(s, u, v), exchanged(t, v, u)
                        if one[2] + other[2] < state[s][2] + state[t][2]:
                            state[s], state[t], owner[u], owner[v] = one, other, t, s
            if owner == before:
                break
    return [int(row in members[owner[u]]) for row in range(rows) for u in range(units)]


def blake(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=16, person=b"strongticket").digest()


def weights(seed: int, name: str, shape: list[int], law: str, scale: float) -> list[bytes]:
    """Sections 3 and 4: a tensor's weights as float32 bytes."""
    if law == "constant":
        return math.prod(shape) * [struct.pack("<f", scale)]
    if law == "hadamard":
        return hadamard(seed, name, shape, scale)
    count = math.prod(shape)
    key = struct.unpack("<QQ", blake((1).to_bytes(4, "little") + seed.to_bytes(8, "little") + name.encode()))
    out = []
    for i in range(count):
        if i % 8 == 0:
            words = philox(i // 8 + 1, *key)
        u = words[i // 2 % 4] >> 32 * (i % 2) & 0xFFFFFFFF
        if law == "uniform":
            a = struct.unpack("<f", struct.pack("<f", scale))[0]
            value = (2 * (u >> 8) + 1 - 2**24) * (2.0**-24 * a)  # 48 bits: exact in float64, rounded by pack
        elif law == "one-sided":
            a = struct.unpack("<f", struct.pack("<f", scale))[0]
            value = (2**23 + (u >> 9)) * (2.0**-24 * a)
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


def read_mask(codec: str, data: bytes, shape: list[int], kept: int) -> list[int]:
    """Section 5."""
    size, stream = math.prod(shape), Stream(data)
    if codec == "zstd":
        return unpacked(zstandard.decompress(data), size)
    if codec == "ans":
        mask = stream.mask(size, share(kept, size))
        assert not stream.data
        return mask
    kind, layout = codec.split("-")
    turned = [*shape[:-2], shape[-1], shape[-2]] if layout == "columns" else shape
    length = turned[-1]
    count = size // length
    if kind == "ans":
        classes = stream.byte_string(count)
        lines = [[int(one == 16)] * length for one in classes]
        for one in sorted(set(classes) - {0, 16}):
            inside = [i for i in range(count) if classes[i] == one]
            bits = stream.mask(len(inside) * length, stream.integer(2))
            for position, i in enumerate(inside):
                lines[i] = bits[position * length : (position + 1) * length]
    else:
        planes = [
            stream.byte_string(count) for _ in range(1 if length < 2**8 else 2 if length < 2**16 else 8)
        ]
        owners = [sum(byte << 8 * i for i, byte in enumerate(line)) for line in zip(*planes, strict=True)]
        lines = [[int(i == owner) for i in range(length)] for owner in owners]
    assert not stream.data
    mask = np.array(lines).reshape(turned)
    return (mask.swapaxes(-1, -2) if layout == "columns" else mask).reshape(-1).tolist()


def unpacked(packed: bytes, size: int) -> list[int]:
    assert len(packed) == (size + 7) // 8
    assert not int.from_bytes(packed, "little") >> size
    return [packed[i // 8] >> i % 8 & 1 for i in range(size)]


def share(part: int, whole: int) -> int:
    if part in (0, whole):
        return 65536 if part else 0
    return min(max((2 * part * 65536 + whole) // (2 * whole), 1), 65535)


class Stream:
    def __init__(self, data: bytes):
        self.data = data

    def take(self, size: int) -> bytes:
        part, self.data = self.data[:size], self.data[size:]
        return part

    def integer(self, size: int) -> int:
        return int.from_bytes(self.take(size), "little")

    def mask(self, size: int, s: int) -> list[int]:
        if s in (0, 65536):
            return [int(s > 0)] * size
        ones = [value.bit_count() for value in range(256)]
        g = [(2**24 - 256) * s**o * (65536 - s) ** (8 - o) // 65536**8 for o in ones]
        return unpacked(bytes(self.ans((size + 7) // 8, g)), size)

    def byte_string(self, count: int) -> list[int]:
        mode = self.integer(1)
        if mode == 0:
            return list(zstandard.decompress(self.take(self.integer(4))))
        number = self.integer(1) + 1
        if mode == 2:
            return self.ans(count, [(2**24 - 256) // number * (b < number) for b in range(256)])
        pairs = self.take(2 * number)
        table = dict(zip(pairs[::2], pairs[1::2], strict=True))
        if number == 1:
            return [*table] * count
        total = sum(table.values())
        return self.ans(count, [(2**24 - 256) * table.get(b, 0) // total for b in range(256)])

    def ans(self, count: int, g: list[int]) -> list[int]:
        g[g.index(max(g))] += 2**24 - 256 - sum(g)
        f = [weight + 1 for weight in g]
        start = [0, *itertools.accumulate(f)]
        out: list[int] = []
        for first in range(0, count, 2**21):
            words = [self.integer(4) for _ in range(self.integer(4))]
            state = 0
            while state < 2**32 and words:
                state = state << 32 | words.pop()
            for _ in range(min(2**21, count - first)):
                r = state % 2**24
                b = bisect.bisect_right(start, r) - 1
                state = (state >> 24) * f[b] + r - start[b]
                if state < 2**32 and words:
                    state = state << 32 | words.pop()
                out.append(b)
            assert not state
            assert not words
        return out


def test_the_known_file():
    path = Path(__file__).parents[1] / "known.ticket"
    expected = Ticket.load(path).weights("layers.0.weight").tobytes()
    assert read_ticket(path.read_bytes()) == {"layers.0.weight": expected}


def index_text(data):
    length = int.from_bytes(data[:8], "little")
    entry = json.loads(data[8 : 8 + length])["index"]
    return zstandard.decompress(data[8 + length :][slice(*entry["data_offsets"])])


@pytest.mark.parametrize(
    "law",
    [Uniform(3**0.25), Normal(0.02), SignedConstant(0.05), Hadamard(0.05), Constant(0.05), OneSided(0.05)],
)
def test_every_codec_and_law(law):
    masks = masks_of_all_kinds()
    extra = {"all": np.ones((5, 3), bool), "none": np.zeros(9, bool), "empty": np.zeros((0, 4), bool)}
    extra |= {"single": np.array(True), "blocks": np.arange(400) // 25 == np.arange(16)[:, None]}
    everything = masks | extra
    floats = {"größe": np.array([[0.1, -2.0]], np.float32)}
    ticket = Ticket(2**64 - 1, "relu", {"dims": [1, 1]}, dict.fromkeys(everything, law), everything, floats)
    data = ticket.to_bytes()
    lines = index_text(data).split(b"\n")[2:]
    codecs = {line["name"]: line.get("codec") for line in map(json.loads, lines)}
    assert {name: codecs[name] for name in masks} == {name: name for name in masks}
    tensors = read_ticket(data)
    assert tensors == {name: ticket.weights(name).tobytes() for name in everything | floats}


@pytest.mark.parametrize(("rows", "units", "share"), [(20, 130, 3), (34, 100, 2), (5, 40, 1)])
def test_a_mask_that_follows_from_its_weights(rows, units, share):
    mask = balance(draw(3, "w", (rows, units), Uniform(1.0)), share)
    ticket = Ticket(3, "relu", {}, {"w": Uniform(1.0)}, {"w": mask})
    data = ticket.to_bytes()
    assert b"balanced" in index_text(data)
    assert read_ticket(data) == {"w": ticket.weights("w").tobytes()}
    back = Ticket.from_bytes(data)
    assert back == ticket
    assert back.to_bytes() == data


def test_another_mask_of_the_same_form_is_stored_as_it_is():
    mask = balance(draw(3, "w", (8, 40), Uniform(1.0)), 2)
    ticket = Ticket(4, "relu", {}, {"w": Uniform(1.0)}, {"w": mask})  # of another seed
    data = ticket.to_bytes()
    assert b"balanced" not in index_text(data)
    assert Ticket.from_bytes(data) == ticket
