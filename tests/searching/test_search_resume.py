"""Resuming: the same bytes as an undisturbed run, from the newest whole checkpoint of exactly this run."""

import json
from copy import deepcopy
from pathlib import Path
from unittest.mock import Mock

import pytest
from tests.faults.checkpoints import FILES, WAYS, damage_checkpoints, interrupted, swap_data
from torch import nn

from strongticket.data.text import load_tokens
from strongticket.errors import StrongTicketError
from strongticket.searching import attach, register_method, run, search
from strongticket.searching.architectures import make_model
from strongticket.searching.methods.edge_popup import edge_popup
from strongticket.searching.resume import last_whole, run_identity


def identity(config):
    text = load_tokens(config.task.data, config.task.tokens, config.task.vocabulary, config.run.cache_folder)
    model = make_model(config, text.tokenizer.size)
    return run_identity(config, model, (text.train, text.valid, text.tokenizer.to_json()))


@pytest.mark.parametrize("scope", ["tensor", "global"])
def test_a_resumed_run_ends_with_the_same_ticket(tiny, scope):
    config = tiny.changed(steps=9, save_every=4, scope=scope)
    whole = search(config)
    interrupted(config, 7)
    done = []
    resumed = search(config.changed(resume=True), on_step=lambda step, loss: done.append(step))
    assert done == [5, 6, 7, 8, 9]
    assert resumed.ticket.to_bytes() == whole.ticket.to_bytes()
    assert resumed.loss == whole.loss
    assert not list((config.run.cache_folder / "runs").iterdir())


@pytest.mark.slow
def test_a_damaged_checkpoint_is_passed_over(tiny):
    config = tiny.changed(steps=9, save_every=4)
    cases = [(file, WAYS[i % len(WAYS)]) for i, file in enumerate(FILES)]
    found = damage_checkpoints(config, cases)
    assert found == {"tried": 6, "identical": 6, "wrong": 0, "first_steps": [5] * 6}


def test_without_a_whole_checkpoint_the_search_starts_over(tiny):
    config = tiny.changed(steps=9, save_every=4)
    for path in interrupted(config, 9).glob("checkpoint-*/optimizer.pt"):
        path.unlink()
    done = []
    resumed = search(config.changed(resume=True), on_step=lambda step, loss: done.append(step))
    assert done[0] == 1
    assert resumed.ticket.to_bytes() == search(config).ticket.to_bytes()


def test_a_run_that_ended_before_its_ticket_was_written_trains_no_step_more(tiny, monkeypatch):
    config = tiny.changed(steps=8, save_every=4, lr_end=1e-3)
    whole = search(config)
    with monkeypatch.context() as patched:
        patched.setattr(run, "evaluate", Mock(side_effect=KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            search(config)
    (checkpoints,) = (config.run.cache_folder / "runs").iterdir()
    assert (checkpoints / "checkpoint-8").is_dir()
    done = []
    resumed = search(config.changed(resume=True), on_step=lambda step, loss: done.append(step))
    assert done == [5, 6, 7, 8]
    assert resumed.ticket.to_bytes() == whole.ticket.to_bytes()


def test_checkpoints_of_another_run_are_not_taken(tiny):
    config = tiny.changed(steps=9, save_every=4)
    folder = interrupted(config, 5)
    (folder / "checkpoint-strange").mkdir()
    assert last_whole(folder, folder.name, 9) == folder / "checkpoint-4"
    assert last_whole(folder, "another run", 9) is None


def test_changed_data_is_another_run(tiny):
    assert swap_data(tiny.changed(save_every=4), 2) == {"tried": 2, "identical": 2, "wrong": 0}


def test_the_identity_is_the_content_not_the_place(tiny, tmp_path, monkeypatch):
    first = identity(tiny)
    same = dict(resume=True, cache=str(tmp_path / "elsewhere"), save_every=5, eval_every=2)
    assert identity(tiny.changed(**same)) == first
    moved = tmp_path / "moved.txt"
    moved.write_text(Path(tiny.task.data).read_text())
    assert identity(tiny.changed(data=str(moved))) == first
    moved.write_text(Path(tiny.task.data).read_text() + "!")
    assert identity(tiny.changed(data=str(moved))) != first
    for change in (dict(qk_scale=2.0), dict(seed=1), dict(micro_batch=2), dict(steps=7), dict(dim=32)):
        assert identity(tiny.changed(**change)) != first
    monkeypatch.setattr("strongticket.searching.resume.__version__", "0.0.0")
    assert identity(tiny) != first


def test_another_model_in_the_same_folder_is_another_run(tiny, tmp_path):
    def config_of(**changes):
        sizes = dict(n_embd=16, n_layer=1, n_head=2, n_positions=16) | changes
        (tmp_path / "config.json").write_text(json.dumps({"model_type": "gpt2", **sizes}))
        return identity(tiny.changed(model=str(tmp_path)))

    assert config_of() == config_of()
    assert config_of() != config_of(activation_function="relu")  # the same tensors, another function


def test_a_changed_method_of_the_users_is_another_run(tiny, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    source = "from strongticket.searching.methods.edge_popup import edge_popup\n"
    identities = []
    for number, extra in enumerate(("", "", "# changed\n")):
        (tmp_path / f"own_method_{number}.py").write_text(source + extra)
        identities.append(identity(tiny.changed(method=f"own_method_{number}:edge_popup")))
    # the function is the package's: it is the module it was found in that the user may edit
    assert identities[0] != identities[2]


def test_a_method_whose_code_cannot_be_read_has_no_checkpoints(tiny):
    scope = {"edge_popup": edge_popup}
    exec("def typed(model, config):\n    return edge_popup(model, config)", scope)
    register_method("typed", scope["typed"])
    config = tiny.changed(method="typed")
    assert search(config).ticket.masks
    with pytest.raises(StrongTicketError, match=r"code of method 'typed' cannot be read.*save_every"):
        search(config.changed(save_every=2))


def _with_another_head(model, config):
    model.transformer.h[0].mlp = nn.Sequential(nn.Linear(16, 8), nn.Linear(8, 16))
    return edge_popup(model, config)


def test_what_cannot_be_rebuilt_is_refused_before_training(tiny):
    register_method("another-head", _with_another_head)
    with pytest.raises(StrongTicketError, match=r"does not rebuild the parameter 'transformer.h.0.mlp.0"):
        search(tiny.changed(method="another-head"), on_step=lambda *_: pytest.fail("it began"))


def _over_trained(model, config):
    return attach(model, kept=config.source.kept, weights="pretrained")


def test_other_trained_weights_are_another_run(tiny):
    register_method("over-trained", _over_trained)
    config = tiny.changed(method="over-trained", save_every=2)
    trained = make_model(
        config, load_tokens(config.task.data, config.task.tokens, 0, config.run.cache_folder).tokenizer.size
    )
    steps: list[int] = []

    def stop(done: int, loss: float) -> None:
        steps.append(done)
        if done == 5:
            raise KeyboardInterrupt

    def run(changed: float) -> int:
        """The first step of a resumed search over the weights, one of which is changed."""
        steps.clear()
        model = deepcopy(trained)
        model.transformer.h[0].mlp.c_fc.weight.data[0, 0] += changed
        with pytest.raises(KeyboardInterrupt):
            search(config.changed(resume=True), model=model, on_step=stop)
        return steps[0]

    assert [run(0.0), run(0.0), run(1.0)] == [1, 5, 1]
