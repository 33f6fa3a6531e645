"""Figure 8: loss against the scale of queries and keys."""

from strongticket.experiments.figures.figure8._measure import measure as measure
from strongticket.experiments.figures.figure8._page import page as page
from strongticket.experiments.figures.figure8._page import prints as prints
