"""Searches as points of a study, and learning rates that are chosen on the first seed and then used for all."""

from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest
from tests.reproduce.tiny import SEARCH, TINY

from strongticket.reproduce import multimodal
from strongticket.reproduce.searches import Case, cpu_seconds, point, searches, tune, tuned
from strongticket.reproduce.study import Run
from strongticket.searching import preset, search, train

BEST = {"a": 1e-2, "b": 1e-3}


@dataclass(frozen=True)
class Pretended(Run):
    """A run whose searches have a loss that is known; seen: (number of points, workers, threads, cpu)."""

    seen: list = field(default_factory=list)

    def map(self, what, function, points, version, *, threads=1):
        self.seen.append((len(points), self.workers, threads, function.keywords["cpu"]))
        configs = [settings["search"] for settings in points]
        return [
            {"loss": abs(config["lr"] - BEST[config["data"]]) + config["seed"], "cpu_seconds": 1.0}
            for config in configs
        ]


def test_each_case_gets_its_best_rate_with_every_seed(tmp_path):
    cases = [({"case": name}, preset("laptop", data=name)) for name in BEST]
    rates = (1e-3, 1e-2, 1e-1)
    tuning, rows = tuned(Pretended(tmp_path, seed=5), cases, rates, 3)
    assert [(row["case"], row["rate"]) for row in tuning] == [(name, rate) for name in BEST for rate in rates]
    assert [(row["case"], row["rate"], row["seed"]) for row in rows] == [
        (name, rate, seed) for seed in (5, 6, 7) for name, rate in BEST.items()
    ]
    assert cpu_seconds(rows, tuning) == 6 + 4  # the first seed is not searched twice
    assert cpu_seconds(rows) == 6


def test_higher_rates_are_tried_while_the_highest_is_the_best(tmp_path):
    run = Pretended(tmp_path)
    higher = (2e-3, 1e-2, 5e-2, 1e-1)
    cases = [
        Case({"case": name}, partial(lambda name, rate: preset("laptop", data=name, lr=rate), name), (1e-3,), higher)
        for name in BEST
    ]  # fmt: skip
    tuning, best = tune(run, cases)
    assert best == [1e-2, 1e-3]
    tried = {name: [row["rate"] for row in tuning if row["case"] == name] for name in BEST}
    assert tried == {"a": [1e-3, 2e-3, 1e-2, 5e-2], "b": [1e-3, 2e-3]}  # one beyond the best, and no further
    assert [count for count, *_ in run.seen] == [2, 2, 1, 1]  # the cases of a round run together


def test_a_search_of_the_papers_scale_has_the_machine_for_itself(tmp_path):
    cases = [({}, preset("laptop", data="a"))]
    for changes, expected in [
        ({"scale": "laptop"}, (1, None, 1, True)),
        ({"scale": "paper"}, (1, 1, None, False)),
        ({"scale": "paper", "workers": 4}, (1, 4, None, False)),
        ({"scale": "paper", "cluster": "tcp://host:8786"}, (1, None, None, False)),
    ]:
        run = Pretended(tmp_path, **changes)
        searches(run, cases)
        assert run.seen == [expected]


def test_a_point_is_named_by_what_decides_its_result():
    assert point(SEARCH.changed(cache="a", cpu=True, resume=True)) == point(SEARCH)
    assert point(SEARCH.changed(seed=1)) != point(SEARCH)
    assert "pydoc_data" in point(SEARCH)["text"]
    own = partial(multimodal.make, size=3)
    assert point(SEARCH, own)["make"] == "reproduce/multimodal.py"
    assert point(SEARCH, own) != point(SEARCH, partial(multimodal.make, size=4))


def test_seeds_go_round():
    assert Run(Path(), seed=2**64 - 2).seeds(3) == [2**64 - 2, 2**64 - 1, 0]


def test_the_largest_seed_can_be_searched(tmp_path):
    (row,) = searches(Run(tmp_path, "test", workers=1), [({"a": 1}, SEARCH.changed(seed=2**64 - 1))])
    assert next(iter(row)) == "a"
    assert row["loss"] > 0


@pytest.mark.slow
def test_a_killed_search_continues_inside_its_point(tmp_path, monkeypatch):
    config = SEARCH.changed(save_every=1, qk_scale=1.0)

    def stop(done, loss):
        if done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        search(config.changed(cache=str(tmp_path / "killed" / "cache"), cpu=True), on_step=stop)
    found, look = [], train.last_whole
    monkeypatch.setattr(train, "last_whole", lambda *arguments: found.append(look(*arguments)) or found[-1])
    rows = [
        searches(Run(tmp_path / folder, "test", workers=1), [({}, config)])[0]
        for folder in ("killed", "whole")
    ]
    assert found[0] is not None
    assert found[1] is None
    for row in rows:
        del row["cpu_seconds"]
    assert rows[0] == rows[1]


def test_a_study_of_its_own_task_adds_columns(tmp_path):
    config = TINY["multimodal"].config.changed(qk_scale=2.0)
    (row,) = searches(Run(tmp_path, "test", workers=1), [({"scale": 2}, config)], multimodal.make)
    image, text = row["logit_std_image"], row["logit_std_text"]
    assert row["logit_std"] == pytest.approx(((image**2 + text**2) / 2) ** 0.5)
    towers = multimodal.TwoTowers(config, 8)
    plain = search(config.changed(cpu=True), task=multimodal.digit_names(), model=towers)
    assert row["loss"] == plain.loss  # what looking at the logits changed was another network
