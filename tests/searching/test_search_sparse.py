"""Sparse sources: what the seed drops or locks costs no bit, and comes back to the same bits."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.searching.test_search_run import valid_loss
from torch import nn

from strongticket.errors import StrongTicketError
from strongticket.searching import attach, masks, search, to_ticket
from strongticket.searching.masking.codes import StoredTensor, code_shapes, decode
from strongticket.searching.masking.source import DECISION_LAW, Scheme, Source, Sparsity
from strongticket.seeds import SignedConstant, draw
from strongticket.ticket import Ticket

FRACTION = st.floats(0, 0.49)


def decide(sparsity, seed, shape):
    return Source(seed, "w", shape, SignedConstant(0.5), sparsity=sparsity).seed_decision()


@given(FRACTION, FRACTION, st.integers(0, 2**32))
def test_a_sparse_mask_comes_back(dropped, locked, seed):
    sparsity, shape = Sparsity(dropped, locked), (7, 30)
    decision = decide(sparsity, seed, shape)
    chance = np.random.default_rng(seed).random(shape) < 0.6
    mask = np.where(decision == 0, chance, decision == 1)
    stored = StoredTensor(SignedConstant(0.5), mask, sparsity=sparsity, decision=decision)
    tensors = {
        name: draw(seed, name, part.shape, law, mask=part)
        for name, (part, law) in stored.tensors("w").items()
    }
    code = stored.code()
    assert code_shapes({"w": code}, {"w": shape}) | {"w": shape} == {n: t.shape for n, t in tensors.items()}
    matrix, levels = decode(code, "w", tensors.__getitem__)
    assert levels is None
    np.testing.assert_array_equal(matrix, draw(seed, "w", shape, SignedConstant(0.5), mask=mask))


def test_fractions_of_a_large_source():
    decision = decide(Sparsity(0.5, 0.2), 3, (300, 300))
    found = [(decision == value).mean() for value in (-1, 0, 1)]
    np.testing.assert_allclose(found, [0.5, 0.3, 0.2], atol=0.01)
    assert not decide(Sparsity(), 3, (9, 9)).any()


def test_only_free_weights_compete():
    model = nn.Sequential(nn.Linear(40, 50), nn.Linear(50, 30))
    scheme = Scheme(law="signed", std=0.1, sparsity=Sparsity(0.4, 0.25))
    attachment = attach(model, 0.5, scope="global", scheme=scheme, qk_scale=1)
    decisions = {name: source.seed_decision() for name, source in attachment.sources.items()}
    for matrix in attachment.masked:
        with torch.no_grad():  # scores of what is decided: as large as can be, and of no consequence
            matrix.parameter[torch.from_numpy(decisions[matrix.name] != 0)] = 1e6
    free = chosen = 0
    for name, mask in masks(model).items():
        decision = decisions[name]
        assert mask[decision == 1].all()
        assert not mask[decision == -1].any()
        free += int((decision == 0).sum())
        chosen += int(mask[decision == 0].sum())
    assert chosen == round(0.5 * free)
    network = to_ticket(model).network(nn.Sequential(nn.Linear(40, 50), nn.Linear(50, 30)))
    x = torch.randn(3, 40, generator=torch.Generator().manual_seed(0))
    assert torch.equal(network(x), model(x))


METHODS = (
    "annealed",
    "edge-popup",
    "iterand",
    "biprop",
    "multicoat",
    "signed",
    "bernoulli",
    "threshold",
    "random",
)


@pytest.mark.parametrize("method", METHODS)
def test_every_method_reloads(tiny, tmp_path, method):
    config = tiny.changed(method=method, law="signed", dropped=0.4, locked=0.2, lr=1e-2, steps=4)
    result = search(config, out=tmp_path / "a.ticket")
    loaded = Ticket.load(tmp_path / "a.ticket")
    loaded.verify()
    assert valid_loss(config, loaded) == result.loss
    assert search(config).ticket.to_bytes() == (tmp_path / "a.ticket").read_bytes()
    nonzero = sum(int(p.count_nonzero()) for n, p in loaded.network().named_parameters() if "ln_" not in n)
    assert result.kept == nonzero


def test_files_are_smaller(tiny):
    """What is saved are the bits of the decided weights, but for the index of two more tensors per matrix."""
    whole = search(tiny.changed(law="signed", kept=0.5, dim=64, steps=0))
    bits = sum(mask.size for mask in whole.ticket.masks.values())
    for dropped, locked in ((0.5, 0.0), (0.0, 0.5), (0.4, 0.4)):
        sparse = search(whole.config.changed(dropped=dropped, locked=locked))
        assert whole.file_bytes - sparse.file_bytes > 0.8 * (dropped + locked) * bits / 8


@pytest.mark.parametrize("method", ["dense", "int4"])
def test_methods_that_train_every_weight_refuse(tiny, method):
    with pytest.raises(StrongTicketError, match="trains every weight"):
        search(tiny.changed(method=method, locked=0.5))


def test_fractions_are_checked(tiny):
    for odd in ({"dropped": 1.0}, {"locked": -0.1}, {"dropped": 0.5, "locked": 0.5}):
        with pytest.raises(StrongTicketError, match=r"dropped|locked"):
            tiny.changed(**odd)
        with pytest.raises(StrongTicketError, match=r"dropped|locked"):
            Sparsity(**odd)


def test_what_settings_may_say():
    matrices = {"w": (2, 3)}
    good = {"dropped": 0.5, "locked": 0.0, "count": 2}
    shapes = {"w:source": (2, 3), "w:free": (2,)}
    assert code_shapes({"w": {"free": good}}, matrices) == shapes
    for free in (
        [],
        {},
        good | {"more": 1},
        good | {"count": True},
        good | {"count": -1},
        good | {"count": 7},
    ):
        with pytest.raises(StrongTicketError, match="code"):
            code_shapes({"w": {"free": free}}, matrices)
    for free in (good | {"dropped": 1.5}, good | {"locked": "1"}, good | {"dropped": float("nan")}):
        with pytest.raises(StrongTicketError, match=r"dropped|locked"):
            code_shapes({"w": {"free": free}}, matrices)
    with pytest.raises(StrongTicketError, match="twice"):
        code_shapes({"w": {"free": good, "draws": ["w:free"]}}, matrices)
    tensors = {"w": np.ones((2, 3)), "w:source": draw(0, "w", (2, 3), DECISION_LAW), "w:free": np.ones(7)}
    with pytest.raises(StrongTicketError, match="weights are free"):
        decode({"free": good}, "w", tensors.__getitem__)
