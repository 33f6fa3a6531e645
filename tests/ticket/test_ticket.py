"""A ticket gives the same network after any journey: memory, bytes, file, threads."""

import dataclasses
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.crafted import index_lines, with_index

from strongticket import nets
from strongticket.builders import build_network
from strongticket.choice import Choices
from strongticket.errors import MissingDependency, StrongTicketError, TicketError
from strongticket.seeds import Normal, Uniform, draw
from strongticket.ticket import Ticket, kinds, mask_codec, summarise

ATTENTION = dict(
    dim_in=6, dim_out=5, heads=2, key_dim=12, value_dim=10, kv_heads=1, bias=True, output_bias=True
)
RELU = dict(dims=[5, 9, 3], bias=True)
KINDS = {
    "attention": ATTENTION,
    "relu": RELU,
    "block": {"attention": ATTENTION | dict(dim_out=6), "feed_forward": dict(dims=[6, 9, 6], bias=False)},
}
KINDS["transformer"] = {"blocks": [KINDS["block"], KINDS["block"]]}


def random_ticket(kind: str = "attention", seed: int = 5, **changes) -> Ticket:
    """Random masks on a small network of ours, uniform and normal tensors."""
    rng = np.random.default_rng(seed)
    shapes = kinds.shapes(kind, KINDS[kind])
    fields = dict(
        seed=seed,
        kind=kind,
        settings=KINDS[kind],
        laws={name: (Uniform(1.5), Normal(0.3))[i % 2] for i, name in enumerate(shapes)},
        masks={name: rng.random(shape) < 0.4 for name, shape in shapes.items()},
        certificate={"bound": 0.25, "per_head": [0.1, 0.15]},
        metadata={"made by": "a test", "ε": 1e-5},
    )
    return Ticket(**fields | changes)


def flat_ticket(mask: np.ndarray, seed: int = 0) -> Ticket:
    """One tensor alone; enough for bytes and weights."""
    return Ticket(seed, "relu", {"dims": [1, 1]}, {"w": Uniform(2.0)}, {"w": mask})


@pytest.mark.parametrize("kind", KINDS)
def test_network(kind):
    ticket = random_ticket(kind)
    network, factors = ticket.network(), ticket.network(form="factors")
    assert network.kind == factors.kind == kind
    assert not network.training
    assert not factors.training
    state = factors.state_dict()
    assert state.keys() == ticket.masks.keys()
    for name, tensor in state.items():
        expected = draw(5, name, tuple(tensor.shape), ticket.laws[name]) * ticket.masks[name]
        assert np.array_equal(tensor.numpy(), expected)
        assert not tensor.requires_grad
    x = torch.randn(3, 4, 6, generator=torch.Generator().manual_seed(0))[..., : 5 if kind == "relu" else 6]
    loaded = Ticket.from_bytes(ticket.to_bytes()).network()
    assert torch.equal(loaded(x), network(x))
    torch.testing.assert_close(factors(x), network(x), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("kind", KINDS)
def test_file_round_trip(kind, tmp_path):
    ticket = random_ticket(kind)
    path = ticket.save(tmp_path / "a.ticket")
    loaded = Ticket.load(path)
    assert loaded == ticket
    assert loaded.certificate == ticket.certificate
    assert loaded.metadata == ticket.metadata
    assert loaded.save(tmp_path / "b.ticket").read_bytes() == path.read_bytes()
    assert sorted(os.listdir(tmp_path)) == ["a.ticket", "b.ticket"]


@pytest.mark.slow
def test_tens_of_millions_of_weights():
    """Once, in a few seconds: threads of the generator, the size promised."""
    mask = np.random.default_rng(0).random((6_000, 6_000), np.float32) < 0.25
    ticket = flat_ticket(mask)
    data = ticket.to_bytes()
    assert len(data) <= 1.02 * mask_codec.entropy(mask.size, int(mask.sum())) / 8 + 4096
    loaded = Ticket.from_bytes(data)
    assert np.array_equal(loaded.masks["w"], mask)
    rows = slice(123, 125)
    expected = draw(0, "w", mask.shape, Uniform(2.0), rows=rows) * mask[rows]
    assert np.array_equal(loaded.weights("w")[rows], expected)


def test_same_bytes_for_any_order():
    rng = np.random.default_rng(0)
    tensors = {name: rng.random((60, 30)) < 0.2 for name in ("b", "a")}
    laws = {"a": Normal(1.0), "b": Uniform(1.0)}
    ticket = Ticket(3, "relu", {"dims": [2, 2], "bias": False}, laws, tensors)
    turned = Ticket(3, "relu", {"bias": False, "dims": (2, 2)}, laws, dict(reversed(tensors.items())))
    assert turned.to_bytes() == ticket.to_bytes()


def test_known_file():
    """The bytes of a small ticket, written down: a change of format cannot pass unnoticed."""
    ticket = Ticket(
        42,
        "relu",
        {"dims": [4, 3], "bias": False},
        {"layers.0.weight": Uniform(1.0)},
        {"layers.0.weight": np.arange(12).reshape(3, 4) % 3 == 0},
        metadata={"note": "größe"},
    )
    stored = (Path(__file__).parents[1] / "known.ticket").read_bytes()
    loaded = Ticket.from_bytes(stored)
    assert loaded == ticket
    assert loaded.verify().tensors[0].checksum == "debabf2e4eb6a14765448fce41ae29c0"
    assert ticket.to_bytes() == stored


def test_floats_are_kept_to_the_bit(tmp_path):
    trained = np.array([[1.5, -0.0, 1e-45], [3.4e38, -2.0, 0.1]], np.float32)
    masked = random_ticket("relu")
    name = "layers.0.bias"
    rest = {n: m for n, m in masked.masks.items() if n != name}
    laws = {n: masked.laws[n] for n in rest}
    values = np.linspace(-1, 1, 9, dtype=np.float32)
    ticket = dataclasses.replace(masked, masks=rest, laws=laws, floats={name: values})
    loaded = Ticket.load(ticket.save(tmp_path / "t.ticket"))
    assert loaded == ticket
    assert torch.equal(loaded.network(form="factors").state_dict()[name], torch.from_numpy(values.copy()))

    ticket = Ticket(0, "relu", {"dims": [1, 1]}, {}, {}, {"w": trained, "scalar": np.array(7, np.float32)})
    loaded = Ticket.from_bytes(ticket.to_bytes())
    assert loaded.weights("w").tobytes() == trained.tobytes()
    assert loaded.weights("scalar").shape == ()


def test_small_networks_stay_small(tmp_path):
    """Sixteen tensors and more within the 4 KiB that a file may cost beyond the masks' entropy."""
    ticket = random_ticket("transformer")
    assert len(ticket.masks) >= 16
    sizes = summarise(ticket.save(tmp_path / "a.ticket")).sizes()
    assert sizes["file"] == len(ticket.to_bytes())
    assert sizes["file"] <= 1.02 * sizes["entropy"] + 4096
    weights = sum(mask.size for mask in ticket.masks.values())
    assert (sizes["float32"], sizes["float16"]) == (4 * weights, 2 * weights)


def test_verify_reports():
    ticket = random_ticket()
    report = Ticket.from_bytes(ticket.to_bytes()).verify()
    assert report.weights == sum(mask.size for mask in ticket.masks.values())
    assert report.kept == sum(int(mask.sum()) for mask in ticket.masks.values())
    assert [check.name for check in report.tensors] == sorted(ticket.masks)
    assert report.tensors == ticket.verify().tensors


def test_a_ticket_does_not_follow_its_makers_arrays():
    mask = np.ones((3, 4), bool)
    settings = {"dims": [4, 3], "bias": False}
    ticket = Ticket(0, "relu", settings, {"layers.0.weight": Uniform(1.0)}, {"layers.0.weight": mask})
    mask[:] = False
    settings["dims"][0] = 7
    assert ticket.masks["layers.0.weight"].all()
    assert ticket.settings["dims"] == [4, 3]
    with pytest.raises(ValueError, match="read-only"):
        ticket.masks["layers.0.weight"][0] = False
    with pytest.raises(dataclasses.FrozenInstanceError):
        ticket.seed = 3


def test_a_changed_copy_of_a_loaded_ticket_is_a_new_ticket():
    """The file's checksums hold for what the file said, not for a ticket made from it."""
    loaded = Ticket.from_bytes(random_ticket().to_bytes())
    other = dataclasses.replace(loaded, seed=6)
    assert not np.array_equal(other.weights("query"), loaded.weights("query"))
    assert Ticket.from_bytes(other.to_bytes()) == other
    assert other != loaded


def test_writing_is_all_or_nothing(tmp_path, monkeypatch):
    path = tmp_path / "t.ticket"
    random_ticket(seed=1).save(path)
    before = path.read_bytes()

    def full_disk(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(TicketError, match=r"cannot write .*No space left on device"):
        random_ticket(seed=2).save(path)
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["t.ticket"]


def test_invalid_places(tmp_path):
    with pytest.raises(TicketError, match=r"cannot write .*No such file"):
        random_ticket().save(tmp_path / "nowhere" / "t.ticket")
    with pytest.raises(TicketError, match=r"cannot read .*No such file"):
        Ticket.load(tmp_path / "t.ticket")
    with pytest.raises(TicketError, match=r"cannot read .*directory"):
        Ticket.load(tmp_path)
    (tmp_path / "empty").write_bytes(b"")
    with pytest.raises(TicketError, match=r"empty: it has 0 bytes"):
        Ticket.load(tmp_path / "empty")
    with pytest.raises(TicketError, match=r"cannot write .*Not a directory"):
        random_ticket().save(tmp_path / "empty" / "t.ticket")
    with pytest.raises(TicketError, match=r"cannot write .*too long"):
        random_ticket().save(tmp_path / ("t" * 300))


MASK = {"w": np.ones(3, bool)}
LAW = {"w": Uniform(1.0)}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kind": "gan"}, "kind='gan' is unknown: expected one of attention"),
        ({"kind": ["relu"]}, "is unknown"),
        ({"seed": -1}, "seed must be"),
        ({"settings": [1]}, "settings must be a dict, got list"),
        ({"settings": {"a": np.ones(2)}}, "settings must be what JSON can hold"),
        ({"metadata": {"a": float("nan")}}, "metadata must be what JSON can hold"),
        ({"metadata": {1: 2, "1": 3}}, "metadata must be what JSON can hold"),
        ({"metadata": None}, "metadata must be a dict"),
        ({"certificate": "fine"}, "certificate must be a dict"),
        ({"masks": {"w": np.ones(3)}}, r"masks\['w'\] must be a NumPy array of bool, got float64"),
        ({"masks": {"w": [True]}}, "got list"),
        ({"masks": MASK | {"v": np.ones(2, bool)}}, "tensor 'v' needs both a mask and a law"),
        ({"laws": {}}, "tensor 'w' needs both"),
        ({"laws": {"w": 1.0}}, r"laws\['w'\] must be a law of strongticket.seeds"),
        ({"floats": {"w": np.ones(3, np.float32)}}, "tensor 'w' is in both masks and floats"),
        ({"floats": {"v": np.ones(3)}}, r"floats\['v'\] must be a NumPy array of float32, got float64"),
        ({"floats": {"v": np.array([[1, np.inf]], np.float32)}}, r"must be finite, got inf at \(0, 1\)"),
        ({"masks": {3: np.ones(3, bool)}}, "masks: name must be a str"),
        ({"masks": {"\ud800": np.ones(3, bool)}}, "valid Unicode"),
        ({"masks": None}, "masks must be a dict"),
        ({"choices": {"v": b""}}, r"choices\['v'\] must be Choices, got a bytes"),
        ({"choices": {"w": Choices((), (b"",))}}, "tensor 'w' is in both masks and choices"),
    ],
)
def test_construction_errors(change, message):
    fields = {"seed": 0, "kind": "relu", "settings": {}, "laws": LAW, "masks": MASK} | change
    with pytest.raises(StrongTicketError, match=message):
        Ticket(**fields)


def test_tickets_that_do_not_fit_their_architecture():
    with pytest.raises(TicketError, match=r"no tensor 'nose': the ticket has key, "):
        random_ticket().weights("nose")
    with pytest.raises(TicketError, match="the settings do not describe a network of kind 'relu'"):
        random_ticket("relu", settings={"dims": "many"}).network()
    with pytest.raises(TicketError, match=r"'layers.0.bias': the network has shape None, the ticket \(9,\)"):
        random_ticket("relu", settings=RELU | {"bias": False}).network()
    with pytest.raises(
        TicketError, match=r"'query': the network has shape \(2, 7, 12\), the ticket \(2, 6, 12\)"
    ):
        random_ticket(settings=ATTENTION | {"dim_in": 7, "context_dim": 6}).verify()
    huge = {"dims": [10**9, 10**9], "bias": False}
    with pytest.raises(TicketError, match=r"shape \(1000000000, 1000000000\)"):
        Ticket(0, "relu", huge, {}, {}).network()


def test_what_is_not_installed_is_not_the_files_fault(monkeypatch):
    def make(kind, settings):
        raise MissingDependency("transformers", "huggingface")

    monkeypatch.setattr("strongticket.nets.files.make", make)
    with pytest.raises(MissingDependency, match=r"^transformers is not installed"):
        random_ticket().network()


def test_importing_tickets_does_not_import_torch():
    code = "import strongticket.ticket, strongticket.choice.source, sys; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_nets_and_kinds_agree():
    for kind, settings in KINDS.items():
        assert nets.make(kind, settings).kind == kind
    assert set(KINDS) == {kind for kind, module in kinds.KINDS.items() if module == "strongticket.nets.kind"}


def test_a_certificate_does_not_outlive_its_masks(tmp_path):
    ticket = build_network(nets.initialise(nets.ReluNetwork([3, 4, 2]), seed=0), per_row=6)
    assert ticket.verify().certificate_bound
    assert Ticket.from_bytes(ticket.to_bytes()).verify().certificate_bound
    pruned = {name: np.zeros_like(mask) for name, mask in ticket.masks.items()}
    for changed in (
        dataclasses.replace(ticket, masks=pruned),
        dataclasses.replace(ticket, seed=ticket.seed + 1),
    ):
        with pytest.raises(TicketError, match="computed for another network"):
            changed.verify()
        with pytest.raises(TicketError, match="computed for another network"):
            changed.save(tmp_path / "x.ticket")
    assert not list(tmp_path.iterdir())
    assert not dataclasses.replace(ticket, masks=pruned, certificate=None).verify().certificate_bound


def test_a_file_with_the_certificate_of_another_network_is_refused(tmp_path):
    first, second = (
        build_network(nets.initialise(nets.ReluNetwork([3, 4, 2]), seed=seed), per_row=6).to_bytes()
        for seed in (0, 1)
    )
    lines = index_lines(second)
    lines[1] = index_lines(first)[1]
    path = tmp_path / "mixed.ticket"
    path.write_bytes(with_index(second, b"\n".join(lines)))
    for read in (Ticket.load, summarise):
        with pytest.raises(TicketError, match="computed for another network"):
            read(path)


@pytest.mark.parametrize(
    "certificate",
    [
        [],
        "x",
        {"bound": "1"},
        {"bound": True},
        {"bound": -1},
        {"radius": []},
        {"arithmetic": 3},
        {"floors": [None]},
    ],
)
def test_odd_certificates_are_refused(certificate):
    with pytest.raises(StrongTicketError, match="certificate"):
        Ticket(7, "relu", {"dims": [3, 2], "bias": False}, {}, {}, certificate=certificate)
