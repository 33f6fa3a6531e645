"""Tickets crafted with right checksums, through the commands that read them: refused with a clear error, or read.

Every command runs in a process of its own kind (one child for all of them), for its memory. A seeded,
structure-aware fuzzer changes one entry of the index's JSON; what is known to be dangerous is listed by hand.
"""

from __future__ import annotations

import builtins
import contextlib
import io
import json
import os
import re
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from tests import crafted
from tests.faults.changes import STRANGE, changed
from tests.faults.memory import ROOT, in_child, peak_memory
from tests.faults.outside import Outside, make_outside

from strongticket.models.folder import TOKENIZER_FILES

EVIL = "\x1b]0;evil\x07\x1b[31m[link=http://evil]x[/link][/x]\u202e\x9b31m"
UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]")
SIZES: tuple[Any, ...] = (0, -1, True, 1 << 20, 1 << 31, 1 << 40, 1 << 63, 10**7, 1e18, "8", None, [8], EVIL)
OUTSIDE = "../outside"
_EXPORTED = (*TOKENIZER_FILES, "config.json", "model.safetensors", "README.md")
_PLACES = {
    "tokenizer_file": f"{OUTSIDE}/tokenizer.json",
    "vocab_file": f"{OUTSIDE}/vocab.json",
    "name_or_path": OUTSIDE,
}
Lines = list[Any]


def craft_tickets(count: int) -> dict[str, Any]:
    """Run `count` crafted tickets in a child process: how many ended how, what was wrong, its memory."""
    return in_child("crafted_tickets", count)


def with_index(data: bytes, change: Callable[[Lines], Lines | None]) -> bytes:
    """The file with a changed index and right digests: the checksums of its tensors fit the new recipe."""
    from strongticket.ticket import block_digest, container, tensor_checksum

    arrays = container.split(data)
    index = container.decompress(arrays["index"].tobytes(), "index", at_most=1 << 26)
    lines = [json.loads(line) for line in index.split(b"\n")]
    lines = change(lines) or lines
    weights = _weights(data)
    for line in lines[2:]:
        if isinstance(line, dict) and isinstance(line.get("name"), str) and line["name"] in weights:
            tensor = weights[line["name"]]
            recipe = json.dumps(lines[0]).encode()
            line["checksum"] = tensor_checksum(recipe, line["name"], tensor.shape, [block_digest(tensor)])
    text = b"\n".join(json.dumps(line).encode() for line in lines)
    arrays["index"] = np.frombuffer(container.compress(text), np.uint8)
    return crafted.join(arrays, container.FORMAT)


@cache
def _weights(data: bytes) -> dict[str, np.ndarray]:
    from strongticket.ticket import Ticket

    ticket = Ticket.from_bytes(data)
    return {name: ticket.weights(name) for name in ticket.shapes()}


def _settings(**values: Any) -> Callable[[Lines], None]:
    return lambda lines: lines[0]["settings"].update(values)


def _config(**values: Any) -> Callable[[Lines], None]:
    return lambda lines: lines[0]["settings"].get("config", lines[0]["settings"]).update(values)


def _extras(name: str, value: Any) -> Callable[[Lines], None]:
    return lambda lines: lines[1].update({name: value})


def _metadata(**values: Any) -> Callable[[Lines], None]:
    return lambda lines: lines[1]["metadata"].update(values)


def _dangerous() -> list[Callable[[Lines], Any]]:
    evil = {"tokenizer.json": "{}", "evil.py": "open('executed', 'w')"}
    return [
        lambda lines: None,
        lambda lines: lines[0].update(generator=True),
        lambda lines: lines[0].update(kind=EVIL),
        lambda lines: lines[0].update(kind=["relu"]),
        lambda lines: lines[0].update(seed=-1),
        lambda lines: lines[0].update(seed=1 << 64),
        lambda lines: lines[0].update(extra=1),
        lambda lines: lines[:1],
        lambda lines: [*lines, lines[-1]],
        lambda lines: lines[2].update(name=EVIL),
        lambda lines: lines[2].update(name="../../evil"),
        lambda lines: lines[2].update(shape=[1 << 32]),
        lambda lines: lines[2].update(shape=[1 << 16, 1 << 16], kept=0, lines="all"),
        lambda lines: lines[2].update(shape=[0, 1 << 62]),
        lambda lines: lines[2].update(shape=[1 << 62] * 32),
        lambda lines: lines[2].update(kept=1 << 62),
        lambda lines: lines[2].update(blocks=[1 << 62]),
        lambda lines: lines[2].update(blocks=[0] * 100_000),
        lambda lines: lines[2].update(transposed=1),
        *(
            _config(**{name: size})
            for name, size in product(("n_layer", "num_hidden_layers"), (99_999, 10**7, 1 << 40))
        ),
        _metadata(tokenizer=evil),
        _metadata(tokenizer={"../evil.json": "{}"}),
        _metadata(tokenizer={"kind": "named", "name": "/etc"}),
        *(
            _metadata(tokenizer={"kind": "named", "name": name})
            for name in (OUTSIDE, f"./{OUTSIDE}/tokenizer.json")
        ),
        *(_metadata(tokenizer={f"{OUTSIDE}/{file}": "{}"}) for file in ("tokenizer.json", "vocab.json")),
        _metadata(tokenizer={"tokenizer.json": "{}", "tokenizer_config.json": json.dumps(_PLACES)}),
        _settings(base=OUTSIDE),
        _config(
            _name_or_path=OUTSIDE, name_or_path=OUTSIDE, transformers_weights=f"{OUTSIDE}/model.safetensors"
        ),
        _metadata(tokenizer={"kind": "bpe", "tokenizer": "{}"}),
        _metadata(tokenizer={"kind": "characters", "vocabulary": ""}),
        _config(auto_map={"AutoConfig": "evil.Evil"}, attn_implementation="evil/kernel"),
    ]


CONFIG = (
    "n_layer",
    "n_embd",
    "n_head",
    "vocab_size",
    "num_hidden_layers",
    "model_type",
    "num_labels",
    "class",
)
SETTINGS = (
    "dims", "heads", "dim_in", "blocks", "bias", "config", "parts", "trained", "layers", "base", "by", "per_row",
    "tensors", "rebuilt",
)  # fmt: skip
METADATA = ("tokenizer", "context", "data", "errors", "tolerance", "states", "bits", "search")
CERTIFICATE = ("bound", "radius", "arithmetic", "floors", "errors", "terms", "network", "kind")


def _by_hand() -> list[Callable[[Lines], Any]]:
    certificates = [value for value in STRANGE if not (isinstance(value, str) and len(value) > 1000)]
    for entry, value in product(CERTIFICATE, (EVIL, [], {}, -1, True)):
        certificates.append({"bound": 1.0, "radius": 1.0} | {entry: value})
    strange = (None, EVIL, [EVIL], {EVIL: EVIL}, -1, 10**30, True)
    return [
        *(_extras("certificate", value) for value in certificates),
        *(_extras("metadata", value) for value in (None, [], "x", 1, {EVIL: EVIL})),
        *(_metadata(**{entry: value}) for entry, value in product(METADATA, strange)),
        *(_config(**{entry: size}) for entry, size in product(CONFIG, SIZES)),
        *(_settings(**{entry: size}) for entry, size in product(SETTINGS, SIZES)),
    ]


def _fuzzed(rng: np.random.Generator) -> Callable[[Lines], Lines]:
    def change(lines: Lines) -> Lines:
        at = int(rng.integers(min(len(lines), 4)))
        return [*lines[:at], changed(lines[at], rng), *lines[at + 1 :]]

    return change


def run_command(arguments: list[str]) -> tuple[str, str]:
    """(refused, done or crashed; what it printed) of a command in this process."""
    from strongticket.cli import main

    printed = io.StringIO()
    before = sys.argv
    sys.argv = ["strongticket", *arguments]
    try:
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            main()
        code: object = 0
    except SystemExit as left:
        code = left.code
    except BaseException:
        return "crashed", traceback.format_exc()
    finally:
        sys.argv = before
    text = printed.getvalue()
    if UNSAFE.search(text):
        return "crashed", f"control characters reached the terminal: {text!r:.200}"
    if code not in (0, None) and "error:" not in text and "Usage" not in text:
        return "crashed", f"exit {code} without an error: {text:.200}"
    return ("done" if code in (0, None) else "refused"), text


def main(count: int) -> dict[str, Any]:
    from tests.faults.corruption import _tickets

    builtins.input = lambda *_: "y"  # type: ignore[assignment]
    rng = np.random.default_rng(0)
    *tickets, searched = _tickets(True)
    words = {"kind": "characters", "vocabulary": " abcdefghijklmnopqrs"}
    searched = replace(searched, metadata={"tokenizer": words, "context": 16})
    samples = [ticket.to_bytes() for ticket in (*tickets, searched)]
    # What is dangerous is tried on the tickets that make models and tokenizers, the rest on all in turn.
    cases = [(sample, change, True) for sample in samples[-2:] for change in _dangerous()]
    changes = [*_by_hand(), *(_fuzzed(rng) for _ in range(count))]
    for number, change in enumerate(changes):
        sample = samples[(-1, -2, number % len(samples))[number % 3]]
        cases.append((sample, change, number % 4 == 0))
    found: Counter[str] = Counter()
    wrong: list[str] = []
    with tempfile.TemporaryDirectory() as name:
        here, outside = make_outside(Path(name))
        os.chdir(here)
        watch = Outside(outside)
        start = peak_memory()
        path = Path("x.ticket")
        for number, (sample, change, generates) in enumerate(cases[:count]):
            try:
                path.write_bytes(with_index(sample, change))
            except (AttributeError, TypeError, KeyError, ValueError, OverflowError):
                path.write_bytes(with_index(sample, _fuzzed(rng)))
            commands = [["show", "x.ticket"], ["verify", "x.ticket", "--json"]]
            if generates:
                commands.append(["generate", "x.ticket", "--prompt", "a", "--tokens", "2"])
                commands.append(["export", "x.ticket", "--out", "../exported"])
            for arguments in commands:
                outcome, said = run_command(arguments)
                found[outcome] += 1
                if outcome == "crashed":
                    wrong.append(f"{number} {arguments[0]}: {said[-600:]}")
        written = sorted(each.name for each in here.rglob("*") if each.name != "x.ticket")
        written += [each.name for each in here.parent.glob("exported/*") if each.name not in _EXPORTED]
        os.chdir(ROOT)
        opened = watch.opened()
    return {
        "crafted": count,
        "commands": sum(found.values()),
        **found,
        "wrong": wrong,
        "files_written": written,
        "files_read_outside": opened,
        "executed": any("executed" in each for each in written),
        "memory_bytes": peak_memory(),
        "memory_before_bytes": start,
    }


if __name__ == "__main__":
    json.dump(main(int(sys.argv[1])), sys.stdout)
