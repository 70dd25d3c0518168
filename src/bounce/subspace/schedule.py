"""How fast the target dimension grows: bins per split, and how many evaluations each stage gets.

Notation of the paper: D input dimensions, d_init bins at first, b new bins per bin and split, k splits,
m_D evaluations over all stages, n_init initial points.
"""

from __future__ import annotations

from dataclasses import dataclass

INPUT_SHARE = 10  # the input space gets at least this many evaluations per dimension (notes, decision 12)


def splits_needed(input_dim: int, initial_dim: int, new_bins: int) -> int:
    """Return k = ceil(log_{b+1}(D / d_init)), in integers."""
    k, reached = 0, initial_dim
    while reached < input_dim:
        k, reached = k + 1, reached * (new_bins + 1)
    return k


def split_factor(input_dim: int, initial_dim: int, new_bins: int) -> int:
    """Return the b ≥ 1 whose last dimension d_init·(b+1)^k comes closest to D (section 3, notes)."""
    k = splits_needed(input_dim, initial_dim, new_bins)
    if k == 0:
        return new_bins
    return min(range(1, min(new_bins, input_dim) + 1), key=lambda b: abs(initial_dim * (b + 1) ** k - input_dim))


@dataclass(frozen=True)
class Schedule:
    """The evaluation budget of each stage."""

    input_dim: int
    initial_dim: int
    new_bins: int
    budget_to_input: float
    initial_points: int

    @property
    def b(self) -> int:
        """The split factor that fits the dimensions."""
        return split_factor(self.input_dim, self.initial_dim, self.new_bins)

    @property
    def k(self) -> int:
        """The number of splits with that factor."""
        return splits_needed(self.input_dim, self.initial_dim, self.b)

    def budget(self, dim: int) -> int:
        """Return m_i for a stage of `dim` bins: proportional to its dimension (section 3, notes)."""
        # The sum of d_init·(b+1)^i over i = 0, …, k is d_init·((b+1)^{k+1} − 1)/b.
        share: float = self.b * dim / (self.initial_dim * ((self.b + 1) ** (self.k + 1) - 1))
        formula = max(1, round((self.budget_to_input - self.initial_points) * share))
        return max(formula, INPUT_SHARE * self.input_dim) if dim == self.input_dim else formula
