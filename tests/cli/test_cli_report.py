import json
from importlib.resources import files
from pathlib import Path

from typer.testing import CliRunner

from strongticket import report
from strongticket.cli import app

RUN = CliRunner()


def test_report_remakes_the_page(tmp_path):
    page = report.Page("Title", "Lead.", (report.Section("One", (report.Text("Hello."),)),))
    summary = report.RunSummary("test", 0, {}, {}, 0.1)
    out = report.write_results(tmp_path, page, summary, {})
    before = out.read_bytes()
    out.unlink()
    answer = RUN.invoke(app, ["report", str(tmp_path), "--json"])
    assert answer.exit_code == 0, answer.stderr
    assert json.loads(answer.stdout) == {"page": str(out), "bytes": len(before)}
    assert out.read_bytes() == before
    assert str(out) in RUN.invoke(app, ["report", str(tmp_path)]).stdout


def test_report_refuses_other_folders(tmp_path):
    answer = RUN.invoke(app, ["report", str(tmp_path)])
    assert answer.exit_code == 1
    assert "is not a results folder" in answer.stderr
    assert " hint: Name a folder" in answer.stderr
    assert RUN.invoke(app, ["report", str(tmp_path / "none")]).exit_code == 1


def test_report_makes_the_page_of_a_ticket(tmp_path):
    file = tmp_path / "known.ticket"
    file.write_bytes((Path(__file__).parents[1] / "known.ticket").read_bytes())
    answer = RUN.invoke(app, ["report", str(file), "--json"])
    assert answer.exit_code == 0, answer.stderr
    page = tmp_path / "known.html"
    assert json.loads(answer.stdout) == {"page": str(page), "bytes": page.stat().st_size}
    assert page.read_text(encoding="utf-8").count("readTicket") > 1


def test_a_sample_is_a_text_for_a_language_ticket(tmp_path):
    page, text = tmp_path / "page.html", tmp_path / "text.txt"
    language = files("strongticket.experiments.demo") / "language.ticket"

    def report(ticket, sample):
        text.write_text(sample, encoding="utf-8")
        return RUN.invoke(app, ["report", str(ticket), "--out", str(page), "--sample", str(text)])

    assert report(language, "</script><b>sample").exit_code == 0
    assert "</script><b>sample" not in page.read_text(encoding="utf-8")
    assert "the sample is empty" in report(language, " ").stderr
    digits = Path(__file__).parents[2] / "gallery" / "digits.ticket"
    assert "is for tickets that read text" in report(digits, "a text").stderr


def test_report_refuses_what_is_not_a_ticket(tmp_path):
    (tmp_path / "no.ticket").write_bytes(b"nothing")
    answer = RUN.invoke(app, ["report", str(tmp_path / "no.ticket")])
    assert answer.exit_code == 1
    assert "error:" in answer.stderr
    assert not (tmp_path / "no.html").exists()
    answer = RUN.invoke(app, ["report", str(tmp_path), "--out", "x.html"])
    assert "--out and --sample belong to a ticket's page" in answer.stderr


def test_a_page_never_replaces_its_ticket(tmp_path):
    file = tmp_path / "known.ticket"
    known = (Path(__file__).parents[1] / "known.ticket").read_bytes()
    file.write_bytes(known)
    (tmp_path / "link.html").symlink_to(file)
    (tmp_path / "folder.html").mkdir()
    cases = {"known.ticket": "end in .html", "link.html": "the ticket itself", "folder.html": "is a folder"}
    for out, said in cases.items():
        answer = RUN.invoke(app, ["report", str(file), "--out", str(tmp_path / out)])
        assert answer.exit_code == 1
        assert said in answer.stderr
    assert file.read_bytes() == known
