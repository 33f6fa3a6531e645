"""A config from a file says what a network is, and nothing else: not how it runs, and not where to look."""

import pytest
import safetensors.torch
from tests.faults.cluster import small_model

from strongticket.errors import StrongTicketError
from strongticket.models.configs import make_config
from strongticket.models.loading import load_model

TIMM = {"model_type": "timm_backbone", "backbone": "hf-hub:some/model"}

transformers = pytest.importorskip("transformers", reason="needs strongticket[huggingface]")


def test_entries_that_are_ignored_cannot_come_under_another_name():
    """transformers would download the kernel and run it."""
    names = transformers.GPT2Config.attribute_map | {"run_by": "_attn_implementation"}
    stored = {"model_type": "gpt2", "n_layer": 1, "attribute_map": names, "run_by": "evil/kernel"}
    assert make_config(stored)._attn_implementation is None
    part = {"model_type": "bert", "attribute_map": names, "run_by": "evil/kernel"}
    both = make_config({"model_type": "encoder-decoder", "encoder": part, "decoder": {"model_type": "bert"}})
    assert both.encoder._attn_implementation is None


@pytest.mark.parametrize("name", ["to_dict", "attribute_map", "get_text_config", "from_dict"])
def test_what_all_configs_are_made_of_is_not_an_entry(name):
    assert make_config({"model_type": "gpt2", "n_layer": 1, name: 5}).n_layer == 1


@pytest.mark.parametrize(
    "changes",
    [
        {"model_type": "swin", "depths": [2, 10**9]},
        {"model_type": "swin", "depths": [60_000, 60_000]},
        {"model_type": "upernet", "backbone_config": {"model_type": "convnext", "depths": [10**8]}},
        {"model_type": "gpt2", "parts": [{"num_layers": 10**8}]},
    ],
)
def test_sizes_in_lists_are_limited(changes):
    with pytest.raises(StrongTicketError, match="the limit is 100,000"):
        make_config(changes)


@pytest.mark.parametrize("stored", [None, 3, [], "gpt2", {}, {"model_type": ["gpt2"]}])
def test_what_is_not_a_config_is_refused(stored):
    with pytest.raises(StrongTicketError, match=r"not a JSON object|model_type"):
        make_config(stored)


@pytest.mark.parametrize(
    "stored",
    [
        {"model_type": "dpt", "is_hybrid": False, "backbone": "some/backbone", "backbone_config": None},
        {"model_type": "detr", "backbone": "some/backbone", "use_timm_backbone": False},
        {"model_type": "detr", "backbone_kwargs": {"out_indices": [1]}},
        {"model_type": "upernet", "backbone_config": TIMM},
        {"model_type": "timm_wrapper", "architecture": "local-dir:/etc"},
        {"model_type": "timm_wrapper", "architecture": "resnet18", "model_args": {"checkpoint_path": "/etc"}},
    ],
)
def test_a_config_never_asks_the_hub(stored, monkeypatch):
    for name in ("connect", "connect_ex"):
        monkeypatch.setattr(f"socket.socket.{name}", lambda *_: pytest.fail("asked the hub"))
    with pytest.raises(StrongTicketError, match=r"is only named|does not come with it"):
        make_config(stored)


def test_a_described_backbone_is_taken():
    backbone = {"model_type": "convnext", "depths": [1, 1, 1, 1]}
    made = make_config({"model_type": "upernet", "backbone_config": backbone})
    assert made.backbone_config.depths == [1, 1, 1, 1]
    named = {"model_type": "timm_backbone", "backbone": "resnet50"}  # timm makes it without weights
    assert make_config(named).backbone == "resnet50"


def test_tensors_that_a_class_does_without_are_missed_too(tmp_path, monkeypatch):
    """Of these transformers says nothing, and fills them with random numbers."""
    monkeypatch.setattr(transformers.GPT2LMHeadModel, "_keys_to_ignore_on_load_missing", [r"c_proj"])
    small_model().save_pretrained(tmp_path)
    load_model(tmp_path)
    tensors = safetensors.torch.load_file(tmp_path / "model.safetensors")
    del tensors["transformer.h.0.mlp.c_proj.weight"]
    safetensors.torch.save_file(tensors, tmp_path / "model.safetensors", {"format": "pt"})
    with pytest.raises(StrongTicketError, match=r"lacks the tensor transformer.h.0.mlp.c_proj.weight"):
        load_model(tmp_path)


def test_constant_buffers_are_limited(tmp_path):
    sizes = {"n_embd": 8, "n_head": 1, "n_layer": 1, "vocab_size": 8, "rotary_dim": 4}
    transformers.GPTJModel(transformers.GPTJConfig(**sizes, n_positions=8)).save_pretrained(tmp_path)
    transformers.GPTJConfig(**sizes, n_positions=1 << 36).save_pretrained(tmp_path)
    with pytest.raises(StrongTicketError, match="buffers have"):
        load_model(tmp_path)
