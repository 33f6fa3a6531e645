"""What the paper's scale needs on accelerators, tested without one."""

import pytest
import torch
from tests.searching.test_search_scores import TOKENS, gpt2

from strongticket.searching import attach, logit_std, masked_tensors
from strongticket.searching.masking import _attach
from strongticket.searching.masking.frozen import FrozenTensor
from strongticket.searching.masking.store import WeightStore
from strongticket.seeds import Normal


def test_weights_are_kept_on_an_accelerator_and_drawn_again_on_the_cpu(monkeypatch):
    """The device is looked at when the weights are used: a model is attached on the CPU and moved later."""
    draws = []
    original = FrozenTensor.weights
    monkeypatch.setattr(FrozenTensor, "weights", lambda *args, **kw: draws.append(1) or original(*args, **kw))
    store = WeightStore(FrozenTensor(0, "w", (4, 3), Normal(1.0)), redraw="on the cpu")
    for _ in range(3):
        ((_, weights),) = store.chunks(torch.device("meta"))
        assert weights.device.type == "meta"
    assert len(draws) == 1
    for _ in range(3):
        list(store.chunks(torch.device("cpu")))
    assert len(draws) == 4


def test_large_models_are_drawn_again_only_on_the_cpu(monkeypatch):
    monkeypatch.setattr(_attach, "SMALL", 10)
    model = gpt2()
    attach(model, 0.3)
    for source in masked_tensors(model).values():
        assert source.store.draws_again(torch.device("cpu"))
        assert not source.store.draws_again(torch.device("cuda", 0))


def test_logits_are_measured_one_sequence_at_a_time():
    model = gpt2()
    attach(model, 0.3)
    seen = []
    hook = model.register_forward_pre_hook(
        lambda module, args, kwargs: seen.append(len(kwargs["input_ids"])), with_kwargs=True
    )
    together = logit_std(model, TOKENS)
    hook.remove()
    assert seen == [1] * len(TOKENS)
    alone = [logit_std(model, row[None]) ** 2 for row in TOKENS]
    assert together == pytest.approx((sum(alone) / len(alone)) ** 0.5, rel=1e-9)
