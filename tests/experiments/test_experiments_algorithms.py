"""The algorithms' sequences, each answered again in another way."""

import numpy as np
import pytest

from strongticket.errors import StrongTicketError
from strongticket.experiments.tasks.algorithms import algorithm_task, modular_addition, needle, parentheses


def rows_of(algorithm, seed=0):
    return algorithm.sequences(np.random.default_rng(seed)).tolist()


def test_sums_are_right_and_complete():
    rows = rows_of(modular_addition(7))
    assert {(a, b) for a, b, _, _ in rows} == {(a, b) for a in range(7) for b in range(7)}
    assert all(answer == divmod(a + b, 7)[1] for a, b, _, answer in rows)


def test_parentheses_are_judged_as_a_stack_judges_them():
    rows = rows_of(parentheses(10, 60))
    assert len({tuple(row) for row in rows}) == 60
    for *string, mark, answer in rows:
        stack, right = [], True
        for each in string:
            if each == 0:
                stack.append(each)
            elif stack:
                stack.pop()
            else:
                right = False
        assert (mark, answer) == (2, 4 if right and not stack else 3)
    assert sum(row[-1] == 4 for row in rows) == 30


def test_more_balanced_strings_than_there_are_cannot_be_asked_for():
    with pytest.raises(StrongTicketError, match="fewer than 50 balanced strings of 10"):
        parentheses(10, 100)


def test_the_needle_is_the_value_behind_its_key():
    for row in rows_of(needle(4, 8, 50)):
        *pairs, asked, answer = row
        assert dict(zip(pairs[::2], pairs[1::2], strict=True))[asked] == answer
        assert len(set(pairs[::2])) == 4


@pytest.mark.parametrize("algorithm", [modular_addition(11), parentheses(12, 200), needle(3, 4, 200)])
def test_held_out_sequences_are_not_trained_on_and_only_the_answer_is_predicted(algorithm):
    task = algorithm_task("x", algorithm)
    train, valid = ({tuple(row.tolist()) for row in part.rows} for part in (task.train, task.valid))
    assert 9 * len(task.valid) <= len(task.train)
    if algorithm.chance != 1 / 3:  # needles are drawn, so that one may come twice
        assert not train & valid
    item = task.train[0]
    assert item["labels"][:-1].unique().tolist() == [-100]
    assert item["labels"][-1] == item["input_ids"][-1] < algorithm.vocabulary
