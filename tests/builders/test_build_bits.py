"""What is asked for is what is built: bits, tolerance, the bound of every number, and the plan of all of them."""

import math

import numpy as np
import pytest
import torch
from tests.choice.oracle import tensors
from tests.models.small_models import LLAMA, hf_model, stories_like, transformers
from torch import nn

from strongticket import choice
from strongticket.builders import build, build_file, plan_model, steps
from strongticket.errors import StrongTicketError
from strongticket.models.tensors import parameters

BITS = (2, 3.5, 4.5, 6.25, 8)


def matrix(rows: int, columns: int, kind: str = "normal", seed: int = 0) -> nn.Module:
    rng = np.random.default_rng(seed)
    shape = (rows, columns)
    numbers = rng.standard_t(3, shape) if kind == "heavy tails" else rng.standard_normal(shape)
    module = nn.Linear(columns, rows, bias=False)
    module.weight.data = torch.from_numpy(0.03 * numbers).float()
    return module


MODELS = {
    "stories": stories_like,
    "256²": lambda: matrix(256, 256),
    "400 × 300, heavy tails": lambda: matrix(400, 300, "heavy tails"),
    "1100 × 960": lambda: matrix(1100, 960),  # two blocks
}


@pytest.fixture(scope="module", params=MODELS)
def model(request):
    return MODELS[request.param]()


def count(model: nn.Module) -> int:
    return sum(p.numel() for p in model.parameters())


def bits_of(ticket, model: nn.Module) -> float:
    return 8 * len(ticket.to_bytes()) / count(model)


@pytest.mark.parametrize("bits", BITS)
def test_bits_are_those_of_the_file(model, bits):
    assert bits_of(build(model, bits=bits, workers=1), model) == pytest.approx(bits, rel=0.01)


@pytest.mark.parametrize("states", [1, 8])
@pytest.mark.parametrize("tolerance", [0.003, 0.1])
def test_tolerance_is_the_root_mean_square_error(model, tolerance, states):
    ticket = build(model, tolerance=tolerance, states=states, workers=1)
    for name, (_, relative) in ticket.metadata["errors"].items():
        shape = model.get_parameter(name).shape
        if len(shape) > 1:  # vectors are made more precisely
            few = max(1.0, 256 / min(shape))  # paths down short columns are a little worse
            assert relative == pytest.approx(tolerance, rel=0.01 * few), name
        else:
            assert relative == pytest.approx(tolerance * steps.VECTOR_STEP, rel=0.3), name


@pytest.mark.parametrize(
    "asked", [{"bits": 2}, {"bits": 4.5}, {"tolerance": 0.02}, {"tolerance": 0.02, "states": 1}]
)
def test_plan_says_what_is_built(model, asked):
    planned, ticket = plan_model(model, **asked), build(model, workers=1, **asked)
    assert planned.numbers == count(model)
    assert planned.tensors == len(parameters(model)) == len(ticket.choices)
    assert planned.whole
    assert planned.file_bytes == pytest.approx(len(ticket.to_bytes()), rel=0.01)
    assert planned.bits == pytest.approx(bits_of(ticket, model), rel=0.01)
    # At two bits, numbers are read times a factor, which makes errors a little smaller.
    near = 0.05 if "bits" in asked else 0.015
    assert planned.error == pytest.approx(ticket.metadata["relative_error"], rel=near)


def test_a_sample_of_a_large_model_is_enough(monkeypatch):
    """A quarter of the numbers: rows from the middle of each tensor."""
    model = stories_like()
    monkeypatch.setattr(steps, "_SAMPLED", 1 << 16)
    monkeypatch.setattr(steps, "_LEAST", 1 << 11)
    read = []
    cost = steps.choice.cost
    monkeypatch.setattr(steps.choice, "cost", lambda rows, *rest: read.append(rows.size) or cost(rows, *rest))
    planned = plan_model(model, bits=4.5)
    assert sum(read[: planned.tensors]) < 0.4 * planned.numbers
    assert bits_of(build(model, bits=4.5, workers=1), model) == pytest.approx(4.5, rel=0.01)


@pytest.mark.parametrize(("kept", "bits"), [(0.2, 1), (0.2, 1.5), (0.05, 0.5), (0.05, 1)])
def test_bits_are_met_by_pruned_matrices(kept, bits):
    module = matrix(600, 600)
    module.weight.data *= torch.rand(600, 600, generator=torch.Generator().manual_seed(0)) < kept
    ticket = build(module, bits=bits, workers=1)
    assert bits_of(ticket, module) == pytest.approx(bits, rel=0.01)
    assert ((ticket.weights("weight") == 0) == (module.weight.detach().numpy() == 0)).all()


@pytest.mark.parametrize(
    ("model", "bits", "why"),
    [
        (lambda: hf_model("gpt2"), 0.5, "small: .* at least"),
        (lambda: matrix(1, 1), 4, "small: .* at least"),
        (lambda: matrix(1, 500), 1, "small: .* at least"),
        (lambda: matrix(256, 256), 30, "large: .* at most"),
    ],
)
def test_bits_out_of_reach_are_refused(model, bits, why, tmp_path):
    with pytest.raises(StrongTicketError, match=f"bits={bits} is too {why}"):
        build_file(model(), tmp_path / "b.ticket", bits=bits, workers=1)
    assert list(tmp_path.iterdir()) == []


def test_bits_of_a_vector_are_met():
    vector = matrix(1, 5000)
    assert bits_of(build(vector, bits=9, workers=1), vector) == pytest.approx(9, rel=0.01)


def test_plan_counts_tied_weights_once_and_leaves_out_what_is_not_asked_for():
    model = hf_model("llama-tied")
    assert plan_model(model).numbers == count(model)
    only = plan_model(model, only=["model.layers.0.*"])
    assert not only.whole
    assert only.tensors == 9
    with pytest.raises(StrongTicketError, match="plan covers tickets by choice"):
        plan_model(model, by="subset")


def test_plan_reads_a_folder(tmp_path):
    hf_model("llama").save_pretrained(tmp_path)
    assert plan_model(tmp_path, tolerance=0.01) == plan_model(hf_model("llama"), tolerance=0.01)
    empty = tmp_path / "empty"
    transformers.LlamaConfig(**LLAMA, architectures=["LlamaForCausalLM"]).save_pretrained(empty)
    with pytest.raises(StrongTicketError, match="has no model"):
        plan_model(empty)


@pytest.mark.parametrize("states", choice.STATES)
@pytest.mark.parametrize("step", [{"tolerance": 0.003}, {"tolerance": 0.2}, {"bits": 6}])
def test_every_number_is_within_its_bound(states, step):
    """By one state Δ/2, by more Δ, whatever the numbers; Δ is read from the file."""
    module = nn.ParameterDict({name: torch.from_numpy(array) for name, array in tensors().items()})
    ticket = build(module, states=states, workers=1, **step)
    assert not ticket.metadata["shrunk"]
    for name, coded in ticket.choices.items():
        made = ticket.weights(name)
        difference = np.abs(made.astype(np.float64) - module[name].detach().numpy())
        slack = 2.0**-23 * np.abs(made) + 2.0**-149
        assert (difference <= choice.bounds(coded) * (1 + 1e-6) + slack).all(), name
        assert difference.max() == pytest.approx(ticket.metadata["errors"][name][0], rel=6e-3), name


@pytest.mark.parametrize("asked", [{"bits": 2}, {"tolerance": 0.01}])
def test_exact_zeros_of_a_pruned_model_stay_exact(asked):
    model = stories_like()
    generator = torch.Generator().manual_seed(3)
    for parameter in model.parameters():
        if parameter.ndim > 1:
            parameter.mul_(torch.rand(parameter.shape, generator=generator) < 0.5)
    ticket = build(model, workers=1, **asked)
    network = ticket.network()
    for name, parameter in model.named_parameters():
        if parameter.ndim > 1:
            assert torch.equal(network.get_parameter(name) == 0, parameter == 0), name
    if "bits" in asked:  # half of the numbers are told apart from zero, the others have all bits left
        assert bits_of(ticket, model) == pytest.approx(2, rel=0.01)


def test_low_rates_are_read_times_a_factor():
    """Which makes the error smaller, and the file says so."""
    model = matrix(300, 300)
    shrunk = build(model, bits=1.5, workers=1)
    assert shrunk.metadata["shrunk"]
    plain = build(
        model, tolerance=plan_model(model, bits=1.5).step * choice.GAIN[8] / math.sqrt(12), workers=1
    )
    assert not plain.metadata["shrunk"]
    assert len(plain.to_bytes()) == pytest.approx(len(shrunk.to_bytes()), rel=0.02)
    assert shrunk.metadata["relative_error"] < 0.97 * plain.metadata["relative_error"]


def test_rates_are_near_the_limit():
    """Of normal numbers, log2(1 / relative error), everything counted."""
    model = matrix(1100, 960)
    for bits in (3, 5):
        ticket = build(model, bits=bits, workers=2)
        assert len(ticket.choices["weight"].blocks) == 2
        assert bits_of(ticket, model) + math.log2(ticket.metadata["relative_error"]) < 0.12
