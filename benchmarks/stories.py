"""stories260K end to end: a bound from embeddings to logits, beside the largest error found by attack.

A Llama has rotary positions and SwiGLU, which `nets.certify` has not; the bound here is the theorem on blocks
with normalisation in norms alone. Rotations keep lengths, |silu'| ≤ 1.1 and |silu(a)| ≤ |a|.
"""

import os
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.harness import figure, tell
from strongticket import nets
from strongticket.builders import build_product
from strongticket.seeds import Uniform, draw

ROOT = Path(__file__).parents[1]
FOLDER = Path(os.environ.get("STRONGTICKET_STORIES", ROOT.parent / "shared/models/stories260K"))
SLOPE = 1.1  # of silu, at most
PER_ROW = 20


def run(quick: bool) -> list[dict]:
    if not FOLDER.is_dir():
        tell("stories260K skipped: set STRONGTICKET_STORIES to its folder")
        return []
    from transformers import AutoModelForCausalLM

    target = AutoModelForCausalLM.from_pretrained(FOLDER, attn_implementation="eager").double().eval()
    target.requires_grad_(False)
    source = deepcopy(target)
    layers = source.model.layers[:1] if quick else source.model.layers
    for number, layer in enumerate(layers):
        for name, module in layer.named_modules():
            if isinstance(module, torch.nn.Linear):
                module.weight.copy_(torch.from_numpy(_pruned(module.weight.numpy(), f"{number}.{name}")))
        tell(f"layer {number} built")
    embeddings = target.get_input_embeddings().weight
    radius = float(embeddings.norm(dim=-1).max())
    floors = _floors(source, embeddings)
    bound = _bound(target, source, radius, floors)

    def logits(model: Any) -> Any:
        return lambda x: model(inputs_embeds=x).logits

    def accepts(x: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            return (_lengths(source, x) >= torch.tensor(floors)[:, None]).all(0)

    found = nets.attack(
        logits(source),
        logits(target),
        embeddings.shape[1],
        radius,
        tokens=(1, 4, 8),
        restarts=4 if quick else 8,
        steps=5 if quick else 40,
        accepts=accepts,
    )
    with torch.no_grad():
        x = embeddings[torch.arange(64).reshape(8, 8)]
        size = float(target(inputs_embeds=x).logits.norm(dim=-1).mean())
    return [
        {
            "layers": len(source.model.layers),
            "radius": radius,
            "bound": bound,
            "bound_of_any_two": _apart(target),
            "attacked": found.error,
            "bound_over_attacked": bound / found.error,
            "mean_norm_of_logits": size,
            "attacked_relative": found.error / size,
        }
    ]


def figures(rows: list[dict]) -> list[dict]:
    return [
        figure(
            "stories260K, logits: bound over attacked error (printed)",
            row["bound_over_attacked"],
            ">=",
            1,
            note=f"bound {row['bound']:.3g} (of any two inputs: {row['bound_of_any_two']:.3g}), attacked "
            f"{row['attacked']:.3g}, logits {row['mean_norm_of_logits']:.3g}",
        )
        for row in rows
    ]


def _pruned(weight: np.ndarray, name: str) -> np.ndarray:
    """What a pruned product of two random matrices makes of the weight, the smaller side structured."""
    if weight.shape[0] > weight.shape[1]:
        return _pruned(weight.T, name).T
    rows, columns = weight.shape
    left, right = (
        draw(0, f"{name} {side}", (d, rows * PER_ROW), Uniform(1.0))
        for side, d in (("left", rows), ("right", columns))
    )
    scale = float(np.abs(weight).max())
    return build_product(weight, left, right, scale=scale, tolerance=1e-6 * scale).product


def _lengths(model: Any, x: torch.Tensor) -> torch.Tensor:
    """(norms, batch): the shortest vector that each norm reads, in the order in which they run."""
    found: list[torch.Tensor] = []
    norms = [module for module in model.modules() if type(module).__name__.endswith("RMSNorm")]
    hooks = [
        n.register_forward_pre_hook(lambda _, x: found.append(x[0].norm(dim=-1).amin(-1))) for n in norms
    ]
    model(inputs_embeds=x)
    for hook in hooks:
        hook.remove()
    return torch.stack(found)


def _floors(model: Any, embeddings: torch.Tensor) -> list[float]:
    """Half of the shortest vector that each norm reads on every token alone and on random sequences."""
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        single = _lengths(model, embeddings[:, None]).amin(1)
        several = embeddings[torch.randint(len(embeddings), (256, 8), generator=generator)]
        return (torch.minimum(single, _lengths(model, several).amin(1)) / 2).tolist()


def _norm(matrix: torch.Tensor) -> float:
    return float(torch.linalg.matrix_norm(matrix, 2))


def _bound(target: Any, source: Any, radius: float, floors: list[float]) -> float:
    """Carry the error of the stream through every layer; floors are those of the source's norms."""
    config, left = target.config, iter(floors)
    error = 0.0
    for wanted, built in zip(target.model.layers, source.model.layers, strict=True):
        reach, moved = _behind_norm(wanted.input_layernorm, error, next(left))
        error += _attention(wanted.self_attn, built.self_attn, config, reach, moved)
        reach, moved = _behind_norm(wanted.post_attention_layernorm, error, next(left))
        error += _feed_forward(wanted.mlp, built.mlp, reach, moved)
    reach, moved = _behind_norm(target.model.norm, error, next(left))
    return _linear(target.lm_head, source.lm_head, reach, moved)[1]


def _apart(model: Any) -> float:
    """How far apart the logits of any two inputs may be: behind the last norm vectors are at most so long."""
    reach, _ = _behind_norm(model.model.norm, 0.0, 0.0)
    return 2 * _norm(model.lm_head.weight) * reach


def _behind_norm(norm: Any, error: float, floor: float) -> tuple[float, float]:
    """The longest vector behind the norm, and how far the source's is off at most."""
    gain, dim = float(norm.weight.abs().max()), len(norm.weight)
    reach = gain * dim**0.5
    slope = gain / (max(floor - error, 0.0) ** 2 / dim + norm.variance_epsilon) ** 0.5
    return reach, min(slope * error, 2 * reach)


def _linear(
    wanted: Any, built: Any, reach: float, moved: float, rows: Any = slice(None)
) -> tuple[float, float]:
    """Longest output of the target, and its error: ‖W‖·moved + ‖E‖·reach, what the source reads being ≤ reach."""
    weight, other = wanted.weight[rows], built.weight[rows]
    return _norm(weight) * reach, _norm(weight) * moved + _norm(other - weight) * reach


def _attention(wanted: Any, built: Any, config: Any, reach: float, moved: float) -> float:
    heads, group = config.num_attention_heads, config.num_attention_heads // config.num_key_value_heads
    size = config.hidden_size // heads
    out, total = built.o_proj.weight, 0.0
    for h in range(heads):
        own, shared = (slice(i * size, (i + 1) * size) for i in (h, h // group))
        query, query_error = _linear(wanted.q_proj, built.q_proj, reach, moved, own)
        key, key_error = _linear(wanted.k_proj, built.k_proj, reach, moved, shared)
        value, value_error = _linear(wanted.v_proj, built.v_proj, reach, moved, shared)
        logit = ((query + query_error) * key_error + query_error * key) / size**0.5
        change = 2 * float(np.tanh(logit / 2)) * value + value_error
        total += _norm(out[:, own]) * min(change, 2 * value + value_error)
        total += _norm(out[:, own] - wanted.o_proj.weight[:, own]) * value
    return total


def _feed_forward(wanted: Any, built: Any, reach: float, moved: float) -> float:
    gate, gate_error = _linear(wanted.gate_proj, built.gate_proj, reach, moved)
    up, up_error = _linear(wanted.up_proj, built.up_proj, reach, moved)
    widest_gate, widest_up = (
        float(layer.weight.norm(dim=1).max()) * reach for layer in (wanted.gate_proj, built.up_proj)
    )
    hidden = SLOPE * gate_error * widest_up + widest_gate * up_error
    longest = min(widest_gate * up, gate * float(wanted.up_proj.weight.norm(dim=1).max()) * reach)
    error = _norm(built.down_proj.weight) * hidden
    return error + _norm(built.down_proj.weight - wanted.down_proj.weight) * longest
