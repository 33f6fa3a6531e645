"""The sections of the demo's page that have a plot."""

from __future__ import annotations

import numpy as np
import torch

from strongticket.experiments.demo._measure import SOURCES, WIDTHS, Demo
from strongticket.experiments.fit import PRINTED
from strongticket.nets import merge
from strongticket.report import Chart, Curve, PageBlock, Plot, Table, Text, number
from strongticket.seeds import draw

SHOWN_ANSWERS = 400


def one_weight(demo: Demo) -> tuple[PageBlock, ...]:
    """Explain entry (0, 0) of value times output: what every unit offers, which are kept, and their sum."""
    masks = demo.ticket.masks
    products = drawn(demo, "value")[0, 0].astype(float) * drawn(demo, "output")[0, :, 0]
    kept = masks["value"][0, 0] & masks["output"][0, :, 0]
    running = np.cumsum(np.where(kept, products, 0.0))
    wanted = float(merge(demo.target.network, torch.float64).value_output[0, 0, 0])
    x = list(range(1, len(products) + 1))
    chart = Chart(
        "",
        "hidden unit",
        "random product",
        (
            Curve("kept", x, np.where(kept, products, 0.0).tolist(), 1, shape="bars"),
            Curve(
                "not used for this weight", x, np.where(kept, 0.0, products).tolist(), 6, "fit", shape="bars"
            ),
            Curve("sum of the kept so far", x, running.tolist(), 2, marker="", shape="steps"),
            Curve("the weight wanted", (x[0], x[-1]), (wanted, wanted), 3, "printed"),
        ),
        log_y=False,
    )
    off = abs(float(running[-1]) - wanted)
    caption = (
        f"The trained network needs the weight {_digits(wanted)}. The random one offers {len(products)} "
        f"products of two random weights; the {int(kept.sum())} kept for it add up to "
        f"{_digits(running[-1])}, which is off by {number(off)}."
    )
    alt = f"Bars of {len(products)} random products; the running sum of the kept ones ends on the wanted weight."
    text = Text(
        "Take a handful of random numbers. You may not change them, only keep or drop each. With n of "
        "them there are 2^(n) sums to choose from, so one of them comes within about 2^(−n) of any number "
        "you like. That is the *subset-sum problem*, and each weight of the trained network is one such "
        "problem. This program solves it exactly, in microseconds."
    )
    return (text, Plot(chart, alt, caption))


def answers(demo: Demo) -> tuple[PageBlock, ...]:
    """Compare what target and ticket answer on test data."""
    some = demo.answers[:SHOWN_ANSWERS].astype(float)
    low, high = float(some.min()), float(some.max())
    chart = Chart(
        "",
        "answer of the trained network",
        "answer of the ticket",
        (
            Curve("equal", (low, high), (low, high), 6, "printed"),
            Curve("a test sequence", some[:, 0].tolist(), some[:, 1].tolist(), 1, line=False),
        ),
        log_y=False,
    )
    rows = (
        ("mean squared error of the trained network", demo.target.test_loss),
        ("mean squared error of the ticket", demo.test_loss),
        *(
            (f"largest difference between the two, sequences of {length} points", error)
            for length, error in demo.test_error.items()
        ),
        ("largest difference that an attack by gradient ascent found", demo.attacked),
        ("certified: largest difference possible", demo.comparison.certificate.bound),
        ("the paper's own bound on the same weights", demo.comparison.certificate.paper_bound),
    )
    return (
        Text(
            "The task is the paper's: points walk round the unit circle at a fixed angular velocity, and "
            "the network estimates which. It is a hard task for so small a network, which cannot see the "
            "order of its inputs: always answering 0 has a mean squared error of π²/3 ≈ 3.29. That does "
            "not matter here: a ticket must copy the network it is built for, with its merits and its "
            "faults."
        ),
        Plot(
            chart,
            "Points on the diagonal: the ticket answers what the trained network answers.",
            f"{SHOWN_ANSWERS} test sequences; every point lies on the diagonal.",
            source="answers.csv",
        ),
        Table(
            ("on test data", "value"),
            rows,
            "Differences are the largest over all sequences and positions, the quantity of the theorems; "
            "the certificate needs no test data and holds for every input within the unit circle, every "
            "length and mask.",
        ),
    )


def widths(demo: Demo) -> tuple[PageBlock, ...]:
    """Show how the error falls with the width of the random network."""
    ours, paper = (demo.medians(name) for name in ("balanced", "paper"))
    bound = demo.medians("balanced", "certificate")
    errors = [[t.error for t in demo.sweep if (t.assignment, t.n) == ("balanced", n)] for n in WIDTHS]
    band = [min(some) for some in errors], [max(some) for some in errors]
    curves = [
        Curve("ours", WIDTHS, ours, 1, band=band),
        Curve("our certificate", WIDTHS, bound, 3, "bound"),
        Curve("paper's construction, solved exactly", WIDTHS, paper, 5),
    ]
    for (name, (gamma, delta)), colour in zip(PRINTED.items(), (2, 4), strict=True):
        printed = [float(gamma * np.exp(-delta * n)) for n in WIDTHS]
        curves.append(Curve(f"{name}: {gamma}·e^(−{delta}n)", WIDTHS, printed, colour, "printed"))
    chart = Chart("", "hidden units n of the random network", "largest output error", tuple(curves))
    our_fit, paper_fit = demo.fit("balanced"), demo.fit("paper")
    fits = [
        ("ours", our_fit.gamma, our_fit.delta),
        ("paper's construction, solved exactly", paper_fit.gamma, paper_fit.delta),
    ]
    fits += [(f"{name}, as printed", *values) for name, values in PRINTED.items()]
    table = Table(
        ("ε = γ·e^(−δn)", "γ", "δ", "units for ten times less error"),
        tuple((name, gamma, delta, float(np.log(10) / delta)) for name, gamma, delta in fits),
        "Ours by least squares on log ε of the medians. The best to hope for is δ = ln 2 / 2 ≈ 0.347: two "
        "rows share the units, so every two more double the sums that each can choose from.",
    )
    text = Text(
        "The theorem says that the error falls exponentially with the width of the random network. It "
        "does, and much faster than the paper reports: here the random weights are drawn as its proof "
        "asks, and every subset-sum problem is solved to its optimum. Ours also gives each hidden unit to "
        "the row that can use it best, where the paper's construction hands them out in order."
    )
    caption = f"Largest error on test sequences of 4 points; median and range over {SOURCES} random networks per width."
    alt = "On a logarithmic scale our error falls steeply in a straight line, the paper's fits hardly fall."
    return (text, Plot(chart, alt, caption, height=480, source="errors.csv"), table)


def drawn(demo: Demo, name: str) -> np.ndarray:
    """Return a tensor's random weights before any mask.

    name: of the tensor, such as "query"
    """
    ticket = demo.ticket
    return draw(ticket.seed, name, ticket.masks[name].shape, ticket.laws[name])


def _digits(value: float) -> str:
    return f"{value:.7f}".replace("-", "−")
