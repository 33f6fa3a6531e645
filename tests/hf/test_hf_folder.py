"""Tickets that transformers loads with its own from_pretrained, and what is refused."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import safetensors.torch
import torch
import transformers
from huggingface_hub import ModelCard

import strongticket.hf
from strongticket.builders import build_network
from strongticket.errors import StrongTicketError, TicketError
from strongticket.hf.card import made_by
from strongticket.models import new_model
from strongticket.nets import ReluNetwork
from strongticket.searching import attach, preset, to_ticket
from strongticket.ticket import Ticket

TOKENS = torch.arange(12)[None]


def test_two_lines_give_the_same_logits_to_the_last_bit(ticket, folder):
    model = transformers.AutoModelForCausalLM.from_pretrained(folder)
    assert type(model) is transformers.GPT2LMHeadModel
    assert torch.equal(model(TOKENS).logits, ticket.network()(TOKENS).logits)
    assert not hasattr(model, "hf_quantizer")
    assert all(parameter.requires_grad for parameter in model.parameters())  # it can be trained further
    assert model.lm_head.weight is model.transformer.wte.weight


def test_in_a_fresh_process_without_network_or_warnings(folder):
    program = (
        "import strongticket.hf; from transformers import AutoModelForCausalLM;"
        f"print(type(AutoModelForCausalLM.from_pretrained({str(folder)!r})).__name__)"
    )
    quiet = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_VERBOSITY": "warning", "HF_HUB_DISABLE_PROGRESS_BARS": "1"}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, env=os.environ | quiet
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "GPT2LMHeadModel\n", "")


@pytest.mark.parametrize("package", ["transformers", "huggingface_hub"])
def test_what_is_not_installed_is_said(package):
    program = f"import sys; sys.modules[{package!r}] = None; import strongticket.hf"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert f'{package} is not installed. Run: pip install "strongticket[huggingface]"' in done.stderr


def test_the_bare_model_and_other_heads(ticket, folder):
    bare = transformers.AutoModel.from_pretrained(folder)
    expected = ticket.network().transformer(TOKENS).last_hidden_state
    assert torch.equal(bare(TOKENS).last_hidden_state, expected)
    with pytest.raises(TicketError, match="has no weights for a GPT2ForSequenceClassification"):
        transformers.AutoModelForSequenceClassification.from_pretrained(folder)


@pytest.mark.parametrize("family", ["llama", "bert"])
def test_what_no_file_stores_is_right_too(family, tmp_path):
    """Rotary frequencies and position numbers are neither in a ticket nor in a checkpoint."""
    sizes = dict(
        vocab_size=20, hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=2
    )
    more = dict(num_key_value_heads=1, tie_word_embeddings=True) if family == "llama" else {}
    model = new_model({"model_type": family} | sizes | more)
    found = to_ticket(model, attach(model, kept=0.5))
    found.save_pretrained(tmp_path)
    auto = {"llama": transformers.AutoModelForCausalLM, "bert": transformers.AutoModelForMaskedLM}[family]
    loaded = auto.from_pretrained(tmp_path)
    assert torch.equal(loaded(TOKENS).logits, found.network()(TOKENS).logits)
    half = auto.from_pretrained(tmp_path, dtype=torch.bfloat16)
    assert {parameter.dtype for parameter in half.parameters()} == {torch.bfloat16}
    torch.testing.assert_close(half(TOKENS).logits.float(), loaded(TOKENS).logits, rtol=0.1, atol=0.05)
    if family == "bert":  # whose masked language model has no pooler
        with pytest.raises(TicketError, match=r"pooler.* add_pooling_layer=False"):
            transformers.AutoModel.from_pretrained(tmp_path)
        bare = transformers.AutoModel.from_pretrained(tmp_path, add_pooling_layer=False)
        assert torch.equal(bare(TOKENS).last_hidden_state, found.network().bert(TOKENS).last_hidden_state)


def test_the_folder_is_hardly_larger_than_the_ticket(ticket, folder):
    assert (folder / "model.safetensors").stat().st_size <= 1.01 * len(ticket.to_bytes()) + 128
    assert json.loads((folder / "config.json").read_text())["architectures"] == ["GPT2LMHeadModel"]


def test_the_tokenizer_comes_along(ticket, folder):
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    text = "once upon a time"
    ids = tokenizer(text).input_ids
    vocabulary = ticket.metadata["tokenizer"]["vocabulary"]
    assert ids == [vocabulary.index(character) for character in text]
    assert tokenizer.decode(ids) == text


def test_the_ticket_comes_back(ticket, folder, tmp_path):
    assert Ticket.from_pretrained(folder) == ticket
    with pytest.raises(StrongTicketError, match="no such folder"):
        Ticket.from_pretrained(tmp_path / "nothing")


def test_a_pipeline_and_saving_the_merged_model(ticket, folder, tmp_path):
    pipe = transformers.pipeline("text-generation", model=str(folder))
    text = pipe("once", max_new_tokens=4, do_sample=False)[0]["generated_text"]
    assert text.startswith("once")
    assert len(text) == 8
    pipe.model.save_pretrained(tmp_path)
    again = transformers.AutoModelForCausalLM.from_pretrained(tmp_path)
    assert torch.equal(again(TOKENS).logits, ticket.network()(TOKENS).logits)


def test_exported_models_need_no_strongticket(ticket, tmp_path):
    strongticket.hf.export(ticket, tmp_path / "out")
    program = (
        "import sys, torch; from transformers import AutoModelForCausalLM as A;"
        f"m = A.from_pretrained({str(tmp_path / 'out')!r}); assert 'strongticket' not in sys.modules;"
        "print(float(m(torch.arange(12)[None]).logits.double().sum()))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert float(done.stdout) == float(ticket.network()(TOKENS).logits.double().sum())
    half = strongticket.hf.export(ticket, tmp_path / "half", dtype="bfloat16")
    assert transformers.AutoModelForCausalLM.from_pretrained(half).dtype == torch.bfloat16
    assert {"tokenizer.json", "generation_config.json"} <= {path.name for path in half.iterdir()}
    card = (half / "README.md").read_text()
    assert "export F.ticket --dtype bfloat16 --out FOLDER\n" in card
    assert "strongticket.hf" not in card
    with pytest.raises(StrongTicketError, match="expected float32, float16 or bfloat16"):
        strongticket.hf.export(ticket, tmp_path / "no", dtype="int3")


def test_the_card_says_what_it_is(ticket, folder):
    card = (folder / "README.md").read_text()
    assert "strong-lottery-ticket" in card
    assert f"{sum(mask.size for mask in ticket.masks.values()):,}" in card
    assert "GPT2LMHeadModel.from_pretrained" in card
    assert "strongticket search " in card
    assert "--method edge-popup " in card


def test_the_card_says_what_it_was_made_from(ticket, tmp_path):
    (tmp_path / "base").mkdir()
    (tmp_path / "base" / "README.md").write_text("---\ntags:\n- x\nlicense: apache-2.0\n---\nlicense: none\n")
    measured = {"target_loss": 1.25, "source_loss": 1.5, "divergence": None}
    info = strongticket.hf.CardInfo(str(tmp_path / "base"), comparison=measured)
    replace(ticket, certificate={"bound": 0.125}).save_pretrained(tmp_path / "out", card_info=info)
    card = (tmp_path / "out" / "README.md").read_text()
    for line in ("license: apache-2.0", "| loss of the original | 1.25 |", "| loss of this ticket | 1.5 |"):
        assert f"{line}\n" in card
    assert "at most 0.125" in card
    assert "divergence" not in card


@pytest.mark.parametrize("exists", [True, False])
def test_the_card_names_a_local_model_by_its_last_part(ticket, tmp_path, exists):
    base = tmp_path / "base"
    if exists:
        base.mkdir()
    ticket.save_pretrained(tmp_path / "out", card_info=strongticket.hf.CardInfo(str(base)))
    card = ModelCard.load(tmp_path / "out" / "README.md")
    assert card.data.base_model is None
    assert "| made from | a local model, base |" in card.text
    assert str(base) not in card.text


def test_the_card_names_a_model_of_the_hub(ticket, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    # Of nothing that the ticket was made from.
    Path("README.md").write_text("---\nlicense: apache-2.0\n---\n")
    for name in ("", "someone/model"):
        ticket.save_pretrained("out", card_info=strongticket.hf.CardInfo(name))
        card = ModelCard.load(Path("out/README.md"))
        assert (card.data.base_model, card.data.license) == (name or None, None)
        assert ("| made from | someone/model |" in card.text) == bool(name)


@pytest.mark.parametrize("text", ["", "---\n- a list\n---\n", "---\n: {\n---\n", "---\nlicense: [a]\n---\n"])
def test_a_readme_without_a_licence_is_no_error(ticket, tmp_path, text):
    (tmp_path / "README.md").write_text(text)
    ticket.save_pretrained(tmp_path / "out", card_info=strongticket.hf.CardInfo(str(tmp_path)))
    assert ModelCard.load(tmp_path / "out" / "README.md").data.license is None


def test_what_hugging_face_cannot_load_is_refused(tmp_path):
    relu = build_network(ReluNetwork([2, 2]), per_row=4)
    with pytest.raises(StrongTicketError, match="not a transformers model"):
        relu.save_pretrained(tmp_path / "relu")
    assert not (tmp_path / "relu").exists()


def test_a_config_of_another_network_is_refused(folder, tmp_path):
    changed = shutil.copytree(folder, tmp_path / "changed")
    config = json.loads((changed / "config.json").read_text())
    assert config["activation_function"] == "relu"
    for change in ({"resid_pdrop": 0.3}, {"pad_token_id": 1}):
        (changed / "config.json").write_text(json.dumps(config | change))
        transformers.AutoModelForCausalLM.from_pretrained(changed)
    (changed / "config.json").write_text(json.dumps(config | {"activation_function": "silu"}))
    with pytest.raises(TicketError, match=r"activation_function = 'silu', the ticket's network has 'relu'"):
        transformers.AutoModelForCausalLM.from_pretrained(changed)


def test_a_folder_of_another_model_is_not_a_ticket(ticket, folder, tmp_path):
    strongticket.hf.export(ticket, tmp_path)
    with pytest.raises(TicketError, match="but not a ticket"):
        Ticket.from_pretrained(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    config["quantization_config"] = {"quant_method": "strongticket"}
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(TicketError, match="but not a ticket"):
        transformers.AutoModelForCausalLM.from_pretrained(tmp_path)
    odd = {"ticket": torch.zeros(8, dtype=torch.bfloat16)}
    safetensors.torch.save_file(odd, tmp_path / "model.safetensors")
    with pytest.raises(TicketError, match="but not a ticket"):
        Ticket.from_pretrained(tmp_path)
    data = bytearray((folder / "model.safetensors").read_bytes())
    data[-40] ^= 1
    (tmp_path / "model.safetensors").write_bytes(bytes(data))
    with pytest.raises(TicketError, match="damaged"):
        transformers.AutoModelForCausalLM.from_pretrained(tmp_path)


@pytest.mark.parametrize(
    ("changes", "options"), [({}, ""), ({"steps": 2400}, "--steps 2400 "), ({"lr": 3e-3}, "--lr 0.003 ")]
)
def test_the_card_names_the_settings_that_are_not_the_default(changes, options):
    settings = preset("laptop", **changes).settings()
    ticket = Ticket(0, "search", {}, {}, {}, {}, metadata={"search": settings})
    assert made_by(ticket) == f"strongticket search {options}--out F.ticket"
