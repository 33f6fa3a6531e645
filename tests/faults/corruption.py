"""Corrupted tickets: each must be an error or the identical network. Run in a process of its own, for its memory.

Four ways: bytes as an accident leaves them; the same with the file's digest made right; damage inside the
compressed parts of a right file; a changed entry of its index, or another ticket's part in its place.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from tests import crafted
from tests.faults.changes import changed
from tests.faults.memory import in_child, peak_memory

from strongticket.files import dump_json


def corrupt(count: int, *, all_kinds: bool = True) -> dict[str, Any]:
    """Load, verify and rebuild `count` corrupted tickets in a child process: how many ended how.

    all_kinds: also a searched one, which needs transformers and so seconds to import it
    """
    return in_child("corruption", count, int(all_kinds))


def damaged(data: bytes, rng: np.random.Generator) -> bytes:
    """A flipped bit, a cut, an insertion, two pieces swapped, a stretch of zeros, the end missing."""
    first, second, third = sorted(int(i) for i in rng.integers(0, len(data) + 1, 3))
    match rng.integers(6):
        case 0:
            at = min(first, len(data) - 1)
            return data[:at] + bytes([data[at] ^ 1 << int(rng.integers(8))]) + data[at + 1 :]
        case 1:
            return data[:first] + data[second:]
        case 2:
            return data[:first] + rng.bytes(int(rng.integers(1, 9))) + data[first:]
        case 3:
            return data[:first] + data[second:third] + data[first:second] + data[third:]
        case 4:
            return data[:first] + bytes(second - first) + data[second:]
        case _:
            return data[:first]


def _with_digest(data: bytes, other: bytes, rng: np.random.Generator) -> bytes:
    body = damaged(data[:-32], rng)
    return body + hashlib.sha256(body).digest()


def _inside(data: bytes, other: bytes, rng: np.random.Generator) -> bytes:
    from strongticket.ticket import container

    tensors = container.split(data)
    name = str(rng.choice(sorted(tensors)))
    if tensors[name].dtype != np.uint8:
        tensors[name] = tensors[name] + np.float32(rng.normal())
    elif rng.integers(3):
        tensors[name] = np.frombuffer(damaged(tensors[name].tobytes(), rng), np.uint8)
    else:
        tensors[name] = container.split(other).get(name, tensors["index"])
    return crafted.join(tensors, container.FORMAT)


def _in_the_index(data: bytes, other: bytes, rng: np.random.Generator) -> bytes:
    lines = crafted.index_lines(data)
    at = int(rng.integers(len(lines)))
    lines[at] = dump_json(changed(json.loads(lines[at]), rng))
    return crafted.with_index(data, b"\n".join(lines))


WAYS: dict[str, Callable[[bytes, bytes, np.random.Generator], bytes]] = {
    "accident": lambda data, other, rng: damaged(data, rng),
    "digest made right": _with_digest,
    "inside a part": _inside,
    "in the index": _in_the_index,
}


def _tickets(all_kinds: bool) -> list[Any]:
    """Built ones of every kind of network, with a trained tensor, with choices; of a model; as a search makes them."""
    import torch

    from strongticket import Ticket, choice, nets
    from strongticket.builders import build_network

    attention = nets.MultiHeadAttention(4, 4, 2, 2, 2, bias=True, output_bias=True)
    relu = nets.ReluNetwork([4, 8, 4], bias=True)
    networks = [attention, relu, nets.Block(nets.MultiHeadAttention(4, 4, 2, 2, 2), relu)]
    networks.append(nets.Transformer([networks[-1]]))
    for network in networks:
        for parameter in network.parameters():
            parameter.data = torch.rand(parameter.shape, generator=torch.Generator().manual_seed(1)) - 0.5
    tickets = [build_network(network, per_row=8) for network in networks]
    one = tickets[1]
    trained = {"layers.0.bias": one.weights("layers.0.bias") + np.float32(1)}
    masks = {name: mask for name, mask in one.masks.items() if name not in trained}
    laws = {name: one.laws[name] for name in masks}
    tickets.append(Ticket(one.seed, one.kind, one.settings, laws, masks, trained))
    name, seed = "layers.1.weight", one.seed
    chosen = {name: choice.encode(one.weights(name), seed, name, 0.1)}
    masks = {name: mask for name, mask in one.masks.items() if name not in chosen}
    laws = {name: one.laws[name] for name in masks}
    tickets.append(Ticket(seed, one.kind, one.settings, laws, masks, choices=chosen))
    return [*tickets, _built(), _searched()] if all_kinds else tickets


def _built() -> Any:
    """A ticket of a trained model, by choice."""
    from tests.faults.cluster import small_model

    from strongticket.builders import build

    return build(small_model(), tolerance=0.05, workers=1)


def _searched() -> Any:
    from strongticket import Normal, Ticket
    from strongticket.ticket import kinds

    sizes = {"vocab_size": 20, "n_positions": 8, "n_embd": 8, "n_layer": 1, "n_head": 2}
    config = {"model_type": "gpt2", **sizes}
    settings = {"config": config, "parts": {}, "trained": []}
    rng = np.random.default_rng(0)
    shapes = kinds.shapes("search", settings)
    masks = {name: rng.random(shape) < 0.3 for name, shape in shapes.items()}
    return Ticket(1, "search", settings, dict.fromkeys(masks, Normal(0.1)), masks)


def _outcome(data: bytes, right: dict[str, bytes]) -> str:
    from strongticket.errors import TicketError
    from strongticket.ticket import Ticket

    try:
        ticket = Ticket.from_bytes(data)
        ticket.verify()
        network = ticket.network()
    except TicketError:
        return "refused"
    except Exception as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return "crashed"
    return "identical" if _fingerprint(network) == right else "wrong"


def _fingerprint(network: Any) -> dict[str, bytes]:
    # Of a theorem's network the pruned weights, not their products.
    network = getattr(network, "factors", network)
    weights = {name: tensor.numpy().tobytes() for name, tensor in network.state_dict().items()}
    made = network.settings() if hasattr(network, "settings") else network.config.to_dict()
    return weights | {"settings": json.dumps(made, sort_keys=True).encode()}


def main(count: int, all_kinds: int) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    tickets = _tickets(bool(all_kinds))
    files = [ticket.to_bytes() for ticket in tickets]
    right = [_fingerprint(ticket.network()) for ticket in tickets]
    found: dict[str, int] = {"refused": 0, "identical": 0, "wrong": 0, "crashed": 0}
    for i in range(count):
        way = list(WAYS.values())[i % len(WAYS)]
        which, other = (int(n) for n in rng.integers(0, len(files), 2))
        found[_outcome(way(files[which], files[other], rng), right[which])] += 1
    return {"tried": count, **found, "memory_bytes": peak_memory()}


if __name__ == "__main__":
    print(json.dumps(main(*map(int, sys.argv[1:]))))
