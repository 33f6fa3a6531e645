"""The known answers of docs/ticket-format.md are what the library gives."""

import hashlib
import json
import re
from pathlib import Path

import numpy as np
import pytest
from tests.crafted import index_lines

from strongticket import choice, seeds
from strongticket.choice.trellis import CODES, STATES
from strongticket.seeds import draw, law_named
from strongticket.seeds.laws import LAWS
from strongticket.ticket import Ticket, container, mask_codec

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/ticket-format.md").read_text("utf-8")
NAME = "blocks.0.attention.query"


def section(number: int) -> str:
    """The text of a section."""
    (found,) = re.findall(rf"^## {number}\. .*?(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
    return found


def table(text: str, heading: str) -> list[list[str]]:
    """The rows below the heading of a table."""
    lines = text[text.index(heading) :].splitlines()[2:]
    rows = lines[: next(i for i, line in enumerate([*lines, ""]) if not line.startswith("|"))]
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]


def test_random_bits():
    (key,) = re.findall(r"^    key +(\w+) (\w+)$", section(3), re.MULTILINE)
    assert [int(word, 16) for word in key] == seeds.key(42, NAME).tolist()
    (words,) = re.findall(r"^    words +([\w ]+) \.\.\.$", section(3), re.MULTILINE)
    drawn = np.random.Philox(key=seeds.key(42, NAME)).random_raw(5)
    assert [int(word, 16) for word in words.split()] == drawn.tolist()


def test_weights():
    found = re.findall(r"^    ([a-z]+) ([\d.]+) +((?:[0-9a-f]{8} ?){12})", section(4), re.MULTILINE)
    assert {law for law, _, _ in found} == LAWS.keys() - {"constant"}
    for law, scale, bits in found:
        shape = (3, 4) if law == "hadamard" else (12,)
        weights = draw(42, NAME, shape, law_named(law, float(scale)))
        assert [int(word, 16) for word in bits.split()] == weights.view(np.uint32).reshape(-1).tolist()
    hashes = re.findall(r"^    ([a-z]+) 1\.0 +([0-9a-f]{64})$", section(4), re.MULTILINE)
    assert {law for law, _ in hashes} == LAWS.keys() - {"constant"}
    for law, expected in hashes:
        weights = draw(7, "größe", (1_000_003,), law_named(law, 1.0))
        assert hashlib.sha256(weights.tobytes()).hexdigest() == expected


def test_masks():
    found = re.findall(
        r"^    shape 3 × 4, (\w+), kept (\d+) +([0-9a-f]+|\(nothing\)) +([01]{12})$", section(5), re.MULTILINE
    )
    assert {lines for lines, _, _, _ in found} == set(mask_codec.LINES)
    for lines, kept, data, bits in found:
        coded = b"" if data == "(nothing)" else bytes.fromhex(data)
        mask = mask_codec.decode(lines, coded, (3, 4), int(kept))
        assert "".join(map(str, mask.reshape(-1).astype(int))) == bits


def test_offsets():
    text = section(6)
    (k0, k1), (offsets,) = (
        re.search(r"k0 (\w{8}), k1 (\w{8})", text).groups(),
        re.findall(r"first 12 offsets: ([\w ]+)$", text, re.MULTILINE),
    )
    assert int(k1 + k0, 16) == seeds.key(42, NAME)[0]
    assert [int(word, 16) for word in offsets.split()] == seeds.offsets(42, NAME, 0, 12).tolist()
    many = seeds.offsets(7, "größe", 0, 1_000_003).astype("<u2").tobytes()
    assert re.findall(r"^    ([0-9a-f]{64})$", text, re.MULTILINE) == [hashlib.sha256(many).hexdigest()]


def test_trellises():
    rows = table(section(6), "| trellis | states |")
    assert [[int(cell) for cell in row] for row in rows] == [
        [number, states, *CODES[states]] for number, states in enumerate(STATES) if states > 1
    ]


def test_a_block_of_choices():
    text = section(6)
    listed = text[text.index("one block of 37 bytes") :]
    block = bytes.fromhex("".join(re.findall(r"^    ((?:[0-9a-f]{2} ?)+?)(?: {2,}|$)", listed, re.MULTILINE)))
    assert len(block) == 37
    numbers = np.empty((6, 2), np.float32)
    choice.decode_rows(block, 0, 42, "w", numbers)
    rows = table(listed, "| row, column | offset |")
    assert [row[0] for row in rows] == [f"{i}, {j}" for i, j in np.ndindex(6, 2)]
    assert [int(row[1], 16) for row in rows] == seeds.offsets(42, "w", 0, 12).tolist()
    assert [int(row[-1], 16) for row in rows] == numbers.view(np.uint32).reshape(-1).tolist()
    for (state, token, k, v), number in zip((row[2:-1] for row in rows), numbers.reshape(-1), strict=True):
        if v:
            k, v = int(k.replace("−", "-")), int(v.replace("−", "-"))
            assert v == 2 * k + int(state) % 2
            assert int(token) < 16 or abs(k) > 7
            assert abs(v - number / 0.13646428) < 0.5
    # Every column's states follow from each other.
    for column in (rows[::2], rows[1::2]):
        state = 0
        for row in column:
            if row[4]:
                assert int(row[2]) == state
                h0, h1 = CODES[8]
                state = state >> 1 ^ (state & 1) * h0 ^ (int(row[4].replace("−", "-")) % 2) * h1


def test_the_whole_file():
    file = (ROOT / "tests/known.ticket").read_bytes()
    text = section(8)
    assert f"has {len(file)} bytes" in text
    arrays = container.split(file)
    index = b"\n".join(index_lines(file)).decode()
    assert re.findall(r"^    (\{.*\})$", text, re.MULTILINE) == index.split("\n")
    assert f"`data` is `{arrays['data'].tobytes().hex()}`" in text
    ticket = Ticket.from_bytes(file)
    assert json.loads(index.split("\n")[2])["checksum"] == ticket.verify().tensors[0].checksum


@pytest.mark.parametrize("number", range(1, 13))
def test_sections_are_numbered(number):
    assert section(number)
