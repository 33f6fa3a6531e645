"""The models that a search trains: of an architecture and size in the settings, or of a folder's config."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from torch import nn

from strongticket.errors import StrongTicketError
from strongticket.models.configs import NOT_STORED
from strongticket.models.folder import CONFIG, ModelFolder
from strongticket.models.rebuilding import new_model
from strongticket.searching.config import SearchConfig


def make_model(
    config: SearchConfig, vocabulary: int = 0, *, classes: int = 0, channels: int = 0, image_size: int = 0
) -> nn.Module:
    """The model of the settings: of the chosen architecture and size, or that of a folder's config.json.

    vocabulary, classes, channels, image_size: what the data has, as far as the task has it
    """
    classifies = config.task == "classification"
    tokens = vocabulary + 2 if classifies else vocabulary  # padding, and a first token for the whole text
    sizes: dict[str, Any] = {"num_labels": classes} if classes else {}
    if config.task == "images":
        sizes |= {"num_channels": channels} | ({"image_size": image_size} if not config.model else {})
    else:
        sizes |= {"vocab_size": tokens} | ({"pad_token_id": vocabulary} if classifies else {})
    if not config.model:
        return new_model(_ARCHITECTURES[config.architecture](config) | sizes, classifies_text=classifies)
    stored = _stored_config(config)
    family = stored.get("model_type")
    if family == "vit":
        sizes |= {"image_size": image_size}
    model = new_model(stored | sizes, classifies_text=classifies)
    name = type(model).__name__
    if config.task == "language" and name.endswith("MaskedLM"):
        raise StrongTicketError(
            f"model is a {name}, which does not predict the next token",
            hint="Search trains causal models; --task classification takes encoders.",
        )
    if (config.task == "images") != name.endswith("ForImageClassification"):
        raise StrongTicketError(f"a {family} model does not fit task {config.task!r}")
    described: Any = model.config
    if config.task == "images":
        return model
    # learned positions end; rotary ones do not
    positions = getattr(described, "n_positions", None)
    if family == "bert":
        positions = described.max_position_embeddings
    if positions is not None and positions < config.context:
        raise StrongTicketError(
            f"model={config.model!r} has {positions} positions, fewer than context={config.context}",
            hint="Choose a smaller context.",
        )
    return model


def _stored_config(config: SearchConfig) -> dict[str, Any]:
    stored = ModelFolder(Path(config.model)).json(CONFIG)
    if stored is None:
        raise StrongTicketError(
            f"model={config.model!r} has no {CONFIG}", hint="Give a folder with a config.json."
        )
    drop = (*NOT_STORED, "id2label", "label2id")
    return {name: value for name, value in stored.items() if name not in drop}


def _gpt2(config: SearchConfig) -> dict[str, Any]:
    return {
        "model_type": "gpt2",
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


def _llama(config: SearchConfig) -> dict[str, Any]:
    return {
        "model_type": "llama",
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


def _encoder(config: SearchConfig) -> dict[str, Any]:
    """What BERT and ViT name alike."""
    return {
        "hidden_size": config.dim,
        "intermediate_size": config.inner or 4 * config.dim,
        "num_hidden_layers": config.layers,
        "num_attention_heads": config.heads,
        "hidden_act": config.activation,
        "hidden_dropout_prob": 0.0,
        "attention_probs_dropout_prob": 0.0,
    }


def _bert(config: SearchConfig) -> dict[str, Any]:
    return _encoder(config) | {
        "model_type": "bert", "max_position_embeddings": config.context, "type_vocab_size": 1
    }  # fmt: skip


def _vit(config: SearchConfig) -> dict[str, Any]:
    return _encoder(config) | {"model_type": "vit", "patch_size": config.patch}


_ARCHITECTURES = {"gpt2": _gpt2, "llama": _llama, "bert": _bert, "vit": _vit}
