"""Tickets built from trained models: loaded by transformers and by sentence-transformers."""

import shlex

import pytest
import tokenizers
import torch
import transformers
from typer.testing import CliRunner

import strongticket.hf
from strongticket.cli import app
from strongticket.hf.card import made_by
from strongticket.models import OpenedModel
from strongticket.pretrained import build_ticket
from strongticket.searching import attach, to_ticket
from strongticket.ticket import Ticket

WORDS = ["[PAD]", "[UNK]", "once", "upon", "a", "time", "ticket", "random"]
SIZES = {"vocab_size": len(WORDS), "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 1}


def tokenizer_files(folder):
    inner = tokenizers.Tokenizer(
        tokenizers.models.WordLevel(dict(zip(WORDS, range(8), strict=True)), "[UNK]")
    )
    inner.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    made = transformers.PreTrainedTokenizerFast(
        tokenizer_object=inner, pad_token="[PAD]", unk_token="[UNK]", model_max_length=32
    )
    made.save_pretrained(folder)
    return {name: (folder / name).read_text() for name in ("tokenizer.json", "tokenizer_config.json")}


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """A built BERT and a built Llama with tied embeddings, as folders."""
    folder = tmp_path_factory.mktemp("built")
    files = tokenizer_files(folder)
    torch.manual_seed(0)
    bert = transformers.BertModel(
        transformers.BertConfig(num_attention_heads=2, max_position_embeddings=32, **SIZES)
    )
    llama = transformers.LlamaForCausalLM(
        transformers.LlamaConfig(
            num_attention_heads=2, num_key_value_heads=1, tie_word_embeddings=True, **SIZES
        )
    )
    llama.save_pretrained(folder / "original")
    for name, file in files.items():
        (folder / "original" / name).write_text(file)
    for name, model in {"bert": bert, "llama": llama}.items():
        asked = {"bits": 18} if name == "llama" else {"tolerance": 0.05}
        ticket = build_ticket(
            model.eval(),
            workers=1,
            tokenizer=OpenedModel(str(folder / "original")).folder.tokenizer_files(),
            **asked,
        )
        ticket.save(folder / f"{name}.ticket")
        ticket.save_pretrained(folder / name)
    return folder


def test_the_same_output_to_the_last_bit(folders):
    tokens = torch.arange(2, 8)[None]
    bert = transformers.AutoModel.from_pretrained(folders / "bert")
    expected = Ticket.load(folders / "bert.ticket").network()(tokens)
    assert torch.equal(bert(tokens).last_hidden_state, expected.last_hidden_state)
    llama = transformers.AutoModelForCausalLM.from_pretrained(folders / "llama")
    assert torch.equal(llama(tokens).logits, Ticket.load(folders / "llama.ticket").network()(tokens).logits)
    assert llama.lm_head.weight is llama.model.embed_tokens.weight
    assert Ticket.from_pretrained(folders / "llama") == Ticket.load(folders / "llama.ticket")


def test_the_command_on_the_card_makes_the_same_file(folders, tmp_path):
    ticket = Ticket.load(folders / "llama.ticket")
    command = made_by(ticket, str(folders / "original"))
    assert made_by(ticket) in (folders / "llama" / "README.md").read_text()
    arguments = shlex.split(command.replace("F.ticket", str(tmp_path / "again.ticket")))
    assert CliRunner().invoke(app, [*arguments[1:], "--workers", "1"]).exit_code == 0
    assert (tmp_path / "again.ticket").read_bytes() == (folders / "llama.ticket").read_bytes()


def test_units_are_asked_for_in_python_only():
    ticket = build_ticket(torch.nn.Linear(8, 8), units=12, workers=1)
    assert made_by(ticket).startswith("# strongticket.build_ticket(model, units=12.0")


def test_a_task_mask_is_exported_with_the_tokenizer_of_its_base(folders, tmp_path):
    base = folders / "original"
    model = transformers.AutoModelForSequenceClassification.from_pretrained(base, num_labels=3)
    attach(model, kept=0.9, weights="pretrained", train=["score.*"])
    strongticket.hf.export(to_ticket(model), tmp_path, base=base)
    asked = transformers.AutoTokenizer.from_pretrained(tmp_path)("a random ticket", return_tensors="pt")
    merged = transformers.AutoModelForSequenceClassification.from_pretrained(tmp_path)
    torch.testing.assert_close(merged(**asked).logits, model.eval()(**asked).logits)
    card = (tmp_path / "README.md").read_text()
    assert "A trained network" in card
    assert "strongticket export F.ticket --base MODEL" in card


@pytest.mark.filterwarnings("ignore")  # sentence-transformers' own
def test_sentence_transformers(folders):
    sentences = pytest.importorskip("sentence_transformers", reason="needs sentence-transformers")
    from sentence_transformers import models

    inner = models.Transformer(str(folders / "bert"))
    encoder = sentences.SentenceTransformer(modules=[inner, models.Pooling(16)], device="cpu")
    found = torch.from_numpy(encoder.encode(["once upon a time", "a random ticket"]))
    network = Ticket.load(folders / "bert.ticket").network()
    for row, tokens in zip(found, ([2, 3, 4, 5], [4, 7, 6]), strict=True):
        expected = network(torch.tensor([tokens])).last_hidden_state[0].mean(0)
        torch.testing.assert_close(row, expected, rtol=1e-4, atol=1e-5)
