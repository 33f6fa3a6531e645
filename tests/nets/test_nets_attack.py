"""Attacks find the errors that can be computed by hand, stay in the ball and never beat a certificate."""

import numpy as np
import pytest
import torch
from tests import theory_oracles as oracle

from strongticket.errors import StrongTicketError
from strongticket.nets import attack
from strongticket.nets._layouts import changed, own_masks
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


def test_only_accepted_inputs_count():
    """The error is twice the first number, which may go up to 1."""
    stretch = torch.tensor([3.0, 1.0], dtype=torch.float64)
    found = attack(
        lambda x: stretch * x, lambda x: x, 2, 2.0, tokens=(1,), accepts=lambda x: x[:, 0, 0].abs() <= 1
    )
    assert 1.9 < found.error <= 2
    assert abs(found.inputs[0, 0]) <= 1


@pytest.mark.parametrize("seed", range(2))
def test_the_certificate_is_close_above_the_attack(seed):
    qk, qk_source, vo, vo_source = built(seed, dim=8)
    bound = certify_attention(AttentionWeights(qk, vo), AttentionWeights(qk_source, vo_source), 3.0).bound
    source, target = network(qk_source, vo_source), network(qk, vo)
    found = attack(source, target, 8, 3.0, heads=4, tokens=(), restarts=8, steps=60)
    assert found.error <= bound < 1.3 * found.error
    assert np.linalg.norm(found.inputs, axis=1).max() <= 3.0 * (1 + 1e-12)
    x, mask = torch.from_numpy(found.inputs)[None], torch.from_numpy(found.mask)[None]
    again = (source(x, mask=mask) - target(x, mask=mask))[0, -1].norm()
    assert float(again) == pytest.approx(found.error, rel=1e-9)


def test_masks_of_each_head_do_more_harm_than_one_for_all():
    qk, qk_source, vo, vo_source = built(0, dim=8)
    networks = network(qk_source, vo_source), network(qk, vo)
    shared = attack(*networks, 8, 3.0, tokens=(1, 2, 3, 8), restarts=32, steps=60)
    assert shared.mask is None
    assert attack(*networks, 8, 3.0, heads=4, tokens=(), restarts=8, steps=60).error > 1.2 * shared.error


@pytest.mark.parametrize("heads", [None, 2])
def test_equal_seeds_give_equal_attacks(heads):
    qk, qk_source, vo, vo_source = built(3, dim=8, heads=2)
    networks = network(qk_source, vo_source), network(qk, vo)
    settings = dict(tokens=(2, 3), restarts=4, steps=10, heads=heads)
    first, second = (attack(*networks, 8, 3.0, seed=7, **settings) for _ in range(2))
    assert first.error == second.error
    assert (first.inputs == second.inputs).all()


@pytest.mark.parametrize("heads", [1, 3])
def test_in_a_layout_equal_tokens_see_the_same_and_every_position_sees_some(heads):
    rng = oracle.generator(heads)
    for _ in range(50):
        layout = own_masks(rng, heads)
        for each in (layout, changed(rng, layout), layout.padded(60)):
            places, mask = each.places, each.mask
            assert mask.shape == (heads, len(places), len(places))
            assert mask.any(-1).all()
            for token in np.unique(places):
                rows = mask[:, places == token]
                assert (rows == rows[:, :1]).all()
        assert not layout.mask[:, -1, -1].any()
        assert (layout.mask[:, -1].sum(0) <= 1).all()  # no token is seen by two heads


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (dict(radius=-1.0), "radius=-1.0"),
        (dict(tokens=(1, 0)), r"tokens\[1\]=0"),
        (dict(tokens=()), "tokens is empty"),
        (dict(heads=0), "heads=0"),
        (dict(source=lambda x: x * torch.nan), "differ by nan"),
        (dict(accepts=lambda x: torch.zeros(len(x), dtype=torch.bool)), "accepts rejected every input"),
    ],
)
def test_what_is_wrong_is_named(change, message):
    good = dict(source=lambda x: x, target=lambda x: 2 * x, dim=3, radius=1.0)
    with pytest.raises(StrongTicketError, match=message):
        attack(**(good | change))
