"""Compiled code without a place to keep it."""

import os
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

from numba.extending import is_jitted
from tests.choice.test_choice_bytes import PROGRAM as CHOICES

import strongticket
from strongticket.compiled import njit

PROGRAM = """
import sys
import strongticket
from strongticket.cli import main
assert strongticket.__file__.startswith(sys.argv.pop())
main()
"""


SMALL_BUILDS = """
import hashlib
import torch
from strongticket import nets
from strongticket.builders import build, build_network

target = nets.initialise(nets.MultiHeadAttention(4, 4, 1, 2, 2), seed=0)
model = torch.nn.Linear(6, 5)
model.weight.data = torch.arange(30).reshape(5, 6) / 30 - 0.4
model.bias.data = torch.arange(5) / 7
model = torch.nn.Sequential(model)
by = [build(model, by=by, per_row=12, workers=1) for by in ("choice", "subset")]
tickets = build_network(target, width=24), *by
digest = hashlib.sha256(b"".join(ticket.to_bytes() for ticket in tickets)).hexdigest()
"""


def test_the_same_bytes_on_a_processor_without_vectors(tmp_path):
    """Also in a folder with a space in its name. Numba keeps the code of each processor, so this compiles once."""
    here: dict[str, str] = {}
    expected = []
    for program in (SMALL_BUILDS, CHOICES):
        exec(program, here)
        expected.append(here["digest"])
    folder = tmp_path / "with space"
    folder.mkdir()
    done = subprocess.run(
        [sys.executable, "-c", "print(digest)".join([SMALL_BUILDS, CHOICES, ""])],
        env=os.environ | {"NUMBA_CPU_NAME": "generic", "TMPDIR": str(folder)},
        capture_output=True,
        text=True,
        cwd=folder,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == expected


def test_commands_work_where_compiled_code_cannot_be_kept(tmp_path):
    """Neither beside the package nor in a home: files stand where the cache folders would be, also for root."""
    package = tmp_path / "site" / "strongticket"
    shutil.copytree(Path(strongticket.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    for folder in {path.parent for path in package.rglob("*.py")}:
        (folder / "__pycache__").write_text("")
    (tmp_path / "home").write_text("")
    blocked = {"HOME": str(tmp_path / "home"), "XDG_CACHE_HOME": str(tmp_path / "home")}
    ticket = Path(__file__).parent / "known.ticket"
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, "verify", str(ticket), "--json", str(package)],
        env=os.environ | blocked | {"PYTHONPATH": str(package.parent)},
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert '"not_checked"' in done.stdout


def test_it_is_numbas_with_its_options():
    made = njit(error_model="numpy", cache=False)(lambda x: 1 / x)
    assert is_jitted(made.dispatcher)
    assert made(0.0) == float("inf")


def test_without_a_home_no_folder_named_tilde_appears(tmp_path, monkeypatch):
    """A user who is not in the list of users, and code that cannot be kept beside its source."""
    (tmp_path / "code.py").write_text("def double(x):\n    return 2 * x\n")
    (tmp_path / "__pycache__").write_text("")
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    for name in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    double = njit()(runpy.run_path(str(tmp_path / "code.py"))["double"])
    assert double(2) == 4
    assert not list((tmp_path / "here").iterdir())
