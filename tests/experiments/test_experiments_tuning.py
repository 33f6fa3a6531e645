"""Learning rates are chosen on the first seed and then used for all."""

from strongticket.experiments.tasks.tuning import at_an_end, cpu_seconds, tune_and_search
from strongticket.searching import preset

BEST = {"a": 1e-2, "b": 1e-3}


def searches(configs):
    return [
        {"loss": abs(config.lr - BEST[config.data]) + config.seed, "cpu_seconds": 1.0} for config in configs
    ]


def test_each_case_gets_its_best_rate_with_every_seed():
    cases = [({"case": name}, preset("laptop", data=name, seed=5)) for name in BEST]
    rates = (1e-3, 1e-2, 1e-1)
    tuning, rows = tune_and_search(searches, cases, rates, 3)
    assert [(row["case"], row["rate"]) for row in tuning] == [(name, rate) for name in BEST for rate in rates]
    assert [(row["case"], row["rate"], row["seed"]) for row in rows] == [
        (name, rate, seed) for seed in (5, 6, 7) for name, rate in BEST.items()
    ]
    assert at_an_end(rows, rates) == 1  # that of b
    assert cpu_seconds(tuning, rows) == 6 + 4  # the first seed is not searched twice
