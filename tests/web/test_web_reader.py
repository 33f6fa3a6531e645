"""The JavaScript reader against the library: the same bits, and the same files refused."""

import hashlib
import json

import numpy as np
import pytest
import zstandard
from tests.faults.corruption import WAYS
from tests.masks_of_all_kinds import masks_of_all_kinds
from tests.web.compare import GALLERY, unequal_bits
from tests.web.samples import KNOWN, language_ticket

from strongticket.errors import TicketError
from strongticket.seeds import Constant, Hadamard, Normal, OneSided, SignedConstant, Uniform, draw
from strongticket.ticket import Ticket, balance, mask_codec

LAWS = [Uniform(3**0.25), Normal(0.02), SignedConstant(0.05), Hadamard(0.05), Constant(0.05), OneSided(0.05)]
EDGES = {
    "all": np.ones((5, 3), bool),
    "none": np.zeros(9, bool),
    "empty": np.zeros((0, 4), bool),
    "single": np.array(True),
    "blocks": np.arange(400) // 25 == np.arange(16)[:, None],
    "wide": np.arange(70_000) == np.array([[3], [69_999]]),  # eight bytes per owner
}


def ticket_of_all_codecs(law, edges=EDGES) -> Ticket:
    masks = masks_of_all_kinds() | edges
    floats = {"größe": np.array([[0.1, -2.0]], np.float32), "𝄞": np.float32([1e-40])}
    return Ticket(2**64 - 1, "relu", {"dims": [1, 1]}, dict.fromkeys(masks, law), masks, floats)


def test_the_known_file_is_equal_to_the_last_bit(javascript):
    assert unequal_bits(javascript, KNOWN.read_bytes(), Ticket.load(KNOWN)) == (12, 0)


@pytest.mark.parametrize("name", GALLERY)
def test_the_gallery_is_equal_to_the_last_bit(javascript, name):
    ticket = Ticket.load(GALLERY[name])
    weights = ticket.verify().weights
    found = unequal_bits(javascript, GALLERY[name].read_bytes(), ticket)
    print(f"{name}: {found[0]:,} weights compared, {found[1]} differ")
    assert found == (weights, 0)


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.name)
def test_every_codec_and_law_is_equal_to_the_last_bit(javascript, law):
    ticket = ticket_of_all_codecs(law)
    sizes = [tensor.size for tensor in (ticket.masks | ticket.floats).values()]
    assert unequal_bits(javascript, ticket.to_bytes(), ticket) == (sum(sizes), 0)


@pytest.mark.parametrize(("rows", "units", "share"), [(64, 333, 3), (40, 280, 2), (5, 60, 1), (70, 500, 3)])
def test_a_mask_that_follows_from_its_weights_is_equal(javascript, rows, units, share):
    mask = balance(draw(5, "w", (rows, units), Uniform(1.0)), share)
    ticket = Ticket(5, "relu", {}, {"w": Uniform(1.0)}, {"w": mask})
    file = ticket.to_bytes()
    assert index_lines(file)[0]["codec"] == "balanced"
    assert unequal_bits(javascript, file, ticket) == (mask.size, 0)


def test_the_library_writes_every_codec():
    codecs = {line["codec"] for line in index_lines(ticket_of_all_codecs(Uniform(1.0)).to_bytes())}
    assert codecs == {"zstd", "ans", "ans-rows", "ans-columns", "owner-rows", "owner-columns"}


def index_lines(file: bytes) -> list[dict]:
    length = int.from_bytes(file[:8], "little")
    start, stop = json.loads(file[8 : 8 + length])["index"]["data_offsets"]
    lines = zstandard.decompress(file[8 + length :][start:stop]).split(b"\n")[2:]
    return [line for line in map(json.loads, lines) if "codec" in line]


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.name)
def test_a_million_weights_have_the_same_hash(javascript, law):
    shape = (1_000_003,)  # far into both tails of the normal law
    expected = hashlib.sha256(draw(7, "größe", shape, law).tobytes()).hexdigest()
    job = {"do": "draw", "seed": "7", "name": "größe", "shape": shape, "law": law.name, "scale": law.scale}
    assert javascript(job) == [expected]


def test_a_mask_of_several_ans_chunks(node):
    mask = np.random.default_rng(3).random((2**21 + 999, 9)) < 0.01  # more than 2^21 packed bytes
    codec, data = mask_codec.encode(mask)
    assert codec == "ans"
    job = {"do": "mask", "codec": codec, "data": data, "shape": list(mask.shape), "kept": int(mask.sum())}
    assert node(job) == [hashlib.sha256(mask.tobytes()).hexdigest()]


def corrupted_files(count: int) -> list[bytes]:
    files = [
        KNOWN.read_bytes(),
        ticket_of_all_codecs(Normal(0.5), {}).to_bytes(),
        language_ticket().to_bytes(),
    ]
    rng = np.random.default_rng(0)
    ways = list(WAYS.values())
    return [
        ways[i % len(ways)](files[i % len(files)], files[(i + 1) % len(files)], rng) for i in range(count)
    ]


def library_refuses(file: bytes) -> bool:
    try:
        ticket = Ticket.from_bytes(file)
        for name in ticket.masks.keys() | ticket.floats.keys():
            ticket.weights(name)
    except TicketError:
        return True
    return False


def test_corrupted_files_are_refused_exactly_where_the_library_refuses_them(node):
    files = corrupted_files(600)
    (answers,) = node({"do": "refuses", "files": files})
    assert [answer for answer in answers if answer.startswith("crashed")] == []
    refused = [answer.startswith("refused") for answer in answers]
    assert refused == [library_refuses(file) for file in files]
    assert 400 < sum(refused) < 600  # changed metadata changes no network


def test_every_flipped_bit_and_every_truncation_of_the_known_file_is_refused(javascript):
    file = KNOWN.read_bytes()
    flipped = [
        file[:i] + bytes([file[i] ^ 1 << bit]) + file[i + 1 :] for i in range(len(file)) for bit in range(8)
    ]
    cut = [file[:length] for length in range(len(file))]
    (answers,) = javascript({"do": "refuses", "files": flipped + cut + [file + b"\0"]})
    assert {answer.split(":")[0] for answer in answers} == {"refused"}


def test_a_wrong_checksum_is_refused_by_name(javascript):
    # The digest is right, the seed is another: only the tensor's own checksum can tell.
    file = Ticket(43, "relu", {}, {"w": Uniform(1.0)}, {"w": np.ones(4, bool)}).to_bytes()
    other = Ticket(42, "relu", {}, {"w": Uniform(1.0)}, {"w": np.ones(4, bool)}).to_bytes()
    checksum, theirs = (index_lines(each)[0]["checksum"] for each in (file, other))
    crafted = recompressed(file, lambda text: text.replace(checksum.encode(), theirs.encode()))
    (answers,) = javascript({"do": "refuses", "files": [crafted, file]})
    assert answers == ['refused: tensor "w" is not what was saved: its checksum differs', "accepted"]


def recompressed(file: bytes, change) -> bytes:
    from tests import crafted

    from strongticket.ticket import container

    arrays = container.split(file)
    text = change(zstandard.decompress(arrays["index"].tobytes()))
    arrays["index"] = np.frombuffer(zstandard.compress(text), np.uint8)
    return crafted.join(arrays, container.FORMAT)
