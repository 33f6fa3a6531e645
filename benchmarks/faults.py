"""Nothing lost, nothing wrong: `python -m benchmarks.faults [--json] [--quick]`, a quarter of an hour on one core.

kill -9 in the middle of a build, a search and a reproduce; damaged checkpoints and data that changed before a
resume; a full disk; clusters that fail; corrupted tickets; targets with odd numbers; inputs that attack
certificates; crafted tickets, model folders and options of `generate`.
"""

import tempfile
import time
from collections import Counter
from itertools import product
from pathlib import Path
from typing import Any

from tests.faults.attacks import attack_certificates
from tests.faults.checkpoints import FILES, WAYS, damage_checkpoints, swap_data, tiny_search
from tests.faults.cluster import cluster_failures, kill_a_worker
from tests.faults.commands import COMMANDS, QUICK
from tests.faults.corruption import corrupt
from tests.faults.crafted_tickets import craft_tickets
from tests.faults.disk import FREE, is_right, save_on_full_disk
from tests.faults.kills import kill_and_repeat, undisturbed
from tests.faults.model_folders import open_folders
from tests.faults.starter import Starter
from tests.faults.targets import odd_targets

from benchmarks.harness import figure, main, tell

GIGABYTE = 1e9
Row = dict[str, Any]


def run(*, quick: bool = False) -> Row:
    kills, corruptions, attacks = (1, 200, 2000) if quick else (20, 10_000, 100_000)
    start = time.perf_counter()
    killed, disk = _killed(kills, FREE[:1] if quick else FREE, quick)
    cases = list(product(FILES, WAYS))
    with tempfile.TemporaryDirectory() as name:
        config = tiny_search(Path(name))
        damaged = _told(damage_checkpoints, config, cases[:3] if quick else cases)
        swapped = _told(swap_data, config, 1 if quick else 10)
    worker = [] if quick else [_told(kill_a_worker)]
    clusters = [] if quick else _told(cluster_failures)
    crafted = _told(craft_tickets, 64 if quick else 560)
    folders = _told(open_folders, 45 if quick else 260)
    corrupted = _told(corrupt, corruptions, all_kinds=not quick)
    odd = _told(odd_targets, quick=quick)
    attacked = _told(attack_certificates, attacks)
    outcomes = Counter(row["outcome"] for row in odd)
    tell(f"done in {time.perf_counter() - start:.0f} s")
    return {
        "killed": killed,
        "full_disk": disk,
        "damaged_checkpoints": [damaged],
        "swapped_data": [swapped],
        "worker_killed": worker,
        "cluster_failures": clusters,
        "crafted_tickets": [crafted],
        "model_folders": [folders],
        "corrupted": [corrupted],
        "odd_targets": [row for row in odd if row["outcome"] not in ("built", "refused")],
        "odd_targets_by_outcome": dict(outcomes),
        "attacked": attacked,
        "seconds": time.perf_counter() - start,
        "must_show": [
            *_kills_shown(killed, quick),
            *_tried("damaged checkpoints", damaged["tried"], 30, damaged["wrong"], quick),
            *_tried("data swaps on resume", swapped["tried"], 10, swapped["wrong"], quick),
            *_tried("cluster failures", len(clusters), 6, sum(row["wrong"] for row in clusters), quick),
            *_crafted_shown(crafted, folders, quick),
            *_rest_shown(disk, worker, corrupted, outcomes, attacked),
        ],
    }


def _killed(kills: int, spaces: tuple[int, ...], quick: bool) -> tuple[list[Row], list[Row]]:
    """Rows of the killed commands and of those on a full disk."""
    killed, disk = [], []
    with Starter() as starter, tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "run"
        for command in QUICK if quick else COMMANDS:
            tell(f"killing {command.name}")
            wanted, whole = undisturbed(starter, command, folder)
            killed.append(kill_and_repeat(starter, command, wanted, whole, kills, folder))
            disk += [save_on_full_disk(starter, command, wanted, free) for free in spaces]
    return killed, disk


def _told(work: Any, *arguments: Any, **options: Any) -> Any:
    start = time.perf_counter()
    found = work(*arguments, **options)
    tell(f"{' '.join(work.__name__.split('_'))}: {time.perf_counter() - start:.0f} s")
    return found


def _tried(what: str, tried: int, least: int, wrong: int, quick: bool, note: str = "") -> list[Row]:
    """Two figures: enough were tried, and none went wrong."""
    return [
        figure(f"{what}, tried", tried, ">=", 0 if quick else least),
        _none(f"{what}, wrong", wrong, note),
    ]


def _none(name: str, count: int, note: str = "") -> Row:
    return figure(name, count, "==", 0, note=note)


def _kills_shown(killed: list[Row], quick: bool) -> list[Row]:
    return [
        shown
        for row in killed
        for shown in _tried(
            f"kills of {row['command']}", row["kills"], 20, row["kills"] - row["identical"], quick,
            f"{row['killed']} while it ran, {row['finished_before']} just after",
        )
    ]  # fmt: skip


def _crafted_shown(crafted: Row, folders: Row, quick: bool) -> list[Row]:
    of_generate = sum(text.startswith("generate") for text in folders["wrong"])
    of_folders = len(folders["wrong"]) - of_generate
    every = (crafted, folders)
    growth = max(each["memory_bytes"] - each["memory_before_bytes"] for each in every)
    return [
        *_tried("crafted tickets", crafted["crafted"], 500, len(crafted["wrong"]), quick),
        *_tried("model folders", folders["folders"], 200, of_folders, quick),
        *_tried("extremes of generate", folders["extremes"], 60, of_generate, quick),
        _none("tracebacks", sum(len(each["wrong"]) for each in every)),
        _none("code executions", int(crafted["executed"]) + int(folders["executed"])),
        _none("files read outside their folder", sum(len(each["files_read_outside"]) for each in every)),
        _none("files written beside a ticket", len(crafted["files_written"])),
        figure("memory of refusing, above that of the imported program, MB", growth / 1e6, "<=", 200),
    ]


def _rest_shown(
    disk: list[Row], worker: list[Row], corrupted: Row, outcomes: Counter[str], attacked: list[Row]
) -> list[Row]:
    refused = sum(row["exit"] != 0 for row in disk)
    inputs = sum(row["random"] + row["ascended"] for row in attacked)
    return [
        _none(
            "full disk, wrong", sum(not is_right(row) for row in disk), f"{len(disk)} runs, {refused} refused"
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
            corrupted["wrong"] + corrupted["crashed"],
            f"{corrupted['tried']} tried, {corrupted['refused']} refused, {corrupted['identical']} identical",
        ),
        figure("corrupted tickets: memory, GB", corrupted["memory_bytes"] / GIGABYTE, "<=", 1),
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


if __name__ == "__main__":
    main(__doc__, run, quick="fewer of everything, some seconds each")
