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

_NO_SPECIAL_TOKENS = {"bos_token_id": None, "eos_token_id": None}


def make_model(
    config: SearchConfig, vocabulary: int = 0, *, classes: int = 0, channels: int = 0, image_size: int = 0
) -> nn.Module:
    """The model of the settings, in the sizes that the data has: a Task's `sizes`."""
    task, folder = config.task.task, config.model.model
    described = _in_folder(folder) if folder else _described(config.model)
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
    # Learned positions must reach over the context; rotary ones do not end.
    made: Any = model.config
    positions = getattr(made, "n_positions", made.max_position_embeddings if family == "bert" else None)
    if task != "images" and positions is not None and positions < config.model.context:
        raise StrongTicketError(
            f"model={folder!r} has {positions} positions, fewer than context={config.model.context}",
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


def _described(settings: ModelSettings) -> dict[str, Any]:
    """The config of one of the four architectures, without dropout."""
    family, dim = settings.architecture, settings.dim
    if family == "gpt2":
        return {
            "model_type": "gpt2",
            "n_positions": settings.context,
            "n_embd": dim,
            "n_inner": settings.inner or None,
            "n_layer": settings.layers,
            "n_head": settings.heads,
            "activation_function": settings.activation,
            **dict.fromkeys(("resid_pdrop", "embd_pdrop", "attn_pdrop"), 0.0),
            **_NO_SPECIAL_TOKENS,
        }
    # three matrices of 8/3 dim have the weights of GPT-2's two of 4 dim; a multiple of eight
    inner = -(-8 * dim // 24) * 8 if family == "llama" else 4 * dim
    described: dict[str, Any] = {
        "model_type": family,
        "hidden_size": dim,
        "intermediate_size": settings.inner or inner,
        "num_hidden_layers": settings.layers,
        "num_attention_heads": settings.heads,
        "hidden_act": settings.activation,
    }
    if family == "llama":
        sizes = {"max_position_embeddings": settings.context, "num_key_value_heads": settings.heads}
        return described | sizes | {"tie_word_embeddings": True} | _NO_SPECIAL_TOKENS
    described |= {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    if family == "bert":
        return described | {"max_position_embeddings": settings.context, "type_vocab_size": 1}
    return described | {"patch_size": settings.patch}
