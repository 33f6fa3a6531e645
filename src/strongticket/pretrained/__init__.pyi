from ._certify import certify_layers as certify_layers
from ._plan import plan as plan
from .build import build_file as build_file
from .build import build_ticket as build_ticket
from .options import ModelOptions as ModelOptions
