"""Tickets built from trained models: loaded by transformers and by sentence-transformers."""

import shlex

import pytest
import tokenizers
import torch
import transformers
from typer.testing import CliRunner

import strongticket.hf
from strongticket.builders import build, build_file
from strongticket.cli import app
from strongticket.hf.card import made_by
from strongticket.searching import attach, to_ticket
from strongticket.ticket import Ticket

WORDS = ["[PAD]", "[UNK]", "once", "upon", "a", "time", "ticket", "random"]
SIZES = dict(
    vocab_size=len(WORDS), hidden_size=16, intermediate_size=24, num_hidden_layers=1, num_attention_heads=2
)


def save_tokenizer(folder):
    words = {word: number for number, word in enumerate(WORDS)}
    inner = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, "[UNK]"))
    inner.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    options = dict(pad_token="[PAD]", unk_token="[UNK]", model_max_length=32)
    transformers.PreTrainedTokenizerFast(tokenizer_object=inner, **options).save_pretrained(folder)


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """A built BERT and a built Llama with tied embeddings, as folders."""
    folder = tmp_path_factory.mktemp("built")
    torch.manual_seed(0)
    bert = transformers.BertModel(transformers.BertConfig(**SIZES, max_position_embeddings=32))
    config = transformers.LlamaConfig(**SIZES, num_key_value_heads=1, tie_word_embeddings=True)
    llama = transformers.LlamaForCausalLM(config)
    for name, model in {"bert": bert, "llama": llama}.items():
        model.save_pretrained(folder / f"original-{name}")
        save_tokenizer(folder / f"original-{name}")
        asked = {"bits": 18} if name == "llama" else {"tolerance": 0.05, "states": 1}
        build_file(folder / f"original-{name}", folder / f"{name}.ticket", workers=1, **asked)
        Ticket.load(folder / f"{name}.ticket").save_pretrained(folder / name)
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


@pytest.mark.parametrize("name", ["bert", "llama"])
def test_the_command_on_the_card_makes_the_same_file(folders, tmp_path, name):
    ticket = Ticket.load(folders / f"{name}.ticket")
    command = made_by(ticket, str(folders / f"original-{name}"))
    assert made_by(ticket) in (folders / name / "README.md").read_text()
    arguments = shlex.split(command.replace("F.ticket", str(tmp_path / "again.ticket")))
    assert CliRunner().invoke(app, [*arguments[1:], "--workers", "1"]).exit_code == 0
    assert (tmp_path / "again.ticket").read_bytes() == (folders / f"{name}.ticket").read_bytes()


def test_the_command_says_what_is_not_usual():
    model = torch.nn.Linear(8, 8)
    assert made_by(build(model, workers=1)) == "strongticket build MODEL --seed 0 --out F.ticket"
    by_subset = build(model, by="subset", per_row=12, tolerance=0.1, only="weight", workers=1)
    options = "--tolerance 0.1 --by subset --per-row 12 --only PATTERN"
    assert made_by(by_subset) == f"strongticket build MODEL --seed 0 {options} --out F.ticket"


def test_a_built_ticket_is_exported_as_an_ordinary_model(folders, tmp_path):
    ticket = Ticket.load(folders / "llama.ticket")
    strongticket.hf.export(ticket, tmp_path)
    asked = transformers.AutoTokenizer.from_pretrained(tmp_path)("once upon a time", return_tensors="pt")
    model = transformers.AutoModelForCausalLM.from_pretrained(tmp_path)
    assert not hasattr(model.config, "quantization_config")
    torch.testing.assert_close(model(**asked).logits, ticket.network()(**asked).logits)


def test_a_task_mask_is_exported_with_the_tokenizer_of_its_base(folders, tmp_path):
    base = folders / "original-llama"
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
