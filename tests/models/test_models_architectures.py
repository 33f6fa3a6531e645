"""Every architecture that an Auto class loads: its own class, its own parameters, as near as the errors predict."""

import copy

import pytest
import torch
from tests.models.architectures import ARCHITECTURES, tiny_model
from tests.models.small_models import outputs
from torch import nn

from strongticket.builders import build, build_file
from strongticket.models import OpenedModel, batches
from strongticket.models.tensors import tensor_named
from strongticket.ticket import Ticket

TOLERANCE = 4e-3
# Of these at least, numbers are read from the files in parts; transformers fuses or renames tensors of some others.
IN_PARTS = {
    "LlamaForCausalLM", "MistralForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM", "Gemma2ForCausalLM",
    "Phi3ForCausalLM", "GPT2LMHeadModel", "OPTForCausalLM", "MambaForCausalLM", "BertForMaskedLM",
    "RobertaForSequenceClassification", "T5ForConditionalGeneration", "CLIPModel", "MPNetModel",
}  # fmt: skip
AS_FACTORS = {
    "LlamaForCausalLM", "GPT2LMHeadModel", "Qwen2MoeForCausalLM", "AlbertForMaskedLM",
    "ResNetForImageClassification", "CLIPModel",
}  # fmt: skip

pytestmark = pytest.mark.filterwarnings(
    "ignore:`torch.jit.script` is deprecated:DeprecationWarning"
)  # DeBERTa


def with_noise(model: nn.Module, ticket: Ticket, seed: int) -> nn.Module:
    """What the ticket's errors predict: normal noise of the same size on every tensor."""
    noisy = copy.deepcopy(model)
    chance = torch.Generator().manual_seed(seed)
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


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_a_folder_becomes_a_ticket_and_a_network(name, tmp_path):
    """The same bytes whether its numbers are read from the files in parts or loaded first."""
    model = tiny_model(name)
    inputs = batches(model, None, None, sequences=2)[0].inputs
    wanted = outputs(model, inputs)
    model.save_pretrained(tmp_path / "model")
    build_file(tmp_path / "model", tmp_path / "a.ticket", tolerance=TOLERANCE, workers=1)
    ticket = Ticket.load(tmp_path / "a.ticket")
    opened = OpenedModel(str(tmp_path / "model"))
    assert opened.stored() is not None or name not in IN_PARTS
    assert build(opened.load(), tolerance=TOLERANCE, workers=1).to_bytes() == ticket.to_bytes()
    network = ticket.network()
    assert not ticket.floats
    assert not ticket.masks
    assert type(network) is type(model)
    shapes = [{n: p.shape for n, p in each.named_parameters()} for each in (model, network)]
    assert shapes[0] == shapes[1]
    noisy = [outputs(with_noise(model, ticket, seed), inputs) for seed in range(3)]
    predicted = max(relative(output, wanted) for output in noisy)
    found = outputs(network, inputs)
    assert 0 < relative(found, wanted) < 3 * predicted < 0.2
    if name in AS_FACTORS:
        assert torch.equal(outputs(ticket.network(form="factors"), inputs), found)
