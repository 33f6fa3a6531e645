"""What a search is asked to do: its settings, presets and the names of its methods. Loads no torch."""

from strongticket.search.config.methods import METHODS as METHODS
from strongticket.search.config.methods import find_method as find_method
from strongticket.search.config.methods import register_method as register_method
from strongticket.search.config.presets import PRESETS as PRESETS
from strongticket.search.config.presets import preset as preset
from strongticket.search.config.settings import SearchConfig as SearchConfig
from strongticket.search.config.settings import cache_folder as cache_folder
