"""Offsets of choices: the published generator, any slice alone, the uniform law."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from tests.choice.oracle import offset, philox

from strongticket import seeds
from strongticket.errors import StrongTicketError

ONES = 2**32 - 1
PI = [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344, 0xA4093822, 0x299F31D0]


@pytest.mark.parametrize(
    ("counter", "key", "answer"),
    [
        ([0] * 4, [0] * 2, "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
        ([ONES] * 4, [ONES] * 2, "408f276d 41c83b0e a20bc7c6 6d5451fd"),
        (PI[:4], PI[4:], "d16cfe09 94fdcceb 5001e420 24126ea1"),
    ],
)
def test_the_oracle_gives_the_published_answers(counter, key, answer):
    """Salmon et al. 2011, kat_vectors of Random123: philox4x32 with ten rounds."""
    assert [f"{word:08x}" for word in philox(counter, key)] == answer.split()


@given(
    st.integers(0, 2**64 - 1),
    st.text(st.characters(exclude_categories=["Cs"])),
    st.integers(0, 2**40),
    st.integers(0, 1000),
)
def test_any_slice_alone(seed, name, first, count):
    found = seeds.offsets(seed, name, first, count)
    assert found.dtype == np.uint16
    assert len(found) == count
    assert found[::13].tolist() == [offset(seed, name, i) for i in range(first, first + count, 13)]


def test_they_are_uniform_and_independent():
    found = seeds.offsets(11, "w", 0, 1_000_000).astype(float)
    assert stats.kstest((found + 0.5) / 65536, "uniform").pvalue > 0.01
    for lag in (1, 2, 7, 8, 1024):
        assert abs(np.corrcoef(found[:-lag], found[lag:])[0, 1]) < 0.005
    assert abs(np.corrcoef(found, seeds.offsets(12, "w", 0, found.size))[0, 1]) < 0.005
    assert abs(np.corrcoef(found, seeds.offsets(11, "v", 0, found.size))[0, 1]) < 0.005


def test_bad_arguments():
    with pytest.raises(StrongTicketError, match="seed must be"):
        seeds.offsets(-1, "w", 0, 1)
    with pytest.raises(StrongTicketError, match="name must be"):
        seeds.offsets(0, b"w", 0, 1)
