"""The built-in tasks besides language: images and classes of text."""

import base64
import json

import numpy as np
import pytest
import torch

from strongticket.errors import StrongTicketError
from strongticket.searching import preset, search
from strongticket.searching.tasks import evaluate, load_task
from strongticket.ticket import Ticket


def small(name, tmp_path, **changes):
    sizes = dict(dim=16, heads=2, layers=1, batch=16, micro_batch=16, steps=4, warmup=1)
    return preset(name, cpu=True, cache=str(tmp_path), **(sizes | changes))


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("images", {"patch": 4}),
        ("images", {"patch": 4, "image_size": 12}),
        ("classification", {"context": 16}),
        ("classification", {"context": 16, "architecture": "gpt2", "tokens": "bpe", "vocabulary": 300}),
        ("classification", {"context": 16, "architecture": "llama", "method": "dense"}),
    ],
)
def test_a_reloaded_ticket_has_the_same_loss_and_accuracy(tmp_path, name, changes):
    config = small(name, tmp_path, **changes)
    found = search(config, out=tmp_path / "a.ticket")
    loaded = Ticket.load(tmp_path / "a.ticket")
    assert evaluate(loaded.network(), load_task(config)) == {"loss": found.loss, **found.measures}
    assert loaded.metadata["accuracy"] == found.measures["accuracy"]
    assert found.file_bytes == (tmp_path / "a.ticket").stat().st_size
    json.dumps(found.to_json(), allow_nan=False)
    if config.source.method != "dense":  # which is not scaled
        assert found.logit_std == pytest.approx(0.7, rel=0.05)


def test_images_are_learned(tmp_path):
    config = small("images", tmp_path, dim=32, patch=4, steps=80, lr=1e-2)
    assert search(config).measures["accuracy"] > 0.5


def test_a_class_token_is_masked_and_the_page_has_its_samples(tmp_path):
    config = small("images", tmp_path, patch=4)
    ticket = search(config).ticket
    assert {"vit.embeddings.cls_token", "vit.embeddings.position_embeddings"} <= ticket.masks.keys()
    data = load_task(config)
    labels = ticket.metadata["labels"]
    model = ticket.network()
    mean, std = ticket.metadata["pixels"]["mean"], ticket.metadata["pixels"]["std"]
    for sample in ticket.metadata["samples"]:
        pixels = np.frombuffer(base64.b64decode(sample["pixels"]), np.uint8).reshape(1, 1, 8, 8)
        values = (torch.from_numpy(pixels.astype(np.float32) / 255) - mean) / std
        with torch.no_grad():
            assert int(model(pixel_values=values).logits.argmax()) == sample["prediction"]
        assert 0 <= sample["label"] < len(labels)
    assert len(ticket.metadata["curve"]) == config.training.steps
    assert data.sizes == {"classes": 10, "channels": 1, "image_size": 8}


def test_the_curve_is_short_and_falls(tiny):
    found = search(tiny.changed(steps=90, lr=1e-2, std=0.1, warmup=2))
    assert len(found.curve) <= 40
    assert found.curve[-1][0] == 90
    assert found.curve[-1][1] < found.curve[0][1]
    assert found.ticket.metadata["curve"] == [list(point) for point in found.curve]


def test_losses_are_reported_while_training(tiny):
    seen = []
    found = search(tiny, on_step=lambda step, loss: seen.append((step, loss)))
    assert [step for step, _ in seen] == list(range(1, 7))
    assert found.curve == [(step, pytest.approx(loss, rel=1e-3)) for step, loss in seen]


def test_tensorboard(tiny, tmp_path, monkeypatch):
    events = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    monkeypatch.chdir(tmp_path)
    found = search(tiny.changed(log_to="tensorboard", eval_every=3))
    (folder,) = (tmp_path / "runs").iterdir()
    log = events.EventAccumulator(str(folder))
    log.Reload()
    assert [event.step for event in log.Scalars("train/loss")] == list(range(1, 7))
    assert log.Scalars("eval/loss")[-1].value == pytest.approx(found.loss)


def test_what_does_not_fit_is_refused(tmp_path):
    with pytest.raises(StrongTicketError, match=r"one of vit for task 'images'.*preset\('images'\)"):
        preset("laptop").changed(task="images")
    with pytest.raises(StrongTicketError, match="not a file, folder or known set of images"):
        search(small("images", tmp_path, data="nowhere"))
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "gpt2"}))
    with pytest.raises(StrongTicketError, match="a gpt2 model does not fit task 'images'"):
        search(small("images", tmp_path, model=str(tmp_path)))
