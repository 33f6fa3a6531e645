"""Fuzz the reader of tickets: any bytes must be a clear error, or a ticket that verifies and runs.

    python -m tests.faults.fuzz_ticket -max_total_time=600       guided by coverage, needs strongticket[fuzz]
    python -m tests.faults.fuzz_ticket --seeded 10000            without atheris: a seeded loop, the same every time

Mutations know the format: they change the index's JSON, exchange parts with another ticket, and make the digests
right again. atheris has wheels for Linux; its options are libFuzzer's, and a crash is stored as a file `crash-...`.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np
from tests.faults.corruption import WAYS, _tickets, damaged

MAX_BYTES = 1 << 16
SHORT = 200  # bytes: less than any ticket has
# What reads a file. Numba cannot compile instrumented code, so modules with kernels are left out.
READERS = (
    *("files", "ticket._ticket", "ticket.certificate", "ticket.container", "ticket.format", "ticket.kinds"),
    *("ticket.summary", "nets.kind", "choice"),
)


@cache
def samples() -> list[bytes]:
    """Sound tickets of every kind of network."""
    return [ticket.to_bytes() for ticket in _tickets(False)]


def mutated(data: bytes, seed: int) -> bytes:
    """Other bytes, usually with right digests."""
    rng = np.random.default_rng(seed)
    way = list(WAYS.values())[int(rng.integers(len(WAYS)))]
    if len(data) < SHORT or not rng.integers(16):
        data = samples()[int(rng.integers(len(samples())))]
    try:
        return way(data, samples()[int(rng.integers(len(samples())))], rng)
    except Exception:  # no longer a file that can be taken apart
        return damaged(data, rng)


def read(data: bytes) -> bool:
    """Whether it is a ticket; anything but a clear error escapes."""
    from strongticket.errors import TicketError
    from strongticket.ticket import Ticket

    try:
        ticket = Ticket.from_bytes(data)
        ticket.verify()
        ticket.network()
    except TicketError:
        return False
    return True


def seeded(count: int, seed: int = 0) -> dict[str, int]:
    """A plain loop: mutations of mutations, back to a sound ticket every eighth time."""
    found = {"read": 0, "refused": 0}
    data = samples()[0]
    for number in range(count):
        if number % 8 == 0:
            data = samples()[number // 8 % len(samples())]
        data = mutated(data, seed + number)
        found["read" if read(data) else "refused"] += 1
    return found


def _functions() -> Iterator[Any]:
    """The functions and methods of the readers."""
    for name in READERS:
        module = import_module(f"strongticket.{name}")
        own = [
            value for value in vars(module).values() if getattr(value, "__module__", "") == module.__name__
        ]
        yield from filter(inspect.isfunction, own)
        for kind in filter(inspect.isclass, own):
            yield from filter(inspect.isfunction, vars(kind).values())


def main() -> None:
    if sys.argv[1:2] == ["--seeded"]:
        print(seeded(*map(int, sys.argv[2:])))
        return
    import atheris

    for function in _functions():
        atheris.instrument_func(function)

    def mutate(data: bytes, most: int, seed: int) -> Any:
        """Every other time a mutation of libFuzzer's own."""
        changed = mutated(bytes(data), seed) if seed % 2 else atheris.Mutate(data, len(data))
        return changed[:most]

    given = sys.argv[1:] or ["-max_total_time=60"]
    atheris.Setup([sys.argv[0], f"-max_len={MAX_BYTES}", *given], read, custom_mutator=mutate)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
