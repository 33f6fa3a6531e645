"""The options of a model's ticket, for the API and the command line alike."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from strongticket import choice, seeds
from strongticket.errors import StrongTicketError
from strongticket.settings import Range, Settings
from strongticket.subset_sum import MAX_EXACT

TOLERANCE = 1e-2


@dataclass(frozen=True)
class ModelOptions(Settings):
    """Accuracy, tensor selection and random source. Give at most one of tolerance, bits and loss.

    Attributes:
        tolerance: root mean square error of a tensor's numbers, relative to their own root mean square; 0.01 if
            nothing else is given.
        bits: or the size of the file, in bits for each number of the model.
        loss: or how much the loss on `data` may grow, as a fraction: 0.01 is one per cent.
        data: a text file for `loss`: half of it finds where bits are needed, half checks the result.
        calibrate: a text file; errors of linear layers are fed forward so that they cancel on inputs like its own.
        only: name patterns such as "model.layers.0.*"; the other tensors stay trained. None given: all tensors.
        by: "choice" keeps one of many random weights for each number; "subset" makes each matrix a product of two
            pruned random ones, one subset sum for each entry, as Lemma 4 has it.
        attention: "products" makes W_QK and W_VO of every head as Theorem 3 does, by subset sums, for GPT-2 and Llama.
        states: of the trellis along which choices are made; 1 keeps the nearest weight.
        per_row: hidden units of each row, by subset sums: about eight more than the bits of precision.
        seed: of everything random.
    """

    tolerance: Annotated[float, Range(above=0, below=1)] | None = None
    bits: Annotated[float, Range(above=0, below=32)] | None = None
    loss: Annotated[float, Range(above=0, below=10)] | None = None
    data: Path | None = None
    calibrate: Path | None = None
    only: tuple[str, ...] = ()
    by: Literal["choice", "subset"] = "choice"
    attention: Literal["linear", "products"] = "linear"
    states: int = 8
    per_row: Annotated[int, Range(least=1, most=MAX_EXACT)] = 24
    seed: int = 0

    def __post_init__(self) -> None:
        if isinstance(self.only, str):
            object.__setattr__(self, "only", (self.only,))
        for name in ("data", "calibrate"):
            if (path := getattr(self, name)) is not None:
                object.__setattr__(self, name, Path(path))
        super().__post_init__()
        seeds.key(self.seed, "")
        choice.check_states(self.states)
        if self.attention == "products":
            object.__setattr__(self, "by", "subset")
        for name in ("tolerance", "bits", "loss"):
            if (value := getattr(self, name)) is not None:
                object.__setattr__(self, name, float(value))  # 4 and 4.0 are the same to the ticket's bytes
        if len(given := self._given("tolerance", "bits", "loss")) > 1:
            raise StrongTicketError(f"{' and '.join(given)} are given: give one of them")
        if (self.loss is None) != (self.data is None):
            raise StrongTicketError("loss and data must be given together")
        odd = self._given("bits", "loss", "calibrate")
        if self.by == "subset" and odd:
            raise StrongTicketError(
                f"{odd[0]} does not apply to subset sums",
                hint="Give per_row and tolerance, or build by choice.",
            )

    def _given(self, *names: str) -> list[str]:
        return [name for name in names if getattr(self, name) is not None]
