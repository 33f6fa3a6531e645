"""The algorithms' sequences, each answered again in another way, and their study."""

import numpy as np
import pytest
from tests.reproduce.runs import read_csv, reproduce
from tests.reproduce.tiny import TINY

from strongticket.reproduce.algorithms import METHODS, answer, make, modular_addition, needle, parentheses

SETTINGS = TINY["algorithms"]


def rows_of(algorithm, *arguments):
    rows, _ = algorithm(np.random.default_rng(0), *arguments)
    return rows.tolist()


def test_sums_are_right_and_complete():
    rows = rows_of(modular_addition, 7)
    assert {(a, b) for a, b, _, _ in rows} == {(a, b) for a in range(7) for b in range(7)}
    assert all(answer == divmod(a + b, 7)[1] for a, b, _, answer in rows)


def test_balanced_parentheses_can_be_taken_away_pair_by_pair():
    rows = rows_of(parentheses, 10, 60)
    assert len({tuple(row) for row in rows}) == 60
    for *string, mark, judged in rows:
        text = "".join("()"[each] for each in string)
        while "()" in text:
            text = text.replace("()", "")
        assert (mark, judged) == (2, 3 if text else 4)
    assert sum(row[-1] == 4 for row in rows) == 30


def test_the_needle_is_the_value_behind_its_key():
    for row in rows_of(needle, 4, 8, 50):
        *pairs, asked, answer = row
        assert dict(zip(pairs[::2], pairs[1::2], strict=True))[asked] == answer
        assert len(set(pairs[::2])) == 4


@pytest.mark.parametrize(
    ("name", "arguments", "vocabulary", "chance"),
    [
        ("modular addition", (11,), 12, 1 / 11),
        ("parentheses", (12, 200), 5, 1 / 2),
        ("needle", (3, 4, 200), 8, 1 / 3),
    ],
)
def test_held_out_sequences_are_not_trained_on_and_only_the_answer_is_predicted(
    name, arguments, vocabulary, chance
):
    task, model, columns = make(SETTINGS.config.changed(data=name), {name: arguments})
    assert columns == {"chance": chance}
    train, valid = ({tuple(row.tolist()) for row in part.rows} for part in (task.train, task.valid))
    assert len(task.valid) == (len(task.train) + len(task.valid)) // 10
    if name != "needle":  # needles are drawn, so that one may come twice
        assert not train & valid
    item = task.train[0]
    assert item["labels"][:-1].unique().tolist() == [-100]
    assert item["labels"][-1] == item["input_ids"][-1] < vocabulary
    assert model.config.vocab_size == vocabulary
    assert model.config.n_positions == len(item["input_ids"])
    assert model.config.tie_word_embeddings is False


def test_every_case_is_tuned_and_measured(tmp_path):
    summary = reproduce(tmp_path, "algorithms")
    rows, tuning = (read_csv(tmp_path / "algorithms" / f"{name}.csv") for name in ("accuracies", "tuning"))
    cases = [(algorithm, method) for algorithm in SETTINGS.algorithms for method in METHODS]
    assert [(row["algorithm"], row["method"]) for row in rows] == cases
    assert len(tuning) == len(cases) * len(SETTINGS.rates)
    for row in rows:
        assert summary["numbers"][row["algorithm"]][row["method"]]["mean"] == float(row["accuracy"])
    files = {row["method"]: int(row["file_bytes"]) for row in rows if row["algorithm"] == "needle"}
    assert files["ticket"] < files["embeddings only"] < files["dense"]


def test_accuracies_are_said_beside_a_guess():
    cases = {"ticket": 0.25, "embeddings only": 0.15, "dense": 0.85}
    spreads = [
        dict(algorithm=algorithm, method=method, chance=chance, mean=mean)
        for algorithm, chance in (("modular addition", 1 / 7), ("needle", 1 / 2))
        for method, mean in cases.items()
    ]
    found = answer({"accuracies": [], "tuning": [], "spreads": spreads}, SETTINGS)
    assert found.sentence == (
        "Held-out accuracy of modular addition: ticket 25%, embeddings only 15%, dense 85% (a guess 14%); "
        "needle: ticket 25%, embeddings only 15%, dense 85% (a guess 50%)."
    )
