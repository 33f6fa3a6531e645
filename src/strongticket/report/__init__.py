"""Results -> one page to look at. `write_results` makes a results folder, `remake_page` draws it again."""

from strongticket.report.folder import RunSummary, remake_page, write_results
from strongticket.report.markup import number
from strongticket.report.page import (
    Cell,
    Chart,
    Curve,
    Facts,
    Heatmaps,
    Image,
    Images,
    Kind,
    Mask,
    Masks,
    Page,
    PageBlock,
    Panel,
    Plot,
    Section,
    Table,
    Text,
)

__all__ = [
    "Cell",
    "Chart",
    "Curve",
    "Facts",
    "Heatmaps",
    "Image",
    "Images",
    "Kind",
    "Mask",
    "Masks",
    "Page",
    "PageBlock",
    "Panel",
    "Plot",
    "RunSummary",
    "Section",
    "Table",
    "Text",
    "number",
    "remake_page",
    "write_results",
]
