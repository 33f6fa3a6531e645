"""zstd frames, hashes and JSON in JavaScript, against the libraries that Python uses for them."""

import base64
import hashlib
import random
from functools import cache

import numpy as np
import pytest
import zstandard


@cache
def payloads() -> dict[str, bytes]:
    """Contents that lead the compressor to every kind of block, literals and table."""
    rng = np.random.default_rng(0)
    words = [rng.bytes(int(n)) for n in rng.integers(2, 12, 300)]
    text = b" ".join(words[int(i)] for i in rng.zipf(1.3, 60_000) % 300)
    skewed = rng.choice(64, 50_000, p=np.arange(64) / np.arange(64).sum()).astype(np.uint8).tobytes()
    return {
        "nothing": b"",
        "one byte": b"x",
        "zeros": bytes(300_000),
        "noise": rng.bytes(200_000),
        "words over several blocks": text,
        "skewed letters": skewed,
        "few letters": rng.choice([65, 66, 67], 3000, p=[0.9, 0.05, 0.05]).astype(np.uint8).tobytes(),
        "short text": b'{"generator":1,"kind":"relu","seed":42}' * 3,
        "far copies": rng.bytes(70_000) * 3,
        "steps": np.arange(40_000, dtype=np.uint32).tobytes(),
        "sparse bits": np.packbits(rng.random(400_000) < 0.02).tobytes(),
        "all bytes": bytes(range(256)) * 30 + skewed[:1000],
    }


@pytest.mark.parametrize("level", [-5, 1, 3, 9, 15, 19])
def test_frames_of_every_level_decode_to_their_content(node, level):
    jobs, contents = [], payloads()
    for i, content in enumerate(contents.values()):
        compressor = zstandard.ZstdCompressor(level=level, write_checksum=bool(i % 2))
        jobs.append({"do": "unzstd", "frame": compressor.compress(content), "size": len(content)})
    found = dict(zip(contents, node(*jobs), strict=True))
    assert [name for name, text in found.items() if base64.b64decode(text) != contents[name]] == []


def test_a_browser_decodes_them_too(chromium):
    content = payloads()["words over several blocks"]
    frame = zstandard.ZstdCompressor(level=9).compress(content)
    (found,) = chromium({"do": "unzstd", "frame": frame, "size": len(content)})
    assert base64.b64decode(found) == content


def test_damaged_frames_are_refused_or_decode_to_their_length(node):
    """Without a checksum a frame cannot tell all damage; it must still end, within its size."""
    content = payloads()["words over several blocks"][:20_000]
    frame = zstandard.ZstdCompressor(level=9).compress(content)
    dice = random.Random(0)
    damaged = []
    for _ in range(400):
        at = dice.randrange(len(frame))
        damaged.append(frame[:at] + bytes([frame[at] ^ 1 << dice.randrange(8)]) + frame[at + 1 :])
    damaged += [frame[: dice.randrange(len(frame))] for _ in range(100)]
    (answers,) = node({"do": "refuses_zstd", "frames": damaged, "size": len(content)})
    assert [answer for answer in answers if answer.startswith("crashed")] == []
    assert all(answer.startswith("refused") for answer in answers[400:])


def test_a_wrong_frame_checksum_is_refused(node):
    frame = zstandard.ZstdCompressor(write_checksum=True).compress(b"strong" * 99)
    wrong = frame[:-1] + bytes([frame[-1] ^ 1])
    (answers,) = node({"do": "refuses_zstd", "frames": [frame, wrong], "size": 594})
    assert answers == ["accepted", "refused: zstd frame is damaged: its checksum differs"]


def test_another_size_than_the_declared_one_is_refused(node):
    frame = zstandard.compress(b"strong")
    (answers,) = node({"do": "refuses_zstd", "frames": [frame, frame + b"\0"], "size": 7})
    assert answers == ["refused: zstd frame declares 6 bytes, expected 7"] * 2


def test_hashes_of_all_lengths_around_a_block(node):
    data = [bytes(range(256))[:n] * 2 for n in range(140)]
    found = node(*({"do": "sha256", "data": each} for each in data))
    assert found == [hashlib.sha256(each).hexdigest() for each in data]
    jobs = [{"do": "blake2b", "data": each, "person": b"strongticket"} for each in data]
    for words, each in zip(node(*jobs), data, strict=True):
        digest = hashlib.blake2b(each, digest_size=16, person=b"strongticket").digest()
        assert [int(word, 16).to_bytes(8, "little") for word in words] == [digest[:8], digest[8:]]


@pytest.mark.parametrize(
    "text",
    [
        '{"a":1,"a":2}', '{"a":1,"\\u0061":2}', "{'a':1}", '{"a":NaN}', '{"a":01}', '{"a":1,}', "[1 2]", "[",
        '"a\nb"', "1 1", "", '{"a"}', "-", "1.", ".5", "1e", "tru", '"\\x"', "[" * 100_000,
    ],
)  # fmt: skip
def test_what_is_not_strict_json_is_refused(node, text):
    ((answer,),) = node({"do": "refuses_json", "texts": [text]})
    assert answer.startswith("refused: text is not valid JSON")


def test_json_keeps_integers_exact_and_names_harmless(node):
    text = '{"seed": 18446744073709551615, "__proto__": [1.5e3, -0, "\\ud834\\udd1e", true, null], "e": {}}'
    assert node({"do": "json", "text": text}) == [
        {"seed": "18446744073709551615", "__proto__": [1500, 0, "𝄞", True, None], "e": {}}
    ]
