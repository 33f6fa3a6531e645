"""What is written is what the docstrings say, within the bounds that they promise."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as nps
from tests.choice.oracle import STEPS, read_block, tensors

from strongticket import choice
from strongticket.errors import StrongTicketError

TENSORS = tensors()


def check_round_trip(tensor, step, states, **options):
    """Equal to the oracle bit for bit, and near the target."""
    coded = choice.encode(tensor, 3, "w", step, states, **options)
    decoded = choice.decode(coded, 3, "w")
    assert decoded.shape == tensor.shape
    assert decoded.dtype == np.float32
    found = [
        read_block(block, (len(rows), coded.matrix[1]), rows.start, 3, "w")
        for block, rows in zip(coded.blocks, coded.rows(), strict=True)
    ]
    assert decoded.tobytes() == coded.tensor(np.concatenate([read.numbers for read in found])).tobytes()
    if not options.get("shrink"):
        deltas = np.concatenate([np.broadcast_to(read.deltas[:, None], read.numbers.shape) for read in found])
        wanted, got = tensor.astype(np.float64), decoded.astype(np.float64)
        bound = coded.tensor(np.maximum(deltas * (0.5 if states == 1 else 1), 2.0**-126))
        np.testing.assert_array_equal(choice.bounds(coded), bound)
        bound = bound + 2.0**-23 * np.abs(got) + 2.0**-149
        is_zero = ~coded.tensor(np.concatenate([read.has_number for read in found]))
        assert np.all(np.abs(wanted - got) <= bound * (1 + 1e-6))
        assert np.all(np.abs(wanted[is_zero]) < 2.0**-126)
    return coded, found


@pytest.mark.parametrize("states", choice.STATES)
@pytest.mark.parametrize("name", TENSORS)
def test_every_kind_of_tensor(name, states):
    for step, options in STEPS:
        check_round_trip(TENSORS[name], step, states, **options)


numbers = st.floats(-(2.0**126), 2.0**126, width=32) | st.sampled_from([0.0, 1.0, -1.0])


@settings(max_examples=60)
@given(
    nps.arrays(
        np.float32, nps.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=9), elements=numbers
    ),
    st.floats(-12, 3),
    st.sampled_from(choice.STATES),
    st.booleans(),
)
def test_any_tensor(tensor, step, states, transposed):
    if np.abs(tensor).max(initial=0) > 2.0**120:
        tensor = tensor * np.float32(2.0**-6)  # a step above 1 would be too large
    check_round_trip(tensor, 2.0**step, states, transposed=transposed)


def test_the_spacing_is_the_step_times_the_root_mean_square():
    rng = np.random.default_rng(1)
    for rows in (
        rng.standard_normal((50, 64)),
        np.exp(3 * rng.standard_normal((50, 1))) * rng.standard_normal((50, 64)),
    ):
        rows = rows.astype(np.float32)
        deltas = read_block(choice.encode_rows(rows, 0, 3, "w", 0.25), rows.shape, 0, 3, "w").deltas
        assert np.sqrt((deltas**2).mean() / (rows.astype(float) ** 2).mean()) == pytest.approx(0.25, rel=1e-6)


@pytest.mark.parametrize("states", choice.STATES)
def test_the_bound_grows_by_the_factor_of_least_error(states):
    """|W − a·Ŵ| ≤ Δ + (1 − a)·|Ŵ|, Δ and Ŵ before the factor; it makes the error smaller, and is below 1."""
    wanted = np.random.default_rng(5).standard_normal((300, 200)).astype(np.float32)
    plain = choice.encode(wanted, 3, "w", 2.0, states)
    numbers, shrunk = (
        choice.decode(coded, 3, "w").astype(np.float64)
        for coded in (plain, choice.encode(wanted, 3, "w", 2.0, states, shrink=True))
    )
    a = (shrunk * numbers).sum() / (numbers**2).sum()
    assert 0.5 < a < 0.95
    np.testing.assert_allclose(shrunk, a * numbers, rtol=1e-5)
    assert np.all(np.abs(wanted - shrunk) <= choice.bounds(plain) + (1 - a) * np.abs(numbers) + 1e-6)
    assert np.square(wanted - shrunk).sum() < np.square(wanted - numbers).sum()


@pytest.mark.parametrize("kept", [1.0, 0.6, 0.1])
@pytest.mark.parametrize("states", choice.STATES)
def test_the_error_is_the_step_times_a_constant_however_many_are_zeros(states, kept):
    rng = np.random.default_rng(4)
    rows = (rng.standard_normal((4000, 50)) * (rng.random((4000, 50)) < kept)).astype(np.float32)
    error = choice.decode(choice.encode(rows, 3, "w", 0.1, states), 3, "w") - rows
    relative = np.sqrt(np.square(error, dtype=float).sum() / np.square(rows, dtype=float).sum())
    assert relative == pytest.approx(choice.GAIN[states] * 0.1 / np.sqrt(12), rel=0.01)


def test_a_row_of_tiny_numbers_is_zeros_and_leaves_the_others_alone():
    rows = TENSORS["denormal rows"]
    made = choice.decode(choice.encode(rows, 3, "w", 0.1), 3, "w")
    assert np.abs(made - rows).max() < 0.2
    tiny = np.abs(rows).max(axis=1) < 2.0**-126
    assert tiny.any()
    assert not made[tiny].any()
    with pytest.raises(StrongTicketError, match="not finite"):
        choice.encode(np.full((3, 4), np.nan, np.float32), 3, "w", 0.1)


@pytest.mark.parametrize("states", choice.STATES)
def test_zeros_stay_zeros_where_many_are_and_rows_of_them_cost_nothing(states):
    rng = np.random.default_rng(2)
    matrix = rng.standard_normal((60, 50)).astype(np.float32)
    matrix[rng.random(matrix.shape) < 0.1] = 0
    coded = choice.encode_rows(matrix, 0, 3, "w", 0.1, states)
    out = np.ones_like(matrix)
    choice.decode_rows(coded, 0, 3, "w", out)
    np.testing.assert_array_equal(out == 0, matrix == 0)

    taller = np.zeros((120, 50), np.float32)
    taller[::2] = matrix
    more = choice.cost(taller, 3, "w", 0.1, states).numbers - choice.cost(matrix, 3, "w", 0.1, states).numbers
    assert abs(more) < 200  # scales, and other offsets; 3000 numbers take 13,000 bits
    assert choice.encode_rows(np.zeros((9, 9), np.float32), 0, 3, "w", 0.1, states) == b""
    assert sum(choice.cost(np.zeros((9, 9), np.float32), 3, "w", 0.1, states)) == 0


@pytest.mark.parametrize("states", choice.STATES)
@pytest.mark.parametrize("step", [2.0, 0.3, 0.01])
def test_the_cost_is_known_beforehand(states, step):
    for name in ("normal", "heavy tails", "rows of all sizes", "some zeros", "one row", "two lanes", "ones"):
        rows = TENSORS[name]
        written = 8 * len(choice.encode_rows(rows, 0, 3, "w", step, states))
        assert abs(sum(choice.cost(rows, 3, "w", step, states)) - written) <= max(40, 0.005 * written)


PROGRAM = """
import hashlib
import numpy as np
from strongticket import choice
from strongticket.choice import Feedback

rng = np.random.default_rng(0)  # whole numbers only: exp and log differ from machine to machine
rows = rng.integers(-999, 1000, (90, 70)) / 999
rows = np.ldexp(rows * rows * rows, rng.integers(-4, 5, (90, 1))).astype(np.float32)
rows[rng.random(rows.shape) < 0.05] = 0
shares = np.triu(rng.integers(-999, 1000, (70, 70)) / 9999)
feedback = Feedback(rng.permutation(70), shares)
digest = hashlib.sha256()
for states in choice.STATES:
    for step in (1.0, 0.01):
        digest.update(choice.encode_rows(rows, 5, 7, "größe", step, states, step == 1.0))
        digest.update(choice.encode_rows(rows, 5, 7, "größe", step, states, feedback=feedback))
digest = digest.hexdigest()
"""
KNOWN = "da472ae720f22234c38ab3c07dc934227a4f22e8438a0f0e82895f86faea5b8f"


def test_known_bytes():
    """Written down once: the same on every machine, and readers of old files depend on it."""
    here: dict[str, str] = {}
    exec(PROGRAM, here)
    assert here["digest"] == KNOWN


def test_blocks_in_any_order_and_on_any_thread(monkeypatch):
    monkeypatch.setattr(choice, "BLOCK", 400)
    monkeypatch.setattr(choice, "LEAST_ROWS", 1)
    tensor = TENSORS["three axes"]
    coded = choice.encode(tensor, 3, "w", 0.1)
    assert len(coded.blocks) == 3
    matrix = np.empty(coded.matrix, np.float32)

    def read_and_write(rows, block):
        part = slice(rows.start, rows.stop)
        choice.decode_rows(block, rows.start, 3, "w", matrix[part])
        return choice.encode_rows(tensor.reshape(coded.matrix)[part], rows.start, 3, "w", 0.1)

    with ThreadPoolExecutor(4) as pool:
        written = tuple(pool.map(read_and_write, coded.rows()[::-1], coded.blocks[::-1]))
    assert coded.tensor(matrix).tobytes() == choice.decode(coded, 3, "w").tobytes()
    assert written == coded.blocks[::-1]


def test_views_are_read_like_copies():
    base = TENSORS["normal"]
    for view in (base.T, base[::2, 1::3], base[:, ::-1]):
        assert choice.encode(view, 3, "w", 0.1).blocks == choice.encode(view.copy(), 3, "w", 0.1).blocks


@given(st.lists(st.integers(0, 3000), max_size=3))
def test_blocks_are_all_rows_once(shape):
    rows, columns = choice.matrix_shape(tuple(shape))
    assert rows * columns == int(np.prod(shape))
    found = choice.row_blocks((rows, columns))
    assert [block.start for block in found] == [0, *(block.stop for block in found[:-1])]
    assert found[-1].stop == rows
    assert all(block or not rows for block in found)
