import pytest
from tests.browser import browser  # noqa: F401 (a fixture)
from typer.testing import CliRunner

from strongticket.cli import app


@pytest.fixture(scope="session")
def home(tmp_path_factory):
    """A working folder in which the demo has been run."""
    folder = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        answer = CliRunner().invoke(app, ["demo", "--json"])
    assert answer.exit_code == 0, answer.stderr
    (folder / "demo.json").write_text(answer.stdout)
    return folder
