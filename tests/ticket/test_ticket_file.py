"""Never a wrong network: whatever happens to a file, it is an error or the identical network."""

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest
from tests import crafted
from tests.crafted import index_lines, with_index
from tests.faults.corruption import WAYS

from strongticket import choice, limits
from strongticket.errors import TicketError
from strongticket.seeds import Normal, Uniform
from strongticket.ticket import Ticket, container, kinds, summarise
from strongticket.ticket.container import FORMAT

CHOSEN = "feed_forward.layers.0.weight"
SETTINGS = {
    "attention": dict(dim_in=8, dim_out=8, heads=2, key_dim=128, value_dim=128),
    "feed_forward": dict(dims=[8, 16, 8], bias=True),
}


def real_ticket() -> Ticket:
    """Masks as builds and searches make them, of all kinds of lines, a tensor of choices and a trained one."""
    rng = np.random.default_rng(0)
    shapes = kinds.shapes("block", SETTINGS)
    masks = {name: rng.random(shape) < 0.4 for name, shape in shapes.items()}
    masks["attention.query"] = rng.random((2, 8, 128)).argsort(axis=1) == 0
    masks["attention.output"] = rng.random(shapes["attention.output"]).argsort(axis=2) == 0
    masks["attention.value"] = np.broadcast_to(np.arange(128) // 16 == np.arange(8)[:, None], (2, 8, 128))
    masks["attention.key"] &= rng.random((2, 1, 128)) < 0.2
    trained, chosen = masks.pop("feed_forward.layers.1.bias"), masks.pop(CHOSEN)
    laws = {name: Uniform(2.0) if "attention" in name else Normal(0.5) for name in masks}
    floats = {"feed_forward.layers.1.bias": rng.normal(size=trained.shape).astype(np.float32)}
    choices = {CHOSEN: choice.encode(rng.normal(size=chosen.shape).astype(np.float32), 11, CHOSEN, 0.3)}
    return Ticket(11, "block", SETTINGS, laws, masks, floats, {"bound": 0.5}, {"note": "ein Los"}, choices)


TICKET = real_ticket()
DATA = TICKET.to_bytes()
KNOWN = (Path(__file__).parents[1] / "known.ticket").read_bytes()


def outcome(data: bytes) -> str:
    """`error` or `same`; anything else fails the test."""
    try:
        loaded = Ticket.from_bytes(data)
        loaded.verify()
    except TicketError:
        return "error"
    assert (loaded.kind, loaded.settings) == (TICKET.kind, TICKET.settings)
    for name in TICKET.shapes():
        assert loaded.weights(name).tobytes() == TICKET.weights(name).tobytes()
    return "same"


def test_the_file_itself():
    assert outcome(DATA) == "same"
    assert Ticket.from_bytes(DATA) == TICKET
    lines = index_lines(DATA)
    records = [json.loads(line) for line in lines[2:]]
    assert {record["lines"] for record in records if "lines" in record} == {"all", "rows", "columns"}
    assert [record["name"] for record in records if "blocks" in record] == [CHOSEN]


def test_every_flipped_bit():
    for position in range(8 * len(DATA)):
        damaged = bytearray(DATA)
        damaged[position // 8] ^= 1 << position % 8
        with pytest.raises(TicketError):
            Ticket.from_bytes(bytes(damaged))


def test_every_truncation():
    for length in range(len(DATA)):
        with pytest.raises(TicketError):
            Ticket.from_bytes(DATA[:length])


@pytest.mark.parametrize("way", WAYS)
def test_random_damage(way):
    rng = np.random.default_rng(1)
    for _ in range(1000):
        damaged = WAYS[way](DATA, KNOWN, rng)
        found = outcome(damaged)
        assert way != "accident" or found == ("same" if damaged == DATA else "error")


def with_lines(lines: list[bytes]) -> bytes:
    return with_index(DATA, b"\n".join(lines))


def leaves(value, path=()):
    """Every place in a JSON value."""
    yield path
    for key in value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield from leaves(value[key], (*path, key))


def edited(value, path, change):
    """A copy with the place changed; change gives the new value, or None to drop the place."""
    if not path:
        return change(value)
    copy = dict(value) if isinstance(value, dict) else list(value)
    new = edited(copy[path[0]], path[1:], change)
    if new is None and len(path) == 1:
        del copy[path[0]]
    else:
        copy[path[0]] = new
    return copy


@pytest.mark.slow
def test_edited_json_under_a_right_digest():
    """Every field of every line, with every wrong value below, one at a time."""
    lines = index_lines(DATA)
    same = count = 0
    for number, line in enumerate(lines):
        record = json.loads(line)
        for path in leaves(record):
            old = record
            for key in path:
                old = old[key]
            values = [0, 1, -1, 2**70, 1.5, "", "x", "all", "rows", True, [], [1], {}, [[1]], 1e300]
            if isinstance(old, int) and not isinstance(old, bool):
                values += [old + 1, old - 1, 2 * old, 10**12]
            if isinstance(old, str):
                values += [old[:-1], old.upper(), old + "\0", old[::-1]]
            if isinstance(old, list):
                values += [old[::-1], [*old, 1], old[1:]]
            for value in [None, *values]:
                changed = edited(record, path, lambda _, value=value: value)
                text = json.dumps(changed, sort_keys=True, separators=(",", ":")).encode()
                if text != line:
                    count += 1
                    same += outcome(with_lines([*lines[:number], text, *lines[number + 1 :]])) == "same"
    assert count > 1900
    assert same < 0.1 * count  # certificate and metadata, which the network does not depend on


def test_swapped_repeated_and_missing_lines():
    lines = index_lines(DATA)
    for i in range(len(lines)):
        assert outcome(with_lines(lines[:i] + lines[i + 1 :])) == "error"
        assert outcome(with_lines([*lines[: i + 1], *lines[i:]])) == "error"
        for j in range(i):
            turned = list(lines)
            turned[i], turned[j] = lines[j], lines[i]
            assert outcome(with_lines(turned)) == "error"


@pytest.mark.parametrize(
    ("line", "old", "new", "message"),
    [
        (0, '"seed":11', '"seed":12', "layers.1.bias' is not what was saved: its checksum differs"),
        (0, '"generator":1', '"generator":2', "generator 2, this version of strongticket has generator 1"),
        (0, '"kind":"block"', '"kind":"gan"', "kind='gan' is unknown"),
        (0, '"kind":"block"', '"kind":"block","kind":"block"', "appears twice"),
        (0, '"key_dim":128', '"key_dim":129', "layers.1.bias' is not what was saved"),
        (0, '"heads":2', '"heads":1000000', "layers.1.bias' is not what was saved"),
        (0, '"seed":11', '"seed":-1', "seed must be an integer from 0"),
        (0, '"seed":11', '"seed":NaN', "NaN is not JSON"),
        (0, '"seed":11', '"seed":' + "[" * 100_000, "recipe is not valid JSON"),
        (1, '"bound":0.5', '"bound":1e999', "certificate.s bound must be a non-negative number"),
        (2, '"lines":"', '"lines":"un', "is not coded by 'un"),
        (2, '"law":"uniform"', '"law":"cauchy"', "tensor 'attention.key': unknown law 'cauchy'"),
        (2, '"scale":2.0', '"scale":0.0', r"tensor 'attention.key': Uniform.half_width must be"),
        (2, '"scale":2.0', '"scale":2.5', "is not what was saved"),
        (2, '"shape":[2,8,128]', '"shape":[2,4,1000000000000]', r"exceeds the limit of 16777216 weights"),
        (2, '"shape":[2,8,128]', '"shape":[0,4,1000000000000]', r"exceeds the limit of 16777216 weights"),
        (2, '"shape":[2,8,128]', '"shape":[2,4,200000000]', "tensor 'attention.key'"),
        (2, '"shape":[2,8,128]', '"shape":[2,-4,-64]', "shape must be a list of at most 32 sizes"),
        (2, '"kept":', '"kept":9', "tensor 'attention.key' keeps 9"),
        (2, '"bytes":', '"bytes":1', "of data, the file has"),
        (2, '"name":"attention.key"', '"name":"attention.kex"', "'attention.kex'"),
        (2, '"name":"attention.key"', '"name":"attention.output"', "repeated or out of order"),
        (
            -1,
            '"name":"feed_forward.layers.1.weight"',
            '"name":"feed_forward.layers.1.\\ud800"',
            "valid Unicode",
        ),
    ],
)
def test_errors_say_what_and_where(line, old, new, message):
    lines = index_lines(DATA)
    assert old.encode() in lines[line]
    lines[line] = lines[line].replace(old.encode(), new.encode(), 1)
    with pytest.raises(TicketError, match=message):
        Ticket.from_bytes(with_lines(lines)).verify()


def test_errors_of_the_container(tmp_path):
    def load(data: bytes) -> Ticket:
        (tmp_path / "t.ticket").write_bytes(data)
        return Ticket.load(tmp_path / "t.ticket")

    def with_digest(body: bytes) -> bytes:
        return body + hashlib.sha256(body).digest()

    tensors = container.split(DATA)
    with pytest.raises(
        TicketError, match=r"t\.ticket: its format is 'strongticket ticket 1', this version .* 3'"
    ):
        load(crafted.join(tensors, "strongticket ticket 1"))
    with pytest.raises(TicketError, match="its format is None"):
        load(with_digest(b"\x02" + bytes(7) + b"{}" + bytes(32)))
    with pytest.raises(TicketError, match=r"damaged: the sha256 in its last 32 bytes"):
        load(DATA[:-40] + bytes(8) + DATA[-32:])
    with pytest.raises(TicketError, match=r"truncated, or not a ticket"):
        load(DATA[:60])
    with pytest.raises(TicketError, match=r"header is not valid JSON: the key .* appears twice"):
        load(with_digest(DATA[:-32].replace(b'"index"', b'"data" ', 1)))
    with pytest.raises(TicketError, match="tensor 'data' is missing"):
        load(crafted.join({"index": tensors["index"]}, FORMAT))
    with pytest.raises(TicketError, match="tensor 'float:more' is in the file but not in its index"):
        load(crafted.join(tensors | {"float:more": np.ones(3, np.float32)}, FORMAT))
    with pytest.raises(
        TicketError, match=r"'feed_forward.layers.1.bias': the index declares .* the file has none"
    ):
        load(crafted.join({name: tensors[name] for name in ("index", "data")}, FORMAT))
    with pytest.raises(TicketError, match="has type F16, expected U8 or F32"):
        load(crafted.join(tensors | {"float:more": np.ones(3, np.float16)}, FORMAT))
    with pytest.raises(TicketError, match="the index is damaged"):
        load(crafted.join(tensors | {"index": tensors["data"]}, FORMAT))


@pytest.mark.parametrize("read", [Ticket.load, summarise])
def test_a_file_of_an_earlier_version_says_what_reads_it(read):
    """One that version 0.2 wrote."""
    with pytest.raises(TicketError, match=r"ticket 2'.*strongticket 0\.2 reads it\. Build .*again"):
        read(Path(__file__).with_name("format_2.ticket"))


def test_bombs_are_refused_before_they_are_unpacked(monkeypatch):
    bomb = with_index(DATA, bytes(2**26 + 1))
    assert len(bomb) < 100_000
    with pytest.raises(TicketError, match=r"the index has more than [\d,]{9} bytes, which is the limit"):
        Ticket.from_bytes(bomb)
    monkeypatch.setattr(limits, "weights", lambda file_bytes: 100)
    with pytest.raises(TicketError, match="exceeds the limit of 100 weights"):
        Ticket.from_bytes(DATA)


def test_a_file_that_could_not_be_read_is_not_written(tmp_path):
    coded = choice.encode(np.zeros((5000, 5000), np.float32), 0, "w", 0.1)
    with pytest.raises(TicketError, match="exceeds the limit of 16777216 weights"):
        Ticket(0, "block", SETTINGS, {}, {}, choices={"w": coded}).save(tmp_path / "zeros.ticket")
    assert not any(tmp_path.iterdir())


def test_a_changed_recipe_is_noticed_before_a_network_is_made_of_it(monkeypatch):
    def make(*_):
        raise AssertionError("settings of any size could stand in the file")

    monkeypatch.setattr(kinds, "kind_of", make)
    lines = index_lines(DATA)
    lines[0] = lines[0].replace(b'"heads":2', b'"heads":9')
    changed = Ticket.from_bytes(with_lines(lines))
    for use in (changed.network, changed.verify):
        with pytest.raises(TicketError, match="is not what was saved"):
            use()
