"""How long `import strongticket` and `strongticket --help` take: `python -m benchmarks.startup [--json]`."""

import subprocess
import sys
from pathlib import Path

from benchmarks.harness import fastest, figure, main

COMMAND = Path(sys.executable).parent / "strongticket"


def run() -> dict:
    seconds = fastest(
        {
            "python alone": lambda: subprocess.run([sys.executable, "-c", "pass"], check=True),
            "import strongticket": lambda: subprocess.run(
                [sys.executable, "-c", "import strongticket"], check=True
            ),
            "strongticket --help": lambda: subprocess.run(
                [COMMAND, "--help"], check=True, stdout=subprocess.DEVNULL
            ),
        },
        repeats=10,
    )
    return {
        "startup": [{"what": what, "seconds": taken} for what, taken in seconds.items()],
        "must_show": [
            figure("seconds to import strongticket", seconds["import strongticket"], "<", 0.5),
            figure("seconds for strongticket --help", seconds["strongticket --help"], "<", 0.7),
        ],
    }


if __name__ == "__main__":
    main(__doc__, run)
