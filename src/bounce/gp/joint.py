"""Several outputs under one kernel: hyperparameters that are the most likely for all of them together.

Outputs are independent given the kernel, each with a constant mean of its own. So one factor serves them all, and a fit
takes about as long as that of one output.

Shapes: n points, K outputs, y (n, K) targets.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from bounce.gp.fit import LogPosterior, maximised
from bounce.gp.kernels import Hyper
from bounce.gp.linalg import Array, inverse, product, solve
from bounce.gp.points import Points
from bounce.method import Method
from bounce.spaces.space import Space


class JointPosterior(LogPosterior):
    """The log posterior of hyperparameters that several outputs share."""

    def _likelihood(self, factor: Array) -> tuple[float, Array]:
        """Return the sum of the log likelihoods, and its derivative with respect to the covariance."""
        n, k = self.y.shape
        solved = solve(factor, np.concatenate([self.y, np.ones((n, 1))], axis=1))
        means = solved[:, :k].sum(axis=0) / solved[:, k].sum()
        alpha = solved[:, :k] - solved[:, k:] * means
        g = 0.5 * (product(alpha, alpha.T) - k * inverse(factor))
        value = -0.5 * float(np.einsum("nk,nk->", self.y - means, alpha))
        value -= k * (float(np.log(np.diag(factor)).sum()) + 0.5 * n * math.log(2.0 * math.pi))
        return value, g


def fit_jointly(
    space: Space, points: Points, y: Array, starts: Sequence[Hyper], method: Method, *, fixed: float | None = None
) -> Hyper:
    """Return the hyperparameters of the highest posterior found from some starts; `fixed` is that of `LogPosterior`."""
    return maximised(JointPosterior(space, points, y, method, fixed=fixed), starts)[0]
