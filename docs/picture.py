"""Draws the README's picture, docs/images/ticket.png, from the demo's language ticket: `python docs/picture.py`."""

import textwrap
from importlib.resources import files
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from strongticket import Ticket, draw

TENSOR = "model.layers.0.mlp.up_proj.weight"
WINDOW = 40  # rows and columns of it that are shown
LETTERS = 130


def main() -> None:
    ticket = Ticket.from_bytes((files("strongticket.reproduce") / "language.ticket").read_bytes())
    mask = ticket.masks[TENSOR]
    random = draw(ticket.seed, TENSOR, mask.shape, ticket.laws[TENSOR])
    panels = [
        ("random weights", random[:WINDOW, :WINDOW], "RdBu_r"),
        ("mask", mask[:WINDOW, :WINDOW], "gray_r"),
        ("what is left", (random * mask)[:WINDOW, :WINDOW], "RdBu_r"),
    ]
    figure, axes = plt.subplots(1, 3, figsize=(9, 4.6), dpi=110)
    figure.subplots_adjust(0.02, 0.36, 0.98, 0.93, wspace=0.22)
    for axis, (title, picture, colours) in zip(axes, panels, strict=True):
        low, high = (0, 1) if picture.dtype == bool else 1.6 * np.abs(picture).max() * np.array([-1, 1])
        axis.imshow(picture, cmap=colours, vmin=low, vmax=high, interpolation="nearest")
        axis.set(title=title, xticks=[], yticks=[])
    for x, sign in ((0.327, "×"), (0.664, "=")):
        figure.text(x, 0.645, sign, fontsize=26, ha="center", va="center")
    unmasked = {name: np.ones_like(kept) for name, kept in ticket.masks.items()}
    everything = Ticket(
        ticket.seed, ticket.kind, ticket.settings, ticket.laws, unmasked, metadata=ticket.metadata
    )
    lines = {
        "all random weights write": _text(everything),
        f"the {sum(int(m.sum()) for m in ticket.masks.values()):,} kept ones write": _text(ticket),
    }
    for x, (who, text) in zip((0.02, 0.52), lines.items(), strict=True):
        figure.text(x, 0.29, who, fontsize=11, weight="bold", va="top")
        figure.text(x, 0.225, text, fontsize=9.5, family="monospace", va="top", linespacing=1.35)
    out = Path(__file__).parent / "images" / "ticket.png"
    figure.savefig(out, metadata={"Software": None})
    print(out)


def _text(ticket: Ticket) -> str:
    written = "The " + "".join(ticket.generate("The ", tokens=LETTERS, temperature=0.6, seed=3))
    plain = "".join(letter if letter.isprintable() else " " for letter in written)
    words = plain.split()
    line = " ".join(words) if len(words) > 1 else plain.replace(" ", "␣")  # nothing but spaces: show them
    return "\n".join(textwrap.wrap(line, 52, break_long_words=True)[:4])


if __name__ == "__main__":
    main()
