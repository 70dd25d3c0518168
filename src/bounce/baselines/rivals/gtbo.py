"""GTBO: find the active variables by group tests, then optimise with a process that knows them.

First phase: the default, the middle of the box, is evaluated a few times for the noise. Then small bins of variables
are moved to 0.1 or 0.9, and the largest and smallest changes of the value give the scales of signal and noise. Then
groups of variables are tested (see `groups`) until each variable is almost surely active or inactive. Second phase:
Bayesian optimization in the whole box, where active variables have a prior of short lengthscales and the others one of
long lengthscales, with the noisy expected improvement.

The invariant: the tests and the process see the same values; the first phase decides nothing but the priors and which
of its own points the process uses.

E. O. Hellsten, C. Hvarfner, L. Papenmeier, L. Nardi: High-dimensional Bayesian Optimization with Group Testing, 2023.
Values from the published code, gtboauthors/gtbo.

Shapes: n data, D variables, S samples of the function at the data, m candidates; codes are numbers in [0, 1].
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr

from bounce.acquire.improvement import LOG_SQRT_2PI, log_h
from bounce.baselines.baseline import INITIAL
from bounce.baselines.rivals.gaussian import Fit, Gaussian, Matern52, Prior
from bounce.baselines.rivals.groups import Bools, Cloud, Information, Tests, next_groups
from bounce.baselines.rivals.rival import Rival, standardised
from bounce.gp.kernels import matern52_and_slope, squared_distance
from bounce.gp.linalg import Array, cholesky, solve, solve_lower
from bounce.spaces.kinds import Codes, Kind, on_grid
from bounce.spaces.space import Space

LEAST = 6  # variables, for group tests to make sense
DEFAULTS = 10  # evaluations of the default, in a budget of 200 or more
TESTS = 100  # at most
CONVERGED = (1e-3, 0.9)  # a variable with a probability outside of these is decided
ACTIVE = 0.05  # a variable with a larger probability is active
LEAST_NOISE = 1e-6  # of the signal
SHORT, LONG = 0.0, 3.0  # means of log lengthscales of active and inactive variables; the deviation is 1
STEP = 2.0**-30  # between evaluations of the default, since no point may come twice
LENGTHSCALES, SIGNALS, NOISES = (5e-3, 1e4), (1e-3, 1e3), (1e-6, 10.0)
START = float(np.log(2.0))  # of all hyperparameters, as GPyTorch has it
SAMPLES = 64  # of the function at the data; what a candidate adds to a sample is exact
RAW, RESTARTS, ITERATIONS = 4096, 16, 200
NEAR, NEAR_SUBSET, BEST_SHARE = 1e-3, 0.1, 0.05  # deviations around good points, and the share of the data that is good
ROWS = 256  # candidates that are computed at once


@dataclass(frozen=True)
class Scales:
    """What the changes of the value are without and with an active variable."""

    unit: float
    """What values are divided by, so that no square overflows."""
    default: float
    signal: float
    noise: float

    @classmethod
    def of(cls, defaults: Array, changed: Array, d: int) -> Scales:
        """Estimate them from values of the default and of the points with a changed bin."""
        unit = float(np.abs(np.append(defaults, changed)).max()) or 1.0
        default = float((defaults / unit).mean())
        pure = _deviation(defaults / unit)
        change = changed / unit - default
        size = np.abs(change)
        steps = np.sort(size)
        # The 2√D-th and the √D-th smallest change bound those of active bins from below, of inactive ones from above.
        large, small = (steps[min(len(steps) - 1, max(1, int(f * np.sqrt(d))))] for f in (2.0, 1.0))
        signal = float(np.hypot(_deviation(change[size >= large]), pure))
        noise = float(np.hypot(_deviation(change[size <= small]), pure))
        return cls(unit, default, signal, max(noise, LEAST_NOISE * signal))


def _deviation(values: Array) -> float:
    return float(values.std(ddof=1)) if len(values) > 1 else 0.0


@dataclass(frozen=True, eq=False)
class Move:
    """A point of the first phase."""

    row: Codes
    variables: Bools
    """Which variables it moves away from the default."""
    test: bool
    """Whether it tests a group, and does not estimate scales."""


@dataclass(frozen=True, eq=False)
class NoisyImprovement:
    """Log of the expected improvement on the best of the data, whose true values are not known.

    f at the data is m + L·w for the noise-free factor L, with w ~ N(A⁻¹Lᵀ(y − m)/noise, A⁻¹), A = I + LᵀL/noise. Given
    a sample of w, f at a candidate has mean m + vᵀw and variance prior − vᵀv, v = L⁻¹k.
    """

    gp: Gaussian
    factor: Array
    w: Array
    """Samples (n, S)."""
    best: Array
    """The lowest value at the data (S,), without the mean."""

    @classmethod
    def of(cls, gp: Gaussian, *, rng: np.random.Generator) -> NoisyImprovement:
        """Draw the samples."""
        k = gp.signal * gp.covariance(gp.theta, gp.x, gp.x)
        k[np.diag_indices(len(k))] += 1e-8 * gp.signal
        factor = cholesky(k)
        a = cholesky(np.eye(len(k)) + factor.T @ factor / gp.noise)
        mean = solve(a, (factor.T @ (gp.y - gp.mean) / gp.noise)[:, None])
        w = mean + solve_lower(a, rng.standard_normal((len(k), SAMPLES)), transposed=True)
        return cls(gp, factor, w, (factor @ w).min(axis=0))

    def __call__(self, z: Array) -> Array:
        """Return values (m,)."""
        return np.concatenate([self._of(z[i : i + ROWS])[0] for i in range(0, len(z), ROWS)])

    def _of(self, z: Array) -> tuple[Array, Array, Array, Array]:
        gp = self.gp
        v = solve_lower(self.factor, gp.signal * gp.covariance(gp.theta, z, gp.x).T)
        sigma = np.sqrt(np.maximum(gp.signal - np.einsum("nm,nm->m", v, v), 1e-9 * gp.signal))
        u = (self.best - v.T @ self.w) / sigma[:, None]
        logs = log_h(u)
        top = logs.max(axis=1, keepdims=True)
        total = top[:, 0] + np.log(np.exp(logs - top).sum(axis=1))
        return total - np.log(SAMPLES) + np.log(sigma), v, u, total

    def with_gradient(self, z: Array) -> tuple[Array, Array]:
        """Return values (m,) and gradients (m, D)."""
        gp = self.gp
        value, v, u, total = self._of(z)
        sigma = np.sqrt(np.maximum(gp.signal - np.einsum("nm,nm->m", v, v), 1e-9 * gp.signal))
        by_mean = -np.exp(log_ndtr(u) - total[:, None]) / sigma[:, None]
        by_sigma = np.exp(-0.5 * u * u - LOG_SQRT_2PI - total[:, None]).sum(axis=1) / sigma
        by_k = solve_lower(self.factor, self.w @ by_mean.T - v * (by_sigma / sigma), transposed=True).T
        scale = np.exp(-gp.theta)
        a, b = z * scale, gp.x * scale
        weights = 2.0 * gp.signal * by_k * matern52_and_slope(squared_distance(a, b))[1]
        return value, (weights.sum(axis=1)[:, None] * a - weights @ b) * scale


class Gtbo(Rival):
    """Group testing Bayesian optimization."""

    name: ClassVar[str] = "gtbo"
    takes: ClassVar[tuple[Kind, ...]] = (Kind.REAL,)
    why: ClassVar[str] = ": a group test moves variables by a distance"

    def __init__(self, space: Space, budget: int, seed: int, initial: int = INITIAL) -> None:
        super().__init__(space, budget, seed, initial)
        d = len(space)
        self.active: NDArray[np.intp] | None = np.arange(d) if d < LEAST else None
        """The active variables; None as long as groups are tested."""
        self._defaults = int(np.clip(budget * DEFAULTS // 200, 2, DEFAULTS))
        before = initial + self._defaults + d // _width(d)
        self._most = min(TESTS, max(budget // 2 - before, budget // 4))
        self._queue: list[Move] | None = None  # to be asked for
        self._open: dict[bytes, Move] = {}  # asked for, without a value
        self._results: list[tuple[Move, float]] = []  # in the order of the tells
        self._first: set[bytes] = set()  # all points of the first phase
        self._scales: Scales | None = None
        self._cloud: Cloud | None = None

    @property
    def marginals(self) -> Array | None:
        """The probability of each variable to be active (D,); None before the first group test."""
        return None if self._cloud is None else self._cloud.marginals

    def _told(self, row: Codes, value: float) -> None:
        move = self._open.pop(self.space.keys(row[None])[0], None)
        if move is not None:
            self._results.append((move, value))

    def _choose(self, x: Codes, y: Array, pending: Codes, *, rng: np.random.Generator) -> Codes:
        if self._queue is None:
            self._queue = self._calibration(rng=rng)
        while self.active is None:
            while self._queue:
                move = self._queue.pop(0)
                key = self.space.keys(move.row[None])[0]
                if key not in self._keys:
                    self._open[key] = move
                    self._first.add(key)
                    return move.row
            if not (self._estimate(rng=rng) if self._scales is None else self._plan(self._scales, rng=rng)):
                return np.asarray(self.space.sample(1, rng=rng)[0])  # nothing to decide before more values are known
        return self._optimise(x, y, pending, rng=rng)

    # First phase

    def _calibration(self, *, rng: np.random.Generator) -> list[Move]:
        """Return evaluations of the default, and of points with a bin of variables at 0.1 or 0.9."""
        d = len(self.space)
        shift = STEP * (np.arange(d) == 0)
        planned = [Move(on_grid(0.5 + i * shift), np.zeros(d, dtype=np.bool_), False) for i in range(self._defaults)]
        width, order = _width(d), rng.permutation(d)
        for i in range(d // width):
            moves = np.isin(np.arange(d), order[i * width : (i + 1) * width])
            row = np.where(moves, 0.1 + 0.8 * rng.integers(2, size=d), 0.5)
            planned.append(Move(on_grid(row), moves, False))
        return planned

    def _estimate(self, *, rng: np.random.Generator) -> bool:
        """Estimate the scales; return False if values are missing."""
        if self._open:
            return False
        moved = np.array([move.variables.any() for move, _ in self._results], dtype=np.bool_)
        values = np.array([value for _, value in self._results])
        d = len(self.space)
        if moved.all() or moved.sum() < 2:
            self.active = np.arange(d)  # whole numbers that are too few for group tests
            return True
        self._scales = Scales.of(values[~moved], values[moved], d)
        self._cloud = Cloud.prior(d, rng=rng)
        if not self._scales.signal > self._scales.noise:
            self.active = np.arange(0)  # no bin changes the value by more than the noise
        return True

    def _plan(self, scales: Scales, *, rng: np.random.Generator) -> bool:
        """Learn from tests, and plan more or end the phase; return False if values are missing."""
        assert self._cloud is not None
        assert self._queue is not None
        done = [(move.variables, value) for move, value in self._results if move.test]
        waiting = [move.variables for move in self._open.values()]
        groups = np.array([group for group, _ in done], dtype=np.bool_).reshape(len(done), len(self.space))
        results = np.array([value / scales.unit - scales.default for _, value in done])
        cloud = self._cloud.updated(Tests.of(groups, results, scales.signal, scales.noise), rng=rng)
        self._cloud = cloud
        left = self._most - len(done) - len(waiting)
        decided = (cloud.marginals <= CONVERGED[0]) | (cloud.marginals >= CONVERGED[1])
        taken = np.any(waiting, axis=0) if waiting else np.zeros(len(self.space), dtype=np.bool_)
        chosen = groups[:0]
        if left > 0 and not decided.all():
            chosen = next_groups(cloud, Information(scales.signal, scales.noise), taken, rng=rng)[:left]
            if waiting and not len(chosen):
                return False
        for group in chosen:
            far = rng.random(len(group)) * 0.1 + 0.9 * rng.integers(2, size=len(group))  # at least 0.4 from 0.5
            self._queue.append(Move(on_grid(np.where(group, far, 0.5)), group, True))
        if not len(chosen):
            self.active = np.flatnonzero(cloud.marginals > ACTIVE)
        return True

    # Second phase

    def _optimise(self, x: Codes, y: Array, pending: Codes, *, rng: np.random.Generator) -> Codes:
        assert self.active is not None
        kept = self._kept(x)
        d = len(self.space)
        means = np.full(d, LONG)
        means[self.active] = SHORT
        fit = Fit(signal=SIGNALS, noise=NOISES, start_signal=START, start_noise=START, prior=lengthscale_prior(means))
        gp = fit(Matern52(d, LENGTHSCALES, start=START), x[kept], standardised(y[kept]))
        acquisition = NoisyImprovement.of(gp.believing(pending), rng=rng)
        return on_grid(maximised(acquisition, rng=rng))

    def _kept(self, x: Codes) -> NDArray[np.intp]:
        """Return the rows for the process: of the first phase, one for each pattern of moved active variables."""
        assert self.active is not None
        tested = np.array([key in self._first for key in self.space.keys(x)], dtype=np.bool_)
        rows = np.flatnonzero(tested)
        moves = np.where(np.abs(x - 0.5) > 1e-6, np.sign(x - 0.5), 0.0)[rows][:, self.active]
        if len(self.active) and len(rows):
            rows = rows[np.unique(moves, axis=0, return_index=True)[1]]
        return np.sort(np.append(np.flatnonzero(~tested), rows if len(self.active) else rows[:1])).astype(np.intp)


def _width(d: int) -> int:
    """Return the number of variables in a bin."""
    return max(1, int(np.sqrt(d) / 3.0))


def lengthscale_prior(means: Array) -> Prior:
    """Return the density of lengthscales, LogNormal(mean, 1) each, and of the signal variance, Γ(2, 0.15)."""

    def prior(parameters: Array) -> tuple[float, Array]:
        logs, signal = parameters[:-2], float(np.exp(parameters[-2]))
        gap = logs - means
        value = -float((logs + 0.5 * gap**2).sum()) + float(parameters[-2]) - 0.15 * signal
        return value, np.concatenate([-1.0 - gap, [1.0 - 0.15 * signal, 0.0]])

    return prior


def maximised(acquisition: NoisyImprovement, *, rng: np.random.Generator) -> Array:
    """Return the best of several gradient searches (D,) from raw points in the box and around good data."""
    from scipy.optimize import minimize  # slow to import
    from scipy.stats.qmc import Sobol

    d = acquisition.gp.x.shape[1]
    own = np.random.default_rng(rng.integers(2**63))
    raw = np.concatenate([Sobol(d, scramble=True, rng=own).random(RAW), near_best(acquisition.gp, RAW, rng=rng)])
    values = acquisition(raw)
    spread = float(values.std())
    weights = np.exp(np.clip((values - values.max()) / spread, -700.0, 0.0)) if spread > 0.0 else np.ones(len(raw))
    chosen = rng.choice(len(raw), RESTARTS, replace=False, p=weights / weights.sum())
    if int(values.argmax()) not in chosen.tolist():
        chosen[-1] = int(values.argmax())

    def loss(flat: Array) -> tuple[float, Array]:
        value, gradient = acquisition.with_gradient(flat.reshape(RESTARTS, d))
        return -float(value.sum()), -gradient.ravel()

    found = minimize(
        loss,
        raw[chosen].ravel(),
        jac=True,
        method="L-BFGS-B",
        bounds=[(0.0, 1.0)] * (RESTARTS * d),
        options={"maxiter": ITERATIONS},
    )
    ends = np.clip(found.x.reshape(RESTARTS, d), 0.0, 1.0)
    return np.asarray(ends[int(acquisition(ends).argmax())])


def near_best(gp: Gaussian, n: int, *, rng: np.random.Generator) -> Array:
    """Return points around the data with the lowest means, as BoTorch's `sample_around_best` draws them."""
    order = np.argsort(gp.posterior(gp.x)[0], kind="stable")
    good = gp.x[order[: max(1, round(BEST_SHARE * len(order)))]]
    d = gp.x.shape[1]
    centres = good[rng.integers(len(good), size=n)]
    subset = np.arange(n) >= (n // 2 if d > 20 else n)
    deviation = np.where(subset, NEAR_SUBSET, NEAR)[:, None]
    moved = np.clip(centres + deviation * _truncated(centres / deviation, 1.0 / deviation, rng=rng), 0.0, 1.0)
    mask = ~subset[:, None] | (rng.random((n, d)) <= 20.0 / d)
    return np.where(mask, moved, centres)


def _truncated(place: Array, width: Array, *, rng: np.random.Generator) -> Array:
    """Draw standard normals that stay in a box: a place in [0, width] may not leave it."""
    from scipy.special import ndtr, ndtri

    low, high = ndtr(-place), ndtr(width - place)
    return np.asarray(ndtri(np.clip(low + rng.random(place.shape) * (high - low), 1e-300, 1.0 - 1e-16)))
