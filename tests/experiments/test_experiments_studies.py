"""The studies at the tests' scale: what is run, what is said, and that a second run computes nothing."""

from itertools import pairwise

import numpy as np
import pytest
import torch
from tests.experiments.quick_run import read_csv, reproduce

from strongticket.experiments.studies import images, lengths, multimodal
from strongticket.experiments.studies.initialisations import _measure as cases
from strongticket.nets import MultiHeadAttention, initialise
from strongticket.searching import Scheme
from strongticket.searching import initialise as initialise_search

TABLES = {
    "images": {"losses"},
    "multimodal": {"losses"},
    "lengths": {"errors", "losses"},
    "rule": {"losses", "exponents", "rules"},
    "initialisations": {"losses", "cases", "tuning", "properties"},
    "algorithms": {"accuracies", "tuning"},
}


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    return reproduce(tmp_path_factory.mktemp("results"), *TABLES)


@pytest.mark.parametrize("name", TABLES)
def test_the_folder_is_complete_and_made_once(out, name):
    folder = out / name
    files = {f"{table}.csv" for table in TABLES[name]} | {f"{name}.png", f"{name}.pdf"}
    assert {path.name for path in folder.iterdir()} == files | {"summary.json", "page.json", "index.html"}
    before = {p: p.read_bytes() for p in folder.glob("*.csv")}
    points = {p: p.stat().st_mtime_ns for p in (out / "points").iterdir()}
    reproduce(out, name)
    assert {p: p.read_bytes() for p in before} == before
    assert {p: p.stat().st_mtime_ns for p in (out / "points").iterdir()} == points


def test_images_are_searched_at_every_scale_with_every_seed(out):
    scale = images.SCALES["test"]
    rows = read_csv(out / "images" / "losses.csv")
    assert len(rows) == scale.seeds * (len(scale.scales) + 1)
    assert all(0 <= float(row["accuracy"]) <= 1 for row in rows)
    assert len({row["loss"] for row in rows}) == len(rows)


def test_towers_are_searched_at_every_scale_and_their_logits_grow_with_it(out):
    scale = multimodal.SCALES["test"]
    rows = read_csv(out / "multimodal" / "losses.csv")
    assert len(rows) == scale.seeds * (len(scale.scales) + 1)
    for tower in ("image", "text"):
        stds = [float(row[f"logit_std_{tower}"]) for row in rows if row["scale"]]
        ratios = [after / before for before, after in pairwise(stds)]
        assert ratios == pytest.approx([4] * len(ratios), rel=0.1)  # both factors of a logit are doubled


def test_every_initialisation_is_tuned_and_calibrated(out):
    scale = cases.SCALES["test"]
    count = len(scale.data) * len(scale.initialisations) * len(scale.scalings)
    rows = read_csv(out / "initialisations" / "losses.csv")
    tuning = read_csv(out / "initialisations" / "tuning.csv")
    assert (len(rows), len(tuning)) == (count * scale.seeds, count * len(scale.rates))
    for row in rows:
        same = [
            float(each["loss"])
            for each in tuning
            if all(each[name] == row[name] for name in ("data", "initialisation", "scaling"))
        ]
        assert float(row["loss"]) == min(same)  # one seed: that of the tuning
        if row["scaling"] == "calibrated":
            assert float(row["logit_std"]) == pytest.approx(0.7, rel=0.05)


@pytest.mark.parametrize("name", cases.INITIALISATIONS)
def test_the_deviation_of_an_initialisation_is_that_of_its_weights(name):
    config = cases.configured(cases.SCALES["laptop"], "images", name, "1")
    linear = torch.nn.Linear(config.dim, config.dim)
    scheme = Scheme(config.init, config.std, law="" if config.law == "normal" else config.law)
    initialise_search(linear, scheme=scheme, qk_scale=1)
    assert float(linear.weight.detach().std()) == pytest.approx(cases.weight_std(config), rel=0.1)


def test_errors_are_those_of_plain_attention(out):
    """One row computed again with softmax written out."""
    settings = {"seed": 0, "width": 6, "lengths": [4, 64]}
    row = lengths.compute(settings)[-1]
    assert (row["arithmetic"], row["length"]) == ("float64", 64)
    stored = [
        r for r in read_csv(out / "lengths" / "errors.csv") if r["source"] == "0" and r["length"] == "64"
    ]
    assert float(stored[-1]["error"]) == pytest.approx(row["error"], rel=1e-6)
    target = initialise(MultiHeadAttention(8, 8, 2, 8, 8), seed=0, normalised=True).double()
    ticket = lengths.build_attention(target.float(), width=48, seed=0, radius=1.0)
    source = ticket.network(dtype=torch.float64)
    generator = torch.Generator().manual_seed(0)
    for length in (4, 64):
        x = torch.randn(length, 8, generator=generator, dtype=torch.float64)
    x = (x / x.norm(dim=-1, keepdim=True)).float().double().numpy()

    def plain(network):
        parts = [
            p.detach().double().numpy() for p in (network.query, network.key, network.value, network.output)
        ]
        total = 0.0
        for query, key, value, output in zip(*parts, strict=True):
            logits = x[:16] @ query @ (x @ key).T / np.sqrt(query.shape[1])
            weights = np.exp(logits - logits.max(-1, keepdims=True))
            total = total + weights / weights.sum(-1, keepdims=True) @ x @ value @ output
        return total

    error = np.linalg.norm(plain(source) - plain(target), axis=-1).max()
    assert error == pytest.approx(row["error"], rel=1e-6)
    assert error <= row["bound"]


def test_every_context_sees_the_same_tokens():
    scale = lengths.SCALES["laptop"]
    for context in scale.contexts:
        config = lengths._language(scale, "ticket", context, 0)
        assert config.batch * config.context == scale.tokens
    assert max(scale.lengths) == 65_536
