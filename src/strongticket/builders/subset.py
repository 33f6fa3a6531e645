"""A trained model by subset sums, as the paper states them: every matrix a product of two pruned random ones."""

import hashlib
from collections.abc import Iterator

import numpy as np

from strongticket.builders.coder import Coder, PartOf, coded_part, errors_metadata
from strongticket.builders.options import TOLERANCE, ModelOptions
from strongticket.builders.product import build_product
from strongticket.builders.targets import Targets
from strongticket.files import JsonObject
from strongticket.models.subset import FactorPair, factor_pairs
from strongticket.seeds import Uniform, apply_mask, draw
from strongticket.ticket import block_digest, chunks, code_mask, tensor_checksum
from strongticket.work.store import limited_threads

REACH = 4.0  # times the largest number: 24 products of such weights then reach it but once in 20,000 cases


def subset_chunks(
    targets: Targets, options: ModelOptions, recipe: bytes, metadata: JsonObject, coder: Coder
) -> Iterator[bytes]:
    """The bytes of the ticket, chunk by chunk."""
    shapes, tolerance = targets.shapes(), options.tolerance or TOLERANCE

    def pieces() -> Iterator[tuple[list[PartOf], JsonObject, tuple[object, ...]]]:
        for name, matrix in targets.matrices():
            near = tolerance * float(np.sqrt(np.square(matrix, dtype=np.float64).mean()))
            for pair in factor_pairs(name, shapes[name], options.per_row):
                part = np.ascontiguousarray(pair.part(matrix), np.float64)
                settings = {
                    "pair": [pair.left, pair.right, pair.units, options.seed, near],
                    "numbers": hashlib.sha256(part.tobytes()).hexdigest(),
                }
                yield [(name, pair.rows.start)], settings, (pair, part, near, options.seed)

    coded = coder.code(prune_pair, pieces())
    # In the order of their names: those of a pair follow each other, as no tensor's name is another's and a dot.
    pairs = {str(pair["lines"][0]["name"]): [pair] for parts in coded.values() for pair in parts}
    pairs = dict(sorted(pairs.items()))
    lines = []
    for (pair,) in pairs.values():
        for line, digest in zip(pair["lines"], pair["digests"], strict=True):
            checksum = tensor_checksum(recipe, line["name"], line["shape"], [bytes.fromhex(digest)])
            lines.append(line | {"checksum": checksum})
    metadata |= errors_metadata(coded) | {"tolerance": tolerance}
    yield from chunks(recipe, None, metadata, lines, coder.data(pairs))


def prune_pair(pair: FactorPair, target: np.ndarray, near: float, seed: int) -> list[JsonObject]:
    """Draw a pair of factors and prune them, here or on another machine, in one thread."""
    largest = float(np.abs(target).max(initial=0.0))
    # A power of two that covers the numbers is all that they decide besides the masks.
    laws = Uniform(1.0), Uniform(REACH * float(2.0 ** np.ceil(np.log2(largest))) if largest else 1.0)
    named = list(zip(pair.shapes.items(), laws, strict=True))
    left, right = (draw(seed, name, shape, law, threads=1) for (name, shape), law in named)
    with limited_threads(1):
        built = build_product(target, left, right, assignment="paper", tolerance=near)
    factors, digests = [], []
    for ((name, _), law), weights, mask in zip(
        named, (left, right), (built.left_mask, built.right_mask), strict=True
    ):
        apply_mask(weights, mask)
        factors.append(code_mask(name, mask, law, ""))
        digests.append(block_digest(weights).hex())
    data = b"".join(factor.data for factor in factors)
    lines = [factor.line for factor in factors]
    return [coded_part(data, built.product, target, lines=lines, digests=digests)]
