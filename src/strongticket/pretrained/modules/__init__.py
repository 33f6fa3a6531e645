"""Modules that run pruned random matrices: the factors themselves, or attention made of products."""

from strongticket.pretrained.modules.attention import Logits, Shape, SourceAttention
from strongticket.pretrained.modules.faithful import run_factors
from strongticket.pretrained.modules.matrix import Faithful, Matrix, Merged, Recipe

__all__ = ["Faithful", "Logits", "Matrix", "Merged", "Recipe", "Shape", "SourceAttention", "run_factors"]
