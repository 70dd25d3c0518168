from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from scipy.stats import multivariate_normal

from bounce import Binary, Categorical, Real, Space, baselines
from bounce.baselines.rivals.rducb import (
    NOISE,
    Additive,
    Forest,
    Rducb,
    RducbScaled,
    fitted,
    message_passing,
    random_forest,
    zoomed,
)

GOLDEN: dict[str, Any] = json.loads((Path(__file__).parents[1] / "golden" / "rivals" / "rducb.json").read_text())


def trees(forest: Forest) -> int:
    """The number of trees, counted by flooding."""
    left, count = set(range(forest.d)), 0
    while left:
        count += 1
        flood = [min(left)]
        while flood:
            i = flood.pop()
            left.discard(i)
            flood += [j for edge in forest.edges if i in edge for j in edge if j in left]
    return count


@pytest.mark.parametrize("d", [1, 2, 3, 9, 10, 50, 300])
def test_a_forest_has_a_fifth_as_many_edges_as_variables_and_no_cycle(d: int) -> None:
    for seed in range(5):
        forest = random_forest(d, rng=np.random.default_rng(seed))
        assert len(forest.edges) == min(d - 1, max(1, d // 5))
        assert trees(forest) == d - len(forest.edges)  # true of a graph exactly if it has no cycle
        assert sorted(node for node, _, _ in forest.order) == list(range(d))


def test_every_pair_of_variables_is_as_likely_an_edge() -> None:
    rng = np.random.default_rng(0)
    counts = Counter(edge for _ in range(6000) for edge in random_forest(4, rng=rng).edges)
    assert len(counts) == 6
    assert max(counts.values()) - min(counts.values()) < 6 * np.sqrt(1000)


@pytest.mark.parametrize("edges", [[], [(0, 1)], [(0, 1), (1, 2), (1, 3)], [(0, 4), (2, 4), (2, 3), (1, 3)]])
def test_message_passing_finds_what_brute_force_finds(edges: list[tuple[int, int]]) -> None:
    forest = Forest(5, edges)
    for seed in range(20):
        rng = np.random.default_rng(seed)
        pairs, lone = rng.normal(size=(len(edges), 3, 3)), rng.normal(size=(len(forest.lone), 3))

        def total(places: tuple[int, ...], pairs: np.ndarray = pairs, lone: np.ndarray = lone) -> float:
            linked = sum(table[places[i], places[j]] for table, (i, j) in zip(pairs, edges, strict=True))
            return float(linked + sum(row[places[i]] for row, i in zip(lone, forest.lone, strict=True)))

        best = max(itertools.product(range(3), repeat=5), key=total)
        assert tuple(message_passing(forest, pairs, lone)) == best


def process(n: int = 12, d: int = 5, edges: tuple[tuple[int, int], ...] = ((0, 3), (3, 4)), seed: int = 0) -> Additive:
    rng = np.random.default_rng(seed)
    x = rng.random((n, d))
    y = rng.standard_normal(n)
    return Additive(Forest(d, edges), rng.uniform(0.2, 1.0, d), rng.uniform(0.4, 2.0, d), x, y)


def covariance(p: Additive, clique: tuple[int, ...], a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The kernel of a clique, entry by entry."""
    variance = np.sqrt(sum(p.scales[i] ** 2 for i in clique))
    out = np.empty((len(a), len(b)))
    for r, row in enumerate(a):
        for c, column in enumerate(b):
            out[r, c] = variance * np.exp(-0.5 * sum(((row[i] - column[i]) / p.lengthscales[i]) ** 2 for i in clique))
    return out


def test_bounds_are_those_of_the_explicit_posterior_of_each_clique() -> None:
    p = process()
    k = sum(covariance(p, clique, p.x, p.x) for clique in p.forest.cliques) + NOISE * np.eye(len(p.x))
    grid = np.random.default_rng(1).random((5, 4))
    pairs, lone = p.bounds(grid, 0.7)

    def bound(clique: tuple[int, ...], z: np.ndarray) -> float:
        cross = covariance(p, clique, z[None], p.x)
        mean = (cross @ np.linalg.solve(k, p.y))[0]
        variance = covariance(p, clique, z[None], z[None])[0, 0] - (cross @ np.linalg.solve(k, cross.T))[0, 0]
        return float(-mean + 0.7 * np.sqrt(variance + NOISE))

    for places in itertools.product(range(4), repeat=5):
        z = grid[np.arange(5), places]
        for e, (i, j) in enumerate(p.forest.edges):
            assert pairs[e, places[i], places[j]] == pytest.approx(bound((i, j), z))
        for row, i in enumerate(p.forest.lone):
            assert lone[row, places[i]] == pytest.approx(bound((i,), z))
        if places[1] == 2:
            break


def test_the_likelihood_is_that_of_the_data_and_its_gradient_is_exact() -> None:
    p = process()
    k = sum(covariance(p, clique, p.x, p.x) for clique in p.forest.cliques) + NOISE * np.eye(len(p.x))
    constant = 0.5 * len(p.y) * np.log(2.0 * np.pi)
    assert p.likelihood == pytest.approx(multivariate_normal(np.zeros(len(p.y)), k).logpdf(p.y) + constant)

    def value(parameters: np.ndarray) -> float:
        return Additive(p.forest, parameters[:5], parameters[5:], p.x, p.y).likelihood

    at = np.concatenate([p.lengthscales, p.scales])
    np.testing.assert_allclose(p.slopes, approx_fprime(at, value, 1e-7), rtol=1e-4, atol=1e-5)


def test_mean_fantasies_change_no_mean() -> None:
    p = process()
    z = np.random.default_rng(1).random((2, 5))
    grid = np.random.default_rng(2).random((5, 4))
    before, after = p.bounds(grid, 0.0), p.believing(z).bounds(grid, 0.0)
    for a, b in zip(before, after, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-9)
    assert (p.bounds(z.T[:, [0, 1, 1, 1]], 1.0)[1] > p.believing(z).bounds(z.T[:, [0, 1, 1, 1]], 1.0)[1]).all()


def test_the_zoom_ends_on_values_of_the_domains_and_near_the_best() -> None:
    """With one broad bump per variable, the best of 150 values is found to within a few cells."""
    d = 6
    x = np.tile(np.linspace(0.0, 1.0, 25)[:, None], (1, d))
    x = np.concatenate([np.roll(x, i, axis=0) for i in range(1)])
    rng = np.random.default_rng(0)
    x = np.stack([rng.permutation(x[:, i]) for i in range(d)], axis=1)
    y = np.square(x - 0.6).sum(axis=1)
    p = Additive(Forest(d, ((0, 1),)), np.full(d, 0.5), np.full(d, 0.5), x, (y - y.mean()) / y.std())
    domains = [np.linspace(0.0, 1.0, 150)] * 4 + [np.array([0.0, 1.0]), np.linspace(0.0, 1.0, 7)]
    found = np.array([zoomed(p, domains, 0.0, rng=np.random.default_rng(seed)) for seed in range(10)])
    for row in found:
        assert all(value in domain for value, domain in zip(row, domains, strict=True))
    assert (found[:, 4] == 1.0).all()
    assert np.abs(np.median(found[:, :4], axis=0) - 0.6).max() < 0.15


SCALES = ("standardised", "as they are")  # of the values and inputs of the golden data


def golden_process(scale: str) -> Additive:
    edges, data = [(i, j) for i, j in GOLDEN["edges"]], GOLDEN[scale]
    return Additive(Forest(GOLDEN["d"], edges), *(np.array(data[key]) for key in ("lengthscales", "scales", "x", "y")))


@pytest.mark.parametrize("scale", SCALES)
def test_bounds_and_message_passing_agree_with_the_published_code(scale: str) -> None:
    p, data = golden_process(scale), GOLDEN[scale]
    grid = np.array(data["grid"])
    pairs, lone = p.bounds(grid, GOLDEN["beta"])
    for table, (i, j) in zip(pairs, p.forest.edges, strict=True):
        np.testing.assert_allclose(table, data["bounds"][f"{i},{j}"], rtol=1e-6, atol=1e-7)
    for row, i in zip(lone, p.forest.lone, strict=True):
        np.testing.assert_allclose(row, data["bounds"][str(i)], rtol=1e-6, atol=1e-7)
    places = message_passing(p.forest, pairs, lone)
    np.testing.assert_allclose(grid[np.arange(p.forest.d), places], data["best"])


@pytest.mark.parametrize("scale", SCALES)
def test_the_fit_takes_the_steps_of_the_published_code(scale: str) -> None:
    p, data = golden_process(scale), GOLDEN[scale]["fitted"]
    found = fitted(Additive(p.forest, np.full(p.forest.d, 0.1), np.full(p.forest.d, 0.5), p.x, p.y))
    np.testing.assert_allclose(found.lengthscales, data["lengthscales"], rtol=1e-4)
    np.testing.assert_allclose(found.scales, data["scales"], rtol=1e-4)


def points(name: str, space: Space, value: Callable[[np.ndarray], float], budget: int = 25) -> np.ndarray:
    """The codes of a run that is told a function of the codes."""
    optimizer = baselines.make(name, space, budget, 0)
    while not optimizer.done:
        trial = optimizer.ask()[0]
        optimizer.tell(trial, value(space.encode([trial.point])[0]))
    return space.encode([trial.point for trial in optimizer.trials])


def mixed(high: float) -> Space:
    return Space([*(Real(f"r{i}", 0.0, high) for i in range(3)), Binary("b"), Categorical("c", list("vwxyz"))])


@pytest.mark.parametrize(("name", "same"), [("rducb", False), ("rducb-scaled", True)])
def test_a_shift_of_all_values_matters_as_published_and_not_where_they_are_standardised(name: str, same: bool) -> None:
    space = mixed(1.0)
    first = points(name, space, lambda codes: float(codes.sum()))
    second = points(name, space, lambda codes: float(codes.sum()) + 512.0)
    assert (first[:5] == second[:5]).all()
    assert bool(np.allclose(first, second)) is same


@pytest.mark.parametrize(("name", "same"), [("rducb", False), ("rducb-scaled", True)])
def test_the_bounds_of_reals_matter_as_published_and_not_where_they_are_scaled(name: str, same: bool) -> None:
    first, second = (points(name, mixed(high), lambda codes: float(codes.sum())) for high in (1.0, 30.0))
    assert bool(np.allclose(first, second)) is same


def test_the_model_sees_values_as_they_are_and_reals_as_wide_as_their_bounds() -> None:
    space = Space([Real("a", -5.0, 10.0), Real("b", 1.0, 100.0, log=True), Binary("c"), Categorical("d", list("xyz"))])
    published, scaled = Rducb(space, 10, 0), RducbScaled(space, 10, 0)
    np.testing.assert_allclose(published._widths, np.array([15.0, np.log(100.0), 1.0, 1.0]))
    np.testing.assert_allclose(scaled._widths, np.ones(4))
    y = np.array([3.0, 5.0, -1e300])
    np.testing.assert_allclose(published._seen(y), np.array([3.0, 5.0, -1e50]))
    np.testing.assert_allclose(scaled._seen(y[:2]), np.array([-1.0, 1.0]))


def test_ranges_of_any_width_can_be_searched() -> None:
    space = Space([Real("a", 0.0, 1e300), Real("b", 0.0, 1e-290), Binary("c")])
    codes = points("rducb", space, lambda codes: float(codes.sum()))
    assert np.isfinite(codes).all()
    assert len(np.unique(codes, axis=0)) == 25


def test_reals_lie_on_the_grid() -> None:
    space = Space([Real("a", 0.0, 1.0), Binary("b"), Categorical("c", list("vwxyz"))])
    optimizer = baselines.make("rducb", space, 20, 0)
    while not optimizer.done:
        trial = optimizer.ask()[0]
        optimizer.tell(trial, space.encode([trial.point])[0].sum())
    codes = space.encode([trial.point for trial in optimizer.trials[5:]])[:, 0]
    np.testing.assert_allclose(149 * codes, np.round(149 * codes), atol=1e-9)
