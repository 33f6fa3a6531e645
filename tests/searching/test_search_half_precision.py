"""A processor that dies of half precision is noticed before it ends the search."""

import pytest

from strongticket.errors import StrongTicketError
from strongticket.searching import half_precision


@pytest.fixture(autouse=True)
def tried_anew():
    half_precision._runs.cache_clear()
    yield
    half_precision._runs.cache_clear()


@pytest.mark.slow
def test_half_precision_runs_without_amx():
    half_precision.check_half_precision()  # conftest.py leaves AMX out


def test_a_process_that_dies_is_an_error_with_a_hint(monkeypatch):
    monkeypatch.setattr(half_precision, "_TRIAL", "import os, signal; os.kill(os.getpid(), signal.SIGILL)")
    with pytest.raises(StrongTicketError, match="cannot run") as error:
        half_precision.check_half_precision()
    assert "ONEDNN_MAX_CPU_ISA=AVX512_CORE_FP16" in str(error.value.hint)
