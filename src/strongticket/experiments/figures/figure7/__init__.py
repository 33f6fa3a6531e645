"""Figure 7: loss against non-zero parameters."""

from strongticket.experiments.figures.figure7._measure import measure as measure
from strongticket.experiments.figures.figure7._page import page as page
from strongticket.experiments.figures.figure7._page import prints as prints
