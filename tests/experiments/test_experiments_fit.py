import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strongticket.errors import StrongTicketError
from strongticket.experiments.fit import fit_errors, fit_gamma, fit_logs

N = [4, 8, 16, 24, 32]


@given(gamma=st.floats(1e-3, 1e3), delta=st.floats(0.01, 0.5))
def test_an_exact_decay_is_found_by_every_method(gamma, delta):
    errors = [gamma * math.exp(-delta * n) for n in N]
    for fit in (fit_errors(N, errors), fit_logs(N, errors), fit_gamma(N, errors, delta)):
        assert fit.gamma == pytest.approx(gamma, rel=1e-5)
        assert fit.delta == pytest.approx(delta, rel=1e-5)
        assert fit.r2 == pytest.approx(1, abs=1e-6)
        assert fit(N) == pytest.approx(errors, rel=1e-4)


def test_log_fit_agrees_with_polyfit_and_sees_small_errors():
    rng = np.random.default_rng(0)
    errors = np.exp(-0.3 * np.array(N) + rng.normal(0, 0.5, len(N)))
    slope, offset = np.polyfit(N, np.log(errors), 1)
    fit = fit_logs(N, errors)
    assert (fit.delta, math.log(fit.gamma)) == pytest.approx((-slope, offset))
    spoiled = errors.copy()
    spoiled[-1] *= 100
    assert abs(fit_logs(N, spoiled).delta - fit.delta) > 0.05
    assert fit_errors(N, spoiled).delta == pytest.approx(fit_errors(N, errors).delta, abs=0.02)


def test_shared_delta_has_the_r2_of_its_own_residuals():
    errors = [1.0, 0.3, 0.03, 0.004, 0.0003]
    fit = fit_gamma(N, errors, 0.2)
    logs = np.log(errors)
    residual = logs - (math.log(fit.gamma) - 0.2 * np.array(N))
    assert residual.sum() == pytest.approx(0, abs=1e-12)
    assert fit.r2 == pytest.approx(1 - (residual**2).sum() / ((logs - logs.mean()) ** 2).sum())


@pytest.mark.parametrize(
    ("n", "errors", "match"),
    [
        ([1, 2], [1.0, 0.5], "three widths"),
        (N, [1, 1, 0, 1, 1], r"errors\[2\] is 0"),
        (N, [1.0], "one error per width"),
    ],
)
def test_refusals(n, errors, match):
    for fit in (fit_errors, fit_logs):
        with pytest.raises(StrongTicketError, match=match):
            fit(n, errors)
