"""The demo's page: what a strong lottery ticket is, explained on one."""

from __future__ import annotations

import numpy as np
import torch

from strongticket.experiments.chart import Print
from strongticket.experiments.demo._measure import Demo
from strongticket.experiments.demo._plots import answers, drawn, one_weight, widths
from strongticket.experiments.tasks.angular import SAMPLES, walks
from strongticket.nets import merge
from strongticket.report import (
    Facts,
    Heatmaps,
    Mask,
    Masks,
    Page,
    PageBlock,
    Panel,
    Section,
    Table,
    Text,
    number,
)

MAP_LENGTH = 12  # points of the sequence whose attention is shown


def prints(demo: Demo) -> tuple[Print, ...]:
    """Return the charts for print: the demo has only a page."""
    return ()


def page(demo: Demo) -> Page:
    """Return the page."""
    lead = (
        "A *strong lottery ticket* is a part of a random network that already does what a trained network "
        f"does. Here is one. Its weights were drawn from a random generator with seed {demo.seed} and "
        "**not one of them was ever changed**. Some were switched off, by a mask of zeros and ones, and "
        "what is left computes what a trained network computes, with an error of at most "
        f"{number(demo.comparison.certificate.bound)} on every sequence of points within the unit circle, "
        "however long. So the whole network is a seed and a mask."
    )
    sections = (
        Section("In short", _facts(demo)),
        Section("One weight, from many random ones", one_weight(demo)),
        Section("The mask is the network", _masks(demo)),
        Section("The same matrices", _matrices(demo)),
        Section("The same attention", _attention(demo)),
        Section("The same answers", answers(demo)),
        Section("A little wider is much better", widths(demo)),
        Section("What is in the file", _sizes(demo)),
        Section("Do it yourself", _commands()),
    )
    return Page("A random network that does what a trained one does", lead, sections)


def _facts(demo: Demo) -> tuple[PageBlock, ...]:
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


def _masks(demo: Demo) -> tuple[PageBlock, ...]:
    masks = {name: mask[0] for name, mask in demo.ticket.masks.items()}
    masks["output"] = masks["output"].T
    before, after = drawn(demo, "key")[0], demo.ticket.weights("key")[0]
    pictures = Masks(
        tuple(Mask(name, masks[name]) for name in ("query", "key", "value", "output")),
        "The ticket: all of it. Columns are hidden units, rows are coordinates. A hidden unit keeps one "
        "of its query weights, so that it serves one row of the target matrix; its key weights are then "
        "kept or dropped as the subset sums require. The same holds for value and output.",
    )
    strips = Heatmaps(
        (Panel("key: random, as drawn from the seed", before), Panel("key: what the mask leaves", after)),
        "Random weights before and after the mask; dropped ones are blank, kept ones unchanged.",
        "Kept weights stay exactly as they were drawn; dropped ones are zero.",
    )
    text = Text(
        "The random network is one attention head like the trained one, but with "
        f"{demo.ticket.settings['key_dim']} hidden units instead of 8. These four pictures and the seed "
        "are everything there is to know about it."
    )
    return (text, pictures, strips)


def _matrices(demo: Demo) -> tuple[PageBlock, ...]:
    trained, pruned = (merge(n, torch.float64) for n in (demo.target.network, demo.ticket.network()))
    blocks: list[PageBlock] = [
        Text(
            "What an attention head computes depends on two products of its four weight matrices alone: "
            "queries with keys (who looks at whom) and values with outputs (what is passed on). The mask "
            "was chosen so that both come out right."
        )
    ]
    for name, title in (
        ("query_key", "Queries × keys"),
        ("value_output", "Values × outputs, transposed"),
    ):
        a, b = (getattr(network, name)[0].numpy() for network in (trained, pruned))
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


def _attention(demo: Demo) -> tuple[PageBlock, ...]:
    x = demo.target.inputs(walks(demo.seed, "test", 1), MAP_LENGTH)[0].double()
    maps = []
    for network in (demo.target.network, demo.ticket.network()):
        query_key = merge(network, torch.float64).query_key[0]
        maps.append((x @ query_key @ x.T).softmax(-1).numpy())
    difference = float(np.abs(maps[0] - maps[1]).max())
    return (
        Text(
            f"One test sequence of {MAP_LENGTH} points, with the regression token before them: how much "
            "each row's position attends to each column's. The random network was never shown an "
            "attention map; the maps agree because the matrices do."
        ),
        Heatmaps(
            (Panel("trained", maps[0]), Panel("random and pruned", maps[1])),
            "The two attention maps look the same.",
            f"Largest difference of any attention weight: {number(difference)}.",
            rows="attends",
            columns="is attended to",
        ),
    )


def _sizes(demo: Demo) -> tuple[PageBlock, ...]:
    sizes = demo.ticket.sizes()
    trained = sum(p.numel() for p in demo.target.network.parameters())
    rows = (
        (f"the trained network, {trained} float32 weights", 4 * trained),
        ("the random network, float32", sizes.float32),
        ("the random network, float16", sizes.float16),
        ("its masks, one bit per weight", sizes.packed),
        ("its masks, entropy", round(sizes.entropy)),
        ("**the ticket file**: seed, masks, checksums, certificate", sizes.file),
    )
    planned, wanted = demo.plan.in_practice.layers[0].width, demo.plan.by_theorem.layers[0].width
    text = Text(
        "The file holds the seed, the masks, checksums of every weight, and the certificate. The masks are "
        "the smallest part of it; for a network this small, the rest takes more bytes than the trained weights. "
        "A built ticket is a proof that training was not needed, not a way to save space.\n\nFor an error "
        f"of 10^(−6) the plan expected {planned} hidden units to suffice; the build certified "
        f"{demo.ticket.settings['key_dim']}. The theorem, which must hold for any target, asks for "
        f"{wanted}."
    )
    return (text, Table(("form", "bytes"), rows))


def _commands() -> tuple[PageBlock, ...]:
    rows = (
        ("`strongticket show demo/attention/attention.ticket`", "what the ticket is"),
        (
            "`strongticket verify demo/attention/attention.ticket --against demo/attention/target.safetensors`",
            "that it is intact, and how close it comes",
        ),
        (
            "`strongticket build demo/attention/target.safetensors --out my.ticket --epsilon 1e-8 "
            "--arithmetic float64 --seed 7`",
            "another ticket, from another random network",
        ),
        ("`strongticket plan --epsilon 1e-3 --dim 64 --heads 4`", "what a larger ticket would need"),
    )
    return (Table(("command", "what it shows or makes"), rows),)
