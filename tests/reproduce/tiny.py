"""Settings of the studies for the tests: seconds, and no numbers to quote."""

from strongticket.reproduce import (
    algorithms,
    figure4,
    figure5,
    figure6,
    figure7,
    figure8,
    images,
    initialisations,
    multimodal,
    rule,
)
from strongticket.reproduce.bits import Bits
from strongticket.reproduce.constant import Constant
from strongticket.reproduce.frontier import PAPER, TICKET, Frontier, Method, quantised
from strongticket.reproduce.lengths import Lengths
from strongticket.reproduce.quantised import Quantised
from strongticket.reproduce.randomness import Randomness
from strongticket.reproduce.sparsity import Sparsity
from strongticket.reproduce.valley import ValleySettings
from strongticket.searching import preset

# A network of a few thousand weights.
SEARCH = preset(
    "paper-laptop", dim=16, heads=2, layers=1, context=32, batch=2, micro_batch=2, steps=4, warmup=1
)
FIGURE8 = figure8.Figure8(
    {
        "tiny": figure8.Series(SEARCH, (0, 1, 2), seeds=2, main=True),
        **figure8.varied(SEARCH.changed(steps=3), (4, 8), {0.1: -1}, (0, 0.5, 1)),
    }
)
IMAGES = ValleySettings(
    images.LAPTOP.changed(dim=8, layers=1, patch=4, steps=3, warmup=1), (1.0, 2.0, 4.0), 2
)
MULTIMODAL = ValleySettings(multimodal.LAPTOP.changed(dim=8, patch=4, steps=3, warmup=1), (1.0, 2.0, 4.0), 1)
RULE = rule.RuleSettings(
    rule.design(
        SEARCH.changed(dim=8, steps=2, warmup=1),
        rule.IMAGES.changed(patch=4, batch=8, micro_batch=8, dim=8, steps=2, warmup=1),
        (4, 1),
    ),
    (1.0, 2.0, 4.0),
    1,
)
_MASK = dict(method="annealed", law="hadamard", kept=0.7, scope="global", lr_end=0.0)
_TICKET = SEARCH.changed(architecture="llama", activation="silu", **_MASK)
_SMALL_IMAGES = preset("images", dim=8, heads=2, layers=1, patch=4, steps=3, warmup=1, batch=8, micro_batch=8)
_CURVE = ({8: 1, 16: 1}, 16, (1e-3, 1e-2), (2e-2,))
FRONTIER = Frontier(
    {
        "4 steps": (
            Method(TICKET, _TICKET, *_CURVE),
            Method(PAPER, SEARCH, {8: 1, 16: 1}, 16, (1e-3,), (2e-2,), head_size=64),
            quantised("blended-int4", _TICKET, *_CURVE),
            quantised("blended-ternary", _TICKET, *_CURVE),
        ),
        "images": (
            Method(TICKET, _SMALL_IMAGES, {8: 2, 16: 1}, 8, (1e-2,), ()),
            quantised("blended-int4", _SMALL_IMAGES, {8: 1, 16: 1}, 8, (1e-2,), ()),
        ),
    }
)
INITIALISATIONS = initialisations.Initialisations(
    {"images": initialisations.IMAGES.changed(patch=4, batch=8, micro_batch=8, dim=8, steps=2, warmup=1)},
    ("normal", "Kaiming"),
    ("1", "calibrated"),
    (1e-3, 1e-2),
    1,
)
ALGORITHMS = algorithms.Algorithms(
    algorithms.LAPTOP.changed(dim=8, layers=1, steps=2, warmup=1, batch=8, micro_batch=8),
    (1e-3, 1e-2),
    1,
    {"modular addition": (7,), "needle": (2, 3, 60)},
)

# name of a study -> its settings
TINY = {
    "algorithms": ALGORITHMS,
    "bits": Bits(20, ((2, 4), (4,), (3, 6)), 96, (4, 5), 2),
    "constant": Constant(
        dims=(1, 2), epsilons=(0.5, 0.3), trials=20, error_trials=2, error_per_row=(2, 4, 6)
    ),
    "figure4": figure4.STUDY.settings["test"],
    "figure5": figure5.STUDY.settings["test"],
    "figure6": figure6.Figure6((8, 12, 16), 2, 16, 1),
    "figure7": figure7.Figure7({f"d = {d}": SEARCH.changed(dim=d, heads=d // 8) for d in (8, 16)}, 1),
    "figure8": FIGURE8,
    "frontier": FRONTIER,
    "images": IMAGES,
    "initialisations": INITIALISATIONS,
    "lengths": Lengths((4, 64), 6, 2, (8, 16), SEARCH.changed(dim=8), 32, 1),
    "multimodal": MULTIMODAL,
    "quantised": Quantised(10, (2, 3), 2, 0.8, (4,)),
    "randomness": Randomness(
        96, 128, matrices=3, independent_matrices=1, pools=(6, 8), choice_bits=(2, 3, 4, 5, 6)
    ),
    "rule": RULE,
    "sparsity": Sparsity(50, (0.2, 0.5), (0.1, 0.01)),
}
