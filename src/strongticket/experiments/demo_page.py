"""What the demo found, told so that a person learns from it what a strong lottery ticket is."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from strongticket.experiments.angular import SAMPLES, walks
from strongticket.experiments.demo import PAPER_FITS, SOURCES, WIDTHS, Demo, fit, median_errors
from strongticket.nets import merge
from strongticket.report import (
    Block,
    Facts,
    Heatmaps,
    Mask,
    Masks,
    Page,
    Panel,
    Plot,
    Section,
    Table,
    Text,
)
from strongticket.report.html import number

MAP_LENGTH = 12  # points of the sequence whose attention is shown
SHOWN_ANSWERS = 400


def demo_page(demo: Demo) -> Page:
    lead = (
        "A *strong lottery ticket* is a part of a random network that already does what a trained network does. "
        f"Here is one. Its weights were drawn from a random generator with seed {demo.seed} and **not one of them "
        "was ever changed**. Some were switched off, by a mask of zeros and ones, and what is left computes what "
        f"a trained network computes, with an error of at most {number(demo.comparison.certificate.bound)} on every "
        "sequence of points within the unit circle, however long. So the whole network is a seed and a mask."
    )
    sections = (
        Section("In short", _facts(demo)),
        Section("One weight, from many random ones", _one_weight(demo)),
        Section("The mask is the network", _masks(demo)),
        Section("The same matrices", _matrices(demo)),
        Section("The same attention", _attention(demo)),
        Section("The same answers", _answers(demo)),
        Section("A little wider is much better", _widths(demo)),
        Section("What is in the file", _sizes(demo)),
        Section("Do it yourself", _commands()),
    )
    return Page("A network nobody trained", lead, sections)


def _facts(demo: Demo) -> tuple[Block, ...]:
    masks = demo.ticket.masks.values()
    weights, kept = sum(m.size for m in masks), sum(int(m.sum()) for m in masks)
    items = (
        (number(demo.test_error[4]), f"largest error on {SAMPLES:,} test sequences"),
        (number(demo.comparison.certificate.bound), "certified for every input in the unit circle"),
        (f"{kept} of {weights}", "random weights kept"),
        ("0", "trained weights in the ticket"),
        (f"{demo.ticket.sizes().file} bytes", "the whole ticket file"),
        (f"{demo.build_seconds:.2f} s", "to find it and prove it"),
    )
    return (Facts(items),)


def _one_weight(demo: Demo) -> tuple[Block, ...]:
    """Entry (0, 0) of value times output: what every unit has to offer, which are kept, and their sum."""
    masks = demo.ticket.masks
    products = _drawn(demo, "value")[0, 0].astype(float) * _drawn(demo, "output")[0, :, 0]
    kept = masks["value"][0, 0] & masks["output"][0, :, 0]
    running = np.cumsum(np.where(kept, products, 0.0))
    wanted = float(merge(demo.target.network, torch.float64).value_output[0, 0, 0])
    x = list(range(1, len(products) + 1))
    data = (
        _bars("kept", x, np.where(kept, products, 0.0), "var(--series-1)"),
        _bars("not used for this weight", x, np.where(kept, 0.0, products), "var(--series-6)", 0.35),
        {
            "type": "scatter",
            "name": "sum of the kept so far",
            "mode": "lines",
            "x": x,
            "y": running.tolist(),
            "line": {"color": "var(--series-2)", "shape": "hvh", "width": 2},
        },
        {
            "type": "scatter",
            "name": "the weight wanted",
            "mode": "lines",
            "x": [0.5, len(products) + 0.5],
            "y": [wanted, wanted],
            "line": {"color": "var(--ink)", "dash": "dot", "width": 1.5},
        },
    )
    layout = {
        "barmode": "overlay",
        "xaxis": {"title": {"text": "hidden unit"}, "dtick": 4},
        "yaxis": {"title": {"text": "random product"}},
    }
    off = abs(float(running[-1]) - wanted)
    caption = (
        f"The trained network needs the weight {_digits(wanted)}. The random one offers {len(products)} products "
        f"of two random weights; the {int(kept.sum())} kept for it add up to {_digits(running[-1])}, which is off "
        f"by {number(off)}."
    )
    alt = f"Bars of {len(products)} random products; the running sum of the kept ones ends on the wanted weight."
    text = Text(
        "Take a handful of random numbers. You may not change them, only keep or drop each. With n of them there "
        "are 2^(n) sums to choose from, so one of them comes within about 2^(−n) of any number you like. That is "
        "the *subset-sum problem*, and each weight of the trained network is one such problem. This program "
        "solves it exactly, in microseconds."
    )
    return (text, Plot(data, layout, alt, caption))


def _masks(demo: Demo) -> tuple[Block, ...]:
    masks = {name: mask[0] for name, mask in demo.ticket.masks.items()}
    masks["output"] = masks["output"].T
    drawn, kept = _drawn(demo, "key")[0], demo.ticket.weights("key")[0]
    pictures = Masks(
        tuple(Mask(name, masks[name]) for name in ("query", "key", "value", "output")),
        "The ticket: all of it. Columns are hidden units, rows are coordinates. A hidden unit keeps one of its "
        "query weights, so that it serves one row of the matrix to be made; its key weights are then kept or "
        "dropped as the subset sums ask. The same holds for value and output.",
    )
    strips = Heatmaps(
        (Panel("key: random, as drawn from the seed", drawn), Panel("key: what the mask leaves", kept)),
        "Random weights before and after the mask; dropped ones are blank, kept ones unchanged.",
        "Kept weights stay exactly as they were drawn; dropped ones are zero.",
    )
    text = Text(
        f"The random network is one attention head like the trained one, but with {demo.ticket.settings['key_dim']} "
        "hidden units instead of 8. These four pictures and the seed are everything there is to know about it."
    )
    return (text, pictures, strips)


def _matrices(demo: Demo) -> tuple[Block, ...]:
    goal, made = (merge(n, torch.float64) for n in (demo.target.network, demo.ticket.network()))
    blocks: list[Block] = [
        Text(
            "What an attention head computes depends on two products of its four weight matrices alone: queries "
            "with keys (who looks at whom) and values with outputs (what is passed on). The mask was chosen so "
            "that both come out right."
        )
    ]
    for name, title in (
        ("query_key", "Queries × keys"),
        ("value_output", "Values × outputs, lying on its side"),
    ):
        a, b = (getattr(network, name)[0].numpy() for network in (goal, made))
        a, b = (a.T, b.T) if name == "value_output" else (a, b)
        error = float(np.abs(a - b).max())
        blocks.append(
            Heatmaps(
                (Panel("trained", a), Panel("random and pruned", b)),
                f"{title}: both matrices look the same.",
                f"{title}. Largest difference of any entry: {number(error)}.",
            )
        )
    return tuple(blocks)


def _attention(demo: Demo) -> tuple[Block, ...]:
    x = demo.target.inputs(walks(demo.seed, "test", 1), MAP_LENGTH)[0].double()
    maps = []
    for network in (demo.target.network, demo.ticket.network()):
        query_key = merge(network, torch.float64).query_key[0]
        maps.append((x @ query_key @ x.T).softmax(-1).numpy())
    difference = float(np.abs(maps[0] - maps[1]).max())
    return (
        Text(
            f"One test sequence of {MAP_LENGTH} points, with the regression token before them: how much each row's "
            "position attends to each column's. Nobody told the random network about attention maps; they agree "
            "because the matrices do."
        ),
        Heatmaps(
            (Panel("trained", maps[0]), Panel("random and pruned", maps[1])),
            "The two attention maps look the same.",
            f"Largest difference of any attention weight: {number(difference)}.",
            rows="attends",
            columns="is attended to",
        ),
    )


def _answers(demo: Demo) -> tuple[Block, ...]:
    some = demo.answers[:SHOWN_ANSWERS].astype(float)
    low, high = float(some.min()), float(some.max())
    data = (
        {
            "type": "scatter",
            "name": "equal",
            "mode": "lines",
            "x": [low, high],
            "y": [low, high],
            "line": {"color": "var(--muted)", "dash": "dot", "width": 1.5},
        },
        {
            "type": "scatter",
            "name": "a test sequence",
            "mode": "markers",
            "x": some[:, 0].tolist(),
            "y": some[:, 1].tolist(),
            "marker": {"color": "var(--series-1)", "size": 5, "opacity": 0.7},
        },
    )
    layout = {
        "xaxis": {"title": {"text": "answer of the trained network"}},
        "yaxis": {"title": {"text": "answer of the ticket"}},
    }
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
            "The task is the paper's: points walk round the unit circle at a fixed angular velocity, and the "
            "network tells which. It is a hard task for so small a network, which cannot see the order of its "
            "inputs: always answering 0 has a mean squared error of π²/3 ≈ 3.29. That is of no account here. A "
            "ticket must copy the network it is built for, with its merits and its faults."
        ),
        Plot(
            data,
            layout,
            "Points on the diagonal: the ticket answers what the trained network answers.",
            f"{SHOWN_ANSWERS} test sequences; every point lies on the diagonal.",
            source="answers.csv",
        ),
        Table(
            ("on test data", "value"),
            rows,
            "Differences are the largest over all sequences and positions, the quantity of the theorems; the "
            "certificate needs no test data and holds for every input within the unit circle, every length and mask.",
        ),
    )


def _widths(demo: Demo) -> tuple[Block, ...]:
    ours, paper = (median_errors(demo, name) for name in ("balanced", "paper"))
    bound = median_errors(demo, "balanced", "certificate")
    spread = [[p.error for p in demo.sweep if (p.assignment, p.n) == ("balanced", n)] for n in WIDTHS]
    band = {
        "type": "scatter",
        "mode": "lines",
        "name": "range",
        "x": [*WIDTHS, *reversed(WIDTHS)],
        "y": [max(e) for e in spread] + [min(e) for e in reversed(spread)],
        "fill": "toself",
        "fillcolor": "var(--series-1-soft)",
        "line": {"width": 0},
        "hoverinfo": "skip",
        "showlegend": False,
    }
    data = [
        band,
        _line("ours", ours, "var(--series-1)"),
        _line("our certificate", bound, "var(--series-3)", dash="dash", markers=False),
        _line("paper's construction, solved exactly", paper, "var(--series-5)"),
    ]
    for (name, (gamma, delta)), colour in zip(PAPER_FITS.items(), (2, 4), strict=True):
        curve = [float(gamma * np.exp(-delta * n)) for n in WIDTHS]
        label = f"{name}: {gamma}·e<sup>−{delta}n</sup>"
        data.append(_line(label, curve, f"var(--series-{colour})", dash="dot", markers=False))
    layout = {
        "xaxis": {"title": {"text": "hidden units n of the random network"}, "dtick": 8},
        "yaxis": {"type": "log", "title": {"text": "largest output error"}, "dtick": 2},
    }
    fits = [("ours", *fit(ours)), ("paper's construction, solved exactly", *fit(paper))]
    fits += [(f"{name}, as printed", *values) for name, values in PAPER_FITS.items()]
    table = Table(
        ("ε = γ·e^(−δn)", "γ", "δ", "units for ten times less error"),
        tuple((name, gamma, delta, float(np.log(10) / delta)) for name, gamma, delta in fits),
        "Ours by least squares on log ε of the medians. The most to hope for is δ = ln 2 / 2 ≈ 0.347: two rows "
        "share the units, so that every two more double the sums that each can choose from.",
    )
    text = Text(
        "The theorem says that the error falls exponentially with the width of the random network. It does, and "
        "much faster than the paper measured, because here every subset-sum problem is solved to its optimum. Ours "
        "also gives each hidden unit to the row that can use it best; the paper's construction deals them out in "
        "order."
    )
    caption = f"Largest error on test sequences of 4 points; median and range over {SOURCES} random networks a width."
    alt = "On a logarithmic scale our error falls steeply in a straight line, the paper's fits hardly fall."
    return (text, Plot(tuple(data), layout, alt, caption, height=480, source="errors.csv"), table)


def _sizes(demo: Demo) -> tuple[Block, ...]:
    sizes = demo.ticket.sizes()
    trained = sum(p.numel() for p in demo.target.network.parameters())
    rows = (
        (f"the trained network, {trained} float32 weights", 4 * trained),
        ("the random network, float32", sizes.float32),
        ("the random network, float16", sizes.float16),
        ("its masks, one bit a weight", sizes.packed),
        ("its masks, entropy", round(sizes.entropy)),
        ("**the ticket file**: seed, masks, checksums, certificate", sizes.file),
    )
    planned, wanted = demo.plan.in_practice.layers[0].width, demo.plan.by_theorem.layers[0].width
    text = Text(
        "The file holds the seed, the masks, checksums of every weight, and the certificate. Against the random "
        "network that is little. Against so small a trained network it is much: a built ticket is a proof that "
        "training was not needed, not a way to save space.\n\n"
        f"For an error of 10^(−6) the plan expected {planned} hidden units to do; the build certified "
        f"{demo.ticket.settings['key_dim']}. The theorem, which must hold for any target, asks for {wanted}."
    )
    return (text, Table(("form", "bytes"), rows))


def _commands() -> tuple[Block, ...]:
    rows = (
        ("`strongticket show demo/demo.ticket`", "what the ticket is"),
        (
            "`strongticket verify demo/demo.ticket --against demo/target.safetensors`",
            "that it is whole, and how near",
        ),
        (
            "`strongticket build demo/target.safetensors --out my.ticket --epsilon 1e-8 --seed 7`",
            "another ticket, from another random network",
        ),
        ("`strongticket plan --epsilon 1e-3 --dim 64 --heads 4`", "what a larger one would take"),
    )
    return (Table(("command", "tells or makes"), rows),)


def _digits(value: float) -> str:
    return f"{value:.7f}".replace("-", "−")


def _drawn(demo: Demo, name: str) -> np.ndarray:
    """The tensor's random weights before any mask."""
    from strongticket.seeds import draw

    ticket = demo.ticket
    return draw(ticket.seed, name, ticket.masks[name].shape, ticket.distributions[name])


def _bars(name: str, x: list[int], heights: np.ndarray, colour: str, opacity: float = 1) -> dict[str, Any]:
    y = [float(h) if h else None for h in heights]
    return {"type": "bar", "name": name, "x": x, "y": y, "marker": {"color": colour, "opacity": opacity}}


def _line(
    name: str, y: list[float], colour: str, *, dash: str = "solid", markers: bool = True
) -> dict[str, Any]:
    return {
        "type": "scatter",
        "name": name,
        "mode": "lines+markers" if markers else "lines",
        "x": list(WIDTHS),
        "y": y,
        "line": {"color": colour, "dash": dash, "width": 2},
    }
