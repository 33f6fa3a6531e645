"""Results -> one page to look at. `write_results` makes a results folder, `remake_page` draws it again."""

from strongticket.report.folder import Summary, remake_page, write_results
from strongticket.report.page import (
    Block,
    Facts,
    Heatmaps,
    Image,
    Images,
    Mask,
    Masks,
    Page,
    Panel,
    Plot,
    Section,
    Table,
    Text,
)

__all__ = [
    "Block",
    "Facts",
    "Heatmaps",
    "Image",
    "Images",
    "Mask",
    "Masks",
    "Page",
    "Panel",
    "Plot",
    "Section",
    "Summary",
    "Table",
    "Text",
    "remake_page",
    "write_results",
]
