"""COMBO: a Gaussian process on the product of one graph per variable, its scales sampled, and ascents along edges.

The nouns: `Diffusion` is the kernel, with a scale β for each variable; a `State` is one sample of all hyperparameters;
`Evidence` is their posterior given data, and its `sweep` moves a state once through all of them by slice sampling.

The invariant: a sweep leaves the posterior of the hyperparameters unchanged.

Oh, Tomczak, Gavves and Welling, Combinatorial Bayesian Optimization using the Graph Cartesian Product, NeurIPS 2019.

Shapes: x (n, D) codes, y (n,) of mean 0 and deviation 1, log β (D,).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from bounce.acquire.improvement import log_ei
from bounce.baselines.baseline import INITIAL
from bounce.baselines.rivals.diffusion import LOG_BETA, STABLE, TINY, Diffusion, complete, heat, path, spectrum
from bounce.baselines.rivals.gaussian import HALF_LOG_2PI, Gaussian
from bounce.baselines.rivals.rival import Rival, standardised
from bounce.baselines.rivals.slice_sampling import slice_sample
from bounce.gp.linalg import Array, cholesky, solve_lower
from bounce.spaces.kinds import Codes, Kind
from bounce.spaces.space import Space

BURN_IN = 100  # sweeps before the first ask
SAMPLES = 10  # sweeps for each ask, each of which is a sample
RANDOM, SPRAYED, ASCENTS = 20_000, 10, 20  # random points, neighbours of the best point, and ascents from the best
BLOCK = 2048  # points whose expected improvement is computed at once
HORSESHOE = 5.0  # τ of the prior of β
NOISE = 0.1  # the scale of the prior of the noise variance
LOG_VARIANCE = (-12.0, float(np.log(10_000.0)))  # of the amplitude and of the noise

Density = Callable[[float], float]


def prior_variances(graph: Array, beta: float = 1.0) -> Array:
    """Return the prior variance that COMBO gives to each code of a variable, 1 on average.

    On a complete graph all categories are alike. The published code puts the categories on a path: of five, the first
    and the last have variance 1.29 at β = 1, and those between them 0.83, 0.77 and 0.83. Expected improvement then
    prefers the first and the last category for no reason but their place (Bounce paper, appendix on COMBO).
    """
    return np.diag(heat(*spectrum(graph), beta)).copy()


def log_prior_beta(log_beta: float) -> float:
    """Return the log of the horseshoe's density at β (its usual approximation), used as a density of log β."""
    inside = LOG_BETA[0] <= log_beta <= LOG_BETA[1]
    return float(np.log(np.log1p(2.0 * (HORSESHOE / np.exp(log_beta)) ** 2))) if inside else -np.inf


def log_prior_noise(log_noise: float) -> float:
    """Return the same for the noise variance, with its own scale."""
    inside = LOG_VARIANCE[0] <= log_noise <= LOG_VARIANCE[1]
    return float(np.log(np.log1p((NOISE / np.exp(log_noise)) ** 2))) if inside else -np.inf


@dataclass(frozen=True, eq=False)
class State:
    """A sample of the hyperparameters."""

    mean: float
    log_amplitude: float
    log_noise: float
    log_beta: Array


@dataclass(frozen=True, eq=False)
class Evidence:
    """The posterior of the hyperparameters given values that are not all equal."""

    kernel: Diffusion
    x: Codes
    y: Array

    @cached_property
    def _levels(self) -> list[tuple[Array, Array]]:
        """For each variable, the eigenvectors at the codes that occur, and which row has which of these codes."""
        found = []
        for column, (_, basis) in zip(self.x.T, self.kernel.spectra, strict=True):
            codes, place = np.unique(column.astype(np.intp), return_inverse=True)
            found.append((basis[codes], np.eye(len(codes))[place]))
        return found

    def factor(self, j: int, log_beta: float) -> Array:
        """Return the kernel of one variable between the rows (n, n)."""
        at, rows = self._levels[j]
        table = np.maximum(heat(self.kernel.spectra[j][0], at, np.exp(log_beta)), TINY)
        return np.asarray(rows @ table @ rows.T)

    def likelihood(self, k: Array, state: State) -> float:
        """Return the log density of the values, for the product k (n, n) of the factors."""
        return self._by_mean(k, state)(state.mean)

    def _by_mean(self, k: Array, state: State) -> Density:
        """Return the log density of the values as a function of the prior mean."""
        amplitude = np.exp(state.log_amplitude)
        total = amplitude * k
        total[np.diag_indices(len(k))] += amplitude * STABLE + np.exp(state.log_noise)
        factor = cholesky(total)
        y, ones = solve_lower(factor, np.stack([self.y, np.ones_like(self.y)], axis=1)).T
        constant = -float(np.log(np.diag(factor)).sum()) - len(y) * HALF_LOG_2PI
        return lambda mean: constant - 0.5 * float(np.square(y - mean * ones).sum())

    def log_prior_mean(self, mean: float) -> float:
        """Return a Gaussian's log density about the middle of the values, a quarter of their range wide, cut to it."""
        low, high = float(self.y.min()), float(self.y.max())
        return -0.5 * ((mean - 0.5 * (low + high)) / (0.25 * (high - low))) ** 2 if low <= mean <= high else -np.inf

    @cached_property
    def _amplitudes(self) -> tuple[float, float]:
        """The middle of the log amplitudes and half its distance to either end.

        At the ends, the variance of the values is that of the slowest or of the fastest frequency at β = 1.
        """
        means = sum(float(np.log(np.exp(-frequencies).mean())) for frequencies, _ in self.kernel.spectra)
        fastest = max(-sum(float(frequencies[-1]) for frequencies, _ in self.kernel.spectra) - means, np.log(1e-100))
        return float(np.log(self.y.var(ddof=1))) - 0.5 * (fastest - means), 0.25 * (-means - fastest)

    def log_prior_amplitude(self, log_amplitude: float) -> float:
        """Return a Gaussian's log density, within bounds."""
        centre, deviation = self._amplitudes
        inside = LOG_VARIANCE[0] <= log_amplitude <= LOG_VARIANCE[1]
        return -0.5 * ((log_amplitude - centre) / deviation) ** 2 if inside else -np.inf

    def sweep(self, state: State, *, rng: np.random.Generator) -> State:
        """Return the state after one move of each hyperparameter: mean, amplitude, noise, then every β in any order."""
        logs = np.zeros((len(self.y), len(self.y)))
        for j, log_beta in enumerate(state.log_beta):
            logs += np.log(self.factor(j, log_beta))
        k = np.exp(logs)

        def with_amplitude(value: float) -> float:
            return self.likelihood(k, replace(state, log_amplitude=value))

        def with_noise(value: float) -> float:
            return self.likelihood(k, replace(state, log_noise=value))

        mean = _moved(self.log_prior_mean, self._by_mean(k, state), state.mean, rng=rng)
        state = replace(state, mean=mean)
        amplitude = _moved(self.log_prior_amplitude, with_amplitude, state.log_amplitude, rng=rng)
        state = replace(state, log_amplitude=amplitude)
        noise = _moved(log_prior_noise, with_noise, state.log_noise, rng=rng)
        state = replace(state, log_noise=noise, log_beta=state.log_beta.copy())
        for j in rng.permutation(len(state.log_beta)).tolist():
            others = logs - np.log(self.factor(j, state.log_beta[j]))
            state.log_beta[j] = _moved(
                log_prior_beta, self._by_beta(j, np.exp(others), state), float(state.log_beta[j]), rng=rng
            )
            logs = others + np.log(self.factor(j, state.log_beta[j]))
        return state

    def _by_beta(self, j: int, others: Array, state: State) -> Density:
        """Return the log density of the values as a function of one log β: only its factor changes."""
        return lambda log_beta: self.likelihood(others * self.factor(j, log_beta), state)


def _moved(log_prior: Density, likelihood: Density, at: float, *, rng: np.random.Generator) -> float:
    def density(value: float) -> float:
        log_density = log_prior(value)
        return log_density + likelihood(value) if np.isfinite(log_density) else log_density

    return slice_sample(density, at, rng=rng)


class Improvement:
    """The expected improvement below the best value, summed over samples of the hyperparameters."""

    def __init__(self, kernel: Diffusion, states: Sequence[State], x: Codes, y: Array, pending: Codes) -> None:
        self._kernel, self._bests = kernel, [float(y.min()) - state.mean for state in states]
        rows, fixed = kernel.features(x), kernel.features(pending)
        self._models = []
        for state in states:  # what is above the mean of the sample is a process of mean zero
            amplitude, noise = float(np.exp(state.log_amplitude)), float(np.exp(state.log_noise))
            model = Gaussian(
                kernel, state.log_beta, amplitude, noise + STABLE * amplitude, rows, y - state.mean, constant=False
            )
            self._models.append(model.believing(fixed))

    def __call__(self, z: Codes) -> Array:
        """Return its logarithm (m,) at rows of codes."""
        found = []
        for start in range(0, len(z), BLOCK):
            features = self._kernel.features(z[start : start + BLOCK])
            each = [
                log_ei(*model.posterior(features), best) for model, best in zip(self._models, self._bests, strict=True)
            ]
            found.append(np.logaddexp.reduce(each))
        return np.concatenate(found)


class Combo(Rival):
    """COMBO with categories on complete graphs, as its paper describes it."""

    name = "combo"
    takes = (Kind.BINARY, Kind.ORDINAL, Kind.CATEGORICAL)
    why = ": its graphs have one vertex for each value"

    def __init__(self, space: Space, budget: int, seed: int, initial: int = INITIAL) -> None:
        super().__init__(space, budget, seed, initial)
        self._kernel = Diffusion(
            [self.graph(kind, int(n)) for kind, n in zip(space.kinds, space.cardinalities, strict=True)]
        )
        self._state: State | None = None

    @staticmethod
    def graph(kind: Kind, n: int) -> Array:
        """Return the graph of a variable with n values."""
        return complete(n) if kind is Kind.CATEGORICAL else path(n)

    def _choose(self, x: Codes, y: Array, pending: Codes, *, rng: np.random.Generator) -> Codes:
        y = standardised(y)
        if not y.any():
            return np.asarray(self.space.sample(1, rng=rng)[0])
        states = self._sample(Evidence(self._kernel, x, y), rng=rng)
        improvement = Improvement(self._kernel, states, x, y, pending)
        near = rng.permutation(self._kernel.neighbours(x[int(np.argmin(y))]))[:SPRAYED]
        candidates = np.concatenate([near, self.space.sample(RANDOM, rng=rng)])
        values = improvement(candidates)
        first = np.argsort(-values, kind="stable")[:ASCENTS]
        return self._first_unseen(self._ascend(candidates[first], values[first], improvement))

    def _sample(self, evidence: Evidence, *, rng: np.random.Generator) -> list[State]:
        """Return the next states of the chain, which goes on from ask to ask."""
        sweeps = SAMPLES
        if self._state is None:
            sweeps += BURN_IN
            self._state = State(0.0, float(np.log(0.5 * evidence.y.var(ddof=1))), 0.0, np.zeros(len(self.space)))
        # New values have changed the scale, and the mean must stay in their range.
        mean = float(np.clip(self._state.mean, evidence.y.min(), evidence.y.max()))
        states = [replace(self._state, mean=mean)]
        for _ in range(sweeps):
            states.append(evidence.sweep(states[-1], rng=rng))
        self._state = states[-1]
        return states[-SAMPLES:]

    def _ascend(self, rows: Codes, values: Array, improvement: Callable[[Codes], Array]) -> Codes:
        """Move each row to its best neighbour while that is better, side by side; return the ends, the best first.

        An ascent that comes to where another has been would end where that one does, so it stops.
        """
        ends: list[tuple[float, Codes]] = []
        active = dict(zip(self.space.keys(rows), zip(values.tolist(), rows, strict=True), strict=True))
        visited = set(active)
        while active:
            around = [self._kernel.neighbours(row) for _, row in active.values()]
            limits = np.cumsum([len(near) for near in around])[:-1]
            moved = {}
            for (value, row), near, each in zip(
                active.values(), around, np.split(improvement(np.concatenate(around)), limits), strict=True
            ):
                best = int(np.argmax(each))
                key = self.space.keys(near[best : best + 1])[0]
                if not each[best] > value:
                    ends.append((value, row))
                elif key not in visited:
                    moved[key] = float(each[best]), near[best]
                    visited.add(key)
            active = moved
        ends = ends or [(float(values[0]), rows[0])]  # rounding can lead an ascent back to where it was
        return np.array([row for _, row in sorted(ends, key=lambda end: -end[0])])

    def _first_unseen(self, rows: Codes) -> Codes:
        """Return the first row that is new, else the first new neighbour of one, else the first row."""
        for candidates in (rows, *(self._kernel.neighbours(row) for row in rows)):
            for row, key in zip(candidates, self.space.keys(candidates), strict=True):
                if key not in self._keys:
                    return np.asarray(row)
        return np.asarray(rows[0])


class ComboPublished(Combo):
    """COMBO as the published code has it: categories on paths, and one prior mean for all samples of an ask."""

    name = "combo-published"

    @staticmethod
    def graph(kind: Kind, n: int) -> Array:
        """Return a path, whatever the kind."""
        return path(n)

    def _sample(self, evidence: Evidence, *, rng: np.random.Generator) -> list[State]:
        """Return states with the prior mean of the last: the published samples share one object that holds it."""
        states = super()._sample(evidence, rng=rng)
        return [replace(state, mean=states[-1].mean) for state in states]
