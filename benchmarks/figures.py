"""What figures 4, 5 and 6 must show: `python -m benchmarks.figures [--json]`, minutes on two cores."""

import tempfile
from contextlib import contextmanager
from pathlib import Path

from benchmarks.harness import figure, main, tell
from strongticket.experiments.driver import Options, reproduce

FIGURES = ("figure4", "figure5", "figure6")
SHOWN = 32  # the width whose failing sources are among the figures to show; the table has all


@contextmanager
def announced(what: str):
    tell(what)
    yield lambda done, total: None


def run(quick: bool = False) -> dict:
    """quick: the tests' scale, whose numbers mean nothing: it shows only that everything runs."""
    with tempfile.TemporaryDirectory() as folder:
        options = Options(Path(folder), "test" if quick else "laptop")
        first = {name: reproduce(name, options, announced) for name in FIGURES}
        again = {name: reproduce(name, options, announced) for name in FIGURES}
        pages = [Path(result["page"]).stat().st_size for result in first.values()]
    seconds = sum(result["seconds"] for result in first.values())
    same = all(_numbers(first[name]) == _numbers(again[name]) for name in FIGURES)
    four, five, six = (first[name] for name in FIGURES)
    return {
        "seconds": [{"figure": name, "seconds": result["seconds"]} for name, result in first.items()],
        "failing_sources": [
            {"figure": name, **row} for name, result in first.items() for row in result["failures"]
        ],
        "must_show": [
            figure("figures 4, 5 and 6 together, seconds", seconds, "<", 600),
            figure("found again from the stored points: the same numbers", float(same), "==", 1),
            figure("largest page, bytes", max(pages), "<", 1_500_000),
            figure("figure 4: delta of ours (log fit, median)", four["delta"], ">=", 0.30),
            figure(
                "figure 4: our mean error over the integer program's, worst n",
                max(four["mean_error_over_mip"].values()),
                "<=",
                1,
                note=f"the program gave up on {four['mip_gave_up']} sources, left out of both means",
            ),
            figure(
                "figure 5: error at any T over error at T=4, worst n",
                max(five["largest_over_shortest"]["balanced"].values()),
                "<=",
                3,
            ),
            figure(
                "figure 6: R2 of the log fit with the shared delta, worst B",
                min(six["r2"]["ours"]),
                ">=",
                0.9,
            ),
            *(_share(name, first[name]["failures"]) for name in FIGURES if not quick),
        ],
    }


def _share(name: str, failures: list[dict]) -> dict:
    """The largest share of failing sources at one width, over the numbers of blocks; ours and the paper's."""
    shares: dict[str, float] = {}
    for row in failures:
        line = row.get("line") or row["assignment"]
        if row["n"] == SHOWN:
            shares[line] = max(row["share"], shares.get(line, 0.0))
    ours = shares.pop("ours", None)
    ours = shares.pop("balanced") if ours is None else ours
    others = ", ".join(f"{line} {share:.1%}" for line, share in shares.items())
    return figure(f"{name}: share that fails at n = {SHOWN}, ours (printed)", ours, "<=", 1, note=others)


def _numbers(result: dict) -> dict:
    return {name: value for name, value in result.items() if name not in ("seconds", "page")}


if __name__ == "__main__":
    main(__doc__, run, quick="the tests' scale: only that everything runs")
