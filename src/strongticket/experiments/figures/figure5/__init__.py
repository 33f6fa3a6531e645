"""Figure 5: error against sequence length."""

from strongticket.experiments.figures.figure5._measure import measure as measure
from strongticket.experiments.figures.figure5._page import page as page
from strongticket.experiments.figures.figure5._page import prints as prints
