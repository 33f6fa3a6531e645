"""What a search is asked to do: its settings, presets and the names of its methods. Loads no torch."""

from strongticket.searching.config.methods import METHODS as METHODS
from strongticket.searching.config.methods import find_method as find_method
from strongticket.searching.config.methods import register_method as register_method
from strongticket.searching.config.presets import PRESETS as PRESETS
from strongticket.searching.config.presets import preset as preset
from strongticket.searching.config.settings import SearchConfig as SearchConfig
