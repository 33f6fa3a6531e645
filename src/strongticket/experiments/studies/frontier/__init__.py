"""The frontier: loss against real file bytes, of tickets and of quantised training."""

from strongticket.experiments.studies.frontier._measure import measure as measure
from strongticket.experiments.studies.frontier._page import page as page
from strongticket.experiments.studies.frontier._page import prints as prints
