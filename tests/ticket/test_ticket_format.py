"""A reader written from docs/ticket-format.md alone, in plain Python: what the page says is what the library does."""

import hashlib
import json
import math
import struct
import zlib

import numpy as np
import pytest
from tests.choice.oracle import read_block
from tests.masks_of_all_kinds import masks_of_all_kinds
from tests.seeds.oracle import weights

from strongticket import choice
from strongticket.seeds import Constant, Hadamard, Normal, SignedConstant, Uniform
from strongticket.ticket import Ticket


def sections(data: bytes) -> dict[str, bytes]:
    """Section 1: the arrays of a file."""
    assert hashlib.sha256(data[:-32]).digest() == data[-32:]
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    assert header.pop("__metadata__") == {"format": "strongticket ticket 3"}
    return {name: data[8 + length :][slice(*entry["data_offsets"])] for name, entry in header.items()}


def read_ticket(data: bytes) -> dict[str, bytes]:
    """Sections 1, 2 and 7: every tensor's float32 bytes, its checksum compared."""
    body = sections(data)
    recipe_line, _, *lines = zlib.decompress(body["index"]).split(b"\n")
    recipe, coded, tensors = json.loads(recipe_line), body["data"], {}
    assert recipe["generator"] == 1
    for tensor in map(json.loads, lines):
        name, shape = tensor["name"], tensor["shape"]
        if "lines" in tensor:
            part, coded = coded[: tensor["bytes"]], coded[tensor["bytes"] :]
            drawn = weights(recipe["seed"], name, shape, tensor["law"], tensor["scale"])
            mask = read_mask(tensor["lines"], part, shape, tensor["kept"])
            content = b"".join(w if keep else bytes(4) for w, keep in zip(drawn, mask, strict=True))
            blocks = [content]
        elif "blocks" in tensor:
            size = sum(tensor["blocks"])
            content, blocks = read_choices(tensor, coded[:size], recipe["seed"])
            coded = coded[size:]
        else:
            content = body[f"float:{name}"]
            blocks = [content]
        text = name.encode()
        checked = hashlib.sha256(recipe_line).digest() + len(text).to_bytes(8, "little") + text
        checked += b"".join(size.to_bytes(8, "little") for size in [len(shape), *shape])
        checked += b"".join(hashlib.sha256(block).digest() for block in blocks)
        assert hashlib.sha256(checked).hexdigest()[:32] == tensor["checksum"]
        tensors[name] = content
    assert not coded
    return tensors


def read_choices(tensor: dict, data: bytes, seed: int) -> tuple[bytes, list[bytes]]:
    """The tensor's bytes, and those of each of its blocks, which are rows of its matrix, transposed or not."""
    shape = tensor["shape"]
    rows, columns = shape[0] if shape else 1, 1
    if len(shape) > 1:
        cuts = [(math.prod(shape[:i]), math.prod(shape[i:])) for i in range(1, len(shape))]
        rows, columns = min(cuts, key=max)
        if rows == 1:
            rows, columns = columns, 1
    if tensor["transposed"]:
        rows, columns = columns, rows
    count, first, found = len(tensor["blocks"]), 0, []
    assert count == min(max(1, round(rows * columns / 2**19)), max(rows, 1))
    for part, size in enumerate(tensor["blocks"]):
        end = rows * (part + 1) // count
        block, data = data[:size], data[size:]
        found.append(read_block(block, (end - first, columns), first, seed, tensor["name"]).numbers)
        first = end
    matrix = np.concatenate(found)
    whole = np.ascontiguousarray(matrix.T if tensor["transposed"] else matrix)
    return whole.astype("<f4").tobytes(), [block.astype("<f4").tobytes() for block in found]


def read_mask(lines: str, data: bytes, shape: list[int], kept: int) -> list[int]:
    """Section 5."""
    if lines == "all":
        return read_lines(data, [kept], math.prod(shape))
    turned = [*shape[:-2], shape[-1], shape[-2]] if lines == "columns" else shape
    length = turned[-1]
    count = math.prod(shape) // length
    least, width = struct.unpack("<IB", data[:5])
    size = -(-count * width // 8)
    packed = int.from_bytes(data[5 : 5 + size], "little")
    counts = [least + (packed >> i * width & 2**width - 1) for i in range(count)]
    assert sum(counts) == kept
    mask = np.array(read_lines(data[5 + size :], counts, length)).reshape(turned)
    return (mask.swapaxes(-1, -2) if lines == "columns" else mask).reshape(-1).tolist()


def read_lines(data: bytes, counts: list[int], length: int) -> list[int]:
    """The weights of every line: the next is kept with probability left to keep / left."""
    state = int.from_bytes(data[:4], "little") if data else 2**16
    words, at, out = [word for (word,) in struct.iter_unpack("<H", data[4:])], 0, []
    for count in counts:
        for left in range(length, 0, -1):
            bit = int(count == left)
            if 0 < count < left:
                share = min(max(count * 2**16 // left, 1), 2**16 - 1)
                place = state % 2**16
                bit = int(place < share)
                start, frequency = (0, share) if bit else (share, 2**16 - share)
                state = frequency * (state >> 16) + place - start
                if state < 2**16:
                    state, at = state << 16 | words[at], at + 1
            out.append(bit)
            count -= bit
    assert (state, at) == (2**16, len(words))
    return out


@pytest.mark.parametrize(
    "law", [Uniform(3**0.25), Normal(0.02), SignedConstant(0.05), Hadamard(0.05), Constant(0.05)]
)
def test_every_kind_of_lines_and_law(law):
    masks = masks_of_all_kinds()
    extra = {"whole": np.ones((5, 3), bool), "none": np.zeros(9, bool), "empty": np.zeros((0, 4), bool)}
    extra |= {"single": np.array(True), "blocks": np.arange(400) // 25 == np.arange(16)[:, None]}
    everything = masks | extra
    floats = {"größe": np.array([[0.1, -2.0]], np.float32)}
    ticket = Ticket(2**64 - 1, "relu", {"dims": [1, 1]}, dict.fromkeys(everything, law), everything, floats)
    data = ticket.to_bytes()
    index = zlib.decompress(sections(data)["index"]).split(b"\n")[2:]
    lines = {line["name"]: line.get("lines") for line in map(json.loads, index)}
    assert {name: lines[name] for name in masks} == {name: name for name in masks}
    assert read_ticket(data) == {name: ticket.weights(name).tobytes() for name in everything | floats}


@pytest.mark.parametrize("states", choice.STATES)
def test_choices_beside_masks(states):
    """Of tensors of any number of axes, transposed or not."""
    rng = np.random.default_rng(0)
    tensors = {"scalar": (), "vector": (40,), "matrix": (30, 20), "tensor": (4, 6, 5), "line": (1, 9)}
    numbers = {name: rng.standard_normal(shape).astype(np.float32) for name, shape in tensors.items()}
    numbers["pruned"] = numbers["matrix"] * (rng.random((30, 20)) < 0.3)
    chosen = {
        name: choice.encode(array, 3, name, 0.1, states, transposed=name in ("tensor", "pruned"))
        for name, array in numbers.items()
    }
    ticket = Ticket(3, "relu", {}, {"m": Uniform(1.0)}, {"m": np.eye(5, dtype=bool)}, choices=chosen)
    data = ticket.to_bytes()
    expected = {name: choice.decode(coded, 3, name).tobytes() for name, coded in chosen.items()}
    assert read_ticket(data) == expected | {"m": ticket.weights("m").tobytes()}
    assert Ticket.from_bytes(data) == ticket


def test_blocks_of_rows():
    """A tensor of two blocks: their bytes follow each other, and the checksum covers both."""
    numbers = np.zeros((1 << 11, 600), np.float32)
    numbers[[5, 2000]] = np.linspace(-1, 1, 600)
    coded = choice.encode(numbers, 7, "w", 0.05)
    assert len(coded.blocks) == 2
    ticket = Ticket(7, "relu", {}, {}, {}, choices={"w": coded})
    assert read_ticket(ticket.to_bytes()) == {"w": choice.decode(coded, 7, "w").tobytes()}
