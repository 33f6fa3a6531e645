"""A page with every kind of block, for the tests."""

import base64

import numpy as np

from strongticket.report import (
    Chart,
    Curve,
    Facts,
    Heatmaps,
    Image,
    Images,
    Mask,
    Masks,
    Page,
    Panel,
    Plot,
    RunSummary,
    Section,
    Table,
    Text,
)
from strongticket.report.picture import mask_picture

DOT = base64.b64decode(mask_picture(np.ones((1, 1), dtype=bool)).light.partition(",")[2])  # a PNG
SUMMARY = RunSummary("strongticket test", 3, {"width": 64, "name": "a<b"}, {"error": 1e-9}, 12.345)
ROWS = [{"n": n, "error": 2.0**-n} for n in (4, 8, 12)]


def sample_page() -> Page:
    rng = np.random.default_rng(0)
    n, errors = [row["n"] for row in ROWS], [row["error"] for row in ROWS]
    band = [error / 2 for error in errors], [error * 2 for error in errors]
    curves = (
        Curve("<b>ours</b>", n, errors, 1, band=band),
        Curve("e^(−n) of n_K", n, [2 * error for error in errors], 2, "fit"),
    )
    chart = Chart("errors", "n", "error </script>", curves)
    bars = Chart("", "n", "error", (Curve("bars", n, errors, 3, shape="bars"),), log_y=False)
    return Page(
        "A page <of> everything",
        "The lead with **weight** and `code`.\n\nSecond paragraph & more.",
        (
            Section("Words", (Text("Plain *text*."), Facts((("4.2", "a fact"), ("7", "another"))))),
            Section(
                "Pictures",
                (
                    Masks(
                        (Mask("query", rng.random((2, 64)) < 0.5), Mask("key", rng.random((700, 3)) < 0.1))
                    ),
                    Heatmaps((Panel("a", rng.normal(size=(2, 2))), Panel("b", np.eye(2))), "Two matrices."),
                    Heatmaps((Panel("attention", rng.random((9, 9))),), "One map.", "", "query", "key"),
                    Heatmaps((Panel("long", rng.normal(size=(2, 64))),), "A strip."),
                    Images((Image("dot.png", "a dot", "A caption."),)),
                ),
            ),
            Section(
                "Numbers",
                (
                    Plot(chart, "Error falls with n.", "Caption </script>.", source="errors.csv"),
                    Plot(bars, "The same as bars.", height=300),
                    Table(("what", "bytes"), (("float32", 2048), ("a very long name in a cell", None))),
                ),
            ),
        ),
    )
