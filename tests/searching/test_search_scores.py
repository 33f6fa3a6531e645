"""Scores on a model and off again: gradients, thresholds, ties, memory."""

import copy
import gc
import subprocess
import sys
import weakref

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.utils import parametrize
from transformers import (
    BertConfig,
    BertForMaskedLM,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
)

from strongticket.errors import StrongTicketError
from strongticket.searching import attach, detach, masks
from strongticket.searching.masking.weights import Weights
from strongticket.seeds import draw


def gpt2(**more):
    sizes = {"vocab_size": 11, "n_positions": 8, "n_embd": 8, "n_layer": 2, "n_head": 2}
    drop = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}
    return GPT2LMHeadModel(GPT2Config(**sizes, **drop, bos_token_id=None, eos_token_id=None, **more))


def llama():
    sizes = {"hidden_size": 8, "intermediate_size": 12, "num_hidden_layers": 1, "num_attention_heads": 4}
    return LlamaForCausalLM(
        LlamaConfig(vocab_size=11, num_key_value_heads=2, bos_token_id=None, eos_token_id=None, **sizes)
    )


def bert():
    sizes = {"hidden_size": 8, "intermediate_size": 12, "num_hidden_layers": 1, "num_attention_heads": 2}
    return BertForMaskedLM(BertConfig(vocab_size=11, max_position_embeddings=8, **sizes))


MODELS = {
    "gpt2": gpt2,
    "llama": llama,
    "bert": bert,
    "torch": lambda: nn.TransformerEncoderLayer(8, 2, 12, dropout=0.0, batch_first=True),
}
TOKENS = torch.arange(16).reshape(2, 8) % 11


def loss_of(model):
    if isinstance(model, nn.TransformerEncoderLayer):
        inputs = torch.linspace(-1, 1, 64).sin().reshape(2, 4, 8)
        return (model(inputs) - inputs.flip(-1)).square().mean()
    return model(input_ids=TOKENS, labels=TOKENS).loss


def steps(model, count, **optimizer):
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    adamw = torch.optim.AdamW(trained, lr=0.05, **optimizer)
    for _ in range(count):
        loss_of(model).backward()
        adamw.step()
        adamw.zero_grad()


class _Subnet(torch.autograd.Function):
    """Ramanujan et al.'s own: sort, cut, straight through."""

    @staticmethod
    def forward(ctx, scores, keep):
        out = torch.zeros_like(scores)
        out.view(-1)[scores.reshape(-1).sort(descending=True, stable=True).indices[:keep]] = 1
        return out

    @staticmethod
    def backward(ctx, gradient):
        return gradient, None


def test_weights_and_gradients_are_edge_popups():
    model = nn.Sequential(nn.Linear(7, 5), nn.ReLU(), nn.Linear(5, 3))
    attachment = attach(model, 0.3, seed=3, qk_scale=1)
    inputs = torch.linspace(-1, 1, 28).reshape(4, 7)
    model(inputs).square().sum().backward()
    reference = []
    for matrix in attachment.masked:
        scores = matrix.parameter.detach().clone().requires_grad_()
        weights = torch.from_numpy(attachment.sources[matrix.name].weights())
        reference.append((scores, weights * _Subnet.apply(scores.abs(), round(0.3 * scores.numel()))))
    (first, w0), (second, w1) = reference
    (torch.relu(inputs @ w0.t()) @ w1.t()).square().sum().backward()
    for layer, scores, weights in ((model[0], first, w0), (model[2], second, w1)):
        assert torch.equal(layer.weight, weights)
        assert torch.equal(layer.parametrizations.weight.original.grad, scores.grad)


@pytest.mark.parametrize("family", MODELS)
@pytest.mark.parametrize("scope", ["tensor", "global"])
def test_search_moves_masks_and_nothing_else(family, scope):
    """After training each weight is its frozen draw or zero, and exactly round(k n) are kept."""
    model = MODELS[family]()
    sources = attach(model, 0.3, scope=scope, seed=5).sources
    before = masks(model)
    first = float(loss_of(model).detach())
    steps(model, 5)
    after = masks(model)
    assert float(loss_of(model).detach()) < first
    assert any((before[name] != after[name]).any() for name in before)
    kept = {name: int(mask.sum()) for name, mask in after.items()}
    if scope == "tensor":
        assert kept == {name: round(0.3 * mask.size) for name, mask in after.items()}
    else:
        assert sum(kept.values()) == round(0.3 * sum(mask.size for mask in after.values()))
    for name, weights in detach(model).state_dict().items():
        if name in sources:
            np.testing.assert_array_equal(weights.numpy(), sources[name].weights() * after[name])
        elif name.endswith("bias"):
            assert not weights.any()


@pytest.mark.parametrize("optimizer", [{}, {"foreach": True}, {"fused": True}])
def test_masks_follow_every_optimiser_at_the_next_call(optimizer):
    model = gpt2()
    attach(model, 0.3)
    layer, name = model.transformer.h[0].mlp.c_fc, "transformer.h.0.mlp.c_fc.weight"
    for call in (torch.enable_grad, torch.no_grad, torch.inference_mode):
        before = masks(model)[name]
        steps(model, 1, **optimizer)
        with call():
            loss_of(model)
        after = (layer.weight != 0).numpy()
        assert after.sum() == before.sum()
        assert (after != before).any()
        np.testing.assert_array_equal(after, masks(model)[name])


def test_accumulated_gradients_add_up():
    model = gpt2()
    attach(model, 0.3)
    loss_of(model).backward()
    name, score = next((n, p) for n, p in model.named_parameters() if p.requires_grad)
    once = score.grad.clone()
    loss_of(model).backward()
    torch.testing.assert_close(dict(model.named_parameters())[name].grad, 2 * once)


def test_tied_weights_stay_tied():
    model = gpt2()
    assert model.lm_head.weight is model.transformer.wte.weight
    attach(model, 0.3)
    assert "lm_head.weight" not in masks(model)
    steps(model, 2)
    assert torch.equal(model.lm_head.weight, model.transformer.wte.weight)
    detach(model)
    assert model.lm_head.weight is model.transformer.wte.weight
    assert int(model.lm_head.weight.count_nonzero()) == round(0.3 * model.lm_head.weight.numel())


def test_attach_and_detach_are_symmetric():
    model = gpt2()
    classes = [type(module) for module in model.modules()]
    names = {name for name, _ in model.named_parameters()}
    attach(model, 0.3)
    assert parametrize.is_parametrized(model.transformer.h[0].attn.c_attn, "weight")
    with torch.no_grad():
        expected = model(TOKENS).logits
    detach(model)
    assert [type(module) for module in model.modules()] == classes
    assert {name for name, _ in model.named_parameters()} == names
    assert all(parameter.requires_grad for parameter in model.parameters())
    assert not model._forward_pre_hooks
    assert torch.equal(model(TOKENS).logits, expected)
    attach(model, 0.3)
    assert torch.equal(model(TOKENS).logits, expected)


def test_importing_installs_no_hook():
    """Hooks of torch that every module and optimiser of the process would run."""
    code = """
import strongticket, strongticket.searching, strongticket.searching.config
from strongticket.searching import attach, search, to_ticket
from strongticket.searching.registry import METHODS, find_method
for name in METHODS:
    find_method(name)
from torch.nn.modules import module
from torch.optim import optimizer
hooks = {**vars(module), **vars(optimizer)}
found = {name: hooks[name] for name in hooks if name.startswith("_global_") and "hooks" in name}
assert len(found) >= 6 and not any(found.values()), found
"""
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)


@pytest.mark.filterwarnings("ignore:The .grad attribute")  # torch.compile's own
@pytest.mark.parametrize("wrap", [torch.nn.DataParallel, lambda model: torch.compile(model, backend="eager")])
def test_wrappers_run_the_hook_of_the_model_inside(wrap):
    plain, inner = gpt2(), gpt2()
    for model in (plain, inner):
        attach(model, 0.3)
    wrapped = wrap(inner)
    for _ in range(2):
        steps(plain, 1)
        steps(wrapped, 1)
        with torch.no_grad():
            assert torch.equal(wrapped(input_ids=TOKENS).logits, plain(input_ids=TOKENS).logits)
    for name, mask in masks(plain).items():
        np.testing.assert_array_equal(mask, masks(wrapped)[name])


def test_a_non_contiguous_parameter():
    layer = nn.Linear(6, 4, bias=False)
    layer.weight = nn.Parameter(torch.empty(6, 4).t())
    attach(layer, 0.5, qk_scale=1)
    mask = masks(layer)["weight"]
    assert mask.sum() == 12
    assert np.array_equal(layer.weight.detach().numpy() != 0, mask)
    assert set(np.unique(mask)) == {False, True}


@pytest.mark.parametrize("prefix", ["module", "_orig_mod"])
def test_names_carry_no_wrapper_prefix(prefix):
    """A model wrapped by DDP or torch.compile has the same masks under the same names: they load elsewhere."""
    plain, wrapped = gpt2(), nn.ModuleDict({prefix: gpt2()})
    attach(plain, 0.3, qk_scale=2.0)
    attach(wrapped, 0.3, qk_scale=2.0)
    assert all(name.startswith(prefix) for name, _ in wrapped.named_parameters())
    assert masks(plain).keys() == masks(wrapped).keys()
    for name, mask in masks(plain).items():
        np.testing.assert_array_equal(mask, masks(wrapped)[name])


def test_frozen_weights_are_the_seeds():
    model = nn.Sequential(nn.Linear(4, 3))
    attachment = attach(model, 1.0, seed=9, qk_scale=1)
    source = attachment.sources["0.weight"]
    expected = draw(9, "0.weight", (3, 4), source.law)
    np.testing.assert_array_equal(model[0].weight.detach().numpy(), expected)


def test_a_copy_is_a_model_of_its_own():
    model = gpt2()
    attach(model, 0.3)
    steps(model, 1)
    twin = copy.deepcopy(model)
    before = masks(model)
    assert all(np.array_equal(mask, before[name]) for name, mask in masks(twin).items())
    steps(twin, 3)
    assert all(np.array_equal(mask, before[name]) for name, mask in masks(model).items())
    assert any((mask != before[name]).any() for name, mask in masks(twin).items())
    detach(twin)
    assert not twin._forward_pre_hooks
    assert not any(isinstance(module, Weights) for module in twin.modules())
    assert all(np.array_equal(mask, before[name]) for name, mask in masks(model).items())


def test_nothing_keeps_a_model_alive():
    model = gpt2()
    attach(model, 0.3)
    steps(model, 1)
    weights = weakref.ref(next(module for module in model.modules() if isinstance(module, Weights)))
    del model
    gc.collect()
    assert weights() is None


def test_loading_scores_moves_the_masks():
    one, other = gpt2(), gpt2()
    attach(one, 0.3, seed=1)
    attach(other, 0.3, seed=1)
    steps(one, 2)
    masks(other)
    other.load_state_dict(one.state_dict())
    for name, mask in masks(one).items():
        np.testing.assert_array_equal(mask, masks(other)[name])


def test_trained_parts():
    model = gpt2()
    attachment = attach(model, 0.3, train=("norm", "transformer.h.1.mlp.*", "bias"))
    trained = {
        name for name, p in model.named_parameters() if p.requires_grad and "parametrizations" not in name
    }
    assert attachment.trained.keys() == trained
    assert "transformer.h.1.mlp.c_fc.weight" in trained
    assert "transformer.ln_f.weight" in trained
    assert "transformer.h.1.mlp.c_fc.weight" not in masks(model)
    embedded = gpt2()
    assert "transformer.wte.weight" in attach(embedded, train=["embedding"]).trained


def test_a_module_alone_has_plain_names():
    attachment = attach(nn.Linear(4, 3), qk_scale=1)
    assert attachment.sources.keys() == {"weight"}


def test_refusals():
    with pytest.raises(StrongTicketError, match=r"kept=.*a number above 0"):
        attach(gpt2(), 1.5)
    with pytest.raises(StrongTicketError, match="kept=nan"):
        attach(gpt2(), float("nan"))
    with pytest.raises(StrongTicketError, match="scope="):
        attach(gpt2(), scope="layer")
    with pytest.raises(StrongTicketError, match="no weights to mask"):
        attach(nn.ReLU(), qk_scale=1)
    with pytest.raises(StrongTicketError, match="no query or key projections"):
        attach(nn.Linear(2, 2))
    with pytest.raises(StrongTicketError, match=r"'weight' is torch.float64.*model.float\(\)"):
        attach(nn.Linear(2, 2).double(), qk_scale=1)
    with pytest.raises(StrongTicketError, match="train names 'nothing'"):
        attach(gpt2(), train=["nothing"])
    model = nn.Sequential(nn.Linear(2, 2))
    model[0].alpha = nn.Parameter(torch.zeros(2, 2))
    with pytest.raises(StrongTicketError, match=r"parameter '0.alpha' is neither"):
        attach(model, qk_scale=1)
    with pytest.raises(StrongTicketError, match="has no scores"):
        detach(gpt2())
    twice = gpt2()
    attach(twice)
    with pytest.raises(StrongTicketError, match="has scores already"):
        attach(twice)


def test_a_diverged_search_names_the_tensor():
    model = gpt2()
    attachment = attach(model, 0.3)
    with torch.no_grad():
        attachment.masked[0].parameter[0, 0] = float("nan")
    with pytest.raises(StrongTicketError, match=r"transformer.wte.weight' is not finite.*learning rate"):
        loss_of(model)
