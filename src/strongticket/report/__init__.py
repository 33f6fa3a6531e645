"""Results -> one page to look at. `write_results` makes a results folder, `remake_page` draws it again."""

from strongticket.report.folder import RunSummary as RunSummary
from strongticket.report.folder import remake_page as remake_page
from strongticket.report.folder import write_results as write_results
from strongticket.report.markup import number as number
from strongticket.report.page import Cell as Cell
from strongticket.report.page import Chart as Chart
from strongticket.report.page import Curve as Curve
from strongticket.report.page import Facts as Facts
from strongticket.report.page import Heatmaps as Heatmaps
from strongticket.report.page import Image as Image
from strongticket.report.page import Images as Images
from strongticket.report.page import Kind as Kind
from strongticket.report.page import Mask as Mask
from strongticket.report.page import Masks as Masks
from strongticket.report.page import Page as Page
from strongticket.report.page import PageBlock as PageBlock
from strongticket.report.page import Panel as Panel
from strongticket.report.page import Plot as Plot
from strongticket.report.page import Section as Section
from strongticket.report.page import Table as Table
from strongticket.report.page import Text as Text
from strongticket.report.ticket_page import write_ticket_page as write_ticket_page
