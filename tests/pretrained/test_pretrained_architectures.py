"""Every architecture that an Auto class loads: its own class, its own parameters, as near as the errors predict."""

import copy

import pytest
import torch
from tests.pretrained.architectures import ARCHITECTURES, first_output, tiny_inputs, tiny_model
from torch import nn

from strongticket.models.tensors import tensor_named
from strongticket.pretrained import build_ticket
from strongticket.ticket import Ticket

OPTIONS = dict(units=14, tolerance=2e-3, workers=1)
FAITHFUL = (
    "LlamaForCausalLM", "GPT2LMHeadModel", "MambaForCausalLM", "Qwen2MoeForCausalLM", "AlbertForMaskedLM",
    "T5ForConditionalGeneration", "SwinForImageClassification", "ResNetForImageClassification", "Wav2Vec2ForCTC",
    "CLIPModel",
)  # fmt: skip


def with_noise(model: nn.Module, ticket: Ticket) -> nn.Module:
    """What the ticket's errors predict: normal noise of the same size on every tensor."""
    noisy = copy.deepcopy(model)
    chance = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for name, (_, relative) in ticket.metadata["errors"].items():
            tensor = tensor_named(noisy, name)
            size = relative * tensor.square().mean().sqrt()
            if name.endswith("running_var"):
                size = relative * tensor  # its logarithm is made
            tensor.add_(size * torch.randn(tensor.shape, generator=chance))
    return noisy


def relative(found: torch.Tensor, wanted: torch.Tensor) -> float:
    return float((found - wanted).norm() / wanted.norm())


@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated:DeprecationWarning")  # DeBERTa
@pytest.mark.parametrize("name", ARCHITECTURES)
def test_the_network_is_as_near_as_its_errors_predict(name):
    model = tiny_model(name)
    inputs = tiny_inputs(model)
    wanted = first_output(model, inputs)
    ticket = build_ticket(model, **OPTIONS)
    network = ticket.network()
    assert not ticket.floats
    assert type(network) is type(model)
    shapes = [{n: p.shape for n, p in each.named_parameters()} for each in (model, network)]
    assert shapes[0] == shapes[1]
    assert max(error for _, error in ticket.metadata["errors"].values()) <= OPTIONS["tolerance"]
    predicted = relative(first_output(with_noise(model, ticket), inputs), wanted)
    found = first_output(network, inputs)
    assert 0 < relative(found, wanted) < 4 * predicted < 0.2
    if name in FAITHFUL:
        faithful = first_output(ticket.network(form="factors"), inputs)
        torch.testing.assert_close(faithful, found, rtol=1e-3, atol=1e-4)


def test_there_are_many_architectures():
    assert len(ARCHITECTURES) >= 50
