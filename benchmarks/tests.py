"""The tests themselves: `python -m benchmarks.tests [--json]`: how long they take, how many lines they run.

Coverage slows them down; lines that numba compiles and processes that tests start are not seen by it.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.harness import figure, main, tell

ROOT = Path(__file__).parents[1]
LEAST = 90  # percent


def run() -> dict:
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "coverage.json"
        measured = ["--cov=strongticket", f"--cov-report=json:{report}"]
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-n",
            "auto",
            "--dist",
            "loadfile",
            "--no-loadscope-reorder",
            *measured,
        ]
        environment = {
            **{"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},  # as `make test`
            "COVERAGE_FILE": f"{folder}/coverage",
        }
        start = time.perf_counter()
        done = subprocess.run(command, cwd=ROOT, env=os.environ | environment, stdout=sys.stderr)
        minutes = (time.perf_counter() - start) / 60
        found = json.loads(report.read_text())
    files = [
        {
            "file": name,
            "lines": entry["summary"]["num_statements"],
            "percent": entry["summary"]["percent_covered"],
        }
        for name, entry in found["files"].items()
    ]
    tell(f"exit code {done.returncode}")
    return {
        "least_covered": sorted(files, key=lambda row: row["percent"])[:12],
        "must_show": [
            figure("tests: exit code", done.returncode, "==", 0),
            figure("tests with coverage, minutes", minutes, "<", 10),
            figure("lines covered, percent", found["totals"]["percent_covered"], ">=", LEAST),
        ],
    }


if __name__ == "__main__":
    main(__doc__ or "", run)
