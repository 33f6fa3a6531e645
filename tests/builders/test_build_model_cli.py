"""plan, build, show, verify, compare and generate on a model folder, and the mistakes people make."""

import json
import os
import re
from pathlib import Path

import pytest
import torch
from tests.cli.running import answer, refusal, run
from tests.models.small_models import LLAMA, hf_model, transformers

from strongticket.builders import build_file
from strongticket.ticket import Ticket

STORIES = Path(
    os.environ.get("STRONGTICKET_STORIES", Path(__file__).parents[3] / "shared/models/stories260K")
)


@pytest.fixture(scope="module")
def ticket(learned):
    options = ("--tolerance", 1e-3, "--workers", 1)
    result = answer("build", learned / "target", "--out", learned / "a.ticket", *options)
    assert result["whole"]
    return learned / "a.ticket"


def test_plan_reports_the_costs(learned, ticket):
    planned = answer("plan", learned / "target", "--tolerance", 1e-3)
    assert planned["whole"]
    built = answer("show", ticket)
    assert planned["numbers"] == built["numbers"]
    assert planned["error"] == pytest.approx(built["relative_error"], rel=0.1)
    assert planned["file_bytes"] == pytest.approx(ticket.stat().st_size, rel=0.02)
    partial = answer("plan", learned / "target", "--only", "*.layers.1.*", "--only", "*norm*")
    assert not partial["whole"]
    assert "bits per weight" in run("plan", learned / "target", "--bits", 20).stdout


def test_show_says_what_it_is(learned, ticket):
    result = answer("show", ticket)
    assert result["trained"] == 0
    assert result["class"] == "LlamaForCausalLM"
    numbers = transformers.LlamaForCausalLM.from_pretrained(learned / "target").num_parameters()
    assert result["numbers"] == numbers
    network = ticket.stat().st_size - Ticket.load(ticket).metadata["tokenizer_bytes"]
    assert result["bits_per_weight"] == pytest.approx(8 * network / numbers)
    shown = run("show", ticket).stdout
    for text in ("no trained number is stored", "bits above the limit", "model.layers.1.mlp.up_proj.weight"):
        assert text in shown
    assert run("verify", ticket).exit_code == 0
    assert "is a file" in refusal("compare", ticket, learned / "text.txt")


def test_compare_measures_both(learned, ticket):
    result = answer("compare", ticket, learned / "target", "--sequences", 8, "--prompt", "baa bab bac bad")
    assert abs(result["source_loss"] / result["target_loss"] - 1) < 0.01
    assert result["agreement"] > 0.9
    assert len(result["layers"]) == LLAMA["num_hidden_layers"]
    assert result["relative_error"] == pytest.approx(result["stated_error"], rel=0.01)
    (continued,) = result["answers"]
    assert continued["target"] == continued["ticket"] != ""
    text = answer("compare", ticket, learned / "target", "--data", learned / "text.txt")
    assert text["target_loss"] != result["target_loss"]
    shown = run("compare", ticket, learned / "target", "--sequences", 8, "--prompt", "baa").stdout
    for text in ("perplexity", "after layer", "int4", "certified to", "ticket continues", "model continues"):
        assert text in shown


def test_compare_fails_if_the_weights_are_not_as_stated(learned, ticket):
    model = transformers.LlamaForCausalLM.from_pretrained(learned / "target")
    with torch.no_grad():
        model.model.layers[0].mlp.up_proj.weight.add_(1.0)
    model.save_pretrained(learned / "changed")
    done = run("compare", ticket, learned / "changed", "--sequences", 2, "--json")
    assert done.exit_code == 1
    assert "the file states a relative error of" in done.stderr
    result = json.loads(done.stdout)
    assert (result["ok"], len(result["problems"])) == (False, 1)


@pytest.mark.parametrize("attention", ["linear", "products"])
def test_compare_refuses_another_model(learned, attention):
    """Of another class, width, depth or number of heads: no traceback, whatever the attention is made of."""
    out = learned / f"{attention}.ticket"
    build_file(hf_model("llama-tied"), out, attention=attention, workers=1)
    config = transformers.LlamaConfig(**LLAMA, tie_word_embeddings=True)
    for name, change in (
        ("wide", {"intermediate_size": 2 * config.intermediate_size}),
        ("deep", {"num_hidden_layers": config.num_hidden_layers + 1}),
        ("flat", {"num_hidden_layers": config.num_hidden_layers - 1}),
        ("heads", {"num_key_value_heads": config.num_attention_heads}),
    ):
        other = transformers.LlamaConfig(**LLAMA | change, tie_word_embeddings=True)
        transformers.LlamaForCausalLM(other).save_pretrained(learned / name)
        assert re.search("tensor|parameter", refusal("compare", out, learned / name))
    transformers.LlamaModel(config).save_pretrained(learned / "headless")
    said = refusal("compare", out, learned / "headless")
    assert "is a LlamaModel, the ticket belongs to a LlamaForCausalLM" in said


def test_generate_goes_on(learned, ticket):
    options = ("--prompt", "baa bab bac bad", "--tokens", 5)
    result = answer("generate", ticket, *options, "--temperature", 0)
    model = transformers.LlamaForCausalLM.from_pretrained(learned / "target")
    words = transformers.AutoTokenizer.from_pretrained(learned / "target")
    ids = words("baa bab bac bad", return_tensors="pt").input_ids
    wanted = words.decode(model.generate(ids, do_sample=False, max_new_tokens=5)[0], skip_special_tokens=True)
    assert "baa bab bac bad" + result["text"] == wanted
    shown = run("generate", ticket, *options, "--temperature", 0).stdout
    assert shown == f"baa bab bac bad{result['text']}\n"
    warm = (*options, "--temperature", 1.5, "--seed")
    first, again, other = (answer("generate", ticket, *warm, seed)["text"] for seed in (1, 1, 2))
    assert first == again != other


def test_verify_reads_as_large_a_ticket_as_build_writes(ticket, monkeypatch):
    monkeypatch.setattr("strongticket.limits.WEIGHTS", 1000)
    monkeypatch.setattr("strongticket.limits.WEIGHTS_PER_BYTE", 0)
    assert "1000" in refusal("verify", ticket)


def test_partial_tickets(learned):
    options = ("--only", "*.mlp.*", "--workers", 1)
    result = answer("build", learned / "target", "--out", learned / "part.ticket", *options)
    assert not result["whole"]
    assert result["base"] in run("show", learned / "part.ticket").stdout
    assert "partial" in refusal("generate", learned / "part.ticket", "--prompt", "baa")
    base = ("--base", learned / "target", "--temperature", 0)
    checked = answer("compare", learned / "part.ticket", base[1], "--sequences", 2)
    assert checked["relative_error"] == pytest.approx(checked["stated_error"], rel=0.01)
    assert answer("generate", learned / "part.ticket", "--prompt", "baa", "--tokens", 2, *base)["text"]


def test_calibrated_tickets(learned):
    """The ticket says so, and compares and verifies like any other."""
    target, text = learned / "target", ("--calibrate", learned / "text.txt")
    calibrated = answer("build", target, "--out", learned / "one.ticket", "--bits", 14, *text, "--workers", 1)
    assert calibrated["calibrated_on"] == "text.txt"
    assert "text.txt" in run("show", learned / "one.ticket").stdout
    assert run("verify", learned / "one.ticket").exit_code == 0
    assert run("compare", learned / "one.ticket", target, "--sequences", 2).exit_code == 0
    out = learned / "no.ticket"
    assert "cannot read" in refusal("build", target, "--out", out, "--calibrate", learned / "no.txt")


def test_subset_sums(learned):
    target, out = learned / "target", learned / "subset.ticket"
    options = ("--tolerance", 0.05, "--workers", 1)
    built = answer("build", target, "--out", out, "--by", "subset", "--per-row", 16, *options)
    assert built["weights"] == sum(mask.size for mask in Ticket.load(out).masks.values()) > 0
    assert "by subset sums" in run("show", out).stdout
    assert answer("compare", out, target, "--sequences", 2)["relative_error"] < 0.1
    answer("build", target, "--out", out, "--attention", "products", *options)
    assert "W_QK" in run("show", out).stdout


def test_mistakes(learned, ticket, monkeypatch):
    """Of the command line; those of ModelOptions are in test_build_model.py."""
    monkeypatch.chdir(learned)
    Path("short.txt").write_text("baa bab bac bad")
    build = ("build", "target", "--out", "no.ticket")
    assert "--width does not apply" in refusal(*build, "--width", 64)
    for loss in ("much", "5", "nan"):
        assert "expected a growth such as +1%" in refusal(*build, "--loss", loss)
    assert "workers=0" in refusal(*build, "--workers", 0)
    assert "no such folder" in refusal("build", learned / "nothing", "--out", "no.ticket")
    assert "no such folder" in refusal("plan", learned / "nothing")
    assert "give a TARGET" in refusal("plan")
    assert "--epsilon does not apply" in refusal("plan", "target", "--epsilon", 0.1)
    assert "--heads does not apply" in refusal("plan", "target", "--heads", 2)
    assert "tolerance=2.0" in refusal("plan", "target", "--tolerance", 2)
    for option in ("--states", "--only"):
        said = refusal("plan", "--epsilon", 0.1, "--dim", 4, option, 4)
        assert f"{option} does not apply" in said
    assert "not a ticket" in refusal("compare", "text.txt", "target")
    compare = ("compare", "a.ticket", "target")
    assert "sequences=0" in refusal(*compare, "--sequences", 0)
    assert "Give a longer text" in refusal(*compare, "--data", "short.txt")
    assert "epsilon does not apply" in refusal(*compare, "--epsilon", 0.1)
    generate = ("generate", "a.ticket", "--prompt")
    assert "tokenizer does not apply" in refusal(*generate, "a", "--tokenizer", "target")
    assert "prompt has 0 tokens" in refusal(*generate, "")
    assert "prompt has 32 tokens" in refusal(*generate, "baa " * 32)
    assert not Path("no.ticket").exists()


@pytest.mark.skipif(not STORIES.is_dir(), reason="no stories260K: set STRONGTICKET_STORIES to its learned")
def test_a_real_model_still_tells_the_story(tmp_path):
    options = ("--tolerance", 5e-3, "--workers", 1)
    answer("build", STORIES, "--out", tmp_path / "s.ticket", *options)
    prompt = ("--prompt", "Once upon a time", "--tokens", 60, "--temperature", 0)
    result = answer("generate", tmp_path / "s.ticket", *prompt)
    assert result["text"].startswith(
        ", there was a little girl named Lily. She loved to play outside in the park."
    )


def test_a_ticket_keeps_to_the_loss_asked_for(learned):
    target, out, data = learned / "target", learned / "loss.ticket", ("--data", learned / "text.txt")
    answer("build", target, "--out", out, "--loss", "+20%", *data, "--workers", 1)
    found = answer("compare", out, target, "--data", learned / "unseen.txt")
    assert 1.05 < found["source_loss"] / found["target_loss"] < 1.25
    assert "% on held-out text of text.txt" in run("show", out).stdout
