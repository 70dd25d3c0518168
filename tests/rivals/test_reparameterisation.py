"""Probabilistic reparameterisation: its distribution, its expectation, its gradient and where they lead."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from scipy.special import expit, softmax

from bounce import Binary, Categorical, Ordinal, Real, Space
from bounce.baselines.rivals import reparameterisation as pr
from bounce.baselines.rivals.expectation import Analytic, Improvement, Layout, MonteCarlo
from bounce.baselines.rivals.gaussian import Fit, Gaussian
from bounce.baselines.rivals.mixed import Mixed

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "rivals" / "pr.json").read_text())
REALS: list[Any] = [Real("r0", 0, 1), Real("r1", 0, 1)]
NUMBERS: list[Any] = [Ordinal("o0", [0, 1, 2, 3]), Ordinal("o1", [0, 1, 2]), Binary("b0"), Binary("b1"), Binary("b2")]
CATEGORIES: list[Any] = [Categorical("c0", list("abc")), Categorical("c1", list("abcd"))]
SPACE = Space([*REALS, *NUMBERS, *CATEGORIES])


class Stub:
    """An acquisition function that is easy to write down: 1 + sin of a linear function of the features."""

    def __init__(self, size: int) -> None:
        self.weights = np.array(GOLDEN["weights"])[:size]

    def __call__(self, z: np.ndarray) -> np.ndarray:
        return np.asarray(1.0 + np.sin(z @ self.weights))

    def with_gradient(self, z: np.ndarray, reals: int) -> tuple[np.ndarray, np.ndarray]:
        return self(z), np.cos(z @ self.weights)[:, None] * self.weights[:reals]


def layout_and_stub(space: Space) -> tuple[Layout, Any]:
    layout = Layout(space)
    return layout, Stub(layout.size)


def process(space: Space, n: int = 12, seed: int = 0) -> tuple[Layout, Gaussian]:
    rng = np.random.default_rng(seed)
    layout = Layout(space)
    x = layout.features(space.sample(n, rng=rng))
    y = np.sin(x @ rng.standard_normal(layout.size))
    covariance = Mixed(layout.numbers, layout.last - layout.numbers, layout.counts)
    return layout, Fit(signal=(1e-2, 1e2), noise=(1e-4, 1e-4))(covariance, x, (y - y.mean()) / y.std())


# The covariance


def test_the_covariance_is_the_published_one() -> None:
    rows = np.array(GOLDEN["rows"])
    plain, summed = Mixed(4, 3, np.array([], dtype=np.intp)), Mixed(4, 3, np.array([3, 4]))
    lengthscales = np.log([0.3, 0.7, 1.1, 1.9, 0.8])
    np.testing.assert_allclose(1.3 * plain(lengthscales, rows[:, :7], rows[:, :7]), GOLDEN["mixed"], rtol=1e-9)
    theta = np.concatenate([lengthscales, np.log([0.4, 1.5, 0.6 / 1.3])])
    np.testing.assert_allclose(1.3 * summed(theta, rows, rows), GOLDEN["categorical"], rtol=1e-9)
    np.testing.assert_allclose(summed.diagonal(theta, rows), np.diag(summed(theta, rows, rows)))


@pytest.mark.parametrize("parameters", [SPACE.parameters, CATEGORIES, NUMBERS[2:], [*REALS, *CATEGORIES], REALS])
def test_the_gradient_of_a_fit_is_that_of_its_loss(parameters: Any) -> None:
    gp = process(Space(parameters))[1]
    at = np.concatenate([np.full(len(gp.theta), -0.3), np.log([1.2, 0.02])])

    def loss(p: np.ndarray) -> tuple[float, np.ndarray]:
        return Fit().loss(gp.covariance, gp.x, gp.y, p)

    np.testing.assert_allclose(loss(at)[1], approx_fprime(at, lambda p: loss(p)[0], 1e-7), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("parameters", [SPACE.parameters, REALS, [*REALS, *NUMBERS]])
def test_the_gradient_of_the_improvement_by_the_reals_is_exact(parameters: Any) -> None:
    space = Space(parameters)
    layout, gp = process(space)
    improvement = Improvement(gp, float(gp.y.min()))
    z = layout.features(space.sample(1, rng=np.random.default_rng(1)))[0]
    value, slope = improvement.with_gradient(z[None], layout.reals)
    numeric = approx_fprime(z, lambda p: improvement(p[None])[0], 1e-7)[: layout.reals]
    assert value == pytest.approx(improvement(z[None]))
    np.testing.assert_allclose(slope[0], numeric, rtol=1e-3, atol=1e-6)


def test_the_fit_finds_the_published_optimum() -> None:
    layout = Layout(Space([Binary(f"x{i}") for i in range(20)]))
    gp = pr.fitted(layout, np.array(GOLDEN["bits"], dtype=float), np.array(GOLDEN["y"]))
    lengthscale, signal, likelihood = GOLDEN["fit"]
    at = np.append(gp.theta, np.log([gp.signal, gp.noise]))
    assert -Fit().loss(gp.covariance, gp.x, gp.y, at)[0] == pytest.approx(likelihood, abs=1e-3)
    assert np.exp(gp.theta[0]) == pytest.approx(lengthscale, rel=0.02)
    assert gp.signal == pytest.approx(signal, rel=0.05)


# The distribution


def enumerated(layout: Layout, theta: np.ndarray) -> list[tuple[float, np.ndarray]]:
    """Every configuration with its probability and features, written out variable by variable."""
    choices: list[list[tuple[float, list[float]]]] = []
    for value, top in zip(theta[layout.reals : layout.last], layout.top, strict=True):
        below = min(int(value * top), int(top) - 1)
        p = float(expit((value * top - below - 0.5) / 0.1))
        choices.append([(1.0 - p, [below / top]), (p, [(below + 1) / top])])
    start = layout.last
    for count in layout.counts:
        shares = softmax((theta[start : start + count] - 0.5) / 0.1)
        choices.append([(float(share), np.eye(count)[i].tolist()) for i, share in enumerate(shares)])
        start += count
    found = []
    for each in itertools.product(*choices):
        features = list(theta[: layout.reals]) + [f for _, part in each for f in part]
        found.append((float(np.prod([p for p, _ in each])), np.array(features)))
    return found


@pytest.mark.parametrize("parameters", [SPACE.parameters, NUMBERS, CATEGORIES, [*NUMBERS, *CATEGORIES]])
def test_the_analytic_expectation_is_the_sum_over_all_configurations(parameters: Any) -> None:
    layout, stub = layout_and_stub(Space(parameters))
    theta = np.random.default_rng(0).random((3, layout.size))
    theta[2, layout.reals : layout.last] = 1.0
    exact = Analytic(layout, stub)
    np.testing.assert_allclose(exact.probabilities(theta).sum(axis=1), 1.0)
    expected = [sum(p * stub(z[None])[0] for p, z in enumerated(layout, row)) for row in theta]
    np.testing.assert_allclose(exact(theta), expected)
    np.testing.assert_allclose(exact.with_gradient(theta, np.zeros(3))[0], expected)


@pytest.mark.parametrize("parameters", [SPACE.parameters, NUMBERS, CATEGORIES])
def test_the_analytic_gradient_is_that_of_the_expectation(parameters: Any) -> None:
    layout, stub = layout_and_stub(Space(parameters))
    theta = np.random.default_rng(1).random(layout.size)
    exact = Analytic(layout, stub)
    gradient = exact.with_gradient(theta[None], np.zeros(1))[1][0]
    gradient[layout.reals : layout.last] *= layout.top  # it is in units of codes
    np.testing.assert_allclose(gradient, approx_fprime(theta, lambda t: exact(t[None])[0], 1e-7), atol=1e-5)


def test_the_analytic_expectation_is_the_published_one() -> None:
    layout, stub = layout_and_stub(Space([*REALS, *NUMBERS]))
    theta = np.array(GOLDEN["theta"])[:3, : layout.size]
    value, gradient = Analytic(layout, stub).with_gradient(theta, np.zeros(3))
    gradient[:, layout.reals :] *= layout.top
    np.testing.assert_allclose(value, GOLDEN["exact"])
    np.testing.assert_allclose(gradient, GOLDEN["exact_gradients"], atol=1e-12)


def test_the_sampled_expectation_and_its_score_function_are_the_published_ones() -> None:
    """Also at the ends of ranges; the published baseline is 0 at first, then a corrected moving average."""
    layout, stub = layout_and_stub(SPACE)
    sampled = MonteCarlo(layout, stub, np.array(GOLDEN["uniform"]), rng=np.random.default_rng(0))
    theta = np.array(GOLDEN["theta"])
    np.testing.assert_allclose(sampled(theta), GOLDEN["values"])
    hidden = 0.0
    for count, expected in enumerate(GOLDEN["gradients"]):
        baseline = hidden / (1.0 - pr.DECAY**count) if count else 0.0
        value, gradient = sampled.with_gradient(theta, np.full(5, baseline))
        hidden += (1.0 - pr.DECAY) * (value.mean() - hidden)
        np.testing.assert_allclose(value, GOLDEN["values"])
        np.testing.assert_allclose(gradient, expected, atol=1e-12)


@pytest.mark.parametrize("parameters", [SPACE.parameters, [*NUMBERS, *CATEGORIES]])
def test_the_sampled_expectation_and_gradient_approach_the_analytic_ones(parameters: Any) -> None:
    layout, stub = layout_and_stub(Space(parameters))
    rng = np.random.default_rng(2)
    theta = rng.random((4, layout.size))
    uniform = rng.random((100_000, len(layout.top) + len(layout.counts)))
    sampled, exact = MonteCarlo(layout, stub, uniform, rng=rng), Analytic(layout, stub)
    value, gradient = exact.with_gradient(theta, np.zeros(4))
    found, slope = sampled.with_gradient(theta, value)
    np.testing.assert_allclose(found, value, atol=0.01)  # three standard errors are at most 0.007
    np.testing.assert_allclose(slope, gradient, atol=0.06)


def test_a_baseline_leaves_the_gradient_and_lowers_its_variance() -> None:
    layout, stub = layout_and_stub(Space(NUMBERS))
    rng = np.random.default_rng(3)
    theta = rng.random((1, layout.size))

    def gradients(baseline: float) -> np.ndarray:
        draws = (rng.random((128, len(layout.top))) for _ in range(300))
        clouds = (MonteCarlo(layout, stub, uniform, rng=rng) for uniform in draws)
        return np.array([cloud.with_gradient(theta, np.array([baseline]))[1][0] for cloud in clouds])

    value, exact = Analytic(layout, stub).with_gradient(theta, np.zeros(1))
    without, with_one = gradients(0.0), gradients(float(value[0]))
    np.testing.assert_allclose(with_one.mean(axis=0), exact[0], atol=0.06)
    assert with_one.var(axis=0).sum() < 0.5 * without.var(axis=0).sum()


def test_draws_have_the_probabilities() -> None:
    layout = Layout(SPACE)
    rng = np.random.default_rng(4)
    theta = rng.random((1, layout.size))
    steps, chosen = layout.draw(theta, rng.random((1, 20_000, len(layout.top) + 2)))
    _, below, p = layout.rounding(theta)
    np.testing.assert_allclose((steps[0] - below).mean(axis=0), p[0], atol=0.015)
    shares = [np.bincount(chosen[0, :, j].astype(int), minlength=4) / 20_000 for j in range(2)]
    np.testing.assert_allclose(shares, layout.shares(theta)[0], atol=0.015)


# The search


def small() -> tuple[Space, Layout, Improvement]:
    space = Space([*NUMBERS[:4], CATEGORIES[0]])  # 4·3·2·2·3 = 144 points
    layout, gp = process(space, n=15, seed=5)
    return space, layout, Improvement(gp, float(gp.y.min()))


def test_no_distribution_is_better_than_the_best_point_and_the_best_one_is_at_it() -> None:
    """The maximisers of the expectation are those of the acquisition function, as the paper proves."""
    space, layout, improvement = small()
    points = space.grid()
    values = improvement(layout.features(points))
    exact = Analytic(layout, improvement)
    theta = pr.ascend(exact, pr.sobol(64, layout.size, rng=np.random.default_rng(0)), 0.0)
    assert exact(theta).max() <= values.max()
    top = theta[int(exact(theta).argmax())]
    likely = exact.probabilities(top[None])[0]
    assert likely.max() > 0.9
    best = layout.features(points[int(values.argmax())][None])[0]
    np.testing.assert_array_equal(exact.features[int(likely.argmax())], best)


@pytest.mark.parametrize("few", [True, False])
def test_the_chosen_point_is_the_best_of_all_points(few: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    space, layout, improvement = small()
    if not few:
        monkeypatch.setattr(pr, "ENUMERATED", 1)
    kind = pr.Reparameterisation.expectation(layout, improvement, rng=np.random.default_rng(0))
    assert isinstance(kind, Analytic if few else MonteCarlo)
    points = space.grid()
    values = improvement(layout.features(points))
    method = pr.Reparameterisation(space, 100, 0)
    for seed in range(3):
        chosen = method.maximise(layout, improvement, rng=np.random.default_rng(seed))
        assert improvement(layout.features(chosen[None]))[0] == pytest.approx(values.max())


def test_each_configuration_is_evaluated_once() -> None:
    layout, stub = layout_and_stub(Space(NUMBERS))
    seen: list[bytes] = []

    def counted(z: np.ndarray) -> np.ndarray:
        seen.extend(row.tobytes() for row in z)
        return np.asarray(stub(z))

    uniform = np.random.default_rng(0).random((128, len(layout.top)))
    improvement: Any = counted
    sampled = MonteCarlo(layout, improvement, uniform, rng=np.random.default_rng(1))
    for theta in np.random.default_rng(2).random((20, 3, layout.size)):
        value, _ = sampled.with_gradient(theta, np.zeros(3))
        steps, _ = layout.draw(theta, uniform[None])
        expected = stub((steps / layout.top).reshape(-1, layout.size)).reshape(3, -1).mean(axis=1)
        np.testing.assert_allclose(value, expected)
    assert len(seen) == len(set(seen)) <= 96


def test_starts_have_the_best_point_and_their_weights() -> None:
    rng = np.random.default_rng(0)
    value = np.array([0.0, 1e-9, 0.5, 1.0, 0.2])
    theta = np.arange(5.0)[:, None]
    drawn = np.array([np.sort(pr.starts(theta, value, 2, rng=rng)[:, 0]) for _ in range(4000)])
    assert (drawn == 3.0).any(axis=1).all()
    assert not (drawn <= 1.0).any()  # less than 1e-4 of the best
    assert len(pr.starts(theta, np.zeros(5), 3, rng=rng)) == 3
    assert set(pr.starts(theta, value, 5, rng=rng)[:, 0].tolist()) == {0.0, 1.0, 2.0, 3.0, 4.0}
