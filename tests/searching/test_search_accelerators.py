"""What the paper's scale needs on accelerators, tested without one."""

import pytest
import torch
from tests.searching.test_search_scores import TOKENS, gpt2

from strongticket.searching import attach, logit_std, preset
from strongticket.searching.architectures import make_model
from strongticket.searching.masking.weights import Weights
from strongticket.searching.registry import METHODS, find_method


@pytest.mark.parametrize("method", [*METHODS])
def test_what_a_method_keeps_moves_with_the_model(method):
    """A model is attached on the CPU and moved later."""
    config = preset("paper-laptop", method=method, dim=8, heads=2, layers=1, context=8)
    model = make_model(config, 11)
    find_method(method)(model, config)
    model.to("meta")
    tensors = [*model.parameters(), *model.buffers()]
    assert {tensor.device.type for tensor in tensors} == {"meta"}
    for module in model.modules():
        if isinstance(module, Weights):
            held = [value for value in vars(module).values() if isinstance(value, torch.Tensor)]
            assert not held  # a tensor that is neither parameter nor buffer would stay


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
