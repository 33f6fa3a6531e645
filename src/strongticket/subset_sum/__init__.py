"""Values and targets in, best subsets out. Knows nothing about networks and could be used on its own."""

from strongticket.subset_sum.problems import MAX_EXACT as MAX_EXACT
from strongticket.subset_sum.problems import MAX_VALUES as MAX_VALUES
from strongticket.subset_sum.problems import Products as Products
from strongticket.subset_sum.problems import Solution as Solution
from strongticket.subset_sum.solve import solve as solve
