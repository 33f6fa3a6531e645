"""What figures 4, 5 and 6 must show: `python -m benchmarks.figures [--json] [--searched]`, minutes on two cores.

With --searched also figures 7 and 8, half an hour.
"""

import tempfile
from pathlib import Path

from benchmarks.harness import figure, main, progress_of
from strongticket.experiments.driver import Options, reproduce

FIGURES = ("figure4", "figure5", "figure6")
SHOWN = 32  # the width whose failing sources are among the figures to show; the table has all


def run(quick: bool = False, searched: bool = False) -> dict:
    """quick: the tests' scale, whose numbers mean nothing: it shows only that everything runs."""
    with tempfile.TemporaryDirectory() as folder:
        options = Options(Path(folder), "test" if quick else "laptop")
        first = {name: reproduce(name, options, progress_of) for name in FIGURES}
        again = {name: reproduce(name, options, progress_of) for name in FIGURES}
        more, shown = searched_figures(options) if searched else ([], [])
        pages = [Path(result["page"]).stat().st_size for result in first.values()]
    seconds = sum(result["seconds"] for result in first.values())
    same = all(_numbers(first[name]) == _numbers(again[name]) for name in FIGURES)
    four, five, six = (first[name] for name in FIGURES)
    return {
        "seconds": [{"figure": name, "seconds": result["seconds"]} for name, result in first.items()],
        "failing_sources": [
            {"figure": name, **row} for name, result in first.items() for row in result["failures"]
        ],
        **({"figure_8": more} if searched else {}),
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
            *shown,
        ],
    }


def searched_figures(options: Options) -> tuple[list[dict], list[dict]]:
    """Figures 8 and 7: the main valley's losses, and what they must show."""
    eight, seven = (reproduce(name, options, progress_of) for name in ("figure8", "figure7"))
    valley = eight["valleys"][0]
    points = zip(valley["scales"], valley["loss"], valley["loss_std"], strict=True)
    rows = [{"scale": scale, "loss": loss, "std": std} for scale, loss, std in points]
    ratio = valley["best_scale"] / valley["paper_scale"]
    minutes = (eight["cpu_seconds"] + seven["cpu_seconds"]) / 2 / 60
    note = "processor time of all runs over two; those that both figures show are counted twice"
    return rows, [
        figure("figure 8: best scale and n_K^1/4, factor between them", max(ratio, 1 / ratio), "<=", 1.6),
        figure("figure 8: lowest loss below x1, in stds", valley["gain_over_1_in_stds"] or 0.0, ">=", 4),
        figure("figure 7: least gain by scaling", min(each["gain"] for each in seven["gains"]), ">", 0),
        figure("figures 7 and 8: minutes on two cores", minutes, "<", 30, note=note),
    ]


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
    main(
        __doc__ or "",
        run,
        quick="the tests' scale: only that everything runs",
        searched="also figures 7 and 8",
    )
