"""Attacks find the errors that can be computed by hand, stay in the ball and never beat a certificate."""

import numpy as np
import pytest
import torch
from benchmarks.random_tickets import start_directions
from tests import theory_oracles as oracle

from strongticket.errors import StrongTicketError
from strongticket.nets import attack
from strongticket.theory import AttentionWeights, certify_attention


@pytest.fixture(autouse=True)
def one_thread():
    """Threads only wait for each other on tensors this small."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def network(query_key, value_output):
    query_key, value_output = torch.from_numpy(query_key), torch.from_numpy(value_output)

    def run(x, mask=None):
        logits = torch.einsum("btd,hde,bse->bhts", x, query_key, x)
        if mask is not None:
            logits = logits.masked_fill(~mask, -torch.inf)
        return torch.einsum("bhts,bsd,hdo->bto", logits.softmax(-1), x, value_output)

    return run


def built(seed, dim=16, heads=4, size=1e-3):
    rng = oracle.generator(seed)
    qk, vo = oracle.target_heads(rng, heads, dim, dim, 4)
    return qk, qk + size * rng.uniform(-1, 1, qk.shape), vo, vo + size * rng.uniform(-1, 1, vo.shape)


@pytest.mark.slow
def test_the_worst_error_of_a_linear_map_is_found():
    difference = torch.from_numpy(oracle.generator(0).standard_normal((5, 3)))
    found = attack(lambda x: x @ difference, lambda x: 0 * x @ difference, 5, 2.0, restarts=8, tokens=(1, 2))
    assert found.error == pytest.approx(2 * oracle.spectral(difference.numpy()), rel=1e-4)
    assert found.attempts == 16


@pytest.mark.parametrize("seed", range(2))
def test_the_certificate_is_above_the_attack_and_within_three_times_of_it(seed):
    qk, qk_source, vo, vo_source = built(seed)
    bound = certify_attention(AttentionWeights(qk, vo), AttentionWeights(qk_source, vo_source), 4.0).bound
    starts = start_directions(qk_source - qk, vo, vo_source - vo, tries=4)
    source, target = network(qk_source, vo_source), network(qk, vo)
    found = attack(source, target, 16, 4.0, tokens=(1, 3), restarts=8, steps=80, starts=starts, masked=True)
    assert found.error <= bound < 3 * found.error
    assert np.linalg.norm(found.inputs, axis=1).max() <= 4.0 * (1 + 1e-12)
    x = torch.from_numpy(found.inputs)[None]
    option = {"mask": torch.from_numpy(found.mask)}
    again = (source(x, **option) - target(x, **option))[0, -1].norm()
    assert float(again) == pytest.approx(found.error, rel=1e-9)


def test_equal_seeds_give_equal_attacks_and_starts_need_no_luck():
    qk, qk_source, vo, vo_source = built(3, dim=8, heads=2)
    networks = network(qk_source, vo_source), network(qk, vo)
    settings = dict(tokens=(2, 3), restarts=4, steps=30)
    first, second = (attack(*networks, 8, 3.0, seed=7, **settings) for _ in range(2))
    assert first.error == second.error
    assert (first.inputs == second.inputs).all()
    starts = start_directions(qk_source - qk, vo, vo_source - vo)
    lucky = attack(*networks, 8, 3.0, seed=7, tokens=(2, 3), restarts=64, steps=60)
    guided = attack(*networks, 8, 3.0, starts=starts, tokens=(2, 3), restarts=1, steps=60)
    assert guided.error > 0.95 * lucky.error


def test_start_directions_are_unit_vectors():
    qk, qk_source, vo, vo_source = built(4, dim=6)
    starts = start_directions(qk_source - qk, vo, vo_source - vo, tries=3)
    assert starts.shape == (1 + 4 + 3, 2, 6)
    assert np.linalg.norm(starts, axis=-1) == pytest.approx(np.ones((8, 2)))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (dict(radius=-1.0), "radius=-1.0"),
        (dict(tokens=(1, 0)), r"tokens\[1\]=0"),
        (dict(tokens=()), "tokens is empty"),
        (dict(starts=np.full((1, 2, 3), np.nan)), r"starts\[0, 0, 0\] is nan"),
        (dict(starts=np.ones((1, 2, 4))), r"starts has shape \(1, 2, 4\): expected \(any, 2, 3\)"),
        (dict(source=lambda x: x * torch.nan), "differ by nan"),
    ],
)
def test_what_is_wrong_is_named(change, message):
    good = dict(source=lambda x: x, target=lambda x: 2 * x, dim=3, radius=1.0)
    with pytest.raises(StrongTicketError, match=message):
        attack(**(good | change))
