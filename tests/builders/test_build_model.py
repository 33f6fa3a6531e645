"""Building: which tensors, from which numbers, and what is refused before any work."""

import copy
import json

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from tests.models.small_models import hf_model, trained, transformers
from tokenizers import Tokenizer, models
from torch import nn

from strongticket.builders import ModelOptions, build, build_file, choices, targets
from strongticket.errors import StrongTicketError
from strongticket.models import OpenedModel
from strongticket.models.loading import StoredTensors
from strongticket.models.tensors import to_stored
from strongticket.ticket import Ticket

OPTIONS = dict(tolerance=0.01, workers=1)


@pytest.fixture(scope="module")
def gpt2():
    return hf_model("gpt2")


def test_the_target_is_not_changed_and_the_global_generator_not_touched(gpt2):
    before, state = copy.deepcopy(gpt2.state_dict()), torch.get_rng_state()
    for by in ("choice", "subset"):
        build(gpt2, only="*.wpe.*", by=by, **OPTIONS).network(base=gpt2)
    assert torch.equal(state, torch.get_rng_state())
    assert all(torch.equal(before[name], tensor) for name, tensor in gpt2.state_dict().items())


def test_only_some_tensors_by_any_of_their_names(gpt2):
    for only in ("lm_head.weight", ["transformer.wte.*"]):
        assert list(build(gpt2, only=only, **OPTIONS).choices) == ["transformer.wte.weight"]
    several = build(gpt2, only=["*.ln_1.*", "*h.0.attn.c_attn.weight"], **OPTIONS)
    assert len(several.choices) == 5
    everything = build(gpt2, only="*", **OPTIONS)
    assert everything.settings["base"] is None


def test_seeds_give_other_weights(gpt2):
    first, again, other = (build(gpt2, seed=seed, **OPTIONS).to_bytes() for seed in (1, 1, 2))
    assert first == again != other


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (dict(workers=0), "workers=0"),
        (dict(workers=2, cluster="tcp://localhost:1"), "both given"),
        (dict(per_row=0), "per_row=0"),
        (dict(states=3), "states=3: expected one of 1, 4, 8, 64"),
        (dict(tolerance=float("nan")), "tolerance=nan"),
        (dict(tolerance=0), "tolerance=0"),
        (dict(bits=0), "bits=0"),
        (dict(bits="4"), "bits='4'"),
        (dict(by="magic"), "by='magic': expected one of choice, subset"),
        (dict(attention="heads"), "attention='heads': expected one of linear, products"),
        (dict(seed=-1), "seed must be"),
        (dict(only="body.*"), r"only='body\.\*' matches no tensor"),
        (dict(tolerance=0.1, bits=8), "tolerance and bits are given: give one of them"),
        (dict(loss=0.01), "loss and data must be given together"),
        (dict(bits=4, by="subset"), "bits does not apply to subset sums"),
        (dict(calibrate="a.txt", attention="products"), "calibrate does not apply to subset sums"),
        (dict(calibrate="a.txt", only="*norm*"), "belongs to a linear layer"),
        (dict(parts=["head"]), "unknown build option 'parts'"),
    ],
)
def test_bad_options_are_refused_before_any_work(options, message, tmp_path, monkeypatch):
    monkeypatch.setattr(choices, "code_batch", None)
    with pytest.raises(StrongTicketError, match=message):
        build_file(hf_model("llama"), tmp_path / "a.ticket", **options)
    assert not list(tmp_path.rglob("*.json"))
    assert not (tmp_path / "a.ticket").exists()


def test_options_are_numbers_of_one_type():
    assert ModelOptions(bits=8) == ModelOptions(bits=8.0)
    assert ModelOptions(attention="products").by == "subset"
    assert ModelOptions(only="a.*").only == ("a.*",)


def test_numbers_that_no_ticket_holds_are_refused(tmp_path):
    module = trained(nn.MultiheadAttention(4, 2))
    for number, message in (
        (torch.nan, r"out_proj.weight\[1, 2\] is not finite"),
        (torch.inf, r"out_proj.weight\[1, 2\] is not finite"),
        (3e38, r"the model's out_proj.weight: a number is not finite or above 2\^126"),
    ):
        with torch.no_grad():
            module.out_proj.weight[1, 2] = number
        with pytest.raises(StrongTicketError, match=message):
            build(module, **OPTIONS)
    model = hf_model("llama")
    with torch.no_grad():
        model.model.norm.weight[3] = torch.nan
    model.save_pretrained(tmp_path)
    with pytest.raises(StrongTicketError, match=r"model\.norm\.weight\[3\] is not finite"):
        build_file(tmp_path, tmp_path / "a.ticket", workers=1)
    with pytest.raises(StrongTicketError, match=r"expected floating point numbers"):
        build(nn.ParameterDict({"w": nn.Parameter(torch.arange(4), requires_grad=False)}))
    with pytest.raises(StrongTicketError, match="has no numbers to build a ticket of"):
        build(nn.ReLU())


@pytest.mark.parametrize(
    ("path", "name", "changed", "message"),
    [
        ("transformer.h.0.ln_1", "eps", 0.1, r"the module 'transformer\.h\.0\.ln_1'"),
        ("transformer.h.0.mlp", "act", nn.Tanh(), r"the module 'transformer\.h\.0\.mlp\.act'"),
        ("", "extra", nn.Parameter(torch.ones(3)), "the parameter 'extra'"),
        ("lm_head", "weight", nn.Parameter(torch.ones(29, 15)), "the parameter"),  # untied
    ],
)
def test_what_the_class_cannot_rebuild_is_refused_by_name_before_any_work(
    gpt2, path, name, changed, message, monkeypatch
):
    monkeypatch.setattr(choices, "code_batch", None)
    model = copy.deepcopy(gpt2)
    setattr(model.get_submodule(path), name, changed)
    with pytest.raises(StrongTicketError, match=f"does not rebuild {message}"):
        build(model)


def test_a_folder_without_a_model_is_refused(tmp_path):
    with pytest.raises(StrongTicketError, match="is not a Hugging Face model"):
        build(tmp_path)
    config = dict(model_type="gpt2", architectures=["GPT2LMHeadModel"])
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(StrongTicketError, match="has no model"):
        build(tmp_path)
    with pytest.raises(StrongTicketError, match="no such folder"):
        build(tmp_path / "nothing")


def test_a_tokenizer_comes_along(tmp_path):
    hf_model("llama").save_pretrained(tmp_path)
    without = build(tmp_path, **OPTIONS)
    assert "tokenizer" not in without.metadata
    words = Tokenizer(models.WordLevel({f"word{i}": i for i in range(29)}, unk_token="word0"))
    transformers.PreTrainedTokenizerFast(tokenizer_object=words).save_pretrained(tmp_path)
    ticket = build(tmp_path, **OPTIONS)
    assert ticket.choices == without.choices
    assert ticket.metadata["tokenizer"]["tokenizer.json"] == (tmp_path / "tokenizer.json").read_text()
    more = len(ticket.to_bytes()) - len(without.to_bytes())
    assert ticket.metadata["tokenizer_bytes"] == pytest.approx(more, rel=0.2)


# From files in parts: tests/models/test_models_architectures.py has many classes, here are ways to store them.


def read_in_parts(folder) -> Ticket:
    """Of a folder whose numbers are never loaded as a model; the loaded model gives the same bytes."""
    opened = OpenedModel(str(folder))
    assert opened.stored() is not None
    ticket = build(folder, **OPTIONS)
    assert ticket.to_bytes() == build(opened.load(), **OPTIONS).to_bytes()
    return ticket


def test_the_model_is_not_loaded(tmp_path, monkeypatch):
    hf_model("llama-tied").save_pretrained(tmp_path)
    monkeypatch.setattr(OpenedModel, "load", None)
    assert len(build(tmp_path, **OPTIONS).choices) == 20


def test_large_tensors_are_read_a_block_at_a_time(tmp_path, monkeypatch):
    config = transformers.LlamaConfig(
        vocab_size=1100, hidden_size=960, intermediate_size=8, num_hidden_layers=1, num_attention_heads=2, head_dim=4,
        tie_word_embeddings=True,
    )  # fmt: skip
    trained(transformers.LlamaForCausalLM(config)).save_pretrained(tmp_path)
    seen, read = [], StoredTensors.read

    def noted(self, name, rows=None):
        seen.append((name, rows))
        return read(self, name, rows)

    monkeypatch.setattr(StoredTensors, "read", noted)
    ticket = read_in_parts(tmp_path)
    name = "model.embed_tokens.weight"
    assert len(ticket.choices[name].blocks) == 2
    assert seen.count((name, range(550))) == seen.count((name, range(550, 1100))) == 1


def test_a_tensor_of_three_axes_is_read_once_for_all_its_blocks(monkeypatch):
    module = nn.ParameterDict({"experts": nn.Parameter(torch.randn(2, 600, 900).bfloat16())})
    converted = []
    monkeypatch.setattr(
        targets, "to_stored", lambda name, each: converted.append(name) or to_stored(name, each)
    )
    assert len(build(module, bits=4, workers=1).choices["experts"].blocks) == 2
    assert converted == ["experts"]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_numbers_of_any_type(tmp_path, dtype):
    model = hf_model("llama").to(dtype)
    model.save_pretrained(tmp_path)
    with safe_open(tmp_path / "model.safetensors", "pt") as file:
        assert file.get_tensor("lm_head.weight").dtype == dtype
    assert read_in_parts(tmp_path).to_bytes() == build(model.float(), **OPTIONS).to_bytes()


def test_checkpoints_in_several_files(tmp_path):
    model = hf_model("llama")
    model.save_pretrained(tmp_path, max_shard_size="4KB")
    assert len(list(tmp_path.glob("*.safetensors"))) > 2
    assert read_in_parts(tmp_path).to_bytes() == build(model, **OPTIONS).to_bytes()


@pytest.mark.parametrize(
    ("name", "renamed"),
    [
        ("gpt2-bare", lambda name: f"transformer.{name}"),  # as heads store the base model
        ("gpt2", lambda name: name.removeprefix("transformer.")),
        ("llama-tied", lambda name: "lm_head.weight" if "embed" in name else name),
    ],
)
def test_tensors_by_their_other_names(tmp_path, name, renamed):
    model = hf_model(name)
    model.save_pretrained(tmp_path)
    file = tmp_path / "model.safetensors"
    state = {renamed(key): tensor for key, tensor in load_file(file).items()}
    save_file(state, file, {"format": "pt"})
    assert read_in_parts(tmp_path).to_bytes() == build(model, **OPTIONS).to_bytes()


def test_what_only_transformers_can_load(tmp_path):
    """A tied tensor stored twice, or one too many or too few: it decides, or says what is wrong."""
    model = hf_model("llama-tied")
    model.save_pretrained(tmp_path)
    state = load_file(tmp_path / "model.safetensors")
    twice = state | {"lm_head.weight": state["model.embed_tokens.weight"].clone()}
    save_file(twice, tmp_path / "model.safetensors", {"format": "pt"})
    assert OpenedModel(str(tmp_path)).stored() is None
    assert build(tmp_path, **OPTIONS).to_bytes() == build(model, **OPTIONS).to_bytes()
    for wrong, message in (
        (state | {"more": torch.ones(3)}, "has, and the model does not, the tensor more"),
        ({name: tensor for name, tensor in state.items() if "norm" not in name}, "lacks the tensors"),
        (state | {"model.norm.weight": torch.ones(5)}, "has in another shape the tensor model.norm.weight"),
    ):
        save_file(wrong, tmp_path / "model.safetensors", {"format": "pt"})
        with pytest.raises(StrongTicketError, match=message):
            build(tmp_path, **OPTIONS)
