"""A ticket: what makes a random network, and the masks that prune it. Save, load, rebuild, verify."""

import inspect
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from strongticket import limits, seeds
from strongticket.errors import StrongTicketError, TicketError
from strongticket.files import JsonObject, json_roundtrip, write_file
from strongticket.seeds import Law, draw
from strongticket.ticket import format as file_format
from strongticket.ticket import kinds
from strongticket.ticket.certificate import NETWORK, check_binding, check_certificate, network_checksum
from strongticket.ticket.fields import check_names, read_only, same_bits
from strongticket.ticket.hub import HubMethods
from strongticket.ticket.summary import Sizes, TensorSummary, Verification

if TYPE_CHECKING:
    import torch

_USED_AT_ONCE = 1 << 18  # weights: a megabyte


@dataclass(frozen=True, eq=False, repr=False)
class Ticket(HubMethods):
    """A seed, an architecture and masks: together a pruned random network.

    seed: of all random weights, from 0 to 2**64 - 1
    kind, settings: the architecture; kinds.KINDS has the kinds, and each knows its settings
    laws: tensor name -> law that its weights are drawn from
    masks: tensor name in the network's state_dict -> bool of the tensor's shape, True = kept
    floats: trained tensors stored as they are, float32; usually empty
    certificate, metadata: anything JSON can hold; the weights do not depend on them

    >>> Ticket(7, "relu", {"dims": [3, 2], "bias": False}, {"layers.0.weight": Uniform(1.0)},
    ...        {"layers.0.weight": np.eye(2, 3, dtype=bool)}).weights("layers.0.weight").shape
    (2, 3)
    """

    seed: int
    kind: str
    settings: JsonObject
    laws: dict[str, Law]
    masks: dict[str, np.ndarray]
    floats: dict[str, np.ndarray] = field(default_factory=dict)
    certificate: JsonObject | None = None
    metadata: JsonObject = field(default_factory=dict)
    # A loaded ticket's recipe text and checksums: every tensor it regenerates is compared with them.
    _saved: tuple[bytes, dict[str, str]] | None = field(default=None, init=False)
    # Checksums of tensors regenerated so far, so that saving what was just run draws nothing again.
    _checksums: dict[str, str] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        kinds.check(self.kind)
        seeds.key(self.seed, "")
        object.__setattr__(self, "seed", int(self.seed))
        for name in ("settings", "certificate", "metadata"):
            if name != "certificate" or self.certificate is not None:
                object.__setattr__(self, name, json_roundtrip(name, getattr(self, name)))
        check_certificate(self.certificate)
        for name in ("laws", "masks", "floats"):
            check_names(name, getattr(self, name))
        if odd := self.masks.keys() ^ self.laws.keys():
            raise TicketError(f"tensor {min(odd)!r} needs both a mask and a law")
        if odd := self.masks.keys() & self.floats.keys():
            raise TicketError(
                f"tensor {min(odd)!r} has both a mask and floats: it is pruned or trained, not both"
            )
        for name, law in self.laws.items():
            if not isinstance(law, Law):
                raise TicketError(f"laws[{name!r}] must be a law of strongticket.seeds, got {law!r}")
        object.__setattr__(self, "laws", dict(self.laws))
        for field_name, dtype in (("masks", np.bool_), ("floats", np.float32)):
            arrays = getattr(self, field_name).items()
            frozen = {name: read_only(f"{field_name}[{name!r}]", array, dtype) for name, array in arrays}
            object.__setattr__(self, field_name, frozen)

    def __eq__(self, other: object) -> bool:
        """Same network, certificate and metadata, to the bit."""
        if not isinstance(other, Ticket):
            return NotImplemented
        simple = ("seed", "kind", "settings", "laws", "certificate", "metadata")
        return (
            all(getattr(self, name) == getattr(other, name) for name in simple)
            and self.masks.keys() == other.masks.keys()
            and self.floats.keys() == other.floats.keys()
            and all(np.array_equal(mask, other.masks[name]) for name, mask in self.masks.items())
            and all(same_bits(tensor, other.floats[name]) for name, tensor in self.floats.items())
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        weights = sum(mask.size for mask in self.masks.values())
        kept = sum(int(np.count_nonzero(mask)) for mask in self.masks.values())
        share = f" ({kept / weights:.0%})" if weights else ""
        return f"<Ticket {self.kind}, seed {self.seed}: {kept:,} of {weights:,} random weights kept{share}>"

    @property
    def kept(self) -> dict[str, float]:
        """Kept fraction of each masked tensor."""
        return {name: np.count_nonzero(mask) / max(mask.size, 1) for name, mask in self.masks.items()}

    def weights(self, name: str, *, threads: int | None = None) -> np.ndarray:
        """The tensor `name`: random weights where kept, +0.0 elsewhere; float32.

        threads: for drawing the weights; None means one per core
        """
        if name not in self.masks and name not in self.floats:
            raise TicketError(f"no tensor {name!r}: the ticket has {', '.join(self._names())}")
        return self._regenerated(name, threads)

    def network(
        self, module: "torch.nn.Module | None" = None, *, threads: int | None = None, **options: Any
    ) -> "torch.nn.Module":
        """The pruned network, ready to run: float32, evaluation mode, no gradients.

        module: for a ticket of a class of your own: a new one of that class, to be filled
        threads: for drawing the weights; None means one per core
        options: what this kind of ticket takes besides (theorem networks: form, dtype, check; pretrained: faithful,
            base)
        """
        self._check_fit()
        kind = kinds.kind_of(self.kind)
        if module is not None:
            if "module" not in inspect.signature(kind.network).parameters:
                raise TicketError(
                    f"a ticket of kind {self.kind!r} makes its own network",
                    hint="Call network() without a module.",
                )
            options["module"] = module
        return kind.network(self, threads=threads, **options)

    def generate(self, prompt: str, **options: Any) -> Iterator[str]:
        """What follows the `prompt`, piece by piece, by the network of a language model.

        options: tokens, temperature, seed; and what this kind of ticket takes besides
        """
        try:
            return kinds.kind_of(self.kind).generate(self, prompt, **options)
        except StrongTicketError:
            raise
        except (AttributeError, KeyError, OverflowError, TypeError, ValueError) as error:
            raise TicketError(f"the ticket does not say how to generate text: {error!r:.200}") from error

    def compare(self, model: str | os.PathLike[str], **options: Any) -> kinds.TicketComparison:
        """Measure the network beside the model that it stands for, and check what the file states.

        model: a file of a network saved by strongticket.nets.save, or a Hugging Face folder or hub name
        options: see CompareOptions
        """
        return kinds.kind_of(self.kind).compare(self, str(model), kinds.CompareOptions(**options))

    def verify(self, *, threads: int | None = None) -> Verification:
        """Regenerate every tensor and compare it with the file's checksum; TicketError names what differs.

        A certificate that was computed for another network is an error, too. Whether its bound is true is not
        checked: that needs the target, see `compare`.

        Args:
            threads: for drawing the weights; None means one per core.
        """
        self._check_fit()
        checks = []
        for name in self._names():
            tensor = self._regenerated(name, threads)
            kept = int(np.count_nonzero(self.masks[name])) if name in self.masks else tensor.size
            checks.append(TensorSummary(name, tensor.shape, self.laws.get(name), kept, self._checksums[name]))
        bound = check_binding(self.certificate, self._network_checksum(threads))
        return Verification(tuple(checks), from_file=self._saved is not None, certificate_bound=bound)

    def sizes(self) -> Sizes:
        """The file against the same tensors as packed bits, float16 and float32."""
        random = [(mask.size, int(np.count_nonzero(mask))) for mask in self.masks.values()]
        return Sizes.of(len(self.to_bytes()), random, sum(tensor.size for tensor in self.floats.values()))

    def to_bytes(self, *, threads: int | None = None) -> bytes:
        """The file's bytes: the same for equal tickets, whatever the number of `threads` (None means one per core)."""
        return b"".join(self._chunks(threads))

    def _chunks(self, threads: int | None) -> Iterator[bytes]:
        coded = []
        check_binding(self.certificate, self._network_checksum(threads))
        for name in self._names():
            checksum = self._checksums[name]
            if name in self.masks:
                mask, law = self.masks[name], self.laws[name]
                coded.append(file_format.code_mask(name, mask, law, checksum, self.seed))
            else:
                coded.append(file_format.code_float(name, self.floats[name], checksum))
        lines, masks = [tensor.line for tensor in coded], (tensor.data for tensor in coded)
        return file_format.chunks(self._recipe(), self.certificate, self.metadata, lines, masks, self.floats)

    @classmethod
    def of(cls, tensors: dict[str, np.ndarray], *, certificate: JsonObject | None, **fields: Any) -> "Ticket":
        """Make a ticket whose tensors are at hand: saving it draws nothing, and its certificate is bound to them.

        Args:
            tensors: what the ticket regenerates, by name.
            certificate: computed for these tensors.
            fields: the others of a Ticket.
        """
        ticket = cls(**fields, certificate=certificate)
        recipe = ticket._recipe()
        for name, tensor in tensors.items():
            ticket._checksums[name] = file_format.tensor_checksum(recipe, name, tensor.shape, [tensor])
        if ticket.certificate is not None:
            ticket.certificate[NETWORK] = network_checksum(recipe, ticket._checksums)
        return ticket

    def with_certificate(self, certificate: JsonObject) -> "Ticket":
        """Return the same ticket with this certificate, bound to its network: after a change of masks it is refused.

        Args:
            certificate: as `strongticket.nets.certify(...).to_dict()` gives it, computed for this network.
        """
        certified = replace(self, certificate=certificate | {NETWORK: self._network_checksum(None)})
        certified._checksums.update(self._checksums)
        return certified

    @classmethod
    def from_bytes(cls, data: bytes) -> "Ticket":
        """Read a ticket from `data`, a file's bytes; `strongticket.limits` says how many weights it may declare."""
        try:
            contents = file_format.read(data)
            index, recipe = contents.index, contents.index.recipe
            for array in (contents.masks | contents.floats).values():
                array.flags.writeable = False  # nothing else refers to them: no copy needed
            ticket = cls(
                seed=recipe["seed"],
                kind=recipe["kind"],
                settings=recipe["settings"],
                laws=contents.laws,
                masks=contents.masks,
                floats=contents.floats,
                certificate=index.certificate,
                metadata=index.metadata,
            )
        except StrongTicketError as error:
            raise TicketError(error.what, error.hint) from None
        checksums = {record["name"]: record["checksum"] for record in index.records}
        object.__setattr__(ticket, "_saved", (index.recipe_text, checksums))
        return ticket

    def save(self, path: str | os.PathLike[str], *, threads: int | None = None) -> Path:
        """Write the file under a temporary name, then rename it: an error leaves an older file as it was.

        path: of the file, which is returned
        threads: for drawing the weights, whose checksums are stored; None means one per core
        """
        path = Path(path)
        chunks = self._chunks(threads)
        try:
            write_file(path, chunks)
        except StrongTicketError as error:
            raise TicketError(error.what, error.hint) from error
        return path

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Ticket":
        """Read the ticket file `path`.

        Its tensors are compared with their checksums when they are regenerated.
        """
        try:
            data = Path(path).read_bytes()
        except OSError as error:
            raise TicketError(
                f"cannot read {path}: {error.strerror or error}", hint="Name a ticket file."
            ) from None
        try:
            return cls.from_bytes(data)
        except TicketError as error:
            raise TicketError(f"{path}: {error.what}", error.hint) from None

    def _names(self) -> list[str]:
        return sorted(self.masks.keys() | self.floats.keys())

    def _recipe(self) -> bytes:
        if self._saved:
            return self._saved[0]
        return file_format.recipe_text(self.seed, self.kind, self.settings)

    def _network_checksum(self, threads: int | None) -> str:
        for name in self._names():
            if name not in self._checksums:
                self._regenerated(name, threads)
        return network_checksum(self._recipe(), {name: self._checksums[name] for name in self._names()})

    def _regenerated(self, name: str, threads: int | None) -> np.ndarray:
        """The tensor, its checksum compared with the file's (if there is one) and remembered."""
        if name in self.floats:
            tensor = self.floats[name].copy()
        else:
            mask = self.masks[name]
            tensor = draw(self.seed, name, mask.shape, self.laws[name], mask=mask, threads=threads)
        self._compare(name, file_format.tensor_checksum(self._recipe(), name, tensor.shape, [tensor]))
        return tensor

    def use_rows(self, name: str, use: Callable[[slice, np.ndarray], None]) -> None:
        """Call `use` with the rows of a random tensor and their weights, some at a time, as they fit the cache.

        name: of the tensor
        use: what it did counts only when this returns, because the checksum is compared at the end
        """
        mask, law = self.masks[name], self.laws[name]
        count = max(1, _USED_AT_ONCE // max(1, mask[0].size))

        def blocks() -> Iterator[np.ndarray]:
            for start in range(0, len(mask), count):
                rows = slice(start, min(start + count, len(mask)))
                block = draw(self.seed, name, mask.shape, law, rows=rows, mask=mask[rows], threads=1)
                yield block
                use(rows, block)

        self._compare(name, file_format.tensor_checksum(self._recipe(), name, mask.shape, blocks()))

    def _compare(self, name: str, found: str) -> None:
        if self._saved and found != self._saved[1][name]:
            raise TicketError(
                f"tensor {name!r} is not what was saved: its checksum differs, so the seed, the recipe or "
                "its mask was changed",
                hint="Get a fresh copy of the file.",
            )
        self._checksums[name] = found

    def _check_fit(self) -> None:
        """Names and shapes against the architecture's, before anything is allocated."""
        sizes = {name: tensor.size for name, tensor in (self.masks | self.floats).items()}
        if self._saved and sizes:
            # A changed recipe shows in every checksum: check one before settings of any size make a network.
            smallest = min(sizes, key=sizes.__getitem__)
            self._regenerated(smallest, 1)
        with limits.at_most(limits.modules(len(sizes))):  # a forger can compute checksums
            expected = kinds.shapes(self.kind, self.settings)
        found = {name: tensor.shape for name, tensor in (self.masks | self.floats).items()}
        for name in sorted(expected.keys() | found.keys()):
            if expected.get(name) != found.get(name):
                raise TicketError(
                    f"tensor {name!r}: the architecture has shape {expected.get(name)}, the ticket "
                    f"{found.get(name)} (None: no such tensor)"
                )
