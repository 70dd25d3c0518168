"""Heat kernels on graphs: how alike two codes of a variable are, and the product over variables.

A graph is an adjacency matrix over the codes of one variable: levels in a row lie on a path, categories on a complete
graph. `Diffusion` is the product of the graphs' heat kernels, with one scale β for each.

The invariant: every factor has a mean of 1 on its diagonal, whatever β is.

Kondor and Lafferty, Diffusion kernels on graphs and other discrete structures, ICML 2002; the product and its
normalisation as in COMBO (`combo.py`).

Shapes: x (n, D) codes; log β (D,); the features of a row (F,) are a 1 and, for each variable, an indicator of every
code but the first.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from bounce.baselines.rivals.gaussian import Covariance
from bounce.gp.linalg import Array
from bounce.spaces.kinds import Codes

LOG_BETA = (-12.0, float(np.log(100.0)))
STABLE = 1e-6  # added to the diagonal, in units of the amplitude
REMEMBERED = 32  # values of θ whose tables are kept: an ask uses the same ten again and again
TINY = 1e-300  # the least entry of a factor: rounding can make one zero or negative


def path(n: int) -> Array:
    """Return the graph of n levels in a row."""
    return np.eye(n, k=1) + np.eye(n, k=-1)


def complete(n: int) -> Array:
    """Return the graph of n categories, each beside all others."""
    return np.ones((n, n)) - np.eye(n)


def spectrum(graph: Array) -> tuple[Array, Array]:
    """Return the eigenvalues (n,), ascending from 0, and the eigenvectors (n, n) of a graph's Laplacian."""
    values, vectors = np.linalg.eigh(np.diag(graph.sum(axis=0)) - graph)
    return np.maximum(values, 0.0), vectors


def heat(frequencies: Array, basis: Array, beta: Array | float) -> Array:
    """Return exp(−β·Laplacian) divided by the mean of its eigenvalues, (…, n, n) for β (…)."""
    decay = np.exp(-np.asarray(beta)[..., None] * frequencies)
    kernel = (basis * decay[..., None, :]) @ basis.T
    return np.asarray(kernel / decay.mean(axis=-1)[..., None, None])


class Diffusion(Covariance):
    """The product of normalised heat kernels between rows of features, with θ = log β (eq. 5 of the paper)."""

    def __init__(self, graphs: Sequence[Array]) -> None:
        self.graphs = graphs
        self.bounds = np.tile([LOG_BETA], (len(graphs), 1))
        self.start = np.zeros(len(graphs))
        self.spectra = [spectrum(graph) for graph in graphs]
        sizes = [len(graph) - 1 for graph in graphs]
        self._ends = 1 + np.cumsum(sizes)
        self._columns = np.repeat(np.arange(len(graphs)), sizes)
        self._codes = np.concatenate([np.arange(1, len(graph)) for graph in graphs])
        self._remembered = lru_cache(maxsize=REMEMBERED)(self._tables)

    def features(self, x: Codes) -> Array:
        """Return the features (n, F) of rows of codes."""
        found = np.ones((len(x), self._ends[-1]))
        found[:, 1:] = x[:, self._columns] == self._codes
        return found

    def table(self, j: int, log_beta: float) -> Array:
        """Return the kernel of one variable between its codes (c, c)."""
        return np.maximum(heat(*self.spectra[j], np.exp(log_beta)), TINY)

    def _bilinear(self, tables: Sequence[Array]) -> Array:
        """Return S (F, F) such that Σ_j tables_j[a_j, b_j] is aᵀSb for features a and b."""
        s = np.zeros((self._ends[-1], self._ends[-1]))
        for table, end in zip(tables, self._ends, strict=True):
            own = slice(end - len(table) + 1, end)
            s[0, 0] += table[0, 0]
            s[0, own] = table[0, 1:] - table[0, 0]
            s[own, 0] = table[1:, 0] - table[0, 0]
            s[own, own] = table[1:, 1:] - table[1:, :1] - table[:1, 1:] + table[0, 0]
        return s

    def _tables(self, theta: bytes) -> tuple[Array, Array]:
        """Return log k as a bilinear form of features, and log k(x, x) as a linear one."""
        tables = [np.log(self.table(j, log_beta)) for j, log_beta in enumerate(np.frombuffer(theta))]
        same = [np.diag(table) for table in tables]
        linear = [np.array([sum(values[0] for values in same)]), *(values[1:] - values[0] for values in same)]
        return self._bilinear(tables), np.concatenate(linear)

    def __call__(self, theta: Array, a: Array, b: Array) -> Array:
        """Return k (m, n): its logarithm is a sum over variables, so one matrix product."""
        bilinear, _ = self._remembered(theta.tobytes())
        return np.exp(a @ (bilinear @ b.T))

    def diagonal(self, theta: Array, x: Array) -> Array:
        """Return k(x, x) (n,), with what the published code adds for stability."""
        _, linear = self._remembered(theta.tobytes())
        return np.exp(x @ linear) + STABLE

    def slopes(self, theta: Array, x: Array, weights: Array) -> Array:
        """Return Σ_ab w_ab ∂k_ab/∂log β_j."""
        weighted = x.T @ (weights * self(theta, x, x)) @ x  # (F, F), and ∂log k/∂log β_j is bilinear as well
        found = []
        for j, (frequencies, basis) in enumerate(self.spectra):
            beta = np.exp(theta[j])
            decay = np.exp(-beta * frequencies)
            by_beta = (basis * (-beta * frequencies * decay)) @ basis.T / decay.mean()
            by_log = by_beta / self.table(j, theta[j]) + beta * (frequencies * decay).mean() / decay.mean()
            tables = [np.zeros_like(graph) for graph in self.graphs]
            tables[j] = by_log
            found.append(float((weighted * self._bilinear(tables)).sum()))
        return np.array(found)

    def neighbours(self, row: Codes) -> Codes:
        """Return the rows that differ from one by one edge of one graph."""
        moves = [(j, code) for j, graph in enumerate(self.graphs) for code in np.flatnonzero(graph[int(row[j])])]
        rows = np.tile(row, (len(moves), 1))
        for i, (j, code) in enumerate(moves):
            rows[i, j] = code
        return rows
