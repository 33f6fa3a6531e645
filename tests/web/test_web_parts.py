"""Deflated text, hashes, random offsets and JSON in JavaScript, against what Python uses for them."""

import base64
import hashlib
import random
import zlib

import numpy as np
import pytest

from strongticket import seeds
from strongticket.errors import TicketError
from strongticket.ticket import container

TEXTS = {
    "nothing": b"",
    "one byte": b"x",
    "short": b'{"generator":1,"kind":"relu","seed":42}' * 3,
    "noise": np.random.default_rng(0).bytes(200_000),
    "words": b" ".join(b"%d" % (i % 997) for i in range(60_000)),
    "at the limit": bytes((1 << 20) - 1),
}


def damaged_texts(count: int) -> list[bytes]:
    packed, dice = container.compress(TEXTS["words"]), random.Random(0)
    flipped = []
    for _ in range(count):
        at = dice.randrange(len(packed))
        flipped.append(packed[:at] + bytes([packed[at] ^ 1 << dice.randrange(8)]) + packed[at + 1 :])
    cut = [packed[: dice.randrange(len(packed))] for _ in range(count)]
    behind = [packed + extra for extra in (b"\0", packed[-4:], packed)]
    return [*flipped, *cut, *behind, b"", zlib.compress(TEXTS["words"], wbits=-15), b"\0" * 40]


def test_text_of_any_level_is_unpacked(javascript):
    jobs = [
        {"do": "inflate", "data": zlib.compress(text, level)}
        for text in TEXTS.values()
        for level in (0, 1, 9)
    ]
    found = [base64.b64decode(text) for text in javascript(*jobs)]
    assert found == [text for text in TEXTS.values() for _ in range(3)]


def test_damaged_text_is_refused_where_the_library_refuses_it(javascript):
    def library(packed: bytes) -> bool:
        try:
            container.decompress(packed, "text", 1 << 30)
        except TicketError:
            return True
        return False

    texts = damaged_texts(60)
    (answers,) = javascript({"do": "refuses_inflate", "texts": texts})
    assert [answer for answer in answers if answer.startswith("crashed")] == []
    assert [answer.startswith("refused") for answer in answers] == [library(text) for text in texts]
    assert {answer.split(":")[0] for answer in answers[60:]} == {"refused"}


def test_text_above_the_limit_is_refused_before_it_fills_the_memory(javascript):
    bombs = [zlib.compress(bytes(size), 9) for size in ((1 << 20) + 1, 300_000_000)]
    (answers,) = javascript({"do": "refuses_inflate", "texts": bombs})
    assert answers == [
        f"refused: the text has more than {max(1 << 20, 64 * len(bomb))} bytes, which is the limit"
        for bomb in bombs
    ]


def test_hashes_of_all_lengths_around_a_block(node):
    data = [bytes(range(256))[:n] * 2 for n in range(140)]
    found = node(*({"do": "sha256", "data": each} for each in data))
    assert found == [hashlib.sha256(each).hexdigest() for each in data]
    jobs = [{"do": "blake2b", "data": each, "person": b"strongticket"} for each in data]
    for words, each in zip(node(*jobs), data, strict=True):
        digest = hashlib.blake2b(each, digest_size=16, person=b"strongticket").digest()
        assert [int(word, 16).to_bytes(8, "little") for word in words] == [digest[:8], digest[8:]]


@pytest.mark.parametrize(
    ("seed", "name", "first", "count"),
    [(0, "w", 0, 100), (7, "größe", 5, 3), (2**64 - 1, "", 2**31 - 3, 30), (3, "a.b", 8 * 2**32 - 9, 40)],
)
def test_offsets_from_any_place_on(javascript, seed, name, first, count):
    job = {"do": "offsets", "seed": str(seed), "name": name, "first": first, "count": count}
    assert javascript(job) == [seeds.offsets(seed, name, first, count).tolist()]


@pytest.mark.parametrize(
    "text",
    [
        '{"a":1,"a":2}', '{"a":1,"\\u0061":2}', "{'a':1}", '{"a":NaN}', '{"a":01}', '{"a":1,}', "[1 2]", "[",
        '"a\nb"', "1 1", "", '{"a"}', "-", "1.", ".5", "1e", "tru", '"\\x"', "[" * 100_000, '{"b":{"a":1,"a":1}}',
        '"open', "0123456789012345678901", '{"\\u0000whole number":"5"}', "[" * 100_000 + "]" * 100_000,
    ],
)  # fmt: skip
def test_what_is_not_strict_json_is_refused(node, text):
    ((answer,),) = node({"do": "refuses_json", "texts": [text]})
    assert answer.startswith("refused: text is not valid JSON")


def test_json_keeps_integers_exact_and_names_harmless(node):
    text = (
        '{"seed": 18446744073709551615, "__proto__": [1.5e3, -0, "\\ud834\\udd1e", true, null], "e": {},'
        ' "f": [0.12345678901234567, 1e-5, "\\"a\\": 12345678901234567890", -9007199254740993]}'
    )
    assert node({"do": "json", "text": text}) == [
        {
            "seed": "18446744073709551615",
            "__proto__": [1500, 0, "𝄞", True, None],
            "e": {},
            "f": [0.12345678901234567, 1e-5, '"a": 12345678901234567890', "-9007199254740993"],
        }
    ]
