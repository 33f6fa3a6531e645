"""Asking by width or by accuracy."""

from collections.abc import Callable
from typing import TypeVar

from strongticket import checks
from strongticket.builders.options import BuildOptions
from strongticket.checks import Real
from strongticket.errors import StrongTicketError
from strongticket.subset_sum import MAX_EXACT

Width = TypeVar("Width")
Built = TypeVar("Built")

FIRST, LAST = 4, MAX_EXACT  # units per row tried first, and at most: beyond, subset sums are no longer exact


def build_sized(
    build: Callable[[Width], Built],
    width_of: Callable[[int], Width],
    bound_of: Callable[[Built], float],
    options: BuildOptions,
    width: Width | None,
) -> Built:
    """Build at the width asked for, or at the narrowest that `narrowest` finds certified to `epsilon`.

    Args:
        build: makes what is wanted at a width.
        width_of: the width that gives every row this many units.
        bound_of: the certified error of what was built.
        options: one of width, per_row and epsilon is given.
        width: options.width, spelled out for every product.
    """
    per_row, epsilon = options.per_row, options.epsilon
    asked = dict(width=width, per_row=per_row, epsilon=epsilon)
    given = [name for name, value in asked.items() if value is not None]
    if len(given) != 1:
        raise StrongTicketError(
            f"{' and '.join(given) or 'nothing'} given: expected exactly one of width (hidden units), "
            "per_row (hidden units per row) and epsilon (certified accuracy)",
            hint="Give one, such as epsilon 1e-3.",
        )
    if width is not None:
        return build(width)
    if per_row is not None:
        checks.whole(per_row=per_row)
        return build(width_of(per_row))
    if epsilon is None or not epsilon > 0:
        raise StrongTicketError(f"epsilon={epsilon!r}: expected a number above 0")
    return narrowest(lambda n: build(width_of(n)), bound_of, epsilon)


def narrowest(build: Callable[[int], Built], bound_of: Callable[[Built], float], epsilon: Real) -> Built:
    """Double the units per row from FIRST until the bound reaches epsilon, then bisect; every step really builds.

    The narrowest of all where the bound falls with the width; other widths are other sources, so it need not.
    """
    failed, works = FIRST - 1, FIRST
    while bound_of(best := build(works)) > epsilon:
        if works == LAST:
            raise StrongTicketError(
                f"epsilon={epsilon:g} was not reached: with {LAST} units per row the certified error is "
                f"{bound_of(best):.3g}",
                hint="Ask for a larger epsilon, a smaller radius, or float64: float32 outputs are rounded.",
            )
        failed, works = works, min(2 * works, LAST)
    while works - failed > 1:
        middle = (works + failed) // 2
        built = build(middle)
        if bound_of(built) <= epsilon:
            works, best = middle, built
        else:
            failed = middle
    return best
