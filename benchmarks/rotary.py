"""Attention with rotary positions: tickets of random Llamas, and an attack on them, for `benchmarks.theory`.

The attack's forward pass is its own: it shares no code with the network or its certificate but the weights it reads.
"""

from collections.abc import Callable

import numpy as np
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from benchmarks.harness import Row
from strongticket import nets
from strongticket.builders import build
from strongticket.models import certify_layers

LONGEST = 4096  # positions that the attack chooses from
THETA = 10_000.0
# What the cosine and the sine are multiplied with: (heads, pairs, dim, dim)
Logits = tuple[np.ndarray, np.ndarray]


def rotary_case(seed: int, steps: int, restarts: int = 4) -> Row:
    """Build by choice, certify and attack one layer; d from 8 to 24, 1 to 4 heads of 2 to 32 numbers."""
    rng = np.random.default_rng(seed)
    heads = int(rng.choice([1, 2, 4]))
    config = LlamaConfig(
        vocab_size=16,
        hidden_size=int(rng.choice([8, 12, 16, 24])),
        intermediate_size=8,
        num_hidden_layers=1,
        num_attention_heads=heads,
        num_key_value_heads=int(rng.choice([number for number in (1, 2, 4) if heads % number == 0])),
        head_dim=int(rng.choice([2, 4, 8, 16, 32])),
        max_position_embeddings=LONGEST,
    )
    model = LlamaForCausalLM(config).requires_grad_(False).eval()
    generator, scale = torch.Generator().manual_seed(seed), float(rng.uniform(0.5, 1.2))
    for parameter in model.parameters():
        if parameter.ndim > 1:
            noise = torch.randn(parameter.shape, generator=generator)
            parameter.copy_(noise * scale / config.hidden_size**0.5)
    ticket = build(model, tolerance=float(10 ** rng.uniform(-3, -1.3)), workers=1, seed=seed)
    network = ticket.network()
    certificate = certify_layers(model, network)[0]
    found = rotary_attack(model, network, certificate.radius, restarts=restarts, steps=steps, seed=seed)
    inputs = found.attempts * steps
    return {"kind": "rotary", "ratio": certificate.bound / found.error, "inputs": inputs}


def rotary_attack(
    target: LlamaForCausalLM, source: LlamaForCausalLM, radius: float, **options: int
) -> nets.Attack:
    """On the first layer, in float64; every key stands where it does most harm to the head that sees it."""
    wanted, made = (_logits(model) for model in (target, source))
    config = target.config
    pairs = config.head_dim // 2
    speeds = THETA ** (-np.arange(pairs) / pairs)
    angles = np.arange(LONGEST)[:, None] * speeds
    distances = []
    for cosine, sine in zip(made[0] - wanted[0], made[1] - wanted[1], strict=True):
        moved = np.einsum("nf,fqk->nqk", np.cos(angles), cosine)
        moved += np.einsum("nf,fqk->nqk", np.sin(angles), sine)
        distances.append(int(np.linalg.norm(moved, 2, axis=(1, 2)).argmax()))
    networks = [
        _network(*logits, _values(model), speeds, np.array(distances))
        for logits, model in ((made, source), (wanted, target))
    ]
    heads = config.num_attention_heads
    return nets.attack(*networks, config.hidden_size, radius, heads=heads, tokens=(1, 2), **options)


def _weights(model: LlamaForCausalLM, name: str) -> np.ndarray:
    weight = model.get_parameter(f"model.layers.0.self_attn.{name}_proj.weight")
    matrix: np.ndarray = weight.double().numpy()
    return matrix


def _logits(model: LlamaForCausalLM) -> Logits:
    heads, width = model.config.num_attention_heads, model.config.head_dim
    query = _weights(model, "q").reshape(heads, 2, width // 2, -1) / width**0.5
    key = _weights(model, "k").reshape(-1, 2, width // 2, query.shape[-1])
    key = key.repeat(heads // len(key), 0)
    # Query and key are turned by their positions: what remains is the angle of the difference.
    same = np.einsum("hcfq,hcfk->hfqk", query, key)
    across = np.einsum("hfq,hfk->hfqk", query[:, 0], key[:, 1]) - np.einsum(
        "hfq,hfk->hfqk", query[:, 1], key[:, 0]
    )
    return same, across


def _values(model: LlamaForCausalLM) -> np.ndarray:
    heads, width = model.config.num_attention_heads, model.config.head_dim
    value = _weights(model, "v").reshape(-1, width, model.config.hidden_size)
    output = _weights(model, "o").reshape(model.config.hidden_size, heads, width)
    return np.einsum("hci,ohc->hio", value.repeat(heads // len(value), 0), output)


def _network(
    same: np.ndarray, across: np.ndarray, values: np.ndarray, speeds: np.ndarray, distances: np.ndarray
) -> Callable[..., torch.Tensor]:
    both, vo = torch.from_numpy(np.stack([same, across])), torch.from_numpy(values)
    far, speed = torch.from_numpy(distances), torch.from_numpy(speeds)

    def run(x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        # Positions before that of the last token: a key's is that of the first head that sees it from there.
        before = far[mask[:, :, -1].int().argmax(1)]
        before[:, -1] = 0
        angle = (before[:, None] - before[:, :, None])[..., None] * speed  # (batch, query, key, pair)
        turns = torch.stack([angle.cos(), angle.sin()])
        query = torch.einsum("chfde,btd->cbhtfe", both, x)
        logits = torch.einsum("cbhtfe,bse,cbtsf->bhts", query, x, turns)
        weights = logits.masked_fill(~mask, -torch.inf).softmax(-1)
        return torch.einsum("bhts,bsd,hdo->bto", weights, x, vo)

    return run
