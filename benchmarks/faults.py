"""Nothing lost, nothing wrong: `python -m benchmarks.faults [--json] [--quick]`, some minutes.

kill -9 in the middle of a build, a search and a reproduce; a full disk; a Dask worker killed; corrupted
tickets; targets with odd numbers; inputs that attack certificates; crafted tickets, model folders, results
pages and options of `generate`; clusters that fail.
"""

import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from tests.faults.attacks import attack_certificates
from tests.faults.cluster import cluster_failures, kill_a_worker
from tests.faults.commands import COMMANDS, QUICK
from tests.faults.corruption import corrupt
from tests.faults.crafted_tickets import craft_tickets
from tests.faults.disk import FREE, is_right, save_on_full_disk
from tests.faults.kills import kill_and_repeat, undisturbed
from tests.faults.model_folders import open_folders
from tests.faults.pages import draw_pages
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
    crafted = _told(craft_tickets, 24 if quick else 520)
    folders = _told(open_folders, 12 if quick else 250)
    pages = _told(draw_pages, 150 if quick else 2000)
    clusters = [] if quick else _told(cluster_failures)
    return {
        "crafted_tickets": [crafted],
        "model_folders": [folders],
        "pages": [pages],
        "cluster_failures": clusters,
        "killed": killed,
        "full_disk": disk,
        "worker_killed": worker,
        "corrupted": [damage],
        "odd_targets": [row for row in odd if row["outcome"] not in ("built", "refused")],
        "odd_targets_by_outcome": dict(outcomes),
        "attacked": attacked,
        "must_show": [
            *_figures(killed, disk, worker, damage, outcomes, attacked),
            *_crafted_figures(crafted, folders, pages, clusters, quick),
        ],
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


def _crafted_figures(
    crafted: dict[str, Any],
    folders: dict[str, Any],
    pages: dict[str, Any],
    clusters: list[dict[str, Any]],
    quick: bool,
) -> list[dict[str, Any]]:
    growth = max(each["memory_bytes"] - each["memory_before_bytes"] for each in (crafted, folders))
    tried = {
        "crafted tickets tried": (crafted["crafted"], 500),
        "model folders tried": (folders["folders"], 200),
        "pages tried": (pages["crafted"] + pages["fuzzed"], 50),
        "extremes of generate tried": (folders["extremes"], 60),
        "cluster failures tried": (len(clusters), 6),
    }
    of_generate = sum(text.startswith("generate") for text in folders["wrong"])
    return [
        *(figure(name, value, ">=", 0 if quick else least) for name, (value, least) in tried.items()),
        _none("crafted tickets: tracebacks or control characters", len(crafted["wrong"]), ""),
        _none("model folders: tracebacks", len(folders["wrong"]) - of_generate, ""),
        _none("extremes of generate: tracebacks", of_generate, ""),
        _none("pages: tracebacks or unsafe", len(pages["wrong"]), ""),
        _none("cluster failures: wrong", sum(row["wrong"] for row in clusters), ""),
        _none("code executions", int(crafted["executed"]) + int(folders["executed"]), ""),
        _none("files written beside the ticket", len(crafted["files_written"]), ""),
        figure("memory of refusing, above that of the imported program, MB", growth / 1e6, "<=", 200),
    ]


def _none(name: str, count: int, note: str) -> dict[str, Any]:
    return figure(name, count, "==", 0, note=note)


if __name__ == "__main__":
    main(__doc__, run, quick="fewer of everything, some seconds each")
