"""A trained model by choice: the steps that were asked for, then every tensor in blocks of rows."""

import hashlib
from collections.abc import Iterator
from itertools import islice

import numpy as np

from strongticket import choice
from strongticket.builders.calibration import Calibration
from strongticket.builders.coder import Coder, PartOf, coded_part, errors_metadata
from strongticket.builders.loss import reach_loss
from strongticket.builders.options import ModelOptions
from strongticket.builders.steps import Steps, choose_steps
from strongticket.builders.targets import Targets
from strongticket.choice import Feedback, matrix_shape, row_blocks
from strongticket.errors import prefixed
from strongticket.files import JsonObject
from strongticket.models.tensors import from_stored
from strongticket.ticket import block_digest, choices_line, chunks, tensor_checksum
from strongticket.work.store import limited_threads

BATCH = 1 << 19  # numbers that are coded at a time, about
# What encode_rows is given: all that the bytes of a block depend on.
Block = tuple[JsonObject, np.ndarray, Feedback | None]


def choice_chunks(
    targets: Targets, options: ModelOptions, recipe: bytes, metadata: JsonObject, coder: Coder
) -> Iterator[bytes]:
    """The bytes of the ticket, chunk by chunk."""
    calibration, shapes = Calibration.of(targets, options), targets.shapes()

    def code(steps: Steps) -> dict[str, list[JsonObject]]:
        return coder.code(code_batch, _batches(targets, options, steps, calibration), threads=True)

    def made(steps: Steps) -> dict[str, np.ndarray]:
        """The tensors as the ticket will have them, to be tried before it is written."""
        tensors, coded = {}, code(steps)
        data = coder.data(coded)
        for name, parts in coded.items():
            blocks = tuple(islice(data, len(parts)))
            choices = choice.Choices(shapes[name], blocks, calibration.transposed(name))
            tensors[name] = from_stored(name, choice.decode(choices, options.seed, name))
        return tensors

    if options.loss is None:
        steps = choose_steps(targets, options)
    else:
        with limited_threads(1):  # sums in a fixed order
            steps, metadata["loss_against_base"] = reach_loss(targets, options, made)
    coded = code(steps)
    lines = []
    for name, parts in coded.items():
        digests = [bytes.fromhex(part["digest"]) for part in parts]
        checksum = tensor_checksum(recipe, name, shapes[name], digests)
        sizes = [part["bytes"] for part in parts]
        lines.append(choices_line(name, checksum, shapes[name], sizes, calibration.transposed(name)))
    metadata |= {name: asked for name in ("bits", "tolerance", "loss") if (asked := getattr(options, name))}
    if options.calibrate is not None:
        metadata["calibrated_on"] = options.calibrate.name
    metadata |= errors_metadata(coded) | {"states": options.states, "shrunk": steps.shrink}
    yield from chunks(recipe, None, metadata, lines, coder.data(coded))


def _batches(
    targets: Targets, options: ModelOptions, steps: Steps, calibration: Calibration
) -> Iterator[tuple[list[PartOf], JsonObject, tuple[list[Block]]]]:
    """Blocks in groups of about BATCH numbers, as pieces of work: rows are read when a worker is free for them."""
    batch: list[Block] = []
    for name, shape in sorted(targets.shapes().items()):
        transposed, feedback = calibration.transposed(name), calibration.feedback(name)
        rows, columns = matrix_shape(shape)
        for part in row_blocks((columns, rows) if transposed else (rows, columns)):
            settings: JsonObject = dict(
                first=part.start, seed=options.seed, name=name, step=steps.of[name], states=options.states,
                shrink=steps.shrink,
            )  # fmt: skip
            batch.append((settings, targets.read(name, part, transposed=transposed), feedback))
            if sum(numbers.size for _, numbers, _ in batch) >= BATCH:
                yield _piece(batch)
                batch = []
    if batch:
        yield _piece(batch)


def _piece(batch: list[Block]) -> tuple[list[PartOf], JsonObject, tuple[list[Block]]]:
    owners = [(settings["name"], settings["first"]) for settings, _, _ in batch]
    return owners, {"blocks": [_identity(*block) for block in batch]}, (batch,)


def _identity(settings: JsonObject, rows: np.ndarray, feedback: Feedback | None) -> JsonObject:
    """What names a block in the store."""
    inputs = [] if feedback is None else [feedback.order, feedback.shares]
    digest = hashlib.sha256()
    for array in (rows, *inputs):
        digest.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return settings | {"shape": list(rows.shape), "numbers": digest.hexdigest()}


def code_batch(batch: list[Block]) -> list[JsonObject]:
    """Code blocks, here or on another machine, in one thread; knows no model and no file."""
    return [_code_block(*block) for block in batch]


def _code_block(settings: JsonObject, rows: np.ndarray, feedback: Feedback | None) -> JsonObject:
    name, first, seed = (settings[key] for key in ("name", "first", "seed"))
    with prefixed(f"the model's {name}"):
        data = choice.encode_rows(rows, feedback=feedback, **settings)
    made = np.empty_like(rows)
    choice.decode_rows(data, first, seed, name, made)
    return coded_part(data, made, rows, bytes=len(data), digest=block_digest(made).hex())
