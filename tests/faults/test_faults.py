"""The quick part of `python -m benchmarks.faults`: whatever happens on the way, nothing lost and nothing wrong."""

import signal

import pytest
from tests.faults.commands import COMMANDS, SEARCH, fresh, results_of
from tests.faults.corruption import corrupt
from tests.faults.disk import is_right, save_on_full_disk
from tests.faults.fuzz_ticket import seeded
from tests.faults.kills import kill_and_repeat, undisturbed
from tests.faults.memory import in_child
from tests.faults.starter import Starter
from tests.faults.targets import odd_targets


@pytest.fixture(scope="module")
def starter():
    with Starter() as started:
        yield started


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_killed_and_without_space(starter, command, tmp_path):
    wanted, whole = undisturbed(starter, command, tmp_path / "run")
    assert wanted
    killed = kill_and_repeat(starter, command, wanted, whole, 1, tmp_path / "run")
    assert (killed["killed"], killed["identical"]) == (1, 1)
    full = save_on_full_disk(starter, command, wanted, 0)
    assert is_right(full), full


def test_a_search_killed_while_it_removes_its_checkpoints(starter, tmp_path):
    """Half a checkpoint was once taken for a whole one, and the search ended elsewhere."""
    wanted, whole = undisturbed(starter, SEARCH, tmp_path)
    fresh(SEARCH, tmp_path)
    assert starter.run(SEARCH.arguments, tmp_path, kill_at_change=whole.changes - 6).code == -signal.SIGKILL
    assert (tmp_path / "found.ticket").exists()
    assert starter.run(SEARCH.arguments, tmp_path).code == 0
    assert results_of(SEARCH, tmp_path) == wanted


def test_corrupted_tickets():
    found = corrupt(200, all_kinds=False)
    assert found["wrong"] == found["crashed"] == 0
    assert found["refused"] > 150
    assert found["memory_bytes"] < 1e9


def test_a_seeded_fuzzer_finds_nothing():
    found = seeded(200)
    assert found["read"] + found["refused"] == 200
    assert found["refused"] > 100


def test_odd_targets():
    rows = odd_targets(quick=True)
    assert [row for row in rows if row["outcome"] not in ("built", "refused")] == []
    refused = {row["case"] for row in rows if row["outcome"] == "refused"}
    assert {"one NaN", "one infinity", "one minus infinity", "empty"} <= refused
    built = {row["case"] for row in rows if row["outcome"] == "built"}
    assert {"all zero", "constant", "times 1e18", "times 1e-30", "bfloat16", "float16, strided"} <= built


def test_attacked_certificates():
    rows = in_child("attacks", 1000)  # without the checks of shapes of these tests: a tenth of the time
    assert sum(row["random"] + row["ascended"] for row in rows) >= 1000
    assert sum(row["above"] for row in rows) == 0
    assert all(row["ascended_error"] > 0.1 * row["bound"] for row in rows if "head" in row["ticket"])
