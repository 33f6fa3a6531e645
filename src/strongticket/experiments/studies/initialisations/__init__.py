"""Initialisations: which property of the random weights decides the loss of a ticket?"""

from strongticket.experiments.studies.initialisations._measure import measure as measure
from strongticket.experiments.studies.initialisations._page import page as page
from strongticket.experiments.studies.initialisations._page import prints as prints
