"""Code tables: how variables are dealt to bins, and how a variable's code follows from its bin's code.

The invariant: a table reaches every code of its variable.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from bounce.spaces.kinds import Kind

CodeTable = NDArray[np.intp]
"""Per code of a bin, the code of a variable."""


def deal(variables: NDArray[np.intp], n_bins: int, *, rng: np.random.Generator) -> list[NDArray[np.intp]]:
    """Deal variables to bins at random and evenly."""
    return [np.sort(part) for part in np.array_split(rng.permutation(variables), n_bins)]


def spread(cardinality: int, bin_cardinality: int) -> CodeTable:
    """Return `ceil(k · c / c_max)` for k = 1, …, c_max, both sides counted from 0 (section 3.1)."""
    k = np.arange(1, bin_cardinality + 1)
    return (k * cardinality + bin_cardinality - 1) // bin_cardinality - 1


def shuffle(kind: Kind, cardinality: int, *, rng: np.random.Generator) -> CodeTable:
    """Relabel the codes of one variable at random: a sign, a reversal or a permutation."""
    codes = np.arange(cardinality)
    if kind is Kind.CATEGORICAL:
        return rng.permutation(codes)
    return codes[::-1] if rng.random() < 0.5 else codes


def passing(table: CodeTable, at: int, code: int) -> CodeTable:
    """Return a permutation that maps `at` to `code`: one swap away from a given one."""
    swapped = table.copy()
    swapped[np.flatnonzero(table == code)[0]] = table[at]
    swapped[at] = code
    return swapped


def staircases(codes: NDArray[np.intp], cardinalities: NDArray[np.intp]) -> tuple[int, list[CodeTable]]:
    """Return a bin code, and monotone tables that reach given codes there, all levels, and both ends.

    The bin needs as many steps below the anchor as the variable with most levels below, and likewise above.
    """
    below, above = int(codes.max()), int((cardinalities - 1 - codes).max())
    down, up = np.arange(below), np.arange(1, above + 1)
    tables = [
        np.concatenate(
            [(down * code + below - 1) // max(below, 1), [code], code + (up * (c - 1 - code)) // max(above, 1)]
        ).astype(np.intp)
        for code, c in zip(codes.tolist(), cardinalities.tolist(), strict=True)
    ]
    return below, tables


def renumber(tables: Sequence[CodeTable]) -> list[CodeTable]:
    """Merge the bin codes that have the same image for every variable, in order of first appearance."""
    images, first = np.unique(np.stack(tables, axis=1), axis=0, return_index=True)
    order = np.argsort(first)
    return [images[order, i] for i in range(len(tables))]


def bins_per_kind(counts: Mapping[Kind, int], n_bins: int) -> dict[Kind, int]:
    """Share bins among kinds: at least one each, at most one per variable, the rest in proportion."""
    bins = dict.fromkeys(counts, 1)
    total = sum(counts.values())
    while sum(bins.values()) < min(n_bins, total):
        # The largest shortfall against the exact share goes first; ties go to the kind named first.
        open_kinds = [kind for kind in counts if bins[kind] < counts[kind]]
        most = max(open_kinds, key=lambda kind: n_bins * counts[kind] / total - bins[kind])
        bins[most] += 1
    return bins
