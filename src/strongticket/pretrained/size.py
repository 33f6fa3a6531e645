"""How large a ticket will be: masks by the bits of their matrices, vectors, and a line in the index for each."""

from strongticket.models.tensors import matrix_shape
from strongticket.pretrained.options import TOLERANCE, ModelOptions
from strongticket.pretrained.pieces.cut import FEW, FEW_UNITS, Layout, cut
from strongticket.pretrained.quality import Quality, Sample

PIECE = 100  # bytes of the index for the two tensors of a piece: two checksums of 16, and what zstd leaves of the rest
PAPER_UNITS = 24
NEAR = 0.75  # of the least error: an entry this near is near enough; costs 0.01 bits and saves a quarter of the time
FILE = 1500  # bytes of the header, the settings and the errors


def choose(shapes: dict[str, tuple[int, ...]], sample: Sample, asked: ModelOptions) -> Quality:
    """Units and tolerance for what is asked; the sample is solved to find out, unless units are given.

    shapes: of all tensors that are made
    """
    tolerance = TOLERANCE if asked.tolerance is None else asked.tolerance
    paper = asked.assignment == "paper"
    if asked.units is not None:
        return Quality(asked.units, tolerance, asked.piece_problems, paper)
    if paper:
        return Quality(PAPER_UNITS, tolerance, asked.piece_problems, paper)
    if asked.bits is not None:
        units = sample.units_of(matrix_bits(asked.bits, shapes, asked.piece_problems))
        return Quality(units, NEAR * sample.measure(units, 0.0).error, asked.piece_problems)
    return Quality(sample.units_for(tolerance), tolerance, asked.piece_problems)


def overhead_bits(shapes: dict[str, tuple[int, ...]], problems: int) -> tuple[int, int]:
    """(bits of everything but the matrices' masks, numbers of the matrices)."""
    matrices = {name: matrix_shape(shape) for name, shape in shapes.items()}
    pieces = sum(len(cut(name, *sides, Layout(problems=problems))) for name, sides in matrices.items())
    sizes = [(min(sides), sides[0] * sides[1]) for sides in matrices.values()]
    vectors, numbers = (sum(size for rows, size in sizes if (rows <= FEW) == few) for few in (True, False))
    return 8 * (FILE + PIECE * pieces) + FEW_UNITS * vectors, numbers


def matrix_bits(bits: float, shapes: dict[str, tuple[int, ...]], problems: int) -> float:
    """What is left for each number of the matrices if the whole file has `bits` for each number of the model."""
    other, numbers = overhead_bits(shapes, problems)
    total = sum(rows * columns for rows, columns in map(matrix_shape, shapes.values()))
    return (bits * total - other) / numbers if numbers else bits
