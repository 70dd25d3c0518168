"""Groups: which variables are active, found by noisy group tests.

A test moves a group of variables away from a default point and looks at the change v of the value. If the group holds
an active variable, v ~ N(0, signal²), else v ~ N(0, noise²). The posterior over subsets of active variables is a cloud
of particles, which a tempered sequential Monte Carlo sampler with Gibbs moves carries from one batch of tests to the
next. The next groups are those with the highest mutual information between their results and the subset.

The invariant: particles are draws from the posterior given all tests so far, whatever their number.

E. O. Hellsten, C. Hvarfner, L. Papenmeier, L. Nardi: High-dimensional Bayesian Optimization with Group Testing, 2023;
after M. Cuturi, O. Teboul, Q. Berthet, A. Doucet, J.-P. Vert: Noisy Adaptive Group Testing using Bayesian Sequential
Experimental Design, 2020.

Shapes: D variables, T tests, P particles; particles (D, P), groups (T, D).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp, ndtri

from bounce.gp.linalg import Array

PARTICLES = 10_000
PRIOR = 0.05  # the probability of a variable to be active
CYCLES = 2  # sweeps over all variables that one Gibbs move makes
MOVES = (2, 20)  # the least and the largest number of moves at one temperature
UNIQUE, UNIQUE_CHANGE = 0.95, 0.02  # moves end at this share of different particles, or when it changes this little
EFFECTIVE = 0.9  # the share of effective particles that a step of the temperature leaves
QUANTILES = 1000  # of the normal distribution, for entropies
KNOTS = 1001  # of the table of mutual information
BLOCK = 2000  # particles that are moved at once: their counts stay in the cache
BATCH = 5  # groups that are tested before the next update
LOSS = 0.01  # of mutual information, relative to the best group, that further groups of a batch may have
STARTS, START_SIZE = 3, 3  # random groups that a search starts from, and their size
ALLOWED = (1e-5, 0.95)  # probabilities between which a variable is still tested

Bools = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Tests:
    """Groups that have been tested, and what their results say."""

    groups: Bools
    ratios: Array
    """log N(v; 0, signal²) − log N(v; 0, noise²) of each result (T,)."""

    @classmethod
    def of(cls, groups: Bools, v: Array, signal: float, noise: float) -> Tests:
        """Build it from results v (T,)."""
        ratios = 0.5 * ((v / noise) ** 2 - (v / signal) ** 2) + np.log(noise / signal)
        return cls(groups, np.asarray(ratios))

    def __len__(self) -> int:
        return len(self.ratios)


@dataclass(frozen=True, eq=False)
class Cloud:
    """Weighted subsets of variables."""

    active: NDArray[np.uint8]
    weights: Array
    seen: int = 0
    """How many tests it knows."""

    @classmethod
    def prior(cls, d: int, *, rng: np.random.Generator, n: int = PARTICLES) -> Cloud:
        """Draw subsets in which each variable is active with the prior probability."""
        return cls((rng.random((d, n)) < PRIOR).astype(np.uint8), np.full(n, 1.0 / n))

    @cached_property
    def marginals(self) -> Array:
        """The probability of each variable to be active (D,)."""
        return np.asarray(self.active @ self.weights)

    def updated(self, tests: Tests, *, rng: np.random.Generator) -> Cloud:
        """Return the cloud that knows all tests; those that it did not know yet come in by degrees."""
        if len(tests) == self.seen:
            return self
        fresh = np.arange(len(tests)) >= self.seen
        active, rho, weights = self.active, 0.0, self.weights
        while rho < 1.0:
            active = active[:, systematic(weights, rng=rng)]
            if rho > 0.0:
                active = moved(active, tests, np.where(fresh, rho, 1.0), rng=rng)
            logs = tests.ratios[fresh] @ (tests.groups[fresh].astype(np.float32) @ active.astype(np.float32) > 0)
            step = temperature_step(rho, logs)
            weights = np.exp(step * logs - logsumexp(step * logs))
            rho += step
        return Cloud(active, weights, len(tests))


def temperature_step(rho: float, logs: Array) -> float:
    """Return by how much the temperature grows: bisection, until the effective share of the particles is the target."""
    low, high, step = 0.0, 1.05 - rho, 0.05
    while high - low > 0.02 and low < 1.0 - rho:
        weights = step * logs
        share = np.exp(2.0 * logsumexp(weights) - logsumexp(2.0 * weights)) / len(logs)
        if share < EFFECTIVE:
            high, step = step, 0.5 * (step + low)
        else:
            low, step = step, 0.5 * (step + high)
    return float(min(step, 1.0 - rho))


def systematic(weights: Array, *, rng: np.random.Generator) -> NDArray[np.intp]:
    """Return the places of as many particles as there are, drawn by their weights at regular spaces."""
    cumulated = np.cumsum(weights)
    positions = (rng.random() + np.arange(len(weights))) / len(weights)
    places = np.searchsorted(cumulated / cumulated[-1], positions, side="right")
    return np.asarray(np.minimum(places, len(weights) - 1))


def moved(
    active: NDArray[np.uint8], tests: Tests, temperatures: Array, *, rng: np.random.Generator
) -> NDArray[np.uint8]:
    """Return particles after Gibbs moves, until enough of them are different."""
    active = active.copy()
    hashes = rng.integers(2**40, size=len(active)).astype(np.float64)

    def unique() -> float:
        return len(np.unique(hashes @ active)) / int(active.shape[1])

    share = unique()
    for i in range(MOVES[1]):
        for at in range(0, active.shape[1], BLOCK):
            active[:, at : at + BLOCK] = swept(active[:, at : at + BLOCK], tests, temperatures, rng=rng)
        before, share = share, unique()
        if i >= MOVES[0] - 1 and (abs(share - before) <= UNIQUE_CHANGE or share > UNIQUE):
            break
    return active


def swept(
    active: NDArray[np.uint8], tests: Tests, temperatures: Array, *, rng: np.random.Generator
) -> NDArray[np.uint8]:
    """Return particles after two sweeps over the variables; a flip is accepted with min(1, its odds) (Liu)."""
    active = np.ascontiguousarray(active)
    counts = (tests.groups.astype(np.float32) @ active.astype(np.float32)).astype(np.int16)
    ratios, odds = temperatures * tests.ratios, float(np.log(PRIOR / (1.0 - PRIOR)))
    members = [np.flatnonzero(column) for column in tests.groups.T]
    for _ in range(CYCLES):
        for own, z in zip(members, active, strict=True):
            held = counts[own]
            # A flip changes the tests that hold no other active variable: count 0 to switch on, 1 to switch off.
            gain = ratios[own] @ (held == z) + odds
            sign = 1 - 2 * z.astype(np.int16)
            flip = -rng.standard_exponential(len(z)) < sign * gain
            held += sign * flip
            counts[own] = held
            z ^= flip
    return active


@dataclass(frozen=True, eq=False)
class Information:
    """The mutual information between a group's result and whether it holds an active variable."""

    signal: float
    noise: float

    @cached_property
    def _table(self) -> Array:
        return self.exact(np.linspace(0.0, 1.0, KNOTS))

    def exact(self, gamma: Array) -> Array:
        """Return it for probabilities gamma (m,) of a group to be active: H(v) − H(v|active)."""
        q = ndtri(np.arange(1, QUANTILES) / QUANTILES)
        with np.errstate(divide="ignore"):
            on, off = np.log(gamma)[:, None], np.log1p(-gamma)[:, None]

        def cross(v: Array) -> Array:
            """Return the mean over v of the log density of the mixture."""
            logs = [-0.5 * (v / s) ** 2 - np.log(s * np.sqrt(2.0 * np.pi)) for s in (self.signal, self.noise)]
            return np.asarray(np.logaddexp(on + logs[0], off + logs[1]).mean(axis=1))

        entropy = -(gamma * cross(q * self.signal) + (1.0 - gamma) * cross(q * self.noise))
        given = [0.5 * np.log(2.0 * np.pi * np.e * s**2) for s in (self.signal, self.noise)]
        return np.asarray(entropy - gamma * given[0] - (1.0 - gamma) * given[1])

    def __call__(self, gamma: Array) -> Array:
        """Return it from a table."""
        return np.interp(gamma, np.linspace(0.0, 1.0, KNOTS), self._table)


def next_groups(cloud: Cloud, information: Information, taken: Bools, *, rng: np.random.Generator) -> Bools:
    """Return the groups of the next batch (≤ 5, D); none share a variable, and none have one that is taken."""
    allowed = (cloud.marginals > ALLOWED[0]) & (cloud.marginals < ALLOWED[1]) & ~taken
    groups: list[Bools] = []
    values: list[float] = []
    while len(groups) < BATCH and allowed.any():
        group, value = best_group(cloud, information, allowed, rng=rng)
        best = max(value, *values) if values else value
        if not best > 0.0 or (best - value) / best > LOSS:
            break
        groups.append(group)
        values.append(value)
        allowed &= ~group
        kept = [i for i, other in enumerate(values) if (best - other) / best < LOSS]
        groups, values = [groups[i] for i in kept], [values[i] for i in kept]
    return np.array(groups, dtype=np.bool_).reshape(len(groups), len(taken))


def best_group(
    cloud: Cloud, information: Information, allowed: Bools, *, rng: np.random.Generator
) -> tuple[Bools, float]:
    """Return the best group of a few greedy searches, and its mutual information."""
    active = cloud.active.astype(np.float32)
    found: tuple[Bools, float] = np.zeros(len(active), dtype=np.bool_), -np.inf
    for _ in range(STARTS):
        group = np.zeros(len(active), dtype=np.bool_)
        group[rng.permutation(np.flatnonzero(allowed))[:START_SIZE]] = True
        group, value = searched(group, active, cloud.weights, (information, allowed))
        if value > found[1]:
            found = group, value
    return found


def searched(
    group: Bools, active: NDArray[np.float32], weights: Array, rules: tuple[Information, Bools]
) -> tuple[Bools, float]:
    """Return the group after adding and removing the best variable, in turns, as long as that helps."""
    information, allowed = rules
    group = group.copy()

    def gamma_with() -> tuple[float, NDArray[np.float32]]:
        count = group.astype(np.float32) @ active
        return float(weights @ (count > 0)), count

    gamma, count = gamma_with()
    value = float(information(np.array([gamma]))[0])
    adding, removed = True, False
    while True:
        # Adding a variable catches the particles that no member catches; removing one loses those it alone catches.
        alone = (weights * (count == (0 if adding else 1))).astype(np.float32)
        change = active @ alone
        candidates = np.flatnonzero(allowed & ~group if adding else group)
        values = information(np.clip(gamma + (change if adding else -change)[candidates], 0.0, 1.0))
        if len(candidates) and float(values.max()) > value + 1e-12:
            best = int(values.argmax())
            group[candidates[best]] = adding
            value, removed = float(values[best]), removed or not adding
            gamma, count = gamma_with()
        elif adding:
            adding, removed = False, False
        elif removed:
            adding = True
        else:
            return group, value
