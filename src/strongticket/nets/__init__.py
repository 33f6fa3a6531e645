"""Targets and sources in plain torch: attention, ReLU networks, blocks, transformers."""

from strongticket.nets.attention import MultiHeadAttention as MultiHeadAttention
from strongticket.nets.attention import causal_mask as causal_mask
from strongticket.nets.attention import padding_mask as padding_mask
from strongticket.nets.files import load as load
from strongticket.nets.files import make as make
from strongticket.nets.files import save as save
from strongticket.nets.initialise import initialise as initialise
from strongticket.nets.merged import MergedAttention as MergedAttention
from strongticket.nets.merged import MergedRelu as MergedRelu
from strongticket.nets.merging import merge as merge
from strongticket.nets.relu import ReluNetwork as ReluNetwork
from strongticket.nets.transformer import Block as Block
from strongticket.nets.transformer import Transformer as Transformer
