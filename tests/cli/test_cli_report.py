import json

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
