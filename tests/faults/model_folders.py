# ruff: noqa: E501
"""Model folders and `generate` extremes, through the public functions and the command: refused clearly, or done.

Run in a child process, for its memory. `input` answers y to whoever would ask whether to run code.
"""

from __future__ import annotations

import builtins
import json
import sys
import tempfile
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from tests.faults.changes import changed
from tests.faults.cluster import small_model
from tests.faults.crafted_tickets import run_command
from tests.faults.memory import in_child, peak_memory
from tests.faults.outside import LINK, Outside, make_outside, write_files

from strongticket.errors import StrongTicketError

ODD: tuple[Any, ...]
ODD = None, True, -1, 0, 1.5, "x", [], {}, [1], 10**5, 10**7, 1 << 31, 1 << 40, 10**30, "\x1b[31m[/x]"
ENTRIES = (
    "n_layer", "n_embd", "n_head", "vocab_size", "n_positions", "architectures", "model_type",
    "activation_function", "layer_norm_epsilon", "initializer_range", "id2label", "num_labels",
    "tie_word_embeddings", "quantization_config",
)  # fmt: skip
Files = dict[str, bytes]
Changes = dict[str, Any]  # name of a file -> its new bytes; None removes it
OUTSIDE = "../../outside"  # seen from the folder of a model
_ADAPTER = {"base_model_name_or_path": OUTSIDE, "peft_type": "LORA"}


def open_folders(count: int) -> dict[str, Any]:
    """Load `count` odd model folders in a child process: how many ended how, and its memory."""
    return in_child("model_folders", count)


def _by_hand(sound: Files) -> list[Changes]:
    import torch
    from safetensors.torch import load, save

    config, weights = json.loads(sound["config.json"]), sound["model.safetensors"]
    tensors, bias = load(weights), "transformer.ln_f.bias"
    evil = {"evil.py": b"open('executed', 'w')\nclass Evil: pass\n"}
    maps = dict.fromkeys(("AutoConfig", "AutoModel", "AutoModelForCausalLM", "AutoTokenizer"), "evil.Evil")

    def entry(**values: Any) -> Changes:
        return {"config.json": json.dumps(config | values).encode()}

    def of_tensors(changed: dict[str, Any]) -> Changes:
        return {"model.safetensors": save(changed, {"format": "pt"})}

    def index(value: Any) -> Changes:
        return {"model.safetensors": None, "model.safetensors.index.json": json.dumps(value).encode()}

    def link(name: str, target: str) -> Changes:
        return {name: LINK + f"{OUTSIDE}/{target}".encode()}

    return [
        evil | entry(auto_map=maps),
        evil | entry(model_type="evil"),
        entry(attn_implementation="evil/kernel"),
        entry(attribute_map={"run_by": "_attn_implementation"}, run_by="evil/kernel"),
        entry(depths=[10**9]),
        entry(parts=[{"num_layers": 10**9}]),
        {"pytorch_model.bin": weights, "model.safetensors": None},
        index({"weight_map": {"x": "../outside.safetensors"}}),
        index({"weight_map": {"x": "/etc/passwd"}}),
        index({"weight_map": {"x": "../../outside/model.safetensors"}}),
        entry(_name_or_path=OUTSIDE),
        entry(transformers_weights=f"{OUTSIDE}/model.safetensors"),
        entry(tokenizer_file=f"{OUTSIDE}/tokenizer.json"),
        {"adapter_config.json": json.dumps(_ADAPTER).encode()},
        *(link(name, name) for name in ("config.json", "model.safetensors", "tokenizer.json")),
        link("tokenizer_config.json", "config.json"),
        index({"weight_map": {"x": "a.safetensors"}}) | link("a.safetensors", "model.safetensors"),
        index({"weight_map": []}),
        index([]),
        *({"model.safetensors": data} for data in (weights[:100], b"")),
        *({"config.json": data} for data in (b"", b"[" * 100_000, b"\xff", None)),
        of_tensors({name: tensor for name, tensor in tensors.items() if name != bias}),
        of_tensors(tensors | {"odd": torch.zeros(3)}),
        of_tensors(tensors | {bias: torch.zeros(3)}),
        of_tensors(tensors | {bias: torch.full((16,), float("nan"))}),
        of_tensors({}),
        *(entry(**{name: value}) for name in ENTRIES for value in ODD),
    ]


GENERATE: tuple[tuple[str, ...], ...] = (
    *(("--temperature", value) for value in ("0", "1e-45", "1e-300", "1e-10", "1e10", "1e38", "1e300", "inf", "nan", "-1", "-0.0")),
    *(("--tokens", value) for value in ("0", "-1", "1", "9", "17", "40", "1e3", "x")),
    *(("--seed", value) for value in ("-1", "18446744073709551615", "18446744073709551616", "9223372036854775808", "7x")),
    *(("--prompt", value) for value in ("", " ", "a" * 15, "a" * 16, "a" * 17, "a" * 500, "\ud800", "\udcff", "é", "\U0001f600")),
    *(("--prompt", value) for value in ("\x1b[31m", "\n", "\t", "[/x]", "[link=x]", "--", "日本語", "\u202e", "a\u0301", "<s>")),
    *(("--tokenizer", value) for value in ("", "/nonexistent", "/etc", ".", "x.ticket", "\ud800", "..")),
    *(("--base", value) for value in ("", "/nonexistent", "x.ticket", ".", "no/such/model")),
    *(("--temperature", a, "--tokens", b) for a in ("1e-45", "1e38") for b in ("1", "30")),
)  # fmt: skip


def main(count: int) -> dict[str, Any]:
    from tests.faults.corruption import _tickets

    from strongticket.models import OpenedModel

    builtins.input = lambda *_: "y"  # type: ignore[assignment]
    rng = np.random.default_rng(0)
    found: Counter[str] = Counter()
    wrong: list[str] = []
    with tempfile.TemporaryDirectory() as name:
        root, outside = make_outside(Path(name))
        small_model().save_pretrained(root / "sound")
        sound = {path.name: path.read_bytes() for path in (root / "sound").iterdir()}
        OpenedModel(str(root / "sound")).load()
        by_hand = _by_hand(sound)
        (root / "outside.safetensors").write_bytes(sound["model.safetensors"])
        watch = Outside(outside)
        start = peak_memory()
        for number in range(count):
            if number < len(by_hand):
                changes = by_hand[number]
            else:
                odd = changed(json.loads(sound["config.json"]), rng)
                changes = {"config.json": json.dumps(odd).encode()}
            files = {name: data for name, data in (sound | changes).items() if data is not None}
            folder = root / f"model{number}"
            folder.mkdir()
            write_files(folder, files)
            try:
                opened = OpenedModel(str(folder))
                opened.folder.tokenizer_files()
                opened.load()
                found["loaded"] += 1
            except StrongTicketError:
                found["refused"] += 1
            except BaseException as error:
                found["crashed"] += 1
                wrong.append(f"folder {number}: {type(error).__name__}: {error!s:.300}")
        memory = peak_memory()
        ticket = root / "x.ticket"
        words = {"kind": "characters", "vocabulary": " abcdefghijklmnopqrs"}
        replace(_tickets(True)[-1], metadata={"tokenizer": words, "context": 16}).save(ticket)
        for options in GENERATE:
            prompt = () if options[0] == "--prompt" else ("--prompt", "a")
            short = () if "--tokens" in options else ("--tokens", "4")
            outcome, said = run_command(["generate", str(ticket), *prompt, *short, *options])
            found[f"generate {outcome}"] += 1
            if outcome == "crashed":
                wrong.append(f"generate {options!r}: {said[-600:]}")
        opened = watch.opened()
        executed = any(path.name == "executed" for path in root.rglob("*")) or Path("executed").exists()
    return {
        "folders": count,
        "extremes": len(GENERATE),
        **found,
        "wrong": wrong,
        "executed": executed,
        "files_read_outside": opened,
        "memory_bytes": memory,
        "memory_before_bytes": start,
    }


if __name__ == "__main__":
    json.dump(main(int(sys.argv[1])), sys.stdout)
