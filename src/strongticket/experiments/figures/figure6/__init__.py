"""Figure 6: error against width for transformers of 1 to 6 blocks."""

from strongticket.experiments.figures.figure6._measure import measure as measure
from strongticket.experiments.figures.figure6._page import page as page
from strongticket.experiments.figures.figure6._page import prints as prints
