"""The models that a search trains: the four of `--architecture`, or that of a folder's config.json."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from torch import nn

from strongticket.errors import StrongTicketError
from strongticket.models.configs import NOT_STORED
from strongticket.models.folder import CONFIG, ModelFolder
from strongticket.models.rebuilding import new_model
from strongticket.searching.config import ModelSettings, SearchConfig


def make_model(
    config: SearchConfig, vocabulary: int = 0, *, classes: int = 0, channels: int = 0, image_size: int = 0
) -> nn.Module:
    """The model of the settings, in the sizes that the data has: a Task's `sizes`."""
    task, folder = config.task.task, config.model.model
    described = _in_folder(folder) if folder else _ARCHITECTURES[config.model.architecture](config.model)
    family = described.get("model_type")
    if task == "language":
        described["vocab_size"] = vocabulary
    else:
        described["num_labels"] = classes
    if task == "images":
        described |= {"num_channels": channels} | ({"image_size": image_size} if family == "vit" else {})
    if task == "classification":
        # two tokens more: padding, and a first one that stands for the whole text
        described |= {"vocab_size": vocabulary + 2, "pad_token_id": vocabulary}
    model = new_model(described, classifies_text=task == "classification")
    name = type(model).__name__
    if task == "language" and name.endswith("MaskedLM"):
        raise StrongTicketError(
            f"model is a {name}, which does not predict the next token",
            hint="Search trains causal models; --task classification takes encoders.",
        )
    if (task == "images") != name.endswith("ForImageClassification"):
        raise StrongTicketError(f"a {family} model does not fit task {task!r}")
    return model if task == "images" else _long_enough(model, config.model)


def _long_enough(model: nn.Module, settings: ModelSettings) -> nn.Module:
    """Check that a model's learned positions reach over the context; rotary ones do not end."""
    described: Any = model.config
    of_bert = described.max_position_embeddings if described.model_type == "bert" else None
    positions = getattr(described, "n_positions", of_bert)
    if positions is not None and positions < settings.context:
        raise StrongTicketError(
            f"model={settings.model!r} has {positions} positions, fewer than context={settings.context}",
            hint="Choose a smaller context.",
        )
    return model


def _in_folder(folder: str) -> dict[str, Any]:
    stored = ModelFolder(Path(folder)).json(CONFIG)
    if stored is None:
        raise StrongTicketError(f"model={folder!r} has no {CONFIG}", hint="Give a folder with a config.json.")
    return {
        name: value for name, value in stored.items() if name not in (*NOT_STORED, "id2label", "label2id")
    }


def _gpt2(settings: ModelSettings) -> dict[str, Any]:
    return {
        "model_type": "gpt2",
        "n_positions": settings.context,
        "n_embd": settings.dim,
        "n_inner": settings.inner or None,
        "n_layer": settings.layers,
        "n_head": settings.heads,
        "activation_function": settings.activation,
        "resid_pdrop": 0.0,
        "embd_pdrop": 0.0,
        "attn_pdrop": 0.0,
        "bos_token_id": None,
        "eos_token_id": None,
    }


def _blocks(settings: ModelSettings, inner: int) -> dict[str, Any]:
    """What LLaMA, BERT and ViT name alike; `inner` is the usual width of the feed-forward network."""
    return {
        "hidden_size": settings.dim,
        "intermediate_size": settings.inner or inner,
        "num_hidden_layers": settings.layers,
        "num_attention_heads": settings.heads,
        "hidden_act": settings.activation,
    }


def _llama(settings: ModelSettings) -> dict[str, Any]:
    # three matrices of 8/3 dim have the weights of GPT-2's two of 4 dim; a multiple of eight
    return _blocks(settings, -(-8 * settings.dim // 24) * 8) | {
        "model_type": "llama",
        "max_position_embeddings": settings.context,
        "num_key_value_heads": settings.heads,
        "tie_word_embeddings": True,
        "bos_token_id": None,
        "eos_token_id": None,
    }


def _bert(settings: ModelSettings) -> dict[str, Any]:
    sizes = {"max_position_embeddings": settings.context, "type_vocab_size": 1}
    return _encoder(settings) | {"model_type": "bert"} | sizes


def _vit(settings: ModelSettings) -> dict[str, Any]:
    return _encoder(settings) | {"model_type": "vit", "patch_size": settings.patch}


def _encoder(settings: ModelSettings) -> dict[str, Any]:
    without_dropout = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    return _blocks(settings, 4 * settings.dim) | without_dropout


_ARCHITECTURES = {"gpt2": _gpt2, "llama": _llama, "bert": _bert, "vit": _vit}
