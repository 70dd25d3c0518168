"""CoCaBO: a bandit for each category, and Bayesian optimisation of the reals given their choice.

Nouns. A *bandit* (EXP3) of each categorical variable draws its value; its *reward* is the best value so far of any
point with that category. The model is a Gaussian process with a mixture of sum and product of an overlap kernel of the
categories and Matérn-5/2 of the reals. The reals are where the lower confidence bound is lowest, given the categories.

The invariant: the model has no say in the categories, and the bandits have none in the reals.

Ru, Alvi, Nguyen, Osborne and Roberts: Bayesian Optimisation over Multiple Continuous and Categorical Inputs, ICML 2020.
EXP3: Auer, Cesa-Bianchi, Freund and Schapire: The Nonstochastic Multiarmed Bandit Problem, SIAM J. Comput. 32, 2002.

Shapes: rows (n, c + r) of c codes of categories and then r reals in [−1, 1], the range of the published problems.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from bounce.baselines.baseline import INITIAL
from bounce.baselines.rivals.gaussian import Fit, Gaussian, Matern52
from bounce.baselines.rivals.overlap import Mixture, Overlap
from bounce.baselines.rivals.rival import Rival, standardised
from bounce.errors import InvalidSpace
from bounce.gp.linalg import Array
from bounce.spaces.kinds import Codes, Kind, on_grid
from bounce.spaces.space import Space

MIX = 0.5  # k = (1 − mix)·(k_c + k_r)/2 + mix·k_c·k_r
LENGTHSCALES, NOISES = (1e-4, 3.0), (1e-6, 1.0)
LENGTHSCALE, NOISE = 0.2, 0.1  # until the first fit
EVERY, STARTS = 10, 5  # rounds between fits, and random starts of a fit
KAPPA, SAMPLES, LOCAL = 2.0, 5000, 3  # the weight of the deviation; uniform samples, and how many of them are improved


def mixture(c: int, r: int) -> Mixture:
    """Return the kernel of c categories and r reals; the reals share one lengthscale, and every variance is 1."""
    reals = Matern52(r, LENGTHSCALES, shared=True, start=LENGTHSCALE)
    return Mixture(c, Overlap(), reals, (0.5 * (1.0 - MIX), MIX))


def exploration(arms: int, rounds: int) -> float:
    """Return γ for a best total reward of at most 2/3 of the rounds (Auer et al., corollary 3.2)."""
    return min(1.0, math.sqrt(arms * math.log(arms) / ((math.e - 1.0) * 2.0 * max(rounds, 1) / 3.0)))


@dataclass(frozen=True, eq=False)
class Bandit:
    """EXP3 over the values of one variable."""

    gamma: float
    logs: Array
    """The logarithms of the weights."""

    @property
    def probabilities(self) -> Array:
        """How likely each value is drawn: its share of the weights, mixed with the uniform distribution."""
        weights = np.exp(self.logs - self.logs.max())
        return np.asarray((1.0 - self.gamma) * weights / weights.sum() + self.gamma / len(weights))

    def rewarded(self, arm: int, reward: float, probability: float) -> Bandit:
        """Return the bandit after a reward in [0, 1] for an arm that was drawn with this probability."""
        logs = self.logs.copy()
        logs[arm] += self.gamma * reward / (probability * len(logs))
        return replace(self, logs=logs)


def rewards(rows: Array, y: Array, arms: Array) -> Array:
    """Return the reward of each variable's arm: the place of its best value between the worst (0) and the best (1)."""
    scaled = y / (float(np.abs(y).max()) or 1.0)  # no difference of these can overflow
    worst, best = scaled.max(), scaled.min()
    if worst == best:
        return np.zeros(len(arms))
    lowest = np.where(rows == arms, scaled[:, None], np.inf).min(axis=0)
    return np.asarray((worst - lowest) / (worst - best))


def bound(gp: Gaussian, z: Array) -> Array:
    """Return the lower confidence bound of a measurement, noise included, at rows."""
    mean, sd = gp.posterior(z)
    return np.asarray(mean - KAPPA * np.sqrt(sd**2 + gp.noise))


def bound_and_slope(gp: Gaussian, z: Array) -> tuple[float, Array]:
    """Return the lower confidence bound at one row and its gradient."""
    mean, sd, by_mean, by_sd = gp.slope(z)
    total = math.sqrt(sd**2 + gp.noise)
    return mean - KAPPA * total, by_mean - KAPPA * sd / total * by_sd


class Cocabo(Rival):
    """CoCaBO with its published defaults."""

    name = "cocabo"
    takes = (Kind.REAL, Kind.BINARY, Kind.CATEGORICAL)

    def __init__(self, space: Space, budget: int, seed: int, initial: int = INITIAL) -> None:
        super().__init__(space, budget, seed, initial)
        missing = [
            what
            for what, columns in (("real", space.reals), ("binary or categorical", space.combinatorial))
            if not len(columns)
        ]
        if missing:
            raise InvalidSpace(
                f"cocabo needs at least one real variable, and at least one binary or categorical one, "
                f"but this space has no {missing[0]} variable"
            )
        rounds = self.budget - len(self._initial)
        self._bandits = [
            Bandit(exploration(int(size), rounds), np.zeros(size)) for size in space.cardinalities[space.combinatorial]
        ]
        self._drawn: dict[bytes, list[float]] = {}  # how likely the categories of a proposed point were
        self._round = 0
        self._theta, self._noise = np.log([LENGTHSCALE]), NOISE

    def _choose(self, x: Codes, y: Array, pending: Codes, *, rng: np.random.Generator) -> Codes:
        arms, likely = [], []
        for bandit in self._bandits:
            arm = int(rng.choice(len(bandit.logs), p=bandit.probabilities))
            arms.append(arm)
            likely.append(float(bandit.probabilities[arm]))
        gp = self._model(self._arranged(x), standardised(y), rng=rng).believing(self._arranged(pending))
        row = np.empty(len(self.space))
        row[self.space.combinatorial] = arms
        row[self.space.reals] = on_grid(0.5 * (1.0 + lowest(gp, np.array(arms, dtype=np.float64), rng=rng)))
        self._drawn[self.space.keys(row[None])[0]] = likely
        self._round += 1
        return row

    def _told(self, row: Codes, value: float) -> None:
        """Reward the categories of a point that the bandits drew; initial points bring no reward."""
        likely = self._drawn.pop(self.space.keys(row[None])[0], None)
        if likely is None:
            return
        arms = row[self.space.combinatorial]
        got = rewards(np.array(self._rows)[:, self.space.combinatorial], np.array(self._values), arms)
        self._bandits = [
            bandit.rewarded(int(arm), float(reward), probability)
            for bandit, arm, reward, probability in zip(self._bandits, arms, got, likely, strict=True)
        ]

    def _model(self, rows: Array, y: Array, *, rng: np.random.Generator) -> Gaussian:
        """Return the process given the data, with the parameters of the last fit or, every tenth round, of a new one.

        The prior mean is zero and the signal variance 1, as published.
        """
        covariance = mixture(len(self._bandits), rows.shape[1] - len(self._bandits))
        if self._round and self._round % EVERY == 0:
            low, high = np.log([LENGTHSCALES, NOISES]).T
            lowest_loss = np.inf
            for start in rng.uniform(low, high, (STARTS, 2)):
                covariance.start = start[:1]
                fit = Fit((1.0, 1.0), NOISES, start_noise=float(np.exp(start[1])), constant=False)
                gp = fit(covariance, rows, y)
                loss = fit.loss(covariance, rows, y, np.append(gp.theta, np.log([1.0, gp.noise])))[0]
                if loss < lowest_loss:
                    lowest_loss, self._theta, self._noise = loss, gp.theta, gp.noise
        return Gaussian(covariance, self._theta, 1.0, self._noise, rows, y, constant=False)

    def _arranged(self, codes: Codes) -> Array:
        return np.concatenate([codes[:, self.space.combinatorial], 2.0 * codes[:, self.space.reals] - 1.0], axis=1)


def lowest(gp: Gaussian, arms: Array, *, rng: np.random.Generator) -> Array:
    """Return the reals with the lowest bound for given categories: of uniform samples, the best three improved."""
    from scipy.optimize import minimize  # slow to import

    c, r = len(arms), gp.x.shape[1] - len(arms)
    samples = rng.uniform(-1.0, 1.0, (SAMPLES, r))
    values = bound(gp, np.concatenate([np.tile(arms, (SAMPLES, 1)), samples], axis=1))

    def below(u: Array) -> tuple[float, Array]:
        value, slope = bound_and_slope(gp, np.concatenate([arms, u]))
        return value, slope[c:]

    starts = samples[np.argsort(values, kind="stable")[:LOCAL]]
    found = [minimize(below, start, jac=True, method="L-BFGS-B", bounds=[(-1.0, 1.0)] * r) for start in starts]
    return np.asarray(np.clip(min(found, key=lambda result: float(result.fun)).x, -1.0, 1.0))
