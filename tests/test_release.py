"""The release: wheel and sdist are built from this tree, and the wheel runs alone in an environment of its own."""

import os
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The folder with both archives; nothing is downloaded."""
    out = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(out)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return out


def test_the_version_is_the_same_everywhere(built):
    names = {path.name for path in built.iterdir()}
    (wheel,) = (name for name in names if name.endswith(".whl"))
    version = wheel.split("-")[1]
    assert names == {wheel, f"strongticket-{version}.tar.gz"}
    assert f"## {version}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"version = {{{version}}}" in (ROOT / "README.md").read_text(encoding="utf-8").replace("  ", " ")


def test_the_archives_hold_what_they_should(built):
    wheel = zipfile.ZipFile(next(built.glob("*.whl"))).namelist()
    for needed in (
        "py.typed",
        "theory/measured_constant.json",
        "reproduce/language.ticket",
        "report/web/page/main.js",
    ):
        assert f"strongticket/{needed}" in wheel
    assert not [name for name in wheel if name.startswith(("tests/", "docs/", "benchmarks/"))]
    with tarfile.open(next(built.glob("*.tar.gz"))) as archive:
        sources = {name.partition("/")[2] for name in archive.getnames()}
    assert {"pyproject.toml", "README.md", "LICENSE", "tests/known.ticket", "web/src/index.js"} <= sources


def test_the_wheel_installs_and_runs(built, tmp_path):
    """Alone: its dependencies come from this environment, its own files from the wheel."""
    venv.create(tmp_path / "env", with_pip=False)
    python = tmp_path / "env" / ("Scripts" if os.name == "nt" else "bin") / "python"
    where = subprocess.run(
        [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
        capture_output=True,
        text=True,
    ).stdout.strip()
    wheel = next(built.glob("*.whl"))
    target = ["--target", where, "--no-deps", "--no-index", "--no-compile", "--quiet"]
    subprocess.run([sys.executable, "-m", "pip", "install", *target, wheel], check=True)
    libraries = [path for path in sys.path if path.endswith("site-packages")]
    (Path(where) / "libraries.pth").write_text("\n".join(libraries))
    ticket = tmp_path / "known.ticket"
    ticket.write_bytes((ROOT / "tests" / "known.ticket").read_bytes())
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    program = "import strongticket.cli; print(strongticket.__file__); strongticket.cli.main()"
    for arguments in (["verify", ticket], ["report", ticket]):
        done = subprocess.run(
            [python, "-c", program, *arguments], cwd=tmp_path, env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout.splitlines()[0].startswith(where)
    assert "readTicket" in (tmp_path / "known.html").read_text(encoding="utf-8")


def test_the_demo_needs_no_extra(tmp_path):
    program = (
        "import sys; sys.modules['transformers'] = sys.modules['matplotlib'] = None\n"
        "from pathlib import Path; from strongticket.reproduce.demo import demo\n"
        "print(demo(Path('.'))['language']['loss'])"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) < 1.7
    assert (tmp_path / "index.html").exists()
