"""Composites: parameters whose value has parts: a subset of a list, a mixture of components, an order of items."""

from __future__ import annotations

from bounce.spaces.mixtures import Mixture
from bounce.spaces.permutations import Permutation
from bounce.spaces.subsets import Subset

COMPOSITES = (Subset, Mixture, Permutation)
Composite = Subset | Mixture | Permutation
