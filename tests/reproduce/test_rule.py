"""Rules for the best scale: where each of them is right it wins on settings that it has not seen."""

import math

import pytest
from tests.reproduce.runs import reproduce

from strongticket.reproduce import rule
from strongticket.reproduce.rule import CANDIDATES, FACTORS, answer, costs, exponents, halves
from strongticket.reproduce.searches import head_size
from strongticket.reproduce.valley import Valley

SETTINGS = rule.RuleSettings(
    rule.STUDY.settings["laptop"].settings, tuple(2 ** (k / 4) for k in range(-6, 17)), 2
)


def valleys(best):
    """Valleys in the design's order whose lowest point is at best(n_K, σ); the two seeds differ by 4 %."""
    found = []
    for name, config in SETTINGS.settings.items():
        rows = [
            {
                "scale": scale,
                "loss": 0.1 * math.log(scale / best(head_size(config), config.source.std) / shift) ** 2,
                "logit_std": 0.7 * (scale * config.source.std / 0.2) ** 2,
            }
            for scale in SETTINGS.scales
            for shift in (1.02, 1 / 1.02)
        ]
        found.append(Valley.of(name, rows, config))
    return found


LAWS = {
    "n_K^¼": (lambda size, std: size**0.25, {"n_K": 0.25}),
    "logits' std 0.7": (lambda size, std: 0.2 / std, {"σ": -1}),
    "logits' std, fitted": (lambda size, std: 0.4 / std, {"σ": -1}),
    "c · n_K^a · σ^b, fitted": (lambda size, std: 0.5 * size**0.4 / std**0.3, {"n_K": 0.4, "σ": -0.3}),
    "one constant, fitted": (lambda size, std: 3.3, {}),
}


@pytest.mark.parametrize("law", CANDIDATES)
def test_each_rule_wins_where_it_is_right(law):
    best, powers = LAWS[law]
    found = {row["rule"]: row for row in costs(valleys(best))}
    assert found[law]["factor"] == pytest.approx(1, abs=1e-3)
    assert found[law]["low"] <= found[law]["cost"] <= found[law]["high"] <= found[law]["worst"]
    lowest = min(row["cost"] for row in found.values())
    assert found[law]["cost"] == pytest.approx(lowest, abs=1e-4)  # a fitted power can follow the others too
    for row in exponents(valleys(best), SETTINGS):
        expected = powers.get(row["factor"], 0)
        assert row["exponent"] == pytest.approx(expected, abs=1e-3)
        assert row["low"] < expected < row["high"]


def test_a_rule_is_judged_on_settings_it_has_not_seen():
    """A constant fitted on one half misses the other if the halves differ."""
    _, second = halves(8)
    made = valleys(lambda size, std: 2.0)
    losses = [[0.1 * math.log(s / 4) ** 2] for s in SETTINGS.scales]
    for i in second:
        made[i] = Valley("", 8, 0.08, 1.0, SETTINGS.scales, losses, made[i].logit_stds)
    found = {row["rule"]: row for row in costs(made)}
    assert found["one constant, fitted"]["factor"] == pytest.approx(2, rel=1e-3)


def test_each_half_of_the_settings_has_every_factor_at_both_levels():
    configs = list(SETTINGS.settings.values())
    assert len(configs) == 8
    for half in halves(8):
        for factor in (
            head_size,
            lambda config: config.source.std,
            lambda config: config.model.layers,
            lambda config: config.source.kept,
            lambda config: config.task.task,
        ):
            levels = sorted(factor(configs[i]) for i in half)
            assert levels[0] == levels[1] != levels[2] == levels[3]


def tables(cheapest, exponent):
    rules = [
        {"rule": name, "cost": 0.01 if name == cheapest else 0.05, "low": 0, "high": 1, "worst": 1, "factor": 1.2}
        for name in CANDIDATES
    ]  # fmt: skip
    fitted = [
        {"factor": name, "exponent": exponent, "low": exponent - 0.1, "high": exponent + 0.1}
        for name in FACTORS
    ]
    rows = [
        {"setting": name, "scale": s, "loss": 1.0, "logit_std": 0.1 * s, "cpu_seconds": 1.0}
        for name in SETTINGS.settings
        for s in (1.0, 2.0, 4.0)
    ]
    return {"losses": rows, "rules": rules, "exponents": fitted}


@pytest.mark.parametrize(
    ("cheapest", "exponent", "said"),
    [
        ("n_K^¼", 0.2, "0.20 (0.10 to 0.30), which agrees with the paper's ¼"),
        ("one constant, fitted", -0.1, "-0.10 (-0.20 to 0.00), which differs from the paper's ¼"),
    ],
)
def test_the_answer_names_the_cheapest_rule_and_the_exponent(cheapest, exponent, said):
    found = answer(tables(cheapest, exponent), SETTINGS)
    assert f"the cheapest rule is {cheapest}; loss above the lowest: {cheapest} 0.0100, " in found.sentence
    assert said in found.sentence
    assert [line["rule"] for line in found.table] == list(CANDIDATES)


def test_the_study_runs(tmp_path):
    summary = reproduce(tmp_path, "rule")
    assert len(summary["numbers"]["valleys"]) == 8
    assert {path.stem for path in (tmp_path / "rule").glob("*.csv")} == {"losses", "exponents", "rules"}
