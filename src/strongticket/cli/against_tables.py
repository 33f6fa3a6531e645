"""Tables of a comparison with one of the theorems' networks."""

from rich.console import RenderableType

from strongticket.cli.frame import table
from strongticket.cli.show import certificate_line
from strongticket.files import JsonObject


def nets_tables(found: JsonObject) -> list[RenderableType]:
    """What `compare_nets` found."""
    head = table(f"against {found['target']}", "", "")
    head.add_row("certified now", certificate_line(found["certificate"]))
    measured = f"{found['measured_error']:.3g} at most, {found['mean_error']:.3g} on average"
    head.add_row("measured", f"{measured}, on {found['inputs']:,} random inputs")
    relative = found["relative"]
    head.add_row(
        "relative to the output",
        f"certified to {relative['bound']:.3g}, measured {relative['measured']:.3g} (mean output "
        f"{found['mean_output']:.3g})",
    )
    matrices = table(
        "error of every matrix", "matrix", "shape", "largest entry", "largest error", numbers=(2, 3)
    )
    for m in found["matrices"]:
        shape = " × ".join(map(str, m["shape"]))
        matrices.add_row(m["name"], shape, f"{m['largest']:.3g}", f"{m['error']:.3g}")
    return [head, "", matrices]
