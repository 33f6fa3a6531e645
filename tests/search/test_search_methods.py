"""Every method: its ticket reloads to the same loss to the last bit, and a resumed run gives the same bytes."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from test_search_run import valid_loss
from tests.faults.checkpoints import interrupted

from strongticket.search import search
from strongticket.search.config.methods import METHODS
from strongticket.search.masking.quantised import binary, integers, ternary
from strongticket.ticket import Ticket


@pytest.mark.parametrize("method", METHODS)
def test_reload_and_resume(tiny, tmp_path, method):
    config = replace(tiny, method=method, law="signed", scope="global", steps=5, save_every=3, lr=1e-2)
    result = search(config, out=tmp_path / "found.ticket")
    loaded = Ticket.load(tmp_path / "found.ticket")
    loaded.verify()
    assert valid_loss(config, loaded) == result.loss
    assert np.isfinite(result.loss)
    if method == "random":  # nothing is trained
        return
    interrupted(config, 4)
    resumed = search(replace(config, resume=True))
    assert resumed.ticket.to_bytes() == (tmp_path / "found.ticket").read_bytes()


@pytest.mark.parametrize(
    ("rounding", "levels"), [(integers(8), 127), (integers(4), 7), (ternary, 1), (binary, 1)]
)
def test_rounding(rounding, levels):
    torch.manual_seed(0)
    weights = torch.randn(40, 30)
    step, whole = rounding(weights)
    assert torch.equal(whole, whole.round())
    assert whole.abs().max() == levels
    nearest = (weights - step * whole).abs()
    assert nearest.mean() < (weights - 1.1 * step * whole).abs().mean() + 1e-3
    zeros, _ = rounding(torch.zeros(2, 2))
    assert zeros > 0


@pytest.mark.parametrize(
    ("method", "levels"), [("int4", 7), ("ternary", 1), ("binary", 1), ("rounded-int4", 7)]
)
def test_quantised_weights_have_few_levels(tiny, method, levels):
    network = search(replace(tiny, method=method, steps=2)).ticket.network()
    for name, weight in network.named_parameters():
        if weight.ndim == 2:
            step = weight.abs()[weight != 0].min()
            whole = weight / step
            assert torch.allclose(whole, whole.round(), atol=1e-4), name
            assert whole.abs().max() <= levels + 1e-3, name
