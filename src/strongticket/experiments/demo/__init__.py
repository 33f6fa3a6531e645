"""The demo: a trained network, its ticket, and a page that explains both."""

from strongticket.experiments.demo._measure import measure as measure
from strongticket.experiments.demo._page import page as page
from strongticket.experiments.demo._page import prints as prints
