"""Random weights a second, and the time until a command answers: `python -m benchmarks.speed [--json]`, seconds."""

import subprocess
import sys
from functools import partial

from benchmarks.harness import Row, fastest, figure, main
from strongticket.seeds import Normal, Uniform, draw

WEIGHTS = 40_000_000
COMMANDS = {
    "python alone": ["-c", "pass"],
    "import strongticket": ["-c", "import strongticket"],
    "strongticket --help": ["-m", "strongticket", "--help"],
}


def run() -> Row:
    draws = {}
    for law in (Uniform(1.0), Normal(1.0)):
        draw(0, "warm-up", (1000,), law)
        for threads in (1, 2):
            draws[law, threads] = partial(draw, 0, "weights", (WEIGHTS,), law, threads=threads)
    started = partial(subprocess.run, check=True, stdout=subprocess.DEVNULL)
    commands = {name: partial(started, [sys.executable, *words]) for name, words in COMMANDS.items()}
    rate = {case: WEIGHTS / seconds / 1e6 for case, seconds in fastest(draws).items()}
    seconds = fastest(commands, repeats=10)
    uniform = max(rate[Uniform(1.0), threads] for threads in (1, 2))
    return {
        "millions_of_weights_a_second": [
            {"law": str(law), "threads": threads, "millions": found} for (law, threads), found in rate.items()
        ],
        "startup": [{"what": what, "seconds": taken} for what, taken in seconds.items()],
        "must_show": [
            figure("million uniform weights a second on two cores", uniform, ">=", 100),
            figure("seconds to import strongticket", seconds["import strongticket"], "<", 0.5),
            figure("seconds for strongticket --help", seconds["strongticket --help"], "<", 0.7),
        ],
    }


if __name__ == "__main__":
    main(__doc__, run)
