"""A ticket: what makes a random network, and the masks that prune it. Save, load, rebuild, verify."""

import importlib
import inspect
import math
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from strongticket import choice, limits, seeds
from strongticket.choice import Choices
from strongticket.cores import cores
from strongticket.errors import TicketError, in_ticket
from strongticket.files import JsonObject, json_roundtrip, write_file
from strongticket.seeds import Law, draw
from strongticket.settings import check as check_setting
from strongticket.ticket import format as file_format
from strongticket.ticket import kinds
from strongticket.ticket.certificate import NETWORK, check_binding, check_certificate, network_checksum
from strongticket.ticket.summary import Stored, TensorSummary, Verification

if TYPE_CHECKING:
    import torch

    Base = torch.nn.Module | str | Path | None


@dataclass(frozen=True, eq=False, repr=False)
class Ticket:
    """A seed, an architecture and masks: together a pruned random network.

    seed: of all random weights, from 0 to 2**64 - 1
    kind, settings: the architecture; kinds.KINDS has the kinds, and each knows its settings
    laws: tensor name -> law that its weights are drawn from
    masks: tensor name in the network's state_dict -> bool of the tensor's shape, True = kept
    choices: tensor name -> which of the many random weights of each connection is kept, see strongticket.choice
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
    choices: dict[str, Choices] = field(default_factory=dict)
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
        for field_name in ("laws", "masks", "choices", "floats"):
            tensors = getattr(self, field_name)
            if not isinstance(tensors, dict):
                raise TicketError(f"{field_name} must be a dict, got {type(tensors).__name__}")
            with in_ticket(field_name):
                for name in tensors:
                    seeds.key(0, name)
        if odd := self.masks.keys() ^ self.laws.keys():
            raise TicketError(f"tensor {min(odd)!r} needs both a mask and a law")
        for one, other in combinations(("masks", "choices", "floats"), 2):
            if odd := getattr(self, one).keys() & getattr(self, other).keys():
                raise TicketError(
                    f"tensor {min(odd)!r} is in both {one} and {other}: it can be in one of them"
                )
        for name, law in self.laws.items():
            if not isinstance(law, Law):
                raise TicketError(f"laws[{name!r}] must be a law of strongticket.seeds, got {law!r}")
        for name, choices in self.choices.items():
            if not isinstance(choices, Choices):
                raise TicketError(f"choices[{name!r}] must be Choices, got a {type(choices).__name__}")
        object.__setattr__(self, "laws", dict(self.laws))
        object.__setattr__(self, "choices", dict(self.choices))
        for field_name, dtype in (("masks", np.bool_), ("floats", np.float32)):
            arrays = getattr(self, field_name).items()
            frozen = {name: _read_only(f"{field_name}[{name!r}]", array, dtype) for name, array in arrays}
            object.__setattr__(self, field_name, frozen)

    def __eq__(self, other: object) -> bool:
        """Same network, certificate and metadata, to the bit."""
        if not isinstance(other, Ticket):
            return NotImplemented
        simple = ("seed", "kind", "settings", "laws", "choices", "certificate", "metadata")
        return (
            all(getattr(self, name) == getattr(other, name) for name in simple)
            and _bits(self.masks) == _bits(other.masks)
            and _bits(self.floats) == _bits(other.floats)
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        weights = sum(mask.size for mask in self.masks.values())
        kept = sum(int(np.count_nonzero(mask)) for mask in self.masks.values())
        share = f" ({kept / weights:.0%})" if weights else ""
        parts = [f"{kept:,} of {weights:,} random weights kept{share}"] if weights or not self.choices else []
        if self.choices:
            chosen = sum(math.prod(choices.shape) for choices in self.choices.values())
            parts.append(f"one of many random weights kept for each of {chosen:,} connections")
        return f"<Ticket {self.kind}, seed {self.seed}: {', '.join(parts)}>"

    def weights(self, name: str, *, threads: int | None = None) -> np.ndarray:
        """The tensor `name` of the file: random weights where kept, +0.0 elsewhere. threads: None is one per core."""
        if name not in self.shapes():
            raise TicketError(f"no tensor {name!r}: the ticket has {', '.join(self.shapes())}")
        return self._regenerated(name, threads)

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Shape of every tensor of the file, by name."""
        tensors = self.masks | self.choices | self.floats
        return {name: tensors[name].shape for name in sorted(tensors)}

    def state(self, base: "Base" = None) -> Iterator[tuple[str, np.ndarray]]:
        """Every tensor of the network by its name there, one at a time, its checksum compared.

        base: the trained model of a task mask, or its folder or hub name
        """
        return kinds.kind_of(self.kind).state(self, base)

    def network(
        self,
        module: "torch.nn.Module | None" = None,
        *,
        base: "Base" = None,
        form: kinds.Form = "merged",
        dtype: "torch.dtype | None" = None,
        check: bool = False,
    ) -> "torch.nn.Module":
        """The pruned network, ready to run: evaluation mode, no gradients.

        Args:
            module: a new one of the ticket's class, to be filled; needed for a class of your own.
            base: the trained model of a partial ticket or a task mask, or its folder or hub name.
            form: "merged" multiplies the random factors out, "factors" runs them one by one.
            dtype: of weights and outputs; None means float32.
            check: refuse inputs outside of the set that the ticket's certificate holds for.
        """
        check_setting(kinds.Form, form=form)
        given = {"module": module, "base": base, "dtype": dtype}
        options: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
        options |= ({} if form == "merged" else {"form": form}) | ({"check": True} if check else {})
        self._check_recipe()
        kind = kinds.kind_of(self.kind)
        if odd := options.keys() - inspect.signature(kind.network).parameters:
            raise TicketError(f"a ticket of kind {self.kind!r} takes no {min(odd)}", hint="Leave it out.")
        self._check_fit(module)
        return kind.network(self, **options)

    def generate(
        self,
        prompt: str,
        *,
        tokens: int = 200,
        temperature: float = 0.8,
        seed: int = 0,
        tokenizer: str | None = None,
        base: str | None = None,
    ) -> Iterator[str]:
        """What follows the `prompt`, piece by piece, by the network of a language model.

        Args:
            prompt: at least one character.
            tokens: how many at most.
            temperature: 0 takes the likeliest token each time.
            seed: of the choices; the same gives the same text.
            tokenizer: folder of the tokenizer, if the ticket does not contain it.
            base: the trained model of a partial ticket.
        """
        sampling = {"tokens": tokens, "temperature": temperature, "seed": seed}
        return kinds.kind_of(self.kind).generate(self, prompt, tokenizer=tokenizer, base=base, **sampling)

    def compare(self, model: str | os.PathLike[str], **options: Any) -> kinds.TicketComparison:
        """Measure the network beside the model that it stands for, and check what the file states.

        model: a file of a network saved by strongticket.nets.save, or a Hugging Face folder or hub name
        options: see CompareOptions
        """
        return kinds.kind_of(self.kind).compare(self, str(model), kinds.CompareOptions(**options))

    def verify(self) -> Verification:
        """Regenerate every tensor and compare it with the file's checksum; TicketError names what differs.

        A certificate that was computed for another network is an error, too. Whether its bound is true is not
        checked: that needs the target, see `compare`.
        """
        self._check_recipe()
        self._check_fit()
        checks = []
        for name in self.shapes():
            tensor = self._regenerated(name)
            kept = int(np.count_nonzero(self.masks[name])) if name in self.masks else tensor.size
            stored: Stored = (
                "masks" if name in self.masks else "choices" if name in self.choices else "floats"
            )
            checks.append(
                TensorSummary(name, tensor.shape, stored, self.laws.get(name), kept, self._checksums[name])
            )
        bound = check_binding(self.certificate, self._network_checksum())
        return Verification(tuple(checks), certificate_bound=bound)

    def to_bytes(self) -> bytes:
        """The file's bytes: the same for equal tickets."""
        return b"".join(self._chunks())

    def _chunks(self) -> Iterator[bytes]:
        check_binding(self.certificate, self._network_checksum())
        coded = [self._coded(name) for name in self.shapes()]
        lines, data = [tensor.line for tensor in coded], (tensor.data for tensor in coded)
        return file_format.chunks(self._recipe(), self.certificate, self.metadata, lines, data, self.floats)

    def _coded(self, name: str) -> file_format.CodedTensor:
        """A tensor whose checksum is known, as the file stores it."""
        checksum = self._checksums[name]
        if name in self.masks:
            return file_format.code_mask(name, self.masks[name], self.laws[name], checksum)
        if name in self.choices:
            found = self.choices[name]
            sizes = [len(block) for block in found.blocks]
            line = file_format.choices_line(name, checksum, found.shape, sizes, found.transposed)
            return file_format.CodedTensor(line, b"".join(found.blocks))
        shape = list(self.floats[name].shape)
        return file_format.CodedTensor({"name": name, "checksum": checksum, "shape": shape}, b"")

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
            digest = file_format.block_digest(tensor)
            ticket._checksums[name] = file_format.tensor_checksum(recipe, name, tensor.shape, [digest])
        if ticket.certificate is not None:
            ticket.certificate[NETWORK] = network_checksum(recipe, ticket._checksums)
        return ticket

    @classmethod
    def from_bytes(cls, data: bytes) -> "Ticket":
        """Read a ticket from `data`, a file's bytes; `strongticket.limits` says how many weights it may declare."""
        with in_ticket(""):
            index, tensors = file_format.read(data)
            for array in (tensors["masks"] | tensors["floats"]).values():
                array.flags.writeable = False  # nothing else refers to them: no copy needed
            seed, kind, settings = (index.recipe[name] for name in ("seed", "kind", "settings"))
            said: Any = {"certificate": index.certificate, "metadata": index.metadata}
            ticket = cls(seed, kind, settings, **tensors, **said)
        checksums = {record["name"]: record["checksum"] for record in index.records}
        object.__setattr__(ticket, "_saved", (index.recipe_text, checksums))
        return ticket

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the file `path` and return it; an error leaves an older file as it was."""
        path = Path(path)
        with in_ticket(""):
            write_file(path, self._chunks())
        return path

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Ticket":
        """Read the ticket file `path`.

        Its tensors are compared with their checksums when they are regenerated.
        """
        with in_ticket(str(path)):
            return cls.from_bytes(Path(path).read_bytes())

    def save_pretrained(self, folder: str | os.PathLike[str], **options: Any) -> Path:
        """Write a folder that transformers loads after `import strongticket.hf`; see strongticket.hf."""
        written: Path = _hugging_face().save_pretrained(self, folder, **options)
        return written

    def push_to_hub(self, name: str, **options: Any) -> str:
        """Upload what save_pretrained writes to the hub repository `name`; see strongticket.hf."""
        address: str = _hugging_face().push_to_hub(self, name, **options)
        return address

    @classmethod
    def from_pretrained(cls, name: str | os.PathLike[str]) -> "Ticket":
        """The ticket in a folder that save_pretrained wrote, or in the hub's repository `name`."""
        ticket: Ticket = _hugging_face().from_pretrained(name)
        return ticket

    def _recipe(self) -> bytes:
        if self._saved:
            return self._saved[0]
        return file_format.recipe_text(self.seed, self.kind, self.settings)

    def _network_checksum(self) -> str:
        for name in self.shapes():
            if name not in self._checksums:
                self._regenerated(name)
        return network_checksum(self._recipe(), {name: self._checksums[name] for name in self.shapes()})

    def _regenerated(self, name: str, threads: int | None = None) -> np.ndarray:
        """The tensor, its checksum compared with the file's (if there is one) and remembered."""
        if name in self.choices:
            tensor, digests = self._chosen(name)
        else:
            if name in self.floats:
                tensor = self.floats[name].copy()
            else:
                mask = self.masks[name]
                tensor = draw(self.seed, name, mask.shape, self.laws[name], mask=mask, threads=threads)
            digests = [file_format.block_digest(tensor)]
        found = file_format.tensor_checksum(self._recipe(), name, tensor.shape, digests)
        if self._saved and found != self._saved[1][name]:
            raise TicketError(
                f"tensor {name!r} is not what was saved: its checksum differs, so the seed, the recipe or "
                "its mask was changed",
                hint="Get a fresh copy of the file.",
            )
        self._checksums[name] = found
        return tensor

    def _chosen(self, name: str) -> tuple[np.ndarray, list[bytes]]:
        """The numbers of a tensor of choices, and the digests of its blocks: decoded and hashed in threads."""
        choices = self.choices[name]
        matrix = np.empty(choices.matrix, np.float32)

        def digest(data: bytes, rows: range) -> bytes:
            block = matrix[rows.start : rows.stop]
            choice.decode_rows(data, rows.start, self.seed, name, block)
            return file_format.block_digest(block)

        if len(choices.blocks) == 1:  # for most tensors a thread takes longer to start than to run
            digests = [digest(choices.blocks[0], choices.rows()[0])]
        else:
            with ThreadPoolExecutor(cores()) as pool:
                digests = list(pool.map(digest, choices.blocks, choices.rows()))
        return choices.tensor(matrix), digests

    def _check_recipe(self) -> None:
        """A changed recipe shows in every checksum: compare one before settings of any size make a network."""
        sizes = {name: math.prod(shape) for name, shape in self.shapes().items()}
        if self._saved and sizes:
            self._regenerated(min(sizes, key=sizes.__getitem__), 1)

    def _check_fit(self, module: "torch.nn.Module | None" = None) -> None:
        """Names and shapes against the network's, before anything is allocated or drawn.

        module: that is to be filled; None for what the settings describe
        """
        found = self.shapes()
        with limits.at_most(limits.tensors(len(found))):  # a forger can compute checksums
            expected = kinds.shapes(self.kind, self.settings, module)
        for name in sorted(expected.keys() | found.keys()):
            if expected.get(name) != found.get(name):
                raise TicketError(
                    f"tensor {name!r}: the network has shape {expected.get(name)}, the ticket "
                    f"{found.get(name)} (None: no such tensor)"
                )


def _read_only(what: str, array: np.ndarray, dtype: type) -> np.ndarray:
    """Return a read-only array in C order: this one if it is so already, else a copy."""
    if not isinstance(array, np.ndarray) or array.dtype != dtype:
        found = array.dtype if isinstance(array, np.ndarray) else type(array).__name__
        raise TicketError(f"{what} must be a NumPy array of {np.dtype(dtype)}, got {found}")
    if dtype is np.float32 and not np.isfinite(array).all():
        bad = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise TicketError(f"{what} must be finite, got {array[bad]} at {bad}")
    if array.flags.writeable or not array.flags.c_contiguous:
        array = array.copy(order="C")
        array.flags.writeable = False
    return array


def _bits(tensors: dict[str, np.ndarray]) -> dict[str, tuple[tuple[int, ...], bytes]]:
    """Shapes and bits: 0.0 and -0.0 differ."""
    return {name: (tensor.shape, tensor.tobytes()) for name, tensor in tensors.items()}


def _hugging_face() -> Any:
    """The package `hf`, imported by name: it builds on this one and needs transformers."""
    return importlib.import_module("strongticket.hf")
