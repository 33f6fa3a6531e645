"""Targets with odd numbers: each builds a ticket that holds its certificate, or is refused with a clear error."""

from __future__ import annotations

import math
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from strongticket import choice, nets
from strongticket.builders import build, build_network, build_product
from strongticket.errors import StrongTicketError
from strongticket.nets import probe_inputs
from strongticket.ticket import Ticket

WIDTH = 32
INPUTS = 64


def _one(value: float) -> Callable[[Tensor], Tensor]:
    def change(tensor: Tensor) -> Tensor:
        tensor.view(-1)[tensor.numel() // 2] = value
        return tensor

    return change


def _strided(tensor: Tensor) -> Tensor:
    """The same numbers, every second of a longer row, so that no axis is contiguous."""
    spaced = torch.zeros(*tensor.shape[:-1], 2 * tensor.shape[-1], dtype=tensor.dtype)
    spaced[..., ::2] = tensor
    return spaced[..., ::2]


def _constant_rows(tensor: Tensor) -> Tensor:
    return tensor.mean(-1, keepdim=True).expand(tensor.shape).clone()


CASES: dict[str, Callable[[Tensor], Tensor]] = {
    "plain": lambda t: t,
    "one NaN": _one(math.nan),
    "one infinity": _one(math.inf),
    "one minus infinity": _one(-math.inf),
    "all zero": torch.zeros_like,
    "one entry": lambda t: _one(0.5)(torch.zeros_like(t)),
    "minus zero": lambda t: -torch.zeros_like(t),
    "constant": lambda t: torch.full_like(t, 0.25),
    "constant rows": _constant_rows,
    "times 1e3": lambda t: t * 1e3,
    "times 1e18": lambda t: t * 1e18,
    "times 1e37": lambda t: t * 1e37,
    "times 1e-6": lambda t: t * 1e-6,
    "times 1e-30": lambda t: t * 1e-30,
    "times 1e-40": lambda t: t * 1e-40,
    "rows of every scale": lambda t: t * torch.logspace(-8, 2, t.shape[-1], dtype=t.dtype),
    "one giant": _one(1e6),
    "float16": lambda t: t.half(),
    "bfloat16": lambda t: t.bfloat16(),
    "float64": lambda t: t.double(),
    "float64 times 1e60": lambda t: t.double() * 1e60,
    "float64 times 1e200": lambda t: t.double() * 1e200,
    "float64 times 1e-100": lambda t: t.double() * 1e-100,
    "float64 times 1e-300": lambda t: t.double() * 1e-300,
    "float16, strided": lambda t: _strided(t.half()),
    "strided": _strided,
    "transposed": lambda t: t.transpose(0, -1).contiguous().transpose(0, -1),
    "expanded": lambda t: t.flatten()[:1].expand(t.shape),
    "whole numbers": lambda t: (t * 4).long(),
    "empty": lambda t: t[..., :0],
}


def _networks() -> dict[str, Callable[[], nn.Module]]:
    def attention(**options: Any) -> nn.Module:
        return nets.MultiHeadAttention(4, 3, 2, 2, 2, **options)

    def block() -> nn.Module:
        return nets.Block(nets.MultiHeadAttention(4, 4, 2, 2, 2), nets.ReluNetwork([4, 6, 4], bias=True))

    return {
        "attention": attention,
        "attention with biases": lambda: attention(bias=True, output_bias=True),
        "attention, shared keys": lambda: attention(kv_heads=1),
        "relu": lambda: nets.ReluNetwork([4, 6, 3], bias=True),
        "block": block,
        "transformer": lambda: nets.Transformer([block(), block()]),
    }


# The same numbers in another layout or wider type must give the same ticket.
SAME = {"strided": "plain", "transposed": "plain", "float64": "plain", "float16, strided": "float16"}
QUICK = ("attention with biases", "relu")


def odd_targets(*, quick: bool = False) -> list[dict[str, Any]]:
    """One row a kind of network and case; quick: of fewer kinds."""
    rows = []
    for kind, make in _networks().items():
        if quick and kind not in QUICK:
            continue
        tickets: dict[str, bytes] = {}
        for case, change in CASES.items():
            row, tickets[case] = _network_outcome(make(), change)
            if case in SAME and tickets[case] != tickets[SAME[case]]:
                row |= {"outcome": "wrong", "said": f"not the ticket of {SAME[case]}"}
            rows.append({"target": kind, "case": case, **row})
    for case, change in CASES.items():
        rows.append({"target": "product", "case": case, **_product_outcome(change)})
        for states in (1, 8):
            found = _choices_outcome(change, states)
            rows.append({"target": f"choices, {states} states", "case": case, **found})
    return rows


def _network_outcome(network: nn.Module, change: Callable[[Tensor], Tensor]) -> tuple[dict[str, Any], bytes]:
    """What came of it, and the ticket's file if there is one."""
    try:
        for parameter in network.parameters():
            start = torch.rand(parameter.shape, generator=torch.Generator().manual_seed(1)) - 0.5
            parameter.requires_grad_(False)
            parameter.data = change(start)
        data = build_network(network, width=WIDTH).to_bytes()
    except StrongTicketError as error:
        return _row("refused", str(error)), b""
    except Exception as error:
        return _row("crashed", f"{type(error).__name__}: {error}"), b""
    return _measured(network, Ticket.from_bytes(data)), data


def _measured(network: nn.Module, ticket: Ticket) -> dict[str, Any]:
    """The error on random inputs against the certificate."""
    assert ticket.certificate
    bound = ticket.certificate["bound"]
    inputs = probe_inputs(network, ticket.certificate["radius"], INPUTS, 4, seed=0)
    goal, made = (deepcopy(each).double()(inputs) for each in (network, ticket.network()))
    if not goal.isfinite().all():
        return _row("built", "the target overflows when it is run in float64", None, bound)
    error = _largest_norm(made - goal)
    if bound is None:  # honest if the bound without rounding holds, and is too large for the arithmetic
        exact = nets.certify(
            network, ticket.network(), ticket.certificate["radius"], arithmetic="exact"
        ).bound
        honest = error <= exact and exact > torch.finfo(torch.float32).max
        return _row("built" if honest else "wrong", "no finite certificate", error, exact)
    # Both networks ran in float64, with a rounding of this order.
    held = error <= bound + 1e-13 * _largest_norm(goal)
    return _row("built" if held else "wrong", "", error, bound)


def _largest_norm(vectors: Tensor) -> float:
    """Of the last axis; divided by the largest entry first, whose square may be no float."""
    scale = float(vectors.abs().max())
    return scale * float((vectors / scale).norm(dim=-1).max()) if scale else 0.0


def _product_outcome(change: Callable[[Tensor], Tensor]) -> dict[str, Any]:
    """build_product reads any array of numbers; its own error must be that of its masks."""
    rng = np.random.default_rng(0)
    left, right = rng.uniform(-1, 1, (3, 24)), rng.uniform(-1, 1, (4, 24))
    target = change(torch.from_numpy(rng.uniform(-0.5, 0.5, (3, 4))).float())
    array = target.float().numpy() if target.dtype == torch.bfloat16 else target.numpy()
    try:
        built = build_product(array, left, right[: array.shape[1]])
    except StrongTicketError as error:
        return _row("refused", str(error))
    except Exception as error:
        return _row("crashed", f"{type(error).__name__}: {error}")
    made = np.where(built.left_mask, left, 0) @ np.where(built.right_mask, right[: array.shape[1]], 0).T
    error = np.abs(made - array).max()
    near = np.allclose(made - array, built.error, rtol=1e-9, atol=1e-12)
    return _row("built" if near else "wrong", "", float(error), float(np.abs(built.error).max()))


def _choices_outcome(change: Callable[[Tensor], Tensor], states: int) -> dict[str, Any]:
    """A module's numbers by choice: each as near as the spacing of its random weights says."""
    module = nn.Linear(5, 4)
    try:
        for parameter in module.parameters():
            start = torch.rand(parameter.shape, generator=torch.Generator().manual_seed(1)) - 0.5
            parameter.requires_grad_(False)
            parameter.data = change(start)
        ticket = build(module, states=states, workers=1)
    except StrongTicketError as error:
        return _row("refused", str(error))
    except Exception as error:
        return _row("crashed", f"{type(error).__name__}: {error}")
    worst, bound = 0.0, 0.0
    for name, choices in ticket.choices.items():
        made = ticket.weights(name)
        error = np.abs(made.astype(np.float64) - module.get_parameter(name).detach().float().numpy())
        most = choice.bounds(choices) + 2.0**-23 * np.abs(made) + 2.0**-149
        worst, bound = max(worst, float((error / most).max())), max(bound, float(most.max()))
    return _row("built" if worst <= 1 else "wrong", "", worst * bound, bound)


def _row(outcome: str, said: str, error: float | None = None, bound: float | None = None) -> dict[str, Any]:
    return {"outcome": outcome, "error": error, "bound": bound, "said": said}
