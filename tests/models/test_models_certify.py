"""Certificates of attention layers: what runs in float32 is never further from the target than they say."""

import copy

import numpy as np
import pytest
import torch
from tests.models.small_models import hf_inputs, hf_model, outputs, run_attention
from torch import nn

from strongticket import choice
from strongticket.builders import build
from strongticket.errors import StrongTicketError
from strongticket.models import certify_layers, certify_ticket
from strongticket.models.attention import attention_of
from strongticket.models.tensors import fill
from strongticket.ticket import Ticket

NAMES = ["llama", "llama-bias", "qwen2", "gpt2", "bert", "roberta-mlm", "vit", "vit-bare"]
STATES = {"llama": 1, "gpt2": 1, "bert": 64}  # the others: 8


@pytest.fixture(scope="module", params=NAMES)
def built(request):
    """(model, ticket, its network)."""
    model = hf_model(request.param)
    ticket = build(model, tolerance=0.01, states=STATES.get(request.param, 8), workers=1)
    return model, ticket, ticket.network()


def with_bounds(model: nn.Module, ticket: Ticket) -> nn.Module:
    """The model with the largest difference of each number in its place, from the spacings in the file."""
    bounds = {
        name: choice.bounds(coded) + 2.0**-23 * np.abs(ticket.weights(name))
        for name, coded in ticket.choices.items()
    }
    return fill(copy.deepcopy(model), bounds.items())


def inputs_of(radius: float, shape, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Tokens of that length in all directions, single ones repeated too, and positions."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(64, 6, shape.dim, generator=generator, dtype=torch.float64)
    x[::4] = x[::4, :1]
    x = x / x.norm(dim=-1, keepdim=True) * radius
    return x, torch.randint(0, 20, (64, 6), generator=generator)


def errors(target: nn.Module, source: nn.Module, layer, x: torch.Tensor, positions: torch.Tensor) -> float:
    """The largest error of a token: the source in float32, the target in float64."""
    made = run_attention(source, layer, x.float(), positions)
    wanted = run_attention(copy.deepcopy(target).double(), layer, x, positions)
    return float((made - wanted).norm(dim=-1).max())


@pytest.mark.parametrize(("name", "bias"), [("gpt2", "c_attn.bias"), ("bert", "key.bias")])
def test_the_rounding_of_large_key_biases_is_counted(name, bias):
    """Softmax does not see them, float32 does."""
    model = hf_model(name)
    for key, parameter in model.named_parameters():
        if key.endswith(bias):
            parameter.data[len(parameter) // 3 :] += 1e5 if name == "gpt2" else 1e6
    for each, layer in zip(certify_layers(model, model), attention_of(model), strict=True):
        x, positions = inputs_of(each.radius, layer.shape, each.layer)
        assert 1e-4 < errors(model, model, layer, x, positions) <= each.bound


def test_the_network_keeps_to_its_certificates(built):
    model, _, network = built
    found = certify_layers(model, network)
    assert [each.layer for each in found] == [0, 1]
    for each, layer in zip(found, attention_of(model), strict=True):
        assert each.arithmetic == "float32"
        error = errors(model, network, layer, *inputs_of(each.radius, layer.shape, each.layer))
        assert 0 < error <= each.bound < np.inf


def test_attention_reads_nothing_longer_than_the_radius(built):
    model, _, network = built
    inputs = hf_inputs(model)
    for each, layer in zip(certify_layers(model, network), attention_of(model), strict=True):
        seen = []
        norm = model.get_submodule(layer.reads)
        hook = norm.register_forward_hook(lambda *given, seen=seen: seen.append(given[2]))
        outputs(model, inputs)
        hook.remove()
        assert 0.2 * each.radius < max(float(x.norm(dim=-1).max()) for x in seen) <= each.radius * (1 + 1e-6)


def test_spacing_alone_certifies_more_loosely(built):
    """For every model within the spacings: the target itself, and others at the very end of them."""
    model, ticket, network = built
    bounds = with_bounds(model, ticket)
    for name, bound in bounds.named_parameters():
        difference = (network.get_parameter(name) - model.get_parameter(name)).abs()
        assert bool((difference <= bound * (1 + 1e-6)).all()), name
    far = copy.deepcopy(network)
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for name, parameter in far.named_parameters():
            signs = torch.randint(0, 2, parameter.shape, generator=generator) * 2 - 1
            parameter.add_(signs * bounds.get_parameter(name))
    found = certify_ticket(ticket)
    for each, known, layer in zip(found, certify_layers(model, network), attention_of(model), strict=True):
        assert each.layer == known.layer
        assert each.radius >= known.radius
        assert each.bound >= known.bound
        assert np.isfinite(each.bound)
        x, positions = inputs_of(each.radius, layer.shape, each.layer)
        for target in (model, far):
            assert 0 < errors(target, network, layer, x, positions) <= each.bound


@pytest.mark.parametrize("name", ["llama-bias", "gpt2", "bert", "vit"])
def test_bounds_are_not_larger_than_need_be(name):
    """One head's output changed along one direction, and all tokens in it: the error is nearly the bound."""
    model = hf_model(name)
    layer = attention_of(model)[0]
    p = layer.read(model)
    left, size, right = np.linalg.svd(p.value[0] @ p.output[0])
    changed = copy.deepcopy(model)
    head_dim = p.output.shape[1]
    # W_O of the first head grows by a tenth of its best part.
    grow = 0.1 * np.linalg.pinv(p.value[0]) @ (size[0] * np.outer(left[:, 0], right[0]))
    with torch.no_grad():
        weight = changed.get_submodule(layer.linears[-1]).weight
        weight = weight if name == "gpt2" else weight.T
        weight[:head_dim] += torch.from_numpy(grow).float()
    found = certify_layers(model, changed)[0]
    x = torch.from_numpy(left[:, 0]).expand(2, 3, -1) * found.radius
    error = errors(model, changed, layer, x, torch.zeros(2, 3, dtype=torch.long))
    assert error <= found.bound < 2 * error


@pytest.mark.parametrize("name", ["gpt2", "llama-bias", "bert", "vit"])
@pytest.mark.parametrize("times", [1, 5])
def test_certificates_count_the_rounding_of_float32(name, times):
    """The model beside itself: all that is left is the arithmetic that it runs in, which large logits make worse."""
    model = hf_model(name)
    for path, parameter in model.named_parameters():
        if any(part in path for part in ("q_proj", "k_proj", "query", "key", "c_attn")):
            parameter.mul_(times)
    for each, layer in zip(certify_layers(model, model), attention_of(model), strict=True):
        x, positions = inputs_of(each.radius, layer.shape, each.layer)
        wanted = run_attention(copy.deepcopy(model).double(), layer, x, positions)
        error, size = errors(model, model, layer, x, positions), float(wanted.norm(dim=-1).max())
        assert 0 < error <= each.bound
        if times == 1:
            assert each.bound < 0.02 * size
        else:
            assert error > 1e-6 * size  # more than rounding the output alone


@pytest.mark.parametrize("name", ["gpt2", "llama-bias"])
def test_products_are_certified_too(name):
    model = hf_model(name)
    layers = attention_of(model)
    ticket = build(
        model, attention="products", tolerance=1e-3, only=[each.path for each in layers], workers=1
    )
    network = ticket.network(base=model)
    for each, layer in zip(certify_layers(model, network), layers, strict=True):
        error = errors(model, network, layer, *inputs_of(each.radius, layer.shape, each.layer))
        assert 0 < error <= each.bound < np.inf


def test_what_spacing_alone_cannot_certify():
    model = hf_model("gpt2")
    for options in ({"by": "subset"}, {"only": "transformer.h.*"}):
        with pytest.raises(StrongTicketError, match="only whole models built by choice"):
            certify_ticket(build(model, workers=1, **options))
    shrunk = build(model, bits=8, workers=1)
    assert shrunk.metadata["shrunk"]
    with pytest.raises(StrongTicketError, match="can be further from the model's"):
        certify_ticket(shrunk)
