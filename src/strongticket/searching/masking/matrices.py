"""The weight matrices of a model: which make queries and keys, which write to the residual stream."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from strongticket.errors import StrongTicketError
from strongticket.searching.masking.source import ScaledSlice

# Last names of the projections whose output is added to the residual stream.
_RESIDUAL = ("c_proj", "o_proj", "down_proj", "out_proj", "linear2", "fc2", "out_lin", "lin2", "output.dense")
# Last names of projections that make only queries or only keys.
_QUERY_OR_KEY = ("q_proj", "k_proj", "query", "key", "q_lin", "k_lin", "q_attn")
_FUSED_UNKNOWN = ("query_key_value", "qkv_proj", "qkv", "Wqkv", "W_pack")
# Names of parameters that modules hold themselves and that are tables of vectors, such as a ViT's class token.
_TABLES = (
    *("cls_token", "class_token", "class_embedding", "mask_token", "distillation_token"),
    *("position_embedding", "position_embeddings", "positional_embedding", "pos_embed", "pos_embedding"),
)
_CONVOLUTIONS = (nn.Conv1d, nn.Conv2d, nn.Conv3d)
_TRANSPOSED = (nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d)


@dataclass
class WeightMatrix:
    """One weight matrix, with every module that holds it: tied weights are one matrix.

    Attributes:
        parameter: the weights; once attached, what they are computed from, such as scores
        owners: modules and the attribute that holds the matrix
        kind: "linear" or "embedding"
        weights: once attached, the `Weights` that compute the matrix from the parameter
    """

    name: str
    parameter: nn.Parameter
    owners: list[tuple[nn.Module, str]]
    kind: str
    fan_in: int
    fan_out: int
    residual: bool = False
    query_key: tuple[ScaledSlice, ...] = ()
    head_dim: int = 0
    weights: Any = field(init=False, repr=False)

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.parameter.shape)


def clean_name(name: str) -> str:
    """A tensor's name without what DataParallel, DDP and torch.compile put before it.

    >>> clean_name("module._orig_mod.h.0.weight")
    'h.0.weight'
    """
    parts = [part for part in name.split(".") if part not in ("", "_orig_mod")]  # "": the model itself
    while parts and parts[0] == "module":
        parts.pop(0)
    return ".".join(parts)


def weight_matrices(model: nn.Module) -> list[WeightMatrix]:
    """The weights of linear, embedding, attention and convolution modules, class tokens and tables of positions.

    In model order; tied weights come once.
    """
    found: dict[int, WeightMatrix] = {}
    for module_name, module in model.named_modules():
        for matrix in _of_module(module_name, module, _head_dim(model)):
            first = found.setdefault(id(matrix.parameter), matrix)
            if first is not matrix:
                first.owners += matrix.owners
                first.kind = "embedding" if "embedding" in (first.kind, matrix.kind) else "linear"
    if not found:
        raise StrongTicketError(
            f"model {type(model).__name__} has no weights to mask: expected Linear, Conv1D, Embedding, "
            "MultiheadAttention or convolution modules"
        )
    for matrix in found.values():
        if matrix.parameter.dtype != torch.float32:
            raise StrongTicketError(
                f"tensor {matrix.name!r} is {matrix.parameter.dtype}, expected torch.float32",
                hint="Call model.float().",
            )
    return list(found.values())


def other_parameters(
    model: nn.Module, masked: list[WeightMatrix]
) -> Iterator[tuple[str, nn.Parameter, float | None]]:
    """Every other parameter with its untrained value: biases 0, norm gains 1, None for what is neither."""
    seen = {id(matrix.parameter) for matrix in masked}
    for module_name, module in model.named_modules():
        for short, parameter in module.named_parameters(recurse=False):
            if id(parameter) in seen:
                continue
            seen.add(id(parameter))
            has_norm_name = type(module).__name__.endswith("Norm")
            norm = has_norm_name or isinstance(module, nn.modules.batchnorm._NormBase)
            value = 0.0 if "bias" in short else 1.0 if norm and short == "weight" else None
            yield clean_name(f"{module_name}.{short}"), parameter, value


def stored_buffers(model: nn.Module) -> dict[str, torch.Tensor]:
    """The buffers that a ticket stores as floats: all of the model's own state that are floating point.

    Such as the running statistics of BatchNorm. What a module computes when it is made should be a non-persistent
    buffer.
    """
    parameters = {name for name, _ in model.named_parameters(remove_duplicate=False)}
    return {
        clean_name(name): tensor
        for name, tensor in model.state_dict().items()
        if name not in parameters and tensor.is_floating_point() and ".parametrizations." not in f".{name}"
    }


def check_query_key(found: list[WeightMatrix]) -> None:
    """Raise an error unless the query and key slices of the model are known, so that they can be scaled."""
    for matrix in found:
        if any(f".{matrix.name}".endswith(f".{fused}.weight") for fused in _FUSED_UNKNOWN):
            raise StrongTicketError(
                f"tensor {matrix.name!r} mixes queries, keys and values in an order this version does not know",
                hint="Pass qk_scale=1.",
            )
    if not any(matrix.query_key for matrix in found):
        raise StrongTicketError("the model has no query or key projections to scale", hint="Pass qk_scale=1.")


def _of_module(name: str, module: nn.Module, head_dim: int) -> Iterator[WeightMatrix]:
    def matrix(attribute: str, kind: str, fan_in: int, fan_out: int, **more: object) -> WeightMatrix:
        parameter = getattr(module, attribute)
        full = clean_name(f"{name}.{attribute}")
        return WeightMatrix(full, parameter, [(module, attribute)], kind, fan_in, fan_out, **more)  # type: ignore[arg-type]

    if isinstance(module, nn.MultiheadAttention):
        dim, size = module.embed_dim, module.head_dim
        if module.in_proj_weight is not None:
            both = (ScaledSlice(0, 0, 2 * dim),)
            yield matrix("in_proj_weight", "linear", dim, dim, query_key=both, head_dim=size)
        else:
            for short in ("q_proj_weight", "k_proj_weight", "v_proj_weight"):
                columns = getattr(module, short).shape[1]
                whole = () if short.startswith("v") else (ScaledSlice(0, 0, dim),)
                yield matrix(short, "linear", columns, dim, query_key=whole, head_dim=size)
    elif isinstance(module, nn.Embedding):
        yield matrix("weight", "embedding", module.embedding_dim, module.num_embeddings)
    elif isinstance(module, nn.Linear) or _is_conv1d(module):
        rows, columns = module.weight.shape  # type: ignore[misc]
        fan_in, fan_out = (rows, columns) if _is_conv1d(module) else (columns, rows)
        residual = any(name == end or name.endswith("." + end) for end in _RESIDUAL)
        slices = _query_key_slices(name, module, fan_in, fan_out)
        more = {"residual": residual, "query_key": slices, "head_dim": head_dim if slices else 0}
        yield matrix("weight", "linear", fan_in, fan_out, **more)
    elif isinstance(module, _CONVOLUTIONS + _TRANSPOSED):
        # (out, in / groups, *kernel); transposed ones begin with in, out / groups
        first, second = module.weight.shape[:2]
        window = module.weight[0, 0].numel()
        if isinstance(module, _TRANSPOSED):
            first, second = second * module.groups, first // module.groups
        yield matrix("weight", "linear", second * window, first * window)
    for short, parameter in module.named_parameters(recurse=False):
        if short in _TABLES and parameter.ndim > 1:
            yield matrix(short, "embedding", parameter.shape[-1], parameter[..., 0].numel())


def _query_key_slices(name: str, module: nn.Module, fan_in: int, fan_out: int) -> tuple[ScaledSlice, ...]:
    last = name.rpartition(".")[2]
    axis = 1 if _is_conv1d(module) else 0
    if last in _QUERY_OR_KEY:
        return (ScaledSlice(axis, 0, fan_out),)
    if last == "c_attn" and _is_conv1d(module):
        # GPT-2: queries, keys, values; in its cross-attention keys and values
        return (ScaledSlice(axis, 0, fan_out * 2 // 3 if fan_out == 3 * fan_in else fan_out // 2),)
    return ()


def _is_conv1d(module: nn.Module) -> bool:
    # By name: transformers is optional, and its Conv1D is a Linear with a transposed weight.
    return type(module).__name__ == "Conv1D" and type(module).__module__ == "transformers.pytorch_utils"


def _head_dim(model: nn.Module) -> int:
    """n_K of a Hugging Face model; 0 if its config does not say."""
    config = getattr(model, "config", None)
    heads = getattr(config, "num_attention_heads", None)
    if config is None or not heads:
        return 0
    return int(getattr(config, "head_dim", None) or config.hidden_size // heads)
