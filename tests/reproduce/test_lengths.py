"""Long sequences: the errors against softmax written out, equal tokens at every context, and what is said."""

import numpy as np
import pytest
import torch
from tests.reproduce.runs import read_csv, reproduce
from tests.reproduce.tiny import TINY

from strongticket.builders import build_network
from strongticket.nets import MultiHeadAttention, initialise
from strongticket.reproduce.lengths import STUDY, answer, language, spreads_of

SETTINGS = TINY["lengths"]


def tables(errors=((4, 1.0), (64, 0.5)), bound=2.0, losses=((8, 2.0, 1.5), (16, 1.75, 1.5))):
    """Rows of one source and one seed. errors: (length, error); losses: (context, of the ticket, of dense)."""
    of_tickets = [
        dict(arithmetic=name, length=length, source=0, error=error, bound=bound)
        for name in ("float32", "float64")
        for length, error in errors
    ]
    of_models = [
        dict(method=method, context=context, seed=0, loss=loss)
        for context, *both in losses
        for method, loss in zip(("ticket", "dense"), both, strict=True)
    ]
    return {"errors": of_tickets, "losses": of_models} | spreads_of(of_tickets, of_models)


def test_errors_are_those_of_plain_attention(tmp_path):
    """One row computed again with softmax written out."""
    reproduce(tmp_path, "lengths")
    rows = read_csv(tmp_path / "lengths" / "errors.csv")
    assert len(rows) == 2 * 2 * SETTINGS.sources
    (row,) = (
        row for row in rows if (row["arithmetic"], row["length"], row["source"]) == ("float64", "64", "0")
    )
    target = initialise(MultiHeadAttention(8, 8, 2, 8, 8), seed=0, normalised=True)
    source = build_network(target, width=48, seed=0, radius=1.0).network(form="factors")
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
    assert float(row["error"]) == pytest.approx(error, rel=1e-6)
    assert error <= float(row["bound"])


def test_every_context_sees_the_same_tokens():
    settings = STUDY.settings["laptop"]
    for context in settings.contexts:
        ticket, dense = (language(settings, method, context, 0) for method in ("ticket", "dense"))
        assert {each.training.batch * each.model.context for each in (ticket, dense)} == {settings.tokens}
        assert dense.source.method == "dense"
    assert max(settings.lengths) == 65_536


def test_errors_that_do_not_grow_and_a_gap_that_closes():
    found = answer(tables(), SETTINGS)
    assert found.sentence.startswith(
        "No: up to 64 tokens the median error of an attention ticket is at most 1.00"
    )
    assert "0 of 4 errors exceed their certificate" in found.sentence
    assert "from 0.500 nats at context 8 to 0.250 at 16" in found.sentence
    assert found.numbers["gap_to_dense"] == {"8": 0.5, "16": 0.25}
    assert [(row["length"], row["median"]) for row in found.table[:2]] == [(4, 1.0), (64, 0.5)]


@pytest.mark.parametrize("changes", [dict(errors=((4, 0.5), (64, 1.5))), dict(bound=0.75)])
def test_errors_that_grow_or_exceed_their_certificate_are_not_denied(changes):
    assert answer(tables(**changes), SETTINGS).sentence.startswith("Yes: ")
