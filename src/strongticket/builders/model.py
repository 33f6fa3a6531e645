"""A trained model in, a ticket out: open it, code its tensors by choice or by subset sums, write them as they are."""

import tempfile
from pathlib import Path
from typing import Any

from torch import nn

from strongticket.builders.choices import choice_chunks
from strongticket.builders.coder import Coder, Progress
from strongticket.builders.options import ModelOptions
from strongticket.builders.subset import subset_chunks
from strongticket.builders.targets import Targets
from strongticket.errors import StrongTicketError
from strongticket.files import JsonObject, check_output, exclusive_lock, write_file
from strongticket.ticket import Ticket, recipe_text
from strongticket.work.store import Store, code_version

# What a coded block or a pair of factors depends on.
CODE = ("builders", "choice", "models/subset.py", "rans.py", "seeds", "subset_sum", "ticket")


def build(
    target: nn.Module | str | Path,
    *,
    workers: int | None = None,
    cluster: str | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Ticket:
    """Build a ticket of a trained model: each number becomes one of many random weights of its connection.

    Args:
        target: any torch module with trained weights, or the folder or hub name of a Hugging Face model.
        workers: number of threads (of processes, by subset sums); None means one per core.
        cluster: address of a Dask scheduler whose workers do it instead.
        progress: called with the numbers coded so far and all there are.
        options: see ModelOptions.

    >>> ticket = build(nn.MultiheadAttention(8, 2), tolerance=0.01)
    >>> ticket.network(nn.MultiheadAttention(8, 2))(*3 * [torch.zeros(5, 8)])[0].shape  # any such module is filled
    torch.Size([5, 8])
    """
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "built.ticket"
        build_file(target, out, workers=workers, cluster=cluster, progress=progress, **options)
        return Ticket.load(out)


def build_file(
    target: nn.Module | str | Path,
    out: Path,
    *,
    workers: int | None = None,
    cluster: str | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> None:
    """Write the ticket of a trained model to the file `out`; the other arguments are those of `build`.

    The file's bytes do not depend on workers or cluster. Finished blocks are kept beside `out` until it is written, so
    that an interrupted call resumes from them.
    """
    out = Path(out)
    check_output(out)
    known = ModelOptions.__dataclass_fields__
    if unknown := options.keys() - known:
        raise StrongTicketError(
            f"unknown build option {min(unknown)!r}: expected some of {', '.join(sorted(known))}"
        )
    asked = ModelOptions(**options)
    targets = Targets.open(target, asked)
    recipe = recipe_text(asked.seed, "model", targets.settings(asked))
    metadata: JsonObject = {}
    if targets.tokenizer:
        metadata = {"tokenizer": targets.tokenizer, "tokenizer_bytes": targets.tokenizer_bytes}
    with exclusive_lock(out):
        store = Store(Path(f"{out}.pieces"), code_version(*CODE))
        coder = Coder(workers, cluster, progress, store, targets.numbers)
        made = subset_chunks if asked.by == "subset" else choice_chunks
        write_file(out, made(targets, asked, recipe, metadata, coder))
        store.clear()
