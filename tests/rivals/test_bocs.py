from __future__ import annotations

import json
from itertools import islice, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import ks_2samp

from bounce import Binary, Space
from bounce.baselines.rivals import bocs
from bounce.baselines.rivals.bocs import Bocs, Horseshoe, anneal, features

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "rivals" / "bocs.json").read_text())
BATCHES = 25


def bits(n: int) -> np.ndarray:
    """All points of n bits."""
    return np.array(list(product([0.0, 1.0], repeat=n)))


def of(linear: np.ndarray, pairs: np.ndarray, x: np.ndarray) -> np.ndarray:
    return np.asarray(x @ linear + 0.5 * np.einsum("ij,jk,ik->i", x, pairs, x))


def quadratic(d: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    pairs = np.triu(rng.standard_normal((d, d)), 1)
    return rng.standard_normal(d), pairs + pairs.T


def test_features_are_the_bits_and_then_their_products() -> None:
    x = np.array([[1.0, 0.0, 1.0], [1.0, 1.0, 1.0]])
    assert features(x).tolist() == [[1, 0, 1, 0, 1, 0], [1, 1, 1, 1, 1, 1]]
    assert features(np.zeros((2, 50))).shape == (2, 1275)


@pytest.mark.slow
@pytest.mark.parametrize(("n", "p"), [(3, 5), (6, 4)])
def test_coefficients_have_the_moments_of_the_conjugate_posterior(n: int, p: int) -> None:
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 2, (n, p)).astype(float), rng.standard_normal(n)
    noise, variances = 0.3, np.array([0.5, 2.0, 0.01, 30.0, 1.0])[:p]
    precision = (x.T @ x + np.diag(1.0 / variances)) / noise
    covariance = np.linalg.inv(precision)
    mean = covariance @ x.T @ y / noise
    model = Horseshoe(x, y)
    drawn = np.array([model.coefficients(noise, variances, rng=rng) for _ in range(10_000)])
    white = np.linalg.solve(np.linalg.cholesky(covariance), (drawn - mean).T)
    assert np.abs(white.mean(axis=1)).max() < 4.5 / 10_000**0.5
    assert np.abs(white @ white.T / 10_000 - np.eye(p)).max() < 4.5 * (2.0 / 10_000) ** 0.5


@pytest.mark.slow
def test_both_ways_to_draw_coefficients_have_the_same_distribution() -> None:
    rng = np.random.default_rng(1)
    x, y = rng.integers(0, 2, (8, 8)).astype(float), rng.standard_normal(8)
    variances = 10.0 ** rng.uniform(-4, 4, 8)
    model = Horseshoe(x, y)
    wide, tall = (
        np.array([draw(0.01, variances, rng=rng) for _ in range(5000)]) for draw in (model._wide, model._tall)
    )
    error = np.sqrt((wide.var(axis=0) + tall.var(axis=0)) / 5000)
    assert (np.abs(wide.mean(axis=0) - tall.mean(axis=0)) < 4.5 * error).all()
    np.testing.assert_allclose(wide.std(axis=0), tall.std(axis=0), rtol=0.05)


@pytest.mark.slow
def test_a_long_chain_has_the_moments_of_the_published_one() -> None:
    case = GOLDEN["long chain"]
    model = Horseshoe(features(np.array(case["x"])), np.array(case["y"]))
    assert model.x.shape[1] < len(model.y)
    drawn = np.array(
        [
            [*draw.alpha, np.log(draw.noise), np.log(draw.shared), *np.log(draw.local[:3])]
            for draw in islice(model.chain(rng=np.random.default_rng(0)), 500, 500 + case["steps"] // 2)
        ]
    )
    for power in (1, 2):
        batches = (drawn**power).reshape(BATCHES, -1, drawn.shape[1]).mean(axis=1)
        ours, error = batches.mean(axis=0), batches.std(axis=0, ddof=1) / BATCHES**0.5
        theirs, other = (np.array(case[f"{name} of power {power}"]) for name in ("mean", "error"))
        z = (ours - theirs) / np.sqrt(error**2 + other**2)
        assert np.abs(z).max() < 4.5
        assert np.square(z).mean() < 2.0


@pytest.mark.slow
def test_short_chains_with_more_features_than_points_end_where_the_published_ones_do() -> None:
    case = GOLDEN["short chains"]
    model = Horseshoe(features(np.array(case["x"])), np.array(case["y"]))
    assert model.x.shape[1] > len(model.y)
    last = []
    for seed in range(150):
        draw = next(islice(model.chain(rng=np.random.default_rng(seed)), case["steps"] - 1, None))
        scales = np.log([draw.noise, draw.shared, draw.local[0]])
        last.append([*scales, *draw.alpha[:3], *(model.x[:3] @ draw.alpha)])
    for ours, theirs in zip(np.array(last).T, np.array(case["last"]).T, strict=True):
        assert ks_2samp(ours, theirs).pvalue > 1e-3


def centred(x: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A quadratic function whose values at some points have a mean of zero: the model has no constant of its own."""
    linear, pairs = quadratic(x.shape[1], seed)
    linear[0] -= of(linear, pairs, x).mean() / x[:, 0].mean()
    return linear, pairs


def test_the_chain_finds_the_coefficients_of_data_without_noise() -> None:
    x = bits(5)
    linear, pairs = centred(x, 0)
    y = of(linear, pairs, x)
    *_, last = islice(Horseshoe(features(x), y / y.std()).chain(rng=np.random.default_rng(0)), 1000)
    expected = np.concatenate([linear, pairs[np.triu_indices(5, 1)]]) / y.std()
    assert 0.0 < last.noise < 1e-3
    np.testing.assert_allclose(last.alpha, expected, atol=0.1)


def test_annealing_returns_the_value_of_its_bits_and_finds_the_minimum_of_small_problems() -> None:
    found = []
    for seed in range(20):
        linear, pairs = quadratic(8, seed)
        x, value = anneal(linear, pairs, 200, rng=np.random.default_rng(seed))
        assert value == pytest.approx(of(linear, pairs, x[None])[0])
        found.append(value == pytest.approx(of(linear, pairs, bits(8)).min()))
    assert np.mean(found) >= 0.9


@pytest.mark.slow
@pytest.mark.parametrize("case", GOLDEN["annealing"], ids=lambda case: f"{len(case['linear'])} bits")
def test_annealing_comes_as_low_as_the_published_one(case: dict[str, Any]) -> None:
    linear, pairs = np.array(case["linear"]), np.array(case["pairs"])
    rng = np.random.default_rng(0)
    lowest = [anneal(linear, pairs + pairs.T, case["steps"], rng=rng)[1] for _ in range(300)]
    error = np.hypot(np.std(lowest) / 300**0.5, case["error"])
    assert abs(np.mean(lowest) - case["mean"]) < 4.0 * error


@pytest.mark.slow
def test_it_proposes_the_minimum_of_a_quadratic_function_that_the_data_determine() -> None:
    x = bits(6)
    known = np.random.default_rng(0).permutation(64)[:50]
    linear, pairs = centred(x[known], 10)
    y = of(linear, pairs, x)
    assert np.argmin(y) not in known
    rival = Bocs(Space([Binary(f"x{i}") for i in range(6)]), 200, 0)
    proposed = [rival._choose(x[known], y[known], x[:0], rng=np.random.default_rng(seed)).tolist() for seed in range(5)]
    assert proposed.count(x[np.argmin(y)].tolist()) >= 4


def test_points_of_a_batch_come_from_separate_draws() -> None:
    rival = Bocs(Space([Binary(f"x{i}") for i in range(12)]), 30, 0)
    first = rival.ask(5)
    rival.tell(first, [float(trial.id) for trial in first])
    assert len({str(trial.point) for trial in rival.ask(6)}) == 6


def test_it_anneals_as_long_as_its_budget_and_ignores_the_scale_of_values(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[int, np.ndarray]] = []

    def spy(linear: np.ndarray, pairs: np.ndarray, steps: int, *, rng: np.random.Generator) -> Any:
        seen.append((steps, linear))
        return anneal(linear, pairs, steps, rng=rng)

    monkeypatch.setattr(bocs, "anneal", spy)
    rival = Bocs(Space([Binary(f"x{i}") for i in range(5)]), 77, 0)
    x = bits(5)[3:20]
    y = np.random.default_rng(0).standard_normal(len(x))
    chosen = [
        rival._choose(x, scale * y, x[:0], rng=np.random.default_rng(4)).tolist() for scale in (1.0, 2.0**40, 2.0**-40)
    ]
    assert chosen[0] == chosen[1] == chosen[2]
    assert [steps for steps, _ in seen] == [77, 77, 77]
    assert seen[0][1][0] != 0.0


def test_a_bit_that_was_never_on_keeps_the_coefficient_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[np.ndarray, np.ndarray]] = []

    def spy(linear: np.ndarray, pairs: np.ndarray, steps: int, *, rng: np.random.Generator) -> Any:
        seen.append((linear, pairs))
        return anneal(linear, pairs, steps, rng=rng)

    monkeypatch.setattr(bocs, "anneal", spy)
    x = bits(4)
    x = x[x[:, 2] == 0.0]
    Bocs(Space([Binary(f"x{i}") for i in range(4)]), 20, 0)._choose(
        x, x.sum(axis=1), x[:0], rng=np.random.default_rng(0)
    )
    linear, pairs = seen[0]
    assert linear[2] == 0.0
    assert not pairs[2].any()
    assert not pairs[:, 2].any()
    assert linear[[0, 1, 3]].all()
