"""Which entries no subset reaches: against every subset, and by what a build leaves behind."""

import numpy as np
import pytest
import torch

from strongticket import nets
from strongticket.builders import build_network
from strongticket.nets import MergedAttention, merge
from strongticket.reproduce.sources import entries_out_of_reach
from strongticket.seeds import draw


def head(seed, scale=1.0):
    target = nets.initialise(nets.MultiHeadAttention(2, 1, 1, 8, 8), seed, normalised=True)
    with torch.no_grad():
        target.output.mul_(scale)
    return target.requires_grad_(False)


def by_every_subset(ticket, target, one_sign):
    """Count entries beyond the smallest or largest subset sum of their contiguous group, one subset at a time."""
    seed, laws, width = ticket.seed, ticket.laws, ticket.settings["key_dim"]
    query, key, value = (
        draw(seed, n, (1, 2, width), laws[n])[0].astype(float) for n in ("query", "key", "value")
    )
    output = draw(seed, "output", (1, width, 1), laws["output"])[0].astype(float).T
    group, found = width // 2, 0
    for wanted, left, right in (
        (target.query_key[0], query / width**0.5, key),
        (target.value_output[0], value, output),
    ):
        for row in range(2):
            units = np.arange(group * row, group * (row + 1))
            units = units[left[row, units] > 0] if one_sign else units
            subsets = (np.arange(2 ** len(units))[:, None] >> np.arange(len(units))) & 1
            for column in range(len(right)):
                sums = subsets @ (left[row, units] * right[column, units])
                found += not sums.min() <= float(wanted[row, column]) <= sums.max()
    return found


@pytest.mark.parametrize("assignment", ["paper", "one-sign"])
def test_counts_what_lies_beyond_every_subset_sum(assignment):
    counts = set()
    for seed in range(12):
        target = head(seed)
        ticket = build_network(target, width=12, seed=seed, assignment=assignment, certificate=False)
        found = entries_out_of_reach(ticket, merge(target, torch.float64))
        assert found == by_every_subset(ticket, merge(target, torch.float64), assignment == "one-sign")
        counts.add(found)
    assert len(counts) > 1  # some fail and some do not


@pytest.mark.parametrize("assignment", ["balanced", "paper", "one-sign"])
def test_a_source_without_failures_has_small_errors_and_a_hopeless_target_fails(assignment):
    target = head(3)
    wide = build_network(target, width=64, seed=0, assignment=assignment, certificate=False)
    wanted = merge(target, torch.float64)
    assert entries_out_of_reach(wide, wanted) == 0
    made = merge(wide.network(), torch.float64)
    assert float((made.value_output - wanted.value_output).abs().max()) < 1e-2
    beyond = MergedAttention(wanted.query_key, wanted.value_output + 1e3, constant=False)
    assert entries_out_of_reach(wide, beyond) == 2


def test_one_sign_keeps_only_units_with_a_positive_weight():
    ticket = build_network(head(0), width=32, seed=1, assignment="one-sign", certificate=False)
    for name in ("query", "value"):
        weights = ticket.weights(name)[0]
        assert (weights >= 0).all()
        assert (np.count_nonzero(weights, axis=0) <= 1).all()
        assert (weights > 0).any()
