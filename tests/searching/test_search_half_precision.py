"""A processor that dies of half precision is noticed before it ends the search."""

import sys

import pytest

from strongticket.errors import StrongTicketError
from strongticket.searching.train import check_half_precision


@pytest.fixture(autouse=True)
def tried_anew():
    check_half_precision.cache_clear()
    yield
    check_half_precision.cache_clear()


@pytest.mark.slow
def test_half_precision_runs_without_amx():
    check_half_precision()  # conftest.py leaves AMX out


def test_a_process_that_dies_is_an_error_with_a_hint(tmp_path, monkeypatch):
    dies = tmp_path / "python"
    dies.write_text("#!/bin/sh\nkill -ILL $$\n")
    dies.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(dies))
    with pytest.raises(StrongTicketError, match="cannot run") as error:
        check_half_precision()
    assert "ONEDNN_MAX_CPU_ISA=AVX512_CORE_FP16" in str(error.value.hint)
