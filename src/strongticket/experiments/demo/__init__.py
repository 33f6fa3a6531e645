"""The demo: a language ticket to play with; a trained attention layer, its ticket, and a page that explains both."""

from strongticket.experiments.demo._language import LanguageDemo as LanguageDemo
from strongticket.experiments.demo._language import write_language_page as write_language_page
from strongticket.experiments.demo._measure import measure as measure
from strongticket.experiments.demo._page import page as page
from strongticket.experiments.demo._page import prints as prints
