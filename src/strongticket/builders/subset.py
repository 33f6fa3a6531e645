"""A trained model by subset sums, as the paper states them: every matrix a product of two pruned random ones."""

import base64
import hashlib
from collections.abc import Callable, Iterator

import numpy as np

from strongticket.builders.accounting import errors_metadata, errors_of, tokenizer_metadata
from strongticket.builders.options import TOLERANCE, ModelOptions
from strongticket.builders.product import build_product
from strongticket.builders.targets import Targets
from strongticket.files import JsonObject
from strongticket.models.subset import FactorPair, factor_pairs
from strongticket.seeds import Uniform, apply_mask, draw
from strongticket.ticket import block_digest, chunks, code_mask, recipe_text, tensor_checksum
from strongticket.work.store import Store, limited_threads, run_pieces

REACH = 4.0  # times the largest number: 24 products of such weights then reach it but once in 20,000 cases


def subset_chunks(
    targets: Targets,
    options: ModelOptions,
    store: Store,
    *,
    workers: int | None,
    cluster: str | None,
    progress: Callable[[int, int], None] | None,
) -> Iterator[bytes]:
    """The bytes of the ticket, chunk by chunk; see builders.model for the arguments."""
    shapes, tolerance = targets.shapes(), TOLERANCE if options.tolerance is None else options.tolerance
    recipe = recipe_text(options.seed, "model", targets.settings(options))

    def pieces() -> Iterator[tuple[tuple[str, FactorPair], JsonObject, tuple[object, ...]]]:
        for name, matrix in targets.matrices():
            near = tolerance * float(np.sqrt(np.square(matrix, dtype=np.float64).mean()))
            for pair in factor_pairs(name, shapes[name], options.per_row):
                part = np.ascontiguousarray(pair.part(matrix), np.float64)
                settings = {
                    "pair": [pair.left, pair.right, pair.units, options.seed, near],
                    "numbers": hashlib.sha256(part.tobytes()).hexdigest(),
                }
                yield (name, pair), settings, (pair, part, near, options.seed)

    found: dict[str, list[JsonObject]] = {name: [] for name in shapes}
    lines, done = [], 0
    for (name, pair), path, result in run_pieces(
        prune_pair, pieces(), store, workers=workers, cluster=cluster
    ):
        for place, (factor, shape) in enumerate(pair.shapes.items()):
            about = result["factors"][place]
            about["line"]["checksum"] = tensor_checksum(
                recipe, factor, shape, [bytes.fromhex(about["digest"])]
            )
            lines.append((about["line"], path, place))
        found[name].append(result["errors"])
        done += result["errors"]["numbers"]
        if progress is not None:
            progress(done, targets.numbers)
    lines.sort(key=lambda entry: str(entry[0]["name"]))
    metadata = errors_metadata(found) | tokenizer_metadata(targets.tokenizer) | {"tolerance": tolerance}
    data = (base64.b64decode(store.read(path)[0]["factors"][place]["data"]) for _, path, place in lines)
    yield from chunks(recipe, None, metadata, [line for line, _, _ in lines], data)


def prune_pair(pair: FactorPair, target: np.ndarray, near: float, seed: int) -> JsonObject:
    """Draw a pair of factors and prune them, here or on another machine, in one thread."""
    largest = float(np.abs(target).max(initial=0.0))
    # A power of two that covers the numbers is all that they decide besides the masks.
    laws = Uniform(1.0), Uniform(REACH * float(2.0 ** np.ceil(np.log2(largest))) if largest else 1.0)
    left, right = (
        draw(seed, name, shape, law, threads=1)
        for (name, shape), law in zip(pair.shapes.items(), laws, strict=True)
    )
    with limited_threads(1):
        built = build_product(target, left, right, assignment="paper", tolerance=near)
    factors = []
    for name, law, weights, mask in zip(
        pair.shapes, laws, (left, right), (built.left_mask, built.right_mask), strict=True
    ):
        apply_mask(weights, mask)
        coded = code_mask(name, mask, law, "")
        data = base64.b64encode(coded.data).decode("ascii")
        factors.append({"line": coded.line, "data": data, "digest": block_digest(weights).hex()})
    return {"factors": factors, "errors": errors_of(built.product, target)}
