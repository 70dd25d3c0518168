"""Substitutes: parameters that could have done what the model says another one does.

While the variables of a bin move together, any of them explains the results, and the fitted lengthscales choose one of
them. An interval that takes the lengthscales for granted does not show that. So a parameter is tried without its own
values: in their place are what another parameter tells of them, or nothing. If the results are then nearly as likely,
the trials do not say which of the two it was. Parameters of different kinds can stand in for each other, and what later
trials have told apart is told apart, however alike the columns are.

On `3·x0 + 2·(x1 - 0.5)² + b0` in 120 reals and 60 bits with 60 evaluations, intervals alone say of 54 parameters that
they matter, and 16 of these do nothing. With substitutes it is 30, all of which matter (seeds 36 to 59; the constants
were chosen on the seeds 0 to 18).

Shapes: z (n, D), the codes of the model's observations.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bounce.gp.linalg import Array, solve
from bounce.gp.points import Points
from bounce.gp.posterior import GP
from bounce.optimizer.looks import Look
from bounce.spaces.kinds import Codes, Kind
from bounce.spaces.space import Space

CLOSE = float(np.log(1000.0))  # results that are less likely by a smaller factor are nearly as likely
TOLD = 0.2  # the share of a parameter's variance in the trials that a substitute must tell, at least
LIKE = 0.64  # the same if the results do not need the parameter, so that its likelihood says little
POWERS = 3  # of a number, from which another one is told


@dataclass(frozen=True)
class Substitutes:
    """What could have done the part of one parameter."""

    others: tuple[int, ...]
    """Parameters, the likeliest first."""
    idle: bool
    """Whether the results are nearly as likely if nothing does its part."""

    @classmethod
    def of(cls, look: Look, space: Space, i: int) -> Substitutes:
        """Try every other parameter in the place of one."""
        z = look.gp.points.z
        least = _log_likelihood(look.gp, look.y) - CLOSE
        idle = _without(look, i, np.full(len(z), z[0, i])) >= least
        varied = [j for j in range(len(space)) if j != i and np.ptp(z[:, j]) > 0]
        columns = {j: _told(space, z, i, j, LIKE if idle else TOLD) for j in varied}
        found = {j: _without(look, i, column) for j, column in columns.items() if column is not None}
        return cls(tuple(j for j in sorted(found, key=lambda j: -found[j]) if found[j] >= least), idle)


def _log_likelihood(gp: GP, y: Array) -> float:
    """Return the log likelihood of targets, up to a constant, with the best constant mean."""
    off = y - gp.mean(y)
    return float(-0.5 * off @ solve(gp.factor, off[:, None])[:, 0] - np.log(np.diag(gp.factor)).sum())


def _without(look: Look, i: int, column: Array) -> float:
    """Return the log likelihood with other values of one parameter, and all else as it is."""
    z = look.gp.points.z.copy()
    z[:, i] = column
    return _log_likelihood(GP.at(look.gp.kernel, Points(z), look.gp.noise), look.y)


def _told(space: Space, z: Codes, i: int, j: int, share: float) -> Array | None:
    """Return the codes of parameter i as well as those of j tell them; None if they tell a smaller share of them."""
    wanted, known = _hot(space, z[:, i], i), _hot(space, z[:, j], j)
    if space.kinds[j] is not Kind.CATEGORICAL:
        known = known ** np.arange(POWERS + 1)
    told = known @ np.linalg.lstsq(known, wanted, rcond=None)[0]
    if space.kinds[i] is Kind.CATEGORICAL:
        column = told.argmax(axis=1).astype(float)
    else:
        column = np.clip(told[:, 0], 0.0, 1.0)
        if space.kinds[i] is not Kind.REAL:
            column = np.rint(column * (space.cardinalities[i] - 1))
    missed = ((wanted - _hot(space, column, i)) ** 2).sum()
    return column if missed <= (1.0 - share) * ((wanted - wanted.mean(axis=0)) ** 2).sum() else None


def _hot(space: Space, codes: Array, i: int) -> Array:
    """Return the codes of a parameter as a column from 0 to 1; of categories, as a column for each."""
    if space.kinds[i] is Kind.CATEGORICAL:
        return np.asarray(codes[:, None] == np.arange(space.cardinalities[i]), dtype=float)
    return codes[:, None] / (1.0 if space.kinds[i] is Kind.REAL else max(1, space.cardinalities[i] - 1))
