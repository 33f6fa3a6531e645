"""(seed, tensor name, shape, law) -> float32 weights, the same bits on every machine.

Weight i of a tensor is a function of the key (a hash of version, seed and name) and of i alone: the number of
threads, the slice asked for and the rows that follow change nothing. docs/ticket-format.md says how in full.
"""

from strongticket.seeds._draw import GENERATOR_VERSION as GENERATOR_VERSION
from strongticket.seeds._draw import apply_mask as apply_mask
from strongticket.seeds._draw import draw as draw
from strongticket.seeds._draw import key as key
from strongticket.seeds.laws import Constant as Constant
from strongticket.seeds.laws import Hadamard as Hadamard
from strongticket.seeds.laws import Law as Law
from strongticket.seeds.laws import Normal as Normal
from strongticket.seeds.laws import SignedConstant as SignedConstant
from strongticket.seeds.laws import Uniform as Uniform
from strongticket.seeds.laws import law_named as law_named
from strongticket.seeds.offsets import offsets as offsets
