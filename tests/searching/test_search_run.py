"""Whole searches: baselines, two processes, what is measured, text."""

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from strongticket.data.text import load_tokens
from strongticket.errors import StrongTicketError
from strongticket.searching import PRESETS, SearchConfig, preset, register_method, search
from strongticket.searching.registry import METHODS, find_method
from strongticket.searching.tasks import evaluate, load_task
from strongticket.seeds import Normal, draw
from strongticket.ticket import Ticket


def same_masks(one, other):
    return one.masks.keys() == other.masks.keys() and all(
        np.array_equal(mask, other.masks[name]) for name, mask in one.masks.items()
    )


def valid_loss(config, ticket):
    return evaluate(ticket.network(), load_task(config))["loss"]


def test_a_search_and_its_file(tiny, tmp_path):
    steps = []
    config = tiny.changed(eval_every=3)
    result = search(config, out=tmp_path / "found.ticket", on_step=lambda done, loss: steps.append(done))
    assert steps == [1, 2, 3, 4, 5, 6]
    assert [step for step, _ in result.history] == [3, 6]
    assert result.history[-1][1] == result.loss
    loaded = Ticket.load(tmp_path / "found.ticket")
    assert loaded == result.ticket
    assert valid_loss(config, loaded) == result.loss  # to the last bit
    assert result.file_bytes == (tmp_path / "found.ticket").stat().st_size
    assert result.kept == sum(round(0.3 * mask.size) for mask in loaded.masks.values())
    assert result.dense_bytes["float32"] == 4 * result.parameters
    assert result.qk_scale == pytest.approx(8**0.25)
    assert loaded.metadata["search"]["kept"] == 0.3
    json.dumps(result.to_json(), allow_nan=False)


def test_bits_per_byte(tiny):
    result = search(tiny)
    assert result.bits_per_byte == pytest.approx(result.loss / np.log(2))  # one byte a character here
    pairs = search(tiny.changed(tokens="bpe", vocabulary=300))
    text = load_tokens(tiny.task.data, "bpe", 300, tiny.run.cache_folder)
    assert pairs.bits_per_byte == pytest.approx(pairs.loss / np.log(2) / text.bytes_per_token)


def test_searching_beats_chance_and_dense_beats_searching(tiny):
    long = tiny.changed(steps=40, lr=1e-2, std=0.1)
    searched, dense, chance = (
        search(long.changed(method=name)) for name in ("edge-popup", "dense", "random")
    )
    assert dense.loss < searched.loss - 0.2 < chance.loss - 0.4
    assert dense.ticket.masks == {}
    assert dense.qk_scale == 1.0
    assert valid_loss(long, dense.ticket) == dense.loss
    assert same_masks(chance.ticket, search(long.changed(method="random", steps=0)).ticket)


def test_equal_seeds_give_equal_tickets(tiny):
    assert same_masks(search(tiny).ticket, search(tiny).ticket)
    assert not same_masks(search(tiny).ticket, search(tiny.changed(seed=1)).ticket)


def test_the_callers_random_state_is_kept(tiny):
    random.seed(1), torch.manual_seed(1)
    expected = random.random(), torch.rand(1)
    random.seed(1), torch.manual_seed(1)
    search(tiny)
    assert (random.random(), torch.rand(1)) == expected


@pytest.mark.parametrize("law", ["signed", "hadamard", "uniform"])
@pytest.mark.parametrize("architecture", ["gpt2", "llama"])
def test_laws_and_architectures(tiny, tmp_path, law, architecture):
    config = tiny.changed(
        law=law, architecture=architecture, activation="silu", scope="global", inner=24, lr_end=0
    )
    result = search(config, out=tmp_path / "found.ticket")
    loaded = Ticket.load(tmp_path / "found.ticket")
    assert {law.name for law in loaded.laws.values()} == {law}
    assert valid_loss(config, loaded) == result.loss
    weights = sum(mask.size for mask in loaded.masks.values())
    assert result.kept == round(0.3 * weights)


@pytest.mark.parametrize("kept", [0.2, 0.7, 1.0])
@pytest.mark.parametrize("law", ["signed", "hadamard", "normal", "uniform"])
def test_a_calibrated_scale_holds_for_every_law_and_kept_fraction(tiny, law, kept):
    result = search(tiny.changed(law=law, kept=kept, qk_scale="calibrated", steps=0, std=0.1))
    assert result.logit_std == pytest.approx(0.7, rel=0.05)


def test_accumulation_is_the_same_search(tiny):
    whole, parts = search(tiny), search(tiny.changed(micro_batch=1))
    assert parts.loss == pytest.approx(whole.loss, abs=1e-3)


_PROCESS = """
import sys, numpy as np, torch
from dataclasses import replace
from strongticket.searching import preset, search
torch.set_num_threads(1)
folder = sys.argv[1]
tiny = preset("paper-laptop", data=folder + "/text.txt", cache=folder + "/cache", cpu=True, layers=1, heads=2, dim=16,
                    context=16, steps=6, batch=4, micro_batch=2, warmup=2)
result = search(tiny, out=folder + "/two.ticket")
rank = torch.distributed.get_rank()
np.savez(f"{folder}/rank{rank}.npz", loss=result.loss, **result.ticket.masks)
torch.distributed.destroy_process_group()
"""


@pytest.mark.slow
def test_two_processes_agree(tiny, tmp_path):
    """torchrun, gloo, CPU: both end with the same masks, those of one process up to the order of sums."""
    script = tmp_path / "search.py"
    script.write_text(_PROCESS)
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [*command, str(script), str(tmp_path)], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-3000:]
    first, second = (dict(np.load(tmp_path / f"rank{rank}.npz")) for rank in (0, 1))
    assert first.keys() == second.keys()
    assert all(np.array_equal(first[name], second[name]) for name in first)
    alone = search(tiny)
    assert float(first["loss"]) == pytest.approx(alone.loss, abs=1e-3)
    together = Ticket.load(tmp_path / "two.ticket")
    assert all(np.array_equal(first[name], mask) for name, mask in together.masks.items())


@pytest.mark.slow
def test_mixed_precision_is_measured_in_full(tiny):
    result = search(tiny.changed(precision="bf16"))
    assert valid_loss(tiny, result.ticket) == result.loss


def test_calibrated_scale_and_trained_parts(tiny):
    result = search(tiny.changed(qk_scale="calibrated", train=("norm", "embedding"), steps=2))
    assert result.logit_std == pytest.approx(0.7, rel=0.05)
    assert {"transformer.ln_f.weight", "transformer.wte.weight"} <= result.ticket.floats.keys()
    assert result.file_bytes > 4 * sum(tensor.size for tensor in result.ticket.floats.values())
    assert valid_loss(tiny, result.ticket) == result.loss


@pytest.mark.slow
def test_another_architecture(tiny, tmp_path):
    sizes = {"hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 1, "num_attention_heads": 4}
    config = {"model_type": "llama", "num_key_value_heads": 2, "tie_word_embeddings": True, **sizes}
    (tmp_path / "config.json").write_text(json.dumps(config))
    result = search(tiny.changed(model=str(tmp_path)))
    assert "model.layers.0.self_attn.q_proj.weight" in result.ticket.masks
    assert result.qk_scale == pytest.approx(4**0.25)
    assert valid_loss(tiny, result.ticket) == result.loss
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "bert"}))
    with pytest.raises(StrongTicketError, match="Search trains causal models"):
        search(tiny.changed(model=str(tmp_path)))
    with pytest.raises(StrongTicketError, match=r"has no config.json"):
        search(tiny.changed(model=str(tmp_path / "nowhere")))
    (tmp_path / "config.json").write_text("[]")
    with pytest.raises(StrongTicketError, match="expected a JSON object"):
        search(tiny.changed(model=str(tmp_path)))
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "gpt2", "n_positions": 8}))
    with pytest.raises(StrongTicketError, match="has 8 positions, fewer than context=16"):
        search(tiny.changed(model=str(tmp_path)))


def test_hopeless_requests_are_refused_before_the_work(tiny, tmp_path):
    never = lambda done, loss: pytest.fail("it began")  # noqa: E731
    for out, hint in (
        (tmp_path / "nowhere" / "a.ticket", "Create it first"),
        (tmp_path, "Name a file in it"),
    ):
        with pytest.raises(StrongTicketError, match=hint):
            search(tiny, out=out, on_step=never)
    Path(tiny.task.data).write_text("once upon a time there was one little dog. " * 4)
    with pytest.raises(StrongTicketError, match="has 9 sequences of 16 tokens, fewer than the 16"):
        search(tiny.changed(batch=16, micro_batch=16), on_step=never)


def test_any_seed_of_a_ticket_is_one_of_a_search(tiny):
    assert search(tiny.changed(seed=2**64 - 1, steps=1)).ticket.seed == 2**64 - 1


@pytest.mark.parametrize("tokens", ["characters", "bpe"])
def test_text_from_a_ticket(tiny, tmp_path, tokens):
    ticket = search(tiny.changed(tokens=tokens, vocabulary=300)).ticket
    ticket.save(tmp_path / "a.ticket")
    loaded = Ticket.load(tmp_path / "a.ticket")
    text = "".join(loaded.generate("2 times 3", tokens=40, seed=1))
    assert len(text) >= 30
    assert text == "".join(loaded.generate("2 times 3", tokens=40, seed=1))
    assert text != "".join(loaded.generate("2 times 3", tokens=40, seed=2))
    greedy = "".join(loaded.generate("2 times 3", tokens=10, temperature=0))
    assert greedy == "".join(loaded.generate("2 times 3", tokens=10, temperature=0, seed=5))
    with pytest.raises(TypeError, match="token"):  # the caller's typo, not the file's fault
        loaded.generate("2 times 3", token=5)
    with pytest.raises(StrongTicketError, match="prompt is empty"):
        next(loaded.generate(""))
    if tokens == "characters":
        with pytest.raises(StrongTicketError, match="character 'x' at 0"):
            next(loaded.generate("x"))


def test_presets_are_the_papers():
    for name in ("gpt2-mini", "gpt2", "gpt2-medium"):
        paper = PRESETS[name]
        training, source, model = paper.training, paper.source, paper.model
        assert (training.steps, training.warmup, training.batch, model.context) == (11350, 227, 512, 1024)
        assert (training.lr, training.lr_end, source.std, source.kept) == (1e-4, 1e-5, 0.02, 0.3)
        assert model.dim // model.heads == 64
        assert source.qk_scale == "paper"
    assert preset("laptop") == SearchConfig()
    assert preset("paper-laptop").source.qk_scale == "paper"


def test_settings_are_checked(tiny):
    bad = {
        "kept": (0, 1.5, float("nan"), "0.3"),
        "method": ("magic",),
        "scope": ("row",),
        "qk_scale": ("big", "2", -1, float("nan"), float("inf"), 0, True),
        "steps": (-1, 2.5),
        "lr_end": (-1, float("nan"), float("inf")),
        "train": ("norm", (1,)),
        "heads": (0, 3),
        "lr": (0.0, float("nan")),
        "context": (1,),
        "precision": ("int4",),
    }
    for name, values in bad.items():
        for value in values:
            with pytest.raises(StrongTicketError, match=name):
                tiny.changed(**{name: value})
    with pytest.raises(StrongTicketError, match="preset must be one of laptop"):
        preset("desktop")
    with pytest.raises(StrongTicketError, match="'stepz' is not a setting"):
        preset("laptop", stepz=3)
    with pytest.raises(StrongTicketError, match="batch=4 is not a multiple of micro_batch=3"):
        search(tiny.changed(micro_batch=3))


def test_importing_the_settings_loads_no_torch():
    code = "import sys, strongticket.searching.config; print('torch' in sys.modules, 'transformers' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]


def test_every_named_method_exists():
    assert all(callable(find_method(name)) for name in METHODS)


def test_the_documented_method_works(tiny, monkeypatch, tmp_path):
    """The example of docs/add-a-search-method.md, as a module of the user's, by path and by registered name."""
    document = (Path(__file__).parents[2] / "docs" / "add-a-search-method.md").read_text(encoding="utf-8")
    (tmp_path / "my_methods.py").write_text(document.split("```python")[1].split("```")[0])
    monkeypatch.syspath_prepend(tmp_path)
    ticket = search(tiny.changed(method="my_methods:magnitude", qk_scale=1.0)).ticket
    mask = ticket.masks["transformer.h.0.mlp.c_fc.weight"]
    weights = np.abs(
        draw(ticket.seed, "transformer.h.0.mlp.c_fc.weight", mask.shape, Normal(tiny.source.std))
    )
    assert mask.sum() == round(0.3 * mask.size)
    assert weights[mask].min() > weights[~mask].max()
    register_method("magnitude", find_method("my_methods:magnitude"))
    assert same_masks(search(tiny.changed(method="magnitude", qk_scale=1.0)).ticket, ticket)
    assert ticket.metadata["search"]["method"] == "my_methods:magnitude"


def test_a_method_that_cannot_be_imported_is_named(tiny):
    for path in ("nowhere:method", "strongticket.searching.methods.dense:method"):
        with pytest.raises(StrongTicketError, match=f"method '{path}' cannot be imported"):
            search(tiny.changed(method=path))
    with pytest.raises(StrongTicketError, match="cannot be the name of a new method"):
        register_method("dense", find_method("random"))
