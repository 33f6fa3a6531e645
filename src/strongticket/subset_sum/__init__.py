"""Values and targets in, best subsets out. Knows nothing about networks and could be used on its own."""

from strongticket.subset_sum.problems import MAX_EXACT, MAX_VALUES, Products, Solution
from strongticket.subset_sum.solve import BACKENDS, solve

__all__ = ["BACKENDS", "MAX_EXACT", "MAX_VALUES", "Products", "Solution", "solve"]
