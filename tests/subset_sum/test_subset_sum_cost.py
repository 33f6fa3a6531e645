import math

from strongticket.subset_sum import MAX_EXACT, seconds_per_addition, seconds_per_problem


def test_two_more_values_double_the_time_and_one_more_lies_between():
    seconds = [seconds_per_problem(n, 4e-9) for n in range(1, MAX_EXACT + 1)]
    assert seconds == sorted(seconds)
    for n in range(20, MAX_EXACT - 2):
        assert math.isclose(seconds[n + 2], 2 * seconds[n], rel_tol=0.05)


def test_an_addition_takes_time():
    assert 0 < seconds_per_addition() < 1e-3
