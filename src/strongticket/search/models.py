"""The models a search can train and a ticket can rebuild: transformers' own classes, listed by family.

No code and no class name is read from a file.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from torch import nn

from strongticket.data.models import transformers
from strongticket.errors import StrongTicketError
from strongticket.search.config import SearchConfig

# model_type -> transformers' config and model class
FAMILIES = {
    "gpt2": ("GPT2Config", "GPT2LMHeadModel"),
    "llama": ("LlamaConfig", "LlamaForCausalLM"),
    "mistral": ("MistralConfig", "MistralForCausalLM"),
    "qwen2": ("Qwen2Config", "Qwen2ForCausalLM"),
    "bert": ("BertConfig", "BertForMaskedLM"),
}
_NOT_STORED = ("transformers_version", "architectures", "dtype", "id2label", "label2id")


def build_model(config: dict[str, Any]) -> nn.Module:
    """A transformers model of a known family. Its weights have no meaning yet.

    config: its config as JSON, with `model_type`
    """
    hf = transformers()
    family = config.get("model_type")
    if family not in FAMILIES:
        raise StrongTicketError(f"model_type must be one of {', '.join(FAMILIES)}, got {family!r}")
    config_class, model_class = (getattr(hf, name) for name in FAMILIES[family])
    known = config_class().to_dict().keys()
    if odd := sorted(config.keys() - known):
        raise StrongTicketError(f"config has an entry {odd[0]!r} that a {family} model does not know")
    settings = config_class(**{name: value for name, value in config.items() if name != "model_type"})
    with torch.random.fork_rng(devices=[]):  # transformers draws weights that are never used
        model = model_class(settings)
    return model


def config_json(model: nn.Module) -> dict[str, Any]:
    """What build_model needs to make the same architecture."""
    config = getattr(model, "config", None)
    if config is None or getattr(config, "model_type", None) not in FAMILIES:
        raise StrongTicketError(
            f"a {type(model).__name__} cannot be rebuilt from a ticket file, only models of transformers' "
            f"families {', '.join(FAMILIES)}",
            hint="Use masks(model) for its masks.",
        )
    if type(model).__name__ != (expected := FAMILIES[config.model_type][1]):
        raise StrongTicketError(
            f"a {type(model).__name__} cannot be rebuilt from a ticket file: of {config.model_type} models only "
            f"{expected} can",
            hint="Use masks(model) for its masks.",
        )
    stored = config.to_diff_dict()
    return {name: value for name, value in stored.items() if name not in _NOT_STORED}


def make_model(config: SearchConfig, vocabulary: int) -> nn.Module:
    """The model of the settings: of the chosen architecture and size, or that of a folder's config.json."""
    if not config.model:
        return build_model(
            _gpt2(config, vocabulary) if config.architecture == "gpt2" else _llama(config, vocabulary)
        )
    path = Path(config.model) / "config.json"
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise StrongTicketError(
            f"model={config.model!r}: cannot read {path} ({error})", hint="Give a folder with a config.json."
        ) from None
    if not isinstance(stored, dict):
        raise StrongTicketError(
            f"model={config.model!r}: {path} does not hold a JSON object", hint="Give a model's config.json."
        )
    if stored.get("model_type") == "bert":
        raise StrongTicketError(
            "model is a BERT, which does not predict the next token", hint="Search trains causal models."
        )
    drop = ("architectures", "transformers_version", "torch_dtype", "dtype", "_name_or_path")
    kept = {name: value for name, value in stored.items() if name not in drop}
    model: Any = build_model(kept | {"vocab_size": vocabulary})
    positions = getattr(model.config, "n_positions", config.context)  # learned ones end; rotary ones do not
    if positions < config.context:
        raise StrongTicketError(
            f"model={config.model!r} has {positions} positions, fewer than context={config.context}",
            hint="Choose a smaller context.",
        )
    return model


def _gpt2(config: SearchConfig, vocabulary: int) -> dict[str, Any]:
    return {
        "model_type": "gpt2",
        "vocab_size": vocabulary,
        "n_positions": config.context,
        "n_embd": config.dim,
        "n_inner": config.inner or None,
        "n_layer": config.layers,
        "n_head": config.heads,
        "activation_function": config.activation,
        "resid_pdrop": 0.0,
        "embd_pdrop": 0.0,
        "attn_pdrop": 0.0,
        "bos_token_id": None,
        "eos_token_id": None,
    }


def _llama(config: SearchConfig, vocabulary: int) -> dict[str, Any]:
    return {
        "model_type": "llama",
        "vocab_size": vocabulary,
        "max_position_embeddings": config.context,
        "hidden_size": config.dim,
        # three matrices of 8/3 dim have the weights of GPT-2's two of 4 dim; a multiple of eight
        "intermediate_size": config.inner or -(-8 * config.dim // 24) * 8,
        "num_hidden_layers": config.layers,
        "num_attention_heads": config.heads,
        "num_key_value_heads": config.heads,
        "hidden_act": config.activation,
        "tie_word_embeddings": True,
        "bos_token_id": None,
        "eos_token_id": None,
    }
