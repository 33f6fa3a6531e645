"""Compiled code without a place to keep it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numba

import strongticket
from strongticket.compiled import njit

PROGRAM = """
import sys
import strongticket
from strongticket.cli import main
assert strongticket.__file__.startswith(sys.argv.pop())
main()
"""


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
    assert '"ok": true' in done.stdout


def test_it_is_numbas_with_its_options():
    made = njit(error_model="numpy", cache=False)(lambda x: 1 / x)
    assert isinstance(made.dispatcher, numba.core.registry.CPUDispatcher)
    assert made(0.0) == float("inf")
