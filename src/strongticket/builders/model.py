"""A trained model in, a ticket out: open it once, choose the steps, code blocks of rows, write them as they are."""

import base64
import hashlib
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from torch import nn

from strongticket import choice
from strongticket.builders.accounting import errors_metadata, errors_of, tokenizer_metadata
from strongticket.builders.calibration import Calibration
from strongticket.builders.loss import reach_loss
from strongticket.builders.options import ModelOptions
from strongticket.builders.steps import Steps, choose_steps
from strongticket.builders.subset import subset_chunks
from strongticket.builders.targets import Targets
from strongticket.choice import Feedback, matrix_shape, row_blocks
from strongticket.errors import StrongTicketError, prefixed
from strongticket.files import JsonObject, check_output, exclusive_lock, write_file
from strongticket.models.tensors import from_stored
from strongticket.ticket import Ticket, block_digest, choices_line, chunks, recipe_text, tensor_checksum
from strongticket.work.store import Store, code_version, run_pieces

Progress = Callable[[int, int], None]  # (numbers done, numbers in all)
BATCH = 1 << 19  # numbers that are coded at a time, about


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
    asked, targets = _opened(target, options)
    with tempfile.TemporaryDirectory() as folder:
        run = _Run(targets, asked, Path(folder), workers, cluster, progress)
        return Ticket.from_bytes(b"".join(run.chunks()))


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
    asked, targets = _opened(target, options)
    with exclusive_lock(out):
        folder = Path(f"{out}.pieces")
        run = _Run(targets, asked, folder, workers, cluster, progress)
        write_file(out, run.chunks())
        run.remove()


def _opened(target: nn.Module | str | Path, options: JsonObject) -> tuple[ModelOptions, Targets]:
    known = ModelOptions.__dataclass_fields__
    if unknown := options.keys() - known:
        raise StrongTicketError(
            f"unknown build option {min(unknown)!r}: expected some of {', '.join(sorted(known))}"
        )
    asked = ModelOptions(**options)
    return asked, Targets.open(target, asked)


@dataclass(frozen=True)
class Block:
    """Rows of a tensor to be coded: with the numbers themselves, all that their bytes depend on."""

    tensor: str
    first: int
    step: float
    states: int
    shrink: bool
    seed: int


Work = tuple[Block, np.ndarray, Feedback | None]


@dataclass
class _Run:
    """One build: its blocks, wherever they are coded, and the file they make."""

    targets: Targets
    options: ModelOptions
    folder: Path
    workers: int | None
    cluster: str | None
    progress: Progress | None

    def __post_init__(self) -> None:
        # What a block or a pair of factors depends on.
        parts = ("builders", "choice", "models/subset.py", "rans.py", "seeds", "subset_sum", "ticket")
        self.store = Store(self.folder, code_version(*parts))

    def chunks(self) -> Iterator[bytes]:
        """The bytes of the ticket."""
        if self.options.by == "subset":
            how: Any = dict(workers=self.workers, cluster=self.cluster, progress=self.progress)
            yield from subset_chunks(self.targets, self.options, self.store, **how)
            return
        calibration = Calibration.of(self.targets, self.options)
        more: JsonObject = {}
        if self.options.loss is None:
            steps = choose_steps(self.targets, self.options)
        else:
            steps, more = reach_loss(self.targets, self.options, lambda steps: self._made(steps, calibration))
        coded = self._code(steps, calibration)
        metadata = self._metadata(steps, coded) | more
        recipe = recipe_text(self.options.seed, "model", self.targets.settings(self.options))
        lines = []
        for name, shape in sorted(self.targets.shapes().items()):
            digests = [bytes.fromhex(block["digest"]) for block in coded[name]]
            checksum = tensor_checksum(recipe, name, shape, digests)
            sizes = [block["bytes"] for block in coded[name]]
            lines.append(choices_line(name, checksum, shape, sizes, calibration.transposed(name)))
        yield from chunks(recipe, None, metadata, lines, self._data(coded))

    def remove(self) -> None:
        """Remove the finished blocks: the file has them."""
        for file in self.folder.glob("*.json"):
            file.unlink(missing_ok=True)
        if not any(self.folder.iterdir()):
            self.folder.rmdir()

    def _code(self, steps: Steps, calibration: Calibration) -> dict[str, list[JsonObject]]:
        """For each tensor what is known of its blocks; their bytes stay in the store."""
        found: dict[str, dict[int, JsonObject]] = {name: {} for name in self.targets.names}
        total, done = self.targets.numbers, 0
        pieces = (
            ([work[0] for work in batch], {"blocks": [_identity(*work) for work in batch]}, (batch,))
            for batch in self._batches(steps, calibration)
        )
        how: Any = dict(workers=self.workers, cluster=self.cluster, threads=True)
        for blocks, path, result in run_pieces(code_batch, pieces, self.store, **how):
            for place, (block, about) in enumerate(zip(blocks, result, strict=True)):
                known = {name: value for name, value in about.items() if name != "data"}
                found[block.tensor][block.first] = known | {"place": (path, place)}
                done += about["numbers"]
            if self.progress is not None:
                self.progress(done, total)
        return {name: [blocks[first] for first in sorted(blocks)] for name, blocks in found.items()}

    def _batches(self, steps: Steps, calibration: Calibration) -> Iterator[list[Work]]:
        """Blocks in groups of about BATCH numbers: rows are read when a worker is free for them."""
        batch: list[Work] = []
        for name in sorted(self.targets.names):
            transposed, feedback = calibration.transposed(name), calibration.feedback(name)
            rows, columns = matrix_shape(self.targets.shapes()[name])
            for part in row_blocks((columns, rows) if transposed else (rows, columns)):
                numbers = self.targets.read(name, part, transposed=transposed)
                options = self.options
                block = Block(name, part.start, steps.of[name], options.states, steps.shrink, options.seed)
                batch.append((block, numbers, feedback))
                if sum(work[1].size for work in batch) >= BATCH:
                    yield batch
                    batch = []
        if batch:
            yield batch

    def _data(self, coded: dict[str, list[JsonObject]]) -> Iterator[bytes]:
        """The bytes of all blocks in the order of the file, one batch in memory at a time."""
        path: Path | None = None
        batch: list[JsonObject] = []
        for name in sorted(coded):
            for block in coded[name]:
                if block["place"][0] != path:
                    path = block["place"][0]
                    (batch,) = self.store.read(path)
                yield base64.b64decode(batch[block["place"][1]]["data"])

    def _made(self, steps: Steps, calibration: Calibration) -> dict[str, np.ndarray]:
        """The tensors as the ticket will have them, to be tried before it is written."""
        coded = self._code(steps, calibration)
        data = self._data(coded)
        made = {}
        for name in sorted(coded):
            shape = self.targets.shapes()[name]
            blocks = tuple(next(data) for _ in coded[name])
            choices = choice.Choices(shape, blocks, calibration.transposed(name))
            made[name] = from_stored(name, choice.decode(choices, self.options.seed, name))
        return made

    def _metadata(self, steps: Steps, coded: dict[str, list[JsonObject]]) -> JsonObject:
        """What was asked for, the errors of every tensor, and the tokenizer."""
        given = {name: getattr(self.options, name) for name in ("bits", "tolerance", "loss")}
        text = {} if self.options.calibrate is None else {"calibrated_on": self.options.calibrate.name}
        return {
            **{name: value for name, value in given.items() if value is not None},
            **text,
            **tokenizer_metadata(self.targets.tokenizer),
            **errors_metadata(coded),
            "states": self.options.states,
            "shrunk": steps.shrink,
        }


def code_batch(batch: list[Work]) -> list[JsonObject]:
    """Code blocks, here or on another machine, in one thread; knows no model and no file."""
    return [_code_block(*work) for work in batch]


def _code_block(block: Block, rows: np.ndarray, feedback: Feedback | None) -> JsonObject:
    source = (block.seed, block.tensor)
    with prefixed(f"the model's {block.tensor}"):
        data = choice.encode_rows(
            rows, block.first, *source, block.step, block.states, block.shrink, feedback
        )
    made = np.empty_like(rows)
    choice.decode_rows(data, block.first, *source, made)
    return {
        "data": base64.b64encode(data).decode("ascii"),
        "bytes": len(data),
        "digest": block_digest(made).hex(),
        **errors_of(made, rows),
    }


def _identity(block: Block, rows: np.ndarray, feedback: Feedback | None) -> JsonObject:
    """What names a block in the store."""
    inputs = [] if feedback is None else [feedback.order, feedback.shares]
    digest = hashlib.sha256()
    for array in (rows, *inputs):
        digest.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return asdict(block) | {"shape": list(rows.shape), "numbers": digest.hexdigest()}
