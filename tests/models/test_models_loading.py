"""Model folders are data: known files inside the folder, no code, every tensor accounted for."""

import json
import shutil
from pathlib import Path

import pytest
import safetensors.torch
import torch
from tests.faults.cluster import small_model

from strongticket import limits
from strongticket.errors import StrongTicketError
from strongticket.models.configs import model_class
from strongticket.models.loading import OpenedModel, load_model

pytest.importorskip("transformers", reason="needs strongticket[huggingface]")
CLASS = "GPT2LMHeadModel"


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("saved")
    small_model().save_pretrained(folder)
    return folder


@pytest.fixture
def folder(saved, tmp_path):
    return Path(shutil.copytree(saved, tmp_path / "model"))


def change_config(folder, **changes):
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def change_tensors(folder, change):
    path = folder / "model.safetensors"
    tensors = safetensors.torch.load_file(path)
    change(tensors)
    safetensors.torch.save_file(tensors, path, {"format": "pt"})


def test_a_folder_loads_as_it_was_saved(folder):
    model = load_model(folder)
    assert type(model).__name__ == CLASS
    for name, tensor in small_model().state_dict().items():
        assert torch.equal(model.state_dict()[name], tensor)


def test_shards_load_like_one_file(folder):
    one = load_model(folder).state_dict()
    shutil.rmtree(folder)
    small_model().save_pretrained(folder, max_shard_size="8KB")
    assert not (folder / "model.safetensors").exists()
    many = load_model(folder).state_dict()
    assert all(torch.equal(many[name], tensor) for name, tensor in one.items())


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda t: t.pop("transformer.h.0.mlp.c_fc.bias"), "lacks the tensor transformer.h.0.mlp.c_fc.bias"),
        (lambda t: t.update({"transformer.odd": torch.zeros(2)}), "does not, the tensor transformer.odd"),
        (lambda t: t.update({"transformer.ln_f.bias": torch.zeros(3)}), "another shape"),
        (lambda t: t.update({"transformer.ln_f.weight": torch.ones(16, dtype=torch.int32)}), "int32"),
    ],
    ids=["missing", "surplus", "another shape", "integers"],
)
def test_tensors_that_differ_from_the_config_are_refused_by_name(folder, change, said):
    change_tensors(folder, change)
    with pytest.raises(StrongTicketError, match=said):
        load_model(folder)


def test_a_config_with_more_layers_than_the_checkpoint_is_refused(folder):
    change_config(folder, n_layer=2)
    with pytest.raises(StrongTicketError, match=r"lacks the tensors transformer.h.1"):
        load_model(folder)


@pytest.mark.parametrize(
    "changes",
    [{"n_layer": 10**7}, {"n_layer": 10**5}, {"num_labels": 10**9}, {"vocab_size": 2**39}, {"n_embd": 10**6}],
)
@pytest.mark.timeout(60)  # it would take hours, and all memory
def test_a_config_that_asks_for_too_much_is_refused(folder, changes):
    change_config(folder, **changes)
    with pytest.raises(StrongTicketError, match=r"limit|the files have|does not describe"):
        load_model(folder)


def test_limits_can_be_raised(monkeypatch):
    monkeypatch.setenv(limits.VARIABLE, "2.5")
    assert limits.factor() == 2.5
    monkeypatch.setenv(limits.VARIABLE, "none")
    with pytest.raises(StrongTicketError, match="LIMIT_FACTOR"):
        limits.factor()


def test_code_in_a_folder_is_never_run(folder, monkeypatch):
    monkeypatch.setattr("builtins.input", lambda *_: "y")  # the user would even agree
    mark = folder / "executed"
    (folder / "evil.py").write_text(f"open({str(mark)!r}, 'w')\nclass Evil: pass\n")
    maps = {name: "evil.Evil" for name in ("AutoConfig", "AutoModel", "AutoModelForCausalLM")}
    change_config(folder, auto_map=maps, attn_implementation="evil/kernel", custom_generate="evil")
    model = load_model(folder)
    assert type(model).__module__.startswith("transformers.")
    assert model.config._attn_implementation == "sdpa"
    change_config(folder, model_type="evil")
    with pytest.raises(StrongTicketError, match="model_type is 'evil'"):
        OpenedModel(str(folder))
    assert not mark.exists()


@pytest.mark.parametrize("name", ["Trainer", "AutoModel", "pipeline", "os.system", "BertModel", ""])
def test_only_model_classes_that_fit_the_config_are_made(saved, name):
    config = OpenedModel(str(saved)).config
    with pytest.raises(StrongTicketError, match=r"not a model class|not described"):
        model_class(name, config)


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "tokenizer.json"])
def test_links_that_leave_the_folder_are_refused(folder, tmp_path, name):
    outside = tmp_path / "outside"
    outside.write_text("{}")
    (folder / name).unlink(missing_ok=True)
    (folder / name).symlink_to(outside)
    with pytest.raises(StrongTicketError, match="not a file of this folder"):
        OpenedModel(str(folder)).folder.tokenizer_files() if "tokenizer" in name else load_model(folder)


@pytest.mark.parametrize("shard", ["../outside.safetensors", "/etc/passwd", "a/b.safetensors", "a.bin", 3])
def test_shards_outside_the_folder_are_refused(folder, shard):
    (folder / "model.safetensors").unlink()
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"x": shard}}))
    with pytest.raises(StrongTicketError, match=r"names the file|expected weight_map"):
        load_model(folder)


def test_a_snapshot_of_the_hubs_cache_is_a_folder(folder, tmp_path):
    """There, files are links to blobs beside the snapshots."""
    cache = tmp_path / "models--a--b"
    snapshot = cache / "snapshots" / "0123"
    snapshot.mkdir(parents=True)
    (cache / "blobs").mkdir()
    for path in folder.iterdir():
        shutil.copy(path, cache / "blobs" / path.name)
        (snapshot / path.name).symlink_to(f"../../blobs/{path.name}")
    assert type(load_model(snapshot)).__name__ == CLASS


def test_pickled_weights_are_refused_with_a_way_out(folder):
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(StrongTicketError, match="a pickle") as caught:
        load_model(folder)
    assert "save_pretrained" in caught.value.hint


@pytest.mark.parametrize("target", ["./no/such", "no/such/folder", "src/nothing", "a b", "..", "x/../y"])
def test_a_misspelt_path_never_reaches_the_hub(target, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "src").mkdir()
    for name in ("get_hf_file_metadata", "snapshot_download"):
        monkeypatch.setattr(f"huggingface_hub.{name}", lambda *_, **__: pytest.fail("asked the hub"))
    with pytest.raises(StrongTicketError, match=r"no such folder|has no config.json"):
        OpenedModel(target)
