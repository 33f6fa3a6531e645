"""The other readers: in torch, and through all random weights; all of them on damaged bytes too."""

import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from numba import njit
from tests.choice.oracle import read_block, tensors
from tests.web.compare import GALLERY, unequal_in_torch

from strongticket import choice
from strongticket.choice import Choices, Feedback, in_torch
from strongticket.choice.source import many_weights
from strongticket.errors import StrongTicketError, TicketError
from strongticket.ticket import Ticket

TENSORS = tensors()


def read_or_error(data, shape, reader=choice) -> bytes | str:
    out = np.empty(shape, np.float32)
    try:
        reader.decode_rows(data, 2, 3, "w", out if reader is choice else torch.from_numpy(out))
    except TicketError as error:
        return str(error)
    return out.tobytes()


@pytest.mark.parametrize("states", choice.STATES)
@pytest.mark.parametrize("name", TENSORS)
def test_torch_reads_the_same_bits(name, states):
    rows = TENSORS[name].reshape(choice.matrix_shape(TENSORS[name].shape))
    data = choice.encode_rows(rows, 2, 3, "w", 2.0**-20 if name == "some zeros" else 0.5, states)
    read = read_or_error(data, rows.shape, in_torch)
    assert isinstance(read, bytes)
    assert read == read_or_error(data, rows.shape)


def test_torch_reads_lanes_that_end_within_a_row():
    rows = np.random.default_rng(0).standard_normal((300, 90)).astype(np.float32)
    data = choice.encode_rows(rows, 2, 3, "w", 0.1)
    assert data[0] >> 4 == 2  # four lanes
    assert read_or_error(data, rows.shape, in_torch) == read_or_error(data, rows.shape)


@pytest.mark.slow
def test_torch_reads_a_model():
    assert unequal_in_torch(Ticket.load(GALLERY["stories-4bit"])) == 0


@pytest.mark.parametrize("states", choice.STATES)
@pytest.mark.parametrize("name", TENSORS)
def test_reading_is_pruning_random_weights(name, states, monkeypatch):
    monkeypatch.setattr(choice, "BLOCK", 700)
    monkeypatch.setattr(choice, "LEAST_ROWS", 1)
    coded = choice.encode(TENSORS[name], 3, "w", 0.6, states, transposed=TENSORS[name].ndim == 2)
    weights, mask = many_weights(coded, 3, "w")
    assert weights.dtype == np.float32
    assert mask.dtype == np.bool_
    assert weights.shape == mask.shape == (len(weights), *coded.shape)
    assert (weights * mask).sum(axis=0).tobytes() == choice.decode(coded, 3, "w").tobytes()
    found = [
        read_block(block, (len(rows), coded.matrix[1]), rows.start, 3, "w")
        for block, rows in zip(coded.blocks, coded.rows(), strict=True)
    ]
    has_number = coded.tensor(np.concatenate([read.has_number for read in found]))
    assert np.array_equal(mask.sum(axis=0), has_number)
    # Every weight is there, not only the kept ones: their spacing is the same everywhere in a row.
    spacings = np.concatenate([np.broadcast_to(read.deltas[:, None], read.numbers.shape) for read in found])
    spacings = coded.tensor(spacings) / (1 if states == 1 else 2)
    largest = np.abs(weights).max(axis=0)
    assert np.all(np.abs(np.diff(weights.astype(float), axis=0) - spacings) <= 2.0**-22 * largest)


def test_too_many_random_weights():
    coded = choice.encode(TENSORS["normal"], 3, "w", 0.1)
    with pytest.raises(
        StrongTicketError, match=r"'w' has [\d,]+ random weights: expected at most 9\. Ask for"
    ):
        many_weights(coded, 3, "w", limit=9)


def damaged(data: bytes, rng: np.random.Generator) -> bytes:
    """One of several ways."""
    place, some = int(rng.integers(len(data))), int(rng.integers(1, 9))
    way = int(rng.integers(6))
    if way == 0:
        return data[:place]
    if way == 1:
        return data[:place] + rng.bytes(some) + data[place:]
    if way == 2:
        return rng.bytes(some * 8)
    if way == 3:  # the header
        place %= 14
    if way == 4:
        return data[:place] + b"\xff" * some + data[place + some :]
    return data[:place] + bytes([data[place] ^ 1 << int(rng.integers(8))]) + data[place + 1 :]


@pytest.mark.parametrize("states", choice.STATES)
def test_damage_is_an_error_or_other_numbers(states):
    rng = np.random.default_rng(states)
    errors = 0
    for name in ("normal", "heavy tails", "some zeros", "rows of all sizes", "one column", "two lanes"):
        rows = TENSORS[name].reshape(choice.matrix_shape(TENSORS[name].shape))
        data = choice.encode_rows(rows, 2, 3, "w", 0.02, states)
        for i in range(300):
            changed = damaged(data, rng)
            shape = rows.shape if i % 5 else tuple(rng.integers(0, 50, 2).tolist())
            read = read_or_error(changed, shape)
            errors += isinstance(read, str)
            if isinstance(read, bytes):
                assert len(read) == 4 * math.prod(shape)
            if i % 150 == 1:
                assert read_or_error(changed, shape, in_torch) == read
    assert errors > 1200  # most, but a changed scale or raw bit is only seen by a checksum


@pytest.mark.slow
def test_damage_never_leads_out_of_bounds(tmp_path):
    """The tests of damage again, compiled with checks; numba does not know of them in its cache, so that is another."""
    tests = Path(__file__).parent.parent
    files = [tests / "choice/test_choice_readers.py", tests / "ticket/test_ticket_mask_codec.py"]
    chosen = ["-k", "damage or bounds", "-m", "not slow"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *files, *chosen],
        env=os.environ | {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        cwd=tests.parent,
    )
    assert done.returncode == 0, done.stdout


@pytest.mark.skipif("NUMBA_BOUNDSCHECK" not in os.environ, reason="only without fast compiled code")
def test_bounds_are_checked():
    with pytest.raises(IndexError):
        njit(lambda array, i: array[i])(np.zeros(3), 4)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tensor": np.ones((3, 4))}, "numbers of type float64 .* Convert them"),
        ({"tensor": np.float32([[1, np.nan]])}, "a number is not finite .* Check"),
        ({"tensor": np.float32([[1, -np.inf]])}, "a number is not finite"),
        ({"tensor": np.float32([[1, 2.0**127]])}, r"above 2\^126"),
        ({"states": 2}, "states=2: expected one of 1, 4, 8, 64. 8 is"),
        ({"states": "8"}, "states='8': expected one of"),
        ({"step": 0.0}, "step=0.0: expected a number above 0"),
        ({"step": -1.0}, "step=-1.0: expected a number above 0"),
        ({"step": math.nan}, "step=nan: expected a number above 0"),
        ({"step": math.inf}, "step=inf: expected a number above 0"),
        ({"step": "1"}, "step='1': expected a number above 0"),
        ({"step": 1e-9}, "a step of .* is too small for these numbers. Ask for fewer bits"),
        ({"step": 1e-300}, "a step of .* is too small for these numbers. Ask for fewer bits"),
        ({"step": 1e39}, "a step of .* is too large for these numbers. Ask for more bits"),
        ({"seed": -1}, "seed must be an integer"),
        ({"name": 5}, "name must be a str"),
        (
            {"feedback": Feedback(np.arange(3), np.eye(3))},
            "feedback is of 3 columns, the numbers have 4. Measure",
        ),
        ({"feedback": Feedback(np.zeros(4, int), np.eye(4))}, "feedback"),
        ({"feedback": Feedback(np.arange(4), np.full((4, 4), 1e9))}, "grow too large. Measure more inputs"),
    ],
)
def test_wrong_arguments(change, message):
    arguments = {"tensor": np.ones((3, 4), np.float32), "seed": 0, "name": "w", "step": 0.1} | change
    with pytest.raises(StrongTicketError, match=message):
        choice.encode(**arguments)


def test_wrong_blocks():
    assert read_or_error(b"\x01" * 13, (3, 4)) == "a block of choices is too short"
    data = choice.encode_rows(TENSORS["normal"], 2, 3, "w", 0.1)
    for places, byte in (
        ([0], 0x9F),
        ([0], data[0] | 12),
        ([1], 0xFF),
        ([2, 3, 4, 5], 0xFF),
        ([9], 0),
        ([13], 1),
    ):
        changed = bytearray(data) + bytes(9000)  # enough bytes for 512 lanes
        for place in places:
            changed[place] = byte
        assert (
            read_or_error(bytes(changed), TENSORS["normal"].shape)
            == "a block of choices does not fit its sizes"
        )
    with pytest.raises(TicketError, match="2 blocks of choices: expected 1"):
        Choices((3, 4), (b"", b""))
    with pytest.raises(StrongTicketError, match="numbers of type float64"):
        choice.decode_rows(b"", 0, 0, "w", np.empty((3, 4)))
    with pytest.raises(StrongTicketError, match="numbers of type float32 with 1 axes"):
        choice.cost(np.ones(4, np.float32), 0, "w", 0.1)
