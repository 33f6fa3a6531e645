"""Nothing lost, nothing wrong: `python -m benchmarks.faults [--json] [--quick]`, a quarter of an hour on one core.

kill -9 in the middle of a build, a search and a reproduce; damaged checkpoints and data that changed before a
resume; a full disk; clusters that fail; corrupted tickets; targets with odd numbers; inputs that attack
certificates; crafted tickets, model folders and options of `generate`. --quick does fewer of everything.
"""

import tempfile
from collections import Counter
from itertools import product
from pathlib import Path
from typing import Any

from tests.faults.attacks import attack_certificates
from tests.faults.checkpoints import FILES, WAYS, damage_checkpoints, swap_data, tiny_search
from tests.faults.cluster import cluster_failures, kill_a_worker
from tests.faults.commands import COMMANDS
from tests.faults.corruption import corrupt
from tests.faults.crafted_tickets import craft_tickets
from tests.faults.disk import FREE, is_right, save_on_full_disk
from tests.faults.kills import kill_and_repeat, undisturbed
from tests.faults.model_folders import open_folders
from tests.faults.starter import Starter
from tests.faults.targets import odd_targets

from benchmarks.harness import Row, figure, main, tell


def run(quick: bool = False) -> Row:
    tables, shown = {}, []

    def none(name: str, count: int, note: str = "") -> None:
        shown.append(figure(name, count, "==", 0, note))

    def tried(what: str, count: int, least: int, wrong: int, note: str = "") -> None:
        """Enough were tried, and none went wrong."""
        shown.append(figure(f"{what}, tried", count, ">=", 0 if quick else least))
        none(f"{what}, wrong", wrong, note)

    killed, disk = _killed(1 if quick else 20, FREE[:1] if quick else FREE)
    for row in killed:
        note = f"{row['killed']} while it ran, {row['finished_before']} just after"
        tried(f"kills of {row['command']}", row["kills"], 20, row["kills"] - row["identical"], note)
    refused = sum(row["exit"] != 0 for row in disk)
    none("full disk, wrong", sum(not is_right(row) for row in disk), f"{len(disk)} runs, {refused} refused")
    tables |= {"killed": killed, "full_disk": disk}

    with tempfile.TemporaryDirectory() as name:
        config, cases = tiny_search(Path(name)), list(product(FILES, WAYS))
        damaged = _told(damage_checkpoints, config, cases[:3] if quick else cases)
        swapped = _told(swap_data, config, 1 if quick else 10)
    tried("damaged checkpoints", damaged["tried"], 30, damaged["wrong"])
    tried("data swaps on resume", swapped["tried"], 10, swapped["wrong"])
    tables |= {"damaged_checkpoints": [damaged], "swapped_data": [swapped]}

    if not quick:
        worker, clusters = _told(kill_a_worker), _told(cluster_failures)
        note = f"{worker['done_before']} of {worker['problems']} problems were done"
        none("Dask worker killed, and other bytes", int(not worker["identical"]), note)
        tried("cluster failures", len(clusters), 6, sum(row["wrong"] for row in clusters))
        tables |= {"worker_killed": [worker], "cluster_failures": clusters}

    crafted, folders = _told(craft_tickets, 64 if quick else 560), _told(open_folders, 45 if quick else 260)
    both = (crafted, folders)
    of_generate = sum(text.startswith("generate") for text in folders["wrong"])
    tried("crafted tickets", crafted["crafted"], 500, len(crafted["wrong"]))
    tried("model folders", folders["folders"], 200, len(folders["wrong"]) - of_generate)
    tried("extremes of generate", folders["extremes"], 60, of_generate)
    none("tracebacks", sum(len(each["wrong"]) for each in both))
    none("code executions", sum(int(each["executed"]) for each in both))
    none("files read outside their folder", sum(len(each["files_read_outside"]) for each in both))
    none("files written beside a ticket", len(crafted["files_written"]))
    growth = max(each["memory_bytes"] - each["memory_before_bytes"] for each in both) / 1e6
    shown.append(figure("memory of refusing, above that of the imported program, MB", growth, "<=", 200))
    tables |= {"crafted_tickets": [crafted], "model_folders": [folders]}

    corrupted = _told(corrupt, 200 if quick else 10_000, all_kinds=not quick)
    note = f"{corrupted['tried']} tried, {corrupted['refused']} refused, {corrupted['identical']} identical"
    none("corrupted tickets: wrong network or crash", corrupted["wrong"] + corrupted["crashed"], note)
    shown.append(figure("corrupted tickets: memory, GB", corrupted["memory_bytes"] / 1e9, "<=", 1))
    odd = _told(odd_targets, quick=quick)
    outcomes = Counter(row["outcome"] for row in odd)
    note = f"{outcomes['built']} built and measured, {outcomes['refused']} refused"
    none("odd targets: wrong or crash", outcomes["wrong"] + outcomes["crashed"], note)
    attacked = _told(attack_certificates, 2000 if quick else 100_000)
    note = f"{sum(row['random'] + row['ascended'] for row in attacked)} inputs, {len(attacked)} tickets"
    none("attacked inputs above their certificate", sum(row["above"] for row in attacked), note)
    tables |= {"corrupted": [corrupted], "attacked": attacked}
    tables["odd_targets"] = [row for row in odd if row["outcome"] not in ("built", "refused")]
    return {**tables, "must_show": shown}


def _killed(kills: int, spaces: tuple[int, ...]) -> tuple[list[Row], list[Row]]:
    """Rows of the killed commands and of those on a full disk."""
    killed, disk = [], []
    with Starter() as starter, tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "run"
        for command in COMMANDS:
            tell(f"killing {command.name}")
            wanted, whole = undisturbed(starter, command, folder)
            killed.append(kill_and_repeat(starter, command, wanted, whole, kills, folder))
            disk += [save_on_full_disk(starter, command, wanted, free) for free in spaces]
    return killed, disk


def _told(work: Any, *arguments: Any, **options: Any) -> Any:
    tell(work.__name__.replace("_", " "))
    return work(*arguments, **options)


if __name__ == "__main__":
    main(__doc__, run)
