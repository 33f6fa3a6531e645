import json
from pathlib import Path

from typer.testing import CliRunner

from strongticket.cli import app

RUN = CliRunner()
KNOWN = (Path(__file__).parents[1] / "known.ticket").read_bytes()


def test_report_makes_the_page_of_a_ticket(tmp_path):
    file = tmp_path / "known.ticket"
    file.write_bytes(KNOWN)
    answer = RUN.invoke(app, ["report", str(file), "--json"])
    assert answer.exit_code == 0, answer.stderr
    page = tmp_path / "known.html"
    assert json.loads(answer.stdout) == {"page": str(page), "bytes": page.stat().st_size}
    assert page.read_text(encoding="utf-8").count("readTicket") > 1
    assert f"open {page}" in RUN.invoke(app, ["report", str(file)]).stdout.replace("\n", "")


def test_report_refuses_what_is_not_a_ticket(tmp_path):
    (tmp_path / "no.ticket").write_bytes(b"nothing")
    for name in ("no.ticket", "none.ticket", "."):
        answer = RUN.invoke(app, ["report", str(tmp_path / name), "--out", str(tmp_path / "page.html")])
        assert answer.exit_code == 1
        assert "error:" in answer.stderr
        assert "hint:" in answer.stderr or name == "no.ticket"
    assert not (tmp_path / "page.html").exists()


def test_a_page_never_replaces_its_ticket(tmp_path):
    file = tmp_path / "known.ticket"
    file.write_bytes(KNOWN)
    (tmp_path / "link.html").symlink_to(file)
    (tmp_path / "folder.html").mkdir()
    cases = {"known.ticket": "end in .html", "link.html": "the ticket itself", "folder.html": "is a folder"}
    for out, said in cases.items():
        answer = RUN.invoke(app, ["report", str(file), "--out", str(tmp_path / out)])
        assert answer.exit_code == 1
        assert said in answer.stderr
    assert file.read_bytes() == KNOWN
