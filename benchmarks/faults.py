"""Nothing lost, nothing wrong: `python -m benchmarks.faults [--json] [--quick]`, some minutes.

kill -9 in the middle of a build, a search and a reproduce; a full disk; a Dask worker killed; corrupted
tickets; targets with odd numbers; inputs that attack certificates.
"""

import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from tests.faults.attacks import attack_certificates
from tests.faults.cluster import kill_a_worker
from tests.faults.commands import COMMANDS, QUICK
from tests.faults.corruption import corrupt
from tests.faults.disk import FREE, is_right, save_on_full_disk
from tests.faults.kills import kill_and_repeat, undisturbed
from tests.faults.starter import Starter
from tests.faults.targets import odd_targets

from benchmarks.harness import figure, main, tell

GIGABYTE = 1e9


def run(*, quick: bool = False) -> dict[str, Any]:
    kills, corruptions, attacks = (1, 200, 2000) if quick else (20, 10_000, 100_000)
    killed, disk = [], []
    with Starter() as starter, tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "run"
        for command in QUICK if quick else COMMANDS:
            tell(command.name)
            wanted, whole = undisturbed(starter, command, folder)
            killed.append(kill_and_repeat(starter, command, wanted, whole, kills, folder))
            spaces = FREE[:1] if quick else FREE
            disk += [save_on_full_disk(starter, command, wanted, free) for free in spaces]
    worker = [] if quick else [_told(kill_a_worker)]
    damage = _told(corrupt, corruptions, all_kinds=not quick)
    odd = _told(odd_targets, quick=quick)
    attacked = _told(attack_certificates, attacks)
    outcomes = Counter(row["outcome"] for row in odd)
    return {
        "killed": killed,
        "full_disk": disk,
        "worker_killed": worker,
        "corrupted": [damage],
        "odd_targets": [row for row in odd if row["outcome"] not in ("built", "refused")],
        "odd_targets_by_outcome": dict(outcomes),
        "attacked": attacked,
        "must_show": _figures(killed, disk, worker, damage, outcomes, attacked),
    }


def _told(work: Any, *arguments: Any, **options: Any) -> Any:
    tell(" ".join(work.__name__.split("_")))
    return work(*arguments, **options)


def _figures(
    killed: list[dict[str, Any]],
    disk: list[dict[str, Any]],
    worker: list[dict[str, Any]],
    damage: dict[str, Any],
    outcomes: Counter[str],
    attacked: list[dict[str, Any]],
) -> list[dict[str, Any]]:
    by_command = ", ".join(f"{row['identical']} of {row['kills']} {row['command']}" for row in killed)
    refused = sum(row["exit"] != 0 for row in disk)
    inputs = sum(row["random"] + row["ascended"] for row in attacked)
    return [
        _none(
            "killed, and not the same files in the end",
            sum(row["kills"] - row["identical"] for row in killed),
            by_command,
        ),
        _none(
            "full disk, and not as it should be",
            sum(not is_right(row) for row in disk),
            f"{len(disk)} runs, {refused} refused",
        ),
        *(
            _none(
                "Dask worker killed, and other bytes",
                int(not row["identical"]),
                f"{row['done_before']} of {row['problems']} problems were done",
            )
            for row in worker
        ),
        _none(
            "corrupted tickets: wrong network or crash",
            damage["wrong"] + damage["crashed"],
            f"{damage['tried']} tried, {damage['refused']} refused, {damage['identical']} identical",
        ),
        figure("corrupted tickets: memory, GB", damage["memory_bytes"] / GIGABYTE, "<=", 1),
        _none(
            "odd targets: wrong or crash",
            outcomes["wrong"] + outcomes["crashed"],
            f"{outcomes['built']} built and measured, {outcomes['refused']} refused",
        ),
        _none(
            "attacked inputs above their certificate",
            sum(row["above"] for row in attacked),
            f"{inputs} inputs, {len(attacked)} tickets",
        ),
    ]


def _none(name: str, count: int, note: str) -> dict[str, Any]:
    return figure(name, count, "==", 0, note=note)


if __name__ == "__main__":
    main(__doc__, run, quick="fewer of everything, some seconds each")
