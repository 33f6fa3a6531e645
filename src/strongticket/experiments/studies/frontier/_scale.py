"""What the frontier searches: methods, widths, seeds and learning rates."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from strongticket.experiments.tasks.language import TINY
from strongticket.searching import SearchConfig, preset

TICKET, PAPER = "ticket", "edge-popup as in the paper"
QUANTISED = ("blended-int4", "blended-ternary")
METHODS = (TICKET, PAPER, *QUANTISED)


@dataclass(frozen=True)
class Setting:
    """One chart: data and a number of steps, and what is searched there.

    config: of the ticket; quantised training has the same except for its method
    paper: of the paper's recipe, if it is compared
    seeds: method -> width of the model -> how many seeds; widths from small to large
    rates: learning rates tried for every method on the first seed
    higher: further rates, tried one by one while the highest so far is the best
    tuned_at: the width, counted from 0, at which rates are tried; the last one if there are fewer
    own_rates: method -> rates to try instead
    """

    config: SearchConfig
    seeds: dict[str, dict[int, int]]
    rates: tuple[float, ...]
    higher: tuple[float, ...] = ()
    tuned_at: int = 1
    own_rates: dict[str, tuple[float, ...]] = field(default_factory=dict)
    paper: SearchConfig | None = None

    def configure(self, method: str, width: int, rate: float, seed: int) -> SearchConfig:
        """Return the search of one point. All but the paper's recipe have the same model, data and schedule."""
        if method == PAPER:
            assert self.paper is not None
            lr_end = float(f"{rate / 10:.6g}")
            heads = max(1, width // 64)
            return replace(self.paper, dim=width, heads=heads, lr=rate, lr_end=lr_end, seed=seed)
        config = self.config if method == TICKET else replace(self.config, method=method)
        return replace(config, dim=width, lr=rate, lr_end=0.0, seed=seed)

    def first_rates(self, method: str) -> tuple[float, ...]:
        """Return the rates that are tried in any case."""
        return self.own_rates.get(method, self.rates)

    def tuned_width(self, method: str) -> int:
        """Return the width at which a method's rates are tried."""
        widths = list(self.seeds[method])
        return widths[min(self.tuned_at, len(widths) - 1)]


Scale = dict[str, Setting]  # name of a setting -> what is searched there

_LAPTOP, _PAPER_LAPTOP = preset("laptop"), preset("paper-laptop")
_HIGHER = (5e-3, 8e-3, 1.2e-2)
# Widths whose files have about 13, 46, 100 and 200 kB.
_SHORT = {
    TICKET: {64: 3, 128: 3, 192: 3, 272: 1},
    PAPER: {128: 1},
    "blended-int4": {32: 3, 72: 3, 104: 3, 152: 1},
    "blended-ternary": {48: 3, 96: 3, 144: 3, 208: 1},
}
_LONG = {
    TICKET: {64: 1, 128: 3, 192: 1},
    "blended-int4": {32: 1, 72: 3, 104: 1},
    "blended-ternary": {48: 1, 96: 3, 144: 1},
}
_IMAGES = {
    TICKET: {64: 3, 128: 3},
    "blended-int4": {40: 3, 72: 3},
    "blended-ternary": {48: 3, 96: 3},
}
_TINY_TICKET = replace(
    TINY,
    method="annealed",
    law="hadamard",
    kept=0.7,
    scope="global",
    architecture="llama",
    activation="silu",
    lr_end=0.0,
)
_TINY_IMAGES = preset("images", dim=8, heads=2, layers=1, patch=4, steps=3, warmup=1, batch=8, micro_batch=8)
SCALES: dict[str, Scale] = {
    "laptop": {
        "600 steps": Setting(
            _LAPTOP, _SHORT, (3e-3, 5e-3), _HIGHER, own_rates={PAPER: (3e-3, 6e-3)}, paper=_PAPER_LAPTOP
        ),
        "2,400 steps": Setting(replace(_LAPTOP, steps=2400), _LONG, (3e-3, 5e-3), _HIGHER),
        "images": Setting(preset("images"), _IMAGES, (1.5e-3, 3e-3), _HIGHER, tuned_at=0),
    },
    "paper": {
        f"{steps:,} steps": Setting(
            replace(_LAPTOP, steps=steps),
            {method: dict.fromkeys(widths, 5) for method, widths in _SHORT.items()},
            (7.5e-4, 1.5e-3, 3e-3),
            _HIGHER,
            paper=replace(_PAPER_LAPTOP, steps=steps),
        )
        for steps in (600, 2400, 9600)
    },
    "test": {
        "4 steps": Setting(
            replace(_TINY_TICKET, steps=4),
            {method: {8: 1, 16: 1} for method in METHODS},
            (1e-3, 1e-2),
            (2e-2,),
            own_rates={PAPER: (1e-3,)},
            paper=TINY,
        ),
        "images": Setting(
            _TINY_IMAGES, {TICKET: {8: 2, 16: 1}, "blended-int4": {8: 1, 16: 1}}, (1e-2,), tuned_at=0
        ),
    },
}
