from .builders import build as build
from .builders import build_network as build_network
from .builders import build_product as build_product
from .errors import MissingDependency as MissingDependency
from .errors import StrongTicketError as StrongTicketError
from .errors import TicketError as TicketError
from .nets import Block as Block
from .nets import MultiHeadAttention as MultiHeadAttention
from .nets import ReluNetwork as ReluNetwork
from .nets import Transformer as Transformer
from .nets import attack as attack
from .nets import causal_mask as causal_mask
from .nets import certify as certify
from .nets import merge as merge
from .searching import attach as attach
from .searching import detach as detach
from .searching import search as search
from .seeds import Hadamard as Hadamard
from .seeds import Normal as Normal
from .seeds import SignedConstant as SignedConstant
from .seeds import Uniform as Uniform
from .seeds import draw as draw
from .subset_sum import Products as Products
from .subset_sum import Solution as Solution
from .subset_sum import solve as solve
from .ticket import Ticket as Ticket

__version__: str
