"""Small networks for the JavaScript reader: searched ones with random masks, models with random numbers to build."""

from pathlib import Path

import numpy as np
import torch
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoModelForImageClassification,
    GPT2Config,
    GPT2LMHeadModel,
    ViTConfig,
    ViTForImageClassification,
)

from strongticket.models.tokenizers import Characters
from strongticket.seeds import Normal
from strongticket.ticket import Ticket

KNOWN = Path(__file__).parents[1] / "known.ticket"
_LLAMA = {"vocab_size": 29, "hidden_size": 12, "intermediate_size": 17, "num_hidden_layers": 2}
_LLAMA |= {"num_attention_heads": 6, "num_key_value_heads": 2, "max_position_embeddings": 32}
_LLAMA |= {"bos_token_id": None, "eos_token_id": None, "pad_token_id": None}
_GPT2 = {"vocab_size": 29, "n_positions": 24, "n_embd": 15, "n_layer": 2, "n_head": 3, "n_inner": 22}
_GPT2 |= {"bos_token_id": None, "eos_token_id": None}
_VIT = {"hidden_size": 15, "intermediate_size": 22, "num_hidden_layers": 2, "num_attention_heads": 3}
MODELS = {
    "llama": ("llama", _LLAMA),
    "llama with biases": ("llama", _LLAMA | {"attention_bias": True, "mlp_bias": True, "head_dim": 6}),
    "tied llama": ("llama", _LLAMA | {"tie_word_embeddings": True}),
    "mistral": ("mistral", _LLAMA | {"sliding_window": None, "head_dim": 4}),
    "qwen2": ("qwen2", _LLAMA | {"num_key_value_heads": 6}),
    "gpt2": ("gpt2", _GPT2),
    "gpt2 with relu": (
        "gpt2",
        _GPT2 | {"activation_function": "relu", "scale_attn_by_inverse_layer_idx": True},
    ),
    "vit": ("vit", _VIT | {"image_size": 12, "patch_size": 4, "num_channels": 2, "num_labels": 5}),
}
TEXT = "The quick brown fox jumps over the lazy dog.\n"


def small_model(name: str):
    """One of MODELS as if it had been trained: every parameter is random, gains lie around 1."""
    family, config = MODELS[name]
    make = AutoModelForImageClassification if family == "vit" else AutoModelForCausalLM
    model = make.from_config(AutoConfig.for_model(family, **config)).requires_grad_(False).eval()
    generator = torch.Generator().manual_seed(0)
    for path, parameter in model.named_parameters():
        noise = torch.randn(parameter.shape, generator=generator)
        is_gain = parameter.ndim == 1 and path.endswith("weight")
        parameter.copy_(1 + 0.2 * noise if is_gain else 0.3 * noise)
    return model


def language_ticket(*, trained: bool = False, tokenizer=None, **config) -> Ticket:
    """trained: whether biases, gains and shifts are."""
    tokenizer = tokenizer or Characters.of(TEXT)
    sizes = {"n_positions": 12, "n_embd": 24, "n_layer": 2, "n_head": 3, "vocab_size": tokenizer.size}
    config = sizes | {"activation_function": "relu"} | config
    metadata = {"tokenizer": tokenizer.to_json(), "context": 10}
    return _ticket(GPT2LMHeadModel(GPT2Config(**config)), "gpt2", config, trained, metadata)


def llama_ticket(family: str = "llama", *, trained: bool = False, **config) -> Ticket:
    """Of Llama, Mistral or Qwen2."""
    tokenizer = Characters.of(TEXT)
    sizes = {"hidden_size": 24, "intermediate_size": 40, "num_hidden_layers": 2, "num_attention_heads": 4}
    sizes |= {"num_key_value_heads": 2, "vocab_size": tokenizer.size, "max_position_embeddings": 64}
    config = sizes | {"tie_word_embeddings": True, "pad_token_id": None} | config
    metadata = {"tokenizer": tokenizer.to_json(), "context": 10}
    model = AutoModelForCausalLM.from_config(AutoConfig.for_model(family, **config))
    return _ticket(model, family, config, trained, metadata)


def image_ticket(*, trained: bool = True, **config) -> Ticket:
    sizes = {"hidden_size": 12, "intermediate_size": 20, "num_hidden_layers": 2, "num_attention_heads": 2}
    config = sizes | {"image_size": 8, "patch_size": 4, "num_channels": 1, "num_labels": 10} | config
    model = ViTForImageClassification(ViTConfig(**config))
    return _ticket(model, "vit", config, trained, {})


def _ticket(model, family, config, trained, metadata) -> Ticket:
    rng = np.random.default_rng(0)
    masks, floats, scaled = {}, {}, {}
    for name, parameter in model.named_parameters():
        if parameter.ndim > 1:
            masks[name] = rng.random(parameter.shape) < 0.4
        elif trained:
            floats[name] = rng.normal(size=parameter.shape).astype(np.float32) / 3
        if name.endswith("c_attn.weight"):
            scaled[name] = [[1, 0, 2 * len(parameter), 1.7]]
        elif name.endswith(("q_proj.weight", "k_proj.weight")):
            scaled[name] = [[0, 0, len(parameter), 1.7]]
    settings = {"config": {"model_type": family} | config, "parts": scaled, "trained": sorted(floats)}
    return Ticket(3, "search", settings, dict.fromkeys(masks, Normal(0.25)), masks, floats, metadata=metadata)
