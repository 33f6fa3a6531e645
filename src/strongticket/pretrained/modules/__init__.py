"""Modules that run pruned random matrices: the factors themselves, or attention made of products."""

from strongticket.pretrained.modules.attention import Logits as Logits
from strongticket.pretrained.modules.attention import Shape as Shape
from strongticket.pretrained.modules.attention import SourceAttention as SourceAttention
from strongticket.pretrained.modules.faithful import run_factors as run_factors
from strongticket.pretrained.modules.matrix import Faithful as Faithful
from strongticket.pretrained.modules.matrix import Matrix as Matrix
from strongticket.pretrained.modules.matrix import Merged as Merged
from strongticket.pretrained.modules.matrix import PrunedPiece as PrunedPiece
