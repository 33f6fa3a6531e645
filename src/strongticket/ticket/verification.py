"""What `Ticket.verify` returns."""

from dataclasses import dataclass

from strongticket.seeds import Law


@dataclass(frozen=True)
class TensorCheck:
    """One tensor that verify regenerated. law: None for a trained tensor."""

    name: str
    shape: tuple[int, ...]
    law: Law | None
    kept: int
    checksum: str


@dataclass(frozen=True)
class Verification:
    """What verify regenerated.

    from_file: it was compared with a file's checksums, not only computed
    certificate_bound: the certificate says that it was computed for this very network; False without a
        certificate, and for older files, which do not say
    """

    tensors: tuple[TensorCheck, ...]
    weights: int
    kept: int
    from_file: bool
    certificate_bound: bool
