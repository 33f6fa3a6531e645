"""Exact tickets: what is built is the target number for number, and widths are the fewest."""

import pytest
from tests.reproduce.runs import make_again, reproduce

from strongticket.reproduce import quantised


def test_the_study_is_made_once_and_says_what_it_measured(tmp_path):
    summary = reproduce(tmp_path, "quantised")
    make_again(tmp_path, "quantised")
    assert summary["numbers"]["exact_layers"] == [4]
    assert "error 0" in summary["sentence"]


@pytest.mark.parametrize("bits", [4, 6, 8])
def test_attention_of_quantised_weights_is_exact(bits):
    (row,) = quantised.exact_layer(dict(seed=0, bits=bits))
    assert row["same"]
    assert row["bound"] == 0
    assert 0.2 < row["kept"] < 0.4


def test_where_too_few_units_are_the_certificate_says_so(monkeypatch):
    monkeypatch.setattr(quantised, "UNITS", 64)
    monkeypatch.setattr(quantised, "QUERY", 4.0)
    monkeypatch.setattr(quantised, "KEY", 2.0)
    (row,) = quantised.exact_layer(dict(seed=0, bits=8))
    assert not row["same"]
    assert row["bound"] > 0


def test_more_bits_take_more_units_with_signs():
    def units(bits):
        point = dict(seed=0, source="signs", bits=bits, dim=2, sources=40, success=0.9)
        return quantised.fewest_units(point)[0]["units"]

    assert 4 < units(4) < units(10)
