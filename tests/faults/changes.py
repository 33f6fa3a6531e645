"""Trees of JSON with one entry changed, for files that are attacked."""

from __future__ import annotations

from typing import Any

import numpy as np

MARKUP = "</script></style></title><script>evil()</script><img src=http://evil/ onerror=evil()>\"'`*_^(<b>"
STRANGE: tuple[Any, ...] = (
    *(None, True, False, -1, 0, 1, 7, 1 << 31, 1 << 63, 10**400, 0.5, -0.0, 1e308, 5e-324),
    *("", " ", "x", "var(--ink)", MARKUP, "\ud800", "\x00\x1b[31m", "\u202egnp.exe", "a" * 100_000),
    *([], {}, [None], [[]], [[[]]], {"type": "text"}, {"__proto__": 1}, [1, 2], ["1", "2"], [[1], [2, 3]]),
)


def changed(value: Any, rng: np.random.Generator) -> Any:
    """Return the tree with one entry changed, missing, repeated or new."""
    if isinstance(value, dict) and value and rng.integers(12):
        key = sorted(value)[int(rng.integers(len(value)))]
        if not rng.integers(12):
            return {name: entry for name, entry in value.items() if name != key}
        if not rng.integers(20):
            return value | {"x": STRANGE[int(rng.integers(len(STRANGE)))]}
        return value | {key: changed(value[key], rng)}
    if isinstance(value, list) and value and rng.integers(8):
        at = int(rng.integers(len(value)))
        if not rng.integers(10):
            return value[:at] + value[at + 1 :]
        return [*value[:at], changed(value[at], rng), *value[at + 1 :]]
    return STRANGE[int(rng.integers(len(STRANGE)))]
