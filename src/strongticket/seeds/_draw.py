"""(seed, tensor name, shape, law) -> float32 weights, the same bits on every machine."""

import hashlib
import math
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from strongticket.checks import is_whole
from strongticket.cores import cores
from strongticket.errors import StrongTicketError
from strongticket.seeds.kernels import hadamard, signed, uniform
from strongticket.seeds.laws import LAWS, Constant, Hadamard, Law, Normal, Uniform
from strongticket.seeds.normal import normal

GENERATOR_VERSION: int = 1

CHUNK = 1 << 17  # weights a thread makes at a time: fits the cache, a multiple of _PER_COUNTER
_PER_COUNTER = 8  # one Philox 4x64 counter value gives four 64-bit words: eight weights


def draw(
    seed: int,
    name: str,
    shape: tuple[int, ...],
    law: Law,
    *,
    rows: slice | None = None,
    mask: np.ndarray | None = None,
    threads: int | None = None,
) -> np.ndarray:
    """Random weights: float32 of `shape`, C order; with `rows`, only those of the first axis.

    Args:
        seed: from 0 to 2**64 - 1.
        name: of the tensor; tensors of different names are independent.
        shape: of the whole tensor.
        law: such as `Uniform(1.0)` or `Normal(0.02)`.
        rows: the slice of the first axis to draw, with step 1; None draws all.
        mask: bool of the result's shape; weights where it is False become +0.0.
        threads: number of threads; None means one per core. The result does not depend on it.

    >>> draw(0, "query", (1000, 4), Uniform(1.0), rows=slice(10, 12)).shape
    (2, 4)
    """
    if not isinstance(shape, tuple) or not all(is_whole(size) and size >= 0 for size in shape):
        raise StrongTicketError(f"shape must be a tuple of non-negative integers, got {shape!r}")
    shape = tuple(map(int, shape))
    if not isinstance(law, Law):
        names = ", ".join(kind.__name__ for kind in LAWS.values())
        raise StrongTicketError(f"law must be one of {names}, got {law!r}")
    if threads is not None and (not is_whole(threads) or threads < 1):
        raise StrongTicketError(f"threads must be a positive integer or None, got {threads!r}")
    philox_key = key(seed, name)
    start, selected = _selected(shape, rows)
    mask = None if mask is None else np.asarray(mask)
    if mask is not None and (mask.dtype != np.bool_ or mask.shape != selected):
        raise StrongTicketError(f"mask must be bool of shape {selected}, got {mask.dtype} {mask.shape}")
    out = np.empty(selected, np.float32)
    flat = out.reshape(-1)
    keep = None if mask is None else mask.reshape(-1)
    signs = _hadamard_signs(philox_key, shape) if isinstance(law, Hadamard) and flat.size else None

    def fill(first: int) -> None:
        part = flat[first : first + CHUNK]
        if signs is None:
            _fill(part, philox_key, start + first, law)
        else:
            hadamard(part.view(np.uint32), start + first, np.float32(law.scale).view(np.uint32), *signs)
        if keep is not None:
            apply_mask(part, keep[first : first + CHUNK])

    chunks = range(0, flat.size, CHUNK)
    workers = min(threads or cores(), len(chunks))
    if workers <= 1:
        for first in chunks:
            fill(first)
    else:
        with ThreadPoolExecutor(workers) as pool:
            list(pool.map(fill, chunks))
    return out


def apply_mask(weights: np.ndarray, mask: np.ndarray) -> None:
    """Set the float32 `weights` that the bool `mask` drops to +0.0, in place."""
    bits = weights.view(np.uint32)
    np.multiply(bits, mask, out=bits)  # -w * 0.0 would leave -0.0


def key(seed: int, name: str) -> np.ndarray:
    """Philox's 128-bit key for a tensor: two little-endian words of blake2b(version, `seed`, `name`)."""
    if not is_whole(seed) or not 0 <= seed < 2**64:
        raise StrongTicketError(f"seed must be an integer from 0 to 2**64 - 1, got {seed!r}")
    if not isinstance(name, str):
        raise StrongTicketError(f"name must be a str, got {name!r}")
    try:
        text = name.encode("utf-8")
    except UnicodeEncodeError as error:
        raise StrongTicketError(f"name must be valid Unicode, got {name!r}: {error.reason}") from None
    head = GENERATOR_VERSION.to_bytes(4, "little") + int(seed).to_bytes(8, "little")
    digest = hashlib.blake2b(head + text, digest_size=16, person=b"strongticket").digest()
    return np.frombuffer(digest, "<u8").astype(np.uint64)


def _bits(philox_key: np.ndarray, first: int, count: int) -> np.ndarray:
    """Numbers first, first + 1, ... of the stream: each word's two 32-bit halves, the low half first."""
    counter, skip = divmod(first, _PER_COUNTER)
    raw = np.random.Philox(key=philox_key, counter=counter).random_raw((skip + count + 1) // 2)
    return raw.astype("<u8", copy=False).view("<u4")[skip : skip + count].astype(np.uint32, copy=False)


def _fill(out: np.ndarray, philox_key: np.ndarray, first: int, law: Law) -> None:
    """Weights first, first + 1, ... of a tensor."""
    if isinstance(law, Constant):
        out.fill(law.value)
        return
    bits = _bits(philox_key, first, out.size)
    if isinstance(law, Uniform):
        uniform(bits, np.float32(law.half_width) * np.float32(2.0**-24), out)
    elif isinstance(law, Normal):
        normal(bits, law.std, out)
    else:
        signed(bits, np.float32(law.scale), out)


def _hadamard_signs(
    philox_key: np.ndarray, shape: tuple[int, ...]
) -> tuple[int, bool, int, np.ndarray, np.ndarray]:
    """(columns, whether rows are the longer side, n, sign bits of the longer side, of each block's shorter side)."""
    rows = shape[0] if len(shape) > 1 else 1
    columns = math.prod(shape) // rows
    longer, shorter = max(rows, columns), min(rows, columns)
    n = 1 << (shorter - 1).bit_length()
    blocks = -(-longer // n)
    top = _bits(philox_key, 0, longer + blocks * shorter) >> np.uint32(31)
    return columns, rows > columns, n, top[:longer], top[longer:].reshape(blocks, shorter)


def _selected(shape: tuple[int, ...], rows: slice | None) -> tuple[int, tuple[int, ...]]:
    """(flat index of the first weight, shape of the part)."""
    if rows is None:
        return 0, shape
    if not isinstance(rows, slice) or rows.step not in (None, 1):
        raise StrongTicketError(f"rows must be a slice with step 1, got {rows!r}")
    if not shape:
        raise StrongTicketError("rows needs a tensor with at least one axis, the shape is ()")
    first, end, _ = rows.indices(shape[0])
    return first * math.prod(shape[1:]), (max(end - first, 0), *shape[1:])
