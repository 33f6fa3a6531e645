"""--out: what cannot be written is said before the work, and two commands never write one file."""

import pytest
from tests.cli.running import refusal, run

from strongticket import nets
from strongticket.files import exclusive_lock
from strongticket.searching import SearchConfig, search


@pytest.mark.parametrize("command", [["build", "no/such/model"], ["search", "--data", "no-such-text"]])
@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("", "is a folder"),
        ("a.tickets", "must end in .ticket"),
        ("a", "must end in .ticket"),
        ("no/a.ticket", "does not exist"),
    ],
)
def test_a_ticket_that_cannot_be_written_is_refused_before_the_work(tmp_path, command, name, said):
    message = refusal(*command, "--out", tmp_path / name)
    assert said in message
    assert "such" not in message  # nothing else was looked at
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", [["reproduce", "figure4"], ["demo"], ["export", "a.ticket"]])
def test_a_file_in_the_place_of_a_folder_is_refused_before_the_work(tmp_path, command):
    (tmp_path / "file").touch()
    assert "this is a file" in refusal(*command, "--out", tmp_path / "file")


def test_a_second_build_into_one_file_says_so_and_stops(tmp_path):
    target, out = tmp_path / "target.safetensors", tmp_path / "a.ticket"
    nets.save(nets.initialise(nets.MultiHeadAttention(4, 4, 1, 2, 2), seed=0), target)
    with exclusive_lock(out):
        message = refusal("build", target, "--out", out, "--width", 16)
        assert "another process is writing" in message
        assert "choose another name" in message
    assert run("build", target, "--out", out, "--width", 16).exit_code == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.ticket", "target.safetensors"]


@pytest.mark.slow
def test_a_second_search_of_the_same_run_says_so_and_stops(tmp_path):
    text = tmp_path / "text.txt"
    text.write_text("a strong lottery ticket " * 60)
    config = SearchConfig().changed(
        data=str(text), cache=str(tmp_path / "cache"), layers=1, heads=1, dim=8, context=8, batch=2, steps=2,
        warmup=1, save_every=1, cpu=True,
    )  # fmt: skip
    refused = []

    def again(done: int, loss: float) -> None:
        for out in ("a.ticket", "b.ticket"):  # the second shares the checkpoints of the first
            try:
                search(config, out=tmp_path / out)
            except ValueError as error:
                refused.append(str(error))

    search(config, out=tmp_path / "a.ticket", on_step=again)
    assert len(refused) == 4
    assert all("another process is writing" in text for text in refused)
    assert (tmp_path / "a.ticket").exists()
    assert not (tmp_path / "b.ticket").exists()
