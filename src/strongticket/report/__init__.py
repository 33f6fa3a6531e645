"""Results -> one page to look at. `write_results` makes a results folder, `remake_page` draws it again."""

from strongticket.report.folder import RunSummary, remake_page, write_results
from strongticket.report.html import number
from strongticket.report.page import (
    Cell,
    Facts,
    Heatmaps,
    Image,
    Images,
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
    "Facts",
    "Heatmaps",
    "Image",
    "Images",
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
