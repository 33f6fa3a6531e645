from pathlib import Path

import pytest
from tests.cli.running import answer, refusal, run
from tests.models.small_models import hf_model

from strongticket.builders import build

KNOWN = (Path(__file__).parents[1] / "known.ticket").read_bytes()


@pytest.fixture
def file(tmp_path):
    file = tmp_path / "known.ticket"
    file.write_bytes(KNOWN)
    return file


def test_report_makes_the_page_of_a_ticket(file):
    page = file.with_suffix(".html")
    assert answer("report", file) == {"page": str(page), "bytes": page.stat().st_size, "cannot_run": None}
    assert page.read_text(encoding="utf-8").count("readTicket") > 1
    assert f"open {page}" in run("report", file).stdout.replace("\n", "")


def test_report_says_that_no_page_runs_a_ticket(tmp_path):
    build(hf_model("bert"), workers=1).save(file := tmp_path / "bert.ticket")
    assert "cannot run it: its network is of type bert" in " ".join(run("report", file).stdout.split())
    assert file.with_suffix(".html").stat().st_size < 200_000


def test_report_refuses_what_is_not_a_ticket(tmp_path):
    (tmp_path / "no.ticket").write_bytes(b"nothing")
    for name in ("no.ticket", "none.ticket", "."):
        said = refusal("report", tmp_path / name, "--out", tmp_path / "page.html")
        assert "hint:" in said or name == "no.ticket"
    assert not (tmp_path / "page.html").exists()


def test_a_page_never_replaces_its_ticket(file, tmp_path):
    (tmp_path / "link.html").symlink_to(file)
    (tmp_path / "folder.html").mkdir()
    cases = {"known.ticket": "end in .html", "link.html": "the ticket itself", "folder.html": "is a folder"}
    for out, said in cases.items():
        assert said in refusal("report", file, "--out", tmp_path / out)
    assert file.read_bytes() == KNOWN
