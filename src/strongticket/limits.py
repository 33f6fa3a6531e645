"""What a file may ask for: generous for real models, checked before anything of that size is made.

A small file can declare a huge network. Each limit grows with what the file really contains, so it never
stops a large file that is honest. STRONGTICKET_LIMIT_FACTOR=10 makes every limit ten times as large.
"""

import os
from contextlib import AbstractContextManager
from typing import Any

from strongticket.errors import StrongTicketError

VARIABLE = "STRONGTICKET_LIMIT_FACTOR"
WEIGHTS = 1 << 24  # of any ticket, however small its file
WEIGHTS_PER_BYTE = 1024  # keeping one weight in a thousand costs about this little
TEXT = 1 << 20  # bytes of compressed text, however small the frame
TEXT_PER_BYTE = 64  # checksums and names shrink far less
TENSORS = 1000  # of any network, however few tensors the file has
TENSORS_PER_STORED = 64
GROWTH = 1 << 16  # characters that a tokenizer's steps may turn one into
LAYERS = 100_000  # layers, labels and the like, which a config turns into lists


def factor() -> float:
    """What the user multiplies all limits by; 1 by default."""
    text = os.environ.get(VARIABLE, "1")
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise StrongTicketError(f"{VARIABLE}={text!r}: expected a number above 0", hint="Set it to 10, say.")
    return value


def weights(file_bytes: int) -> int:
    """How many weights a ticket of this size may have."""
    return int(factor() * max(WEIGHTS, WEIGHTS_PER_BYTE * file_bytes))


def text(frame_bytes: int) -> int:
    """How long the text in a compressed frame of this size may be."""
    return int(factor() * max(TEXT, TEXT_PER_BYTE * frame_bytes))


def tensors(stored: int) -> int:
    """How many tensors a network may have if its file has `stored` of them."""
    return int(factor() * (TENSORS + TENSORS_PER_STORED * stored))


def exceeded(what: str) -> StrongTicketError:
    """The error for a file that asks for more; what: 'the file declares 5 weights, the limit is 3'."""
    return StrongTicketError(what, hint=f"If that is intended, set {VARIABLE}=10 (or more) and try again.")


def at_most(limit: int) -> AbstractContextManager[Any]:
    """Inside, a torch network with more tensors than this is refused while it is being made.

    It sees what this thread does, as `torch.device("meta")` does; nothing else in the process changes.
    """
    import torch
    from torch.overrides import TorchFunctionMode

    makers = {torch.empty, torch.zeros, torch.ones, torch.full, torch.tensor}
    makers |= {torch.rand, torch.randn, torch.arange}

    class Counted(TorchFunctionMode):
        made = 0

        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            self.made += func in makers
            if self.made > limit:
                raise exceeded(f"the network has more than {limit:,} tensors, which is the limit")
            return func(*args, **(kwargs or {}))

    return Counted()
