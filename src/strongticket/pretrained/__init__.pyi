from ._certify import certify_layers as certify_layers
from ._compare import compare as compare
from ._plan import plan as plan
from .build import build_file as build_file
from .build import build_ticket as build_ticket
from .inputs import batches as batches
from .options import ModelOptions as ModelOptions
from .target import load_target as load_target
