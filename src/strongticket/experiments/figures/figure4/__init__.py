"""Figure 4: error against width."""

from strongticket.experiments.figures.figure4._measure import measure as measure
from strongticket.experiments.figures.figure4._page import page as page
from strongticket.experiments.figures.figure4._page import prints as prints
