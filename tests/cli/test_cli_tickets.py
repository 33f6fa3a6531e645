"""plan, build, show, verify and compare on small networks, with the mistakes people make."""

import json
from dataclasses import replace

import pytest
from tests.cli.running import answer, refusal, run

from strongticket import nets
from strongticket.ticket import Summary, Ticket
from strongticket.ticket.kinds import kind_of


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tickets")
    nets.save(nets.initialise(nets.MultiHeadAttention(3, 2, 2, 4, 4, bias=True), 0), folder / "target.net")
    nets.save(nets.initialise(nets.MultiHeadAttention(3, 2, 2, 4, 4, bias=True), 1), folder / "other.net")
    nets.save(nets.initialise(nets.ReluNetwork([3, 4, 2], bias=True), 0), folder / "relu.net")
    return folder


@pytest.fixture(scope="module")
def ticket(folder):
    answer("build", folder / "target.net", "--out", folder / "a.ticket", "--width", 48, "--seed", 5)
    return folder / "a.ticket"


def test_build_says_what_it_made(folder, ticket):
    shown = answer("show", ticket)
    loaded = Ticket.load(ticket)
    assert shown["kind"] == "attention"
    assert shown["seed"] == loaded.seed == 5
    assert shown["settings"]["key_dim"] == 48
    assert shown["weights"] == sum(mask.size for mask in loaded.masks.values())
    assert shown["kept"] == sum(tensor["kept"] for tensor in shown["tensors"])
    assert shown["bytes"]["file"] == ticket.stat().st_size
    assert shown["bytes"]["float32"] == 4 * shown["weights"] == 2 * shown["bytes"]["float16"]
    assert shown["certificate"]["bound"] > 0
    text = run("show", ticket).stdout
    assert "this file" in text
    assert "trained numbers" in text


def test_build_twice_gives_the_same_bytes(folder, ticket):
    answer("build", folder / "target.net", "--out", folder / "b.ticket", "--width", 48, "--seed", 5)
    assert (folder / "b.ticket").read_bytes() == ticket.read_bytes()


def test_build_by_accuracy_certifies_it(folder):
    made = answer(
        "build", folder / "target.net", "--out", folder / "c.ticket", "--epsilon", 0.01, "--radius", 1
    )
    assert made["certificate"]["bound"] <= 0.01
    checked = answer("compare", folder / "c.ticket", folder / "target.net", "--epsilon", 0.01)
    assert checked["ok"]


@pytest.mark.parametrize("name", ["target.net", "relu.net"])
def test_compare_measures_and_certifies(folder, name):
    answer("build", folder / name, "--out", folder / "d.ticket", "--width", 60)
    found = answer("compare", folder / "d.ticket", folder / name)
    assert found["ok"]
    assert found["problems"] == []
    assert 0 < found["mean_error"] <= found["measured_error"] <= found["certificate"]["bound"]
    assert all(0 < matrix["error"] < 0.2 for matrix in found["matrices"])
    assert found["inputs"] == 1024
    assert "largest error" in run("compare", folder / "d.ticket", folder / name, "--sequences", 8).stdout


def test_verify_checks_the_file_alone(ticket):
    found = answer("verify", ticket)
    assert found["weights"] == answer("show", ticket)["weights"]
    assert "that the certificate was computed for these masks" in found["checked"]
    assert any("strongticket compare" in line for line in found["not_checked"])
    shown = run("verify", ticket).stdout
    assert "the file certifies" in shown


def test_compare_fails_against_another_network(folder, ticket):
    result = run("compare", ticket, folder / "other.net", "--json")
    assert result.exit_code == 1
    found = json.loads(result.stdout)
    assert not found["ok"]
    assert "the file certifies" in found["problems"][0]
    assert " hint: Compare it with the model" in result.stderr


def test_compare_fails_when_not_near_enough(folder, ticket):
    message = refusal("compare", ticket, folder / "target.net", "--epsilon", 1e-30)
    assert "exceeds the requested epsilon 1e-30" in message


@pytest.mark.parametrize("kind", ["attention", "relu"])
def test_an_infinite_bound_is_a_problem_and_not_a_crash(folder, ticket, kind):
    """Weights so large that no bound is finite: JSON has null for it."""
    name, own = ("target.net", ticket) if kind == "attention" else ("relu.net", folder / "r.ticket")
    if kind == "relu":
        answer("build", folder / name, "--out", own, "--width", 60)
    huge = nets.load(folder / name).double()
    for parameter in huge.parameters():
        parameter.data.mul_(1e100)
    nets.save(huge, folder / "huge.net")
    result = run("compare", own, folder / "huge.net", "--epsilon", 1, "--json")
    assert (result.exit_code, result.exception.code) == (1, 1), result.exception
    found = json.loads(result.stdout)
    assert found["certificate"]["bound"] is None
    assert found["relative"]["bound"] is None
    assert len(found["problems"]) == 2  # not as certified, not within epsilon
    assert "no finite bound" in run("compare", own, folder / "huge.net").stdout


def test_a_ticket_without_a_finite_bound(folder, ticket):
    loaded = Ticket.load(ticket)
    unbounded = {"kind": "attention", "bound": None, "radius": None, "arithmetic": "float32"}
    replace(loaded, certificate=unbounded).save(folder / "unbounded.ticket")
    assert answer("compare", folder / "unbounded.ticket", folder / "target.net")["ok"]
    for command in ("show", "verify"):
        assert "no finite bound" in run(command, folder / "unbounded.ticket").stdout


def test_verify_fails_on_a_changed_file(folder, ticket):
    data = ticket.read_bytes()
    flipped = bytearray(data)
    flipped[-10] ^= 4  # in a mask
    for command, broken in (("verify", flipped), ("verify", data[:-1]), ("show", data[: len(data) // 2])):
        (folder / "broken.ticket").write_bytes(broken)
        assert "broken.ticket" in refusal(command, folder / "broken.ticket")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--width", 48, "--epsilon", 0.1), "either --epsilon or --width"),
        ((), "either --epsilon or --width"),
        (("--width", 1), "width"),
        (("--epsilon", "nan"), "epsilon"),
        (("--width", 48, "--seed", -1), "seed"),
        (("--width", 48, "--seed", 1 << 64), "seed"),
    ],
)
def test_build_refuses_what_makes_no_sense(folder, arguments, message):
    out = folder / "never.ticket"
    assert message in refusal("build", folder / "target.net", "--out", out, *arguments)
    assert not out.exists()


def test_an_unknown_choice_is_a_usage_error(folder):
    result = run("build", folder / "target.net", "--out", folder / "x.ticket", "--assignment", "mine")
    assert result.exit_code == 2
    assert "mine" in result.stderr


def test_wrong_paths_are_reported(folder, ticket):
    for name, out, wrong in (
        ("missing.net", "x.ticket", "missing"),
        ("target.net", "no/x.ticket", "no does"),
    ):
        assert wrong in refusal("build", folder / name, "--out", folder / out, "--width", 48)
    for name in ("missing.ticket", "target.net"):
        assert name in refusal("show", folder / name)
    assert "a.ticket" in refusal("compare", ticket, ticket)


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (nets.ReluNetwork([3, 4, 2]), "same kind"),
        (nets.MultiHeadAttention(4, 2, 2, 4, 4, bias=True), "source's query_key has shape"),
        (nets.MultiHeadAttention(3, 3, 2, 4, 4, bias=True), "source's value_output has shape"),
        (
            nets.MultiHeadAttention(3, 2, 3, 4, 4, bias=True),
            "query_key has shape (2, 4, 4): expected (3, 4, 4)",
        ),
        (nets.MultiHeadAttention(3, 2, 2, 4, 4), "source's query_key has shape"),
    ],
)
def test_compare_refuses_a_network_of_another_kind_or_size(folder, ticket, other, message):
    nets.save(nets.initialise(other, 0), folder / "misfit.net")
    said = refusal("compare", ticket, folder / "misfit.net")
    assert message in said
    assert "misfit.net" in said


def test_compare_refuses_options_of_other_kinds(folder, ticket):
    assert "data does not apply" in refusal("compare", ticket, folder / "target.net", "--data", "a.txt")
    assert "prompts does not apply" in refusal("compare", ticket, folder / "target.net", "--prompt", "a")


def test_plan_follows_the_theorems():
    found = answer("plan", "--epsilon", 1e-3, "--dim", 16, "--heads", 2)
    wide, narrow = found["by_theorem"], found["in_practice"]
    assert found["theorem"] == "Theorem 3"
    assert wide["problems"] == narrow["problems"] == 2 * (16 * 16 + 16 * 16)
    assert [layer["width"] for layer in wide["layers"]] > [layer["width"] for layer in narrow["layers"]]
    assert narrow["error"] <= 1e-3
    blocks = answer("plan", "--epsilon", 0.1, "--dim", 4, "--blocks", 2, "--layers", 2)
    assert blocks["theorem"] == "Theorem 14"
    assert len(blocks["by_theorem"]["layers"]) == 2 * (2 + 2)
    shown = run("plan", "--epsilon", 0.1, "--dim", 4).stdout
    assert all(text in shown for text in ("subset-sum problems", "probability 1 − 0.1", "heads of full rank"))
    assert "promises nothing" in run("plan", "--epsilon", 0.1, "--dim", 4, "--radius", 0.1).stdout
    assert "heads of rank 1" in run("plan", "--epsilon", 0.1, "--dim", 4, "--rank", 1).stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--epsilon", 2, "--dim", 4), "epsilon"),
        (("--epsilon", 0.1, "--dim", 4, "--heads", 0), "heads"),
        (("--epsilon", 0.1, "--dim", 4, "--radius", -1), "radius"),
        (("--epsilon", 0.1, "--dim", 4, "--blocks", -1), "blocks"),
        (("--epsilon", 0.1, "--dim", 4, "--layers", 2), "Add --blocks"),
    ],
)
def test_plan_refuses_what_makes_no_sense(arguments, message):
    assert message in refusal("plan", *arguments)


def test_a_search_resumes_only_from_checkpoints(folder):
    assert "Add --save-every" in refusal("search", "--out", folder / "s.ticket", "--resume")


def test_settings_of_a_searched_model_are_its_sizes():
    config = {"model_type": "gpt2", "n_embd": 8, "n_head": 2, "use_cache": False, "n_inner": None}
    settings = {"config": config, "parts": {"h.0.c_attn.weight": [[1, 0, 16, 2.828]]}, "trained": []}
    rows = dict(kind_of("search").describe(Summary(0, "search", settings, None, {}, (), 0)).rows)
    assert rows["settings"] == "gpt2: n_embd=8, n_head=2; query and key weights × 2.83"
    rows = dict(
        kind_of("attention").describe(Summary(0, "attention", {"dim": 4, "heads": 2}, None, {}, (), 0)).rows
    )
    assert rows["settings"] == "dim=4, heads=2"
