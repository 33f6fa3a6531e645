"""Small searched tickets for the JavaScript reader."""

from pathlib import Path

import numpy as np
import torch
from transformers import ViTConfig, ViTForImageClassification

from strongticket.data.tokenizers import Characters
from strongticket.search import attach, to_ticket
from strongticket.search.kind import build_model
from strongticket.seeds import Normal
from strongticket.ticket import Ticket

KNOWN = Path(__file__).parents[1] / "known.ticket"
TEXT = "The quick brown fox jumps over the lazy dog.\n"


def language_ticket(*, train: tuple[str, ...] = (), tokenizer=None, **config) -> Ticket:
    """A GPT-2 with random masks, and random numbers in what is trained."""
    tokenizer = tokenizer or Characters.of(TEXT)
    sizes = {"n_positions": 12, "n_embd": 24, "n_layer": 2, "n_head": 3, "vocab_size": tokenizer.size}
    model = build_model({"model_type": "gpt2", "activation_function": "relu"} | sizes | config)
    generator = torch.Generator().manual_seed(1)
    plan = attach(model, 0.4, seed=9, qk_scale=2.0, train=train)
    with torch.no_grad():
        for parameter in plan.trained.values():
            parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.3)
    return to_ticket(model, plan, metadata={"tokenizer": tokenizer.to_json(), "context": 10})


def image_ticket(**config) -> tuple[Ticket, ViTForImageClassification]:
    """A ViT with random masks, and the same network filled from its ticket by transformers."""
    sizes = {"hidden_size": 12, "intermediate_size": 20, "num_hidden_layers": 2, "num_attention_heads": 2}
    sizes |= {"image_size": 8, "patch_size": 4, "num_channels": 1}
    model = ViTForImageClassification(ViTConfig(**sizes, num_labels=10, **config)).eval()
    rng = np.random.default_rng(0)
    masks, laws, floats, parts = {}, {}, {}, {}
    for name, parameter in model.named_parameters():
        if name.endswith("bias") or "layernorm" in name:
            floats[name] = rng.normal(size=parameter.shape).astype(np.float32)
        else:
            masks[name] = rng.random(parameter.shape) < 0.5
            laws[name] = Normal(0.3)
        if name.endswith(("q_proj.weight", "k_proj.weight")):
            parts[name] = [[0, 0, sizes["hidden_size"], 1.7]]
    settings = {"config": {"model_type": "vit"} | sizes | config, "parts": parts, "trained": sorted(floats)}
    ticket = Ticket(3, "search", settings, laws, masks, floats)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            weights = ticket.weights(name)
            for _, start, stop, factor in parts.get(name, ()):
                weights[start:stop] *= np.float32(factor)
            parameter.copy_(torch.from_numpy(weights))
    return ticket, model
