"""What makes Casmopolitan: its kernels, its values, its acquisition, its searches and its regions, as published."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import approx_fprime

from bounce import Binary, Categorical, Ordinal, Real, Space
from bounce.baselines.rivals import casmopolitan
from bounce.baselines.rivals.casmopolitan import (
    MIXED,
    Casmopolitan,
    Region,
    augmented_ei,
    augmented_slope,
    copula,
    trained,
)
from bounce.baselines.rivals.gaussian import Covariance, Fit, Gaussian, Matern52
from bounce.baselines.rivals.overlap import Mixture, TransformedOverlap

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "rivals" / "casmopolitan.json").read_text())


def mixture(c: int, r: int) -> Mixture:
    return Mixture(c, TransformedOverlap(MIXED, 1.0), Matern52(r, MIXED, shared=True), (0.5, 0.5))


def covariance(kind: str) -> Covariance:
    return TransformedOverlap((0.01, 2.5), 0.07) if kind == "categories" else mixture(8, 2)


def process(kind: str) -> Gaussian:
    """The process that the published code fitted; its mean is subtracted, since ours is fitted otherwise."""
    known = GOLDEN[kind]
    return Gaussian(
        covariance(kind),
        np.log(known["lengthscales"]),
        known["signal"],
        known["noise"],
        np.array(known["x"]),
        np.array(known["y"]) - known["mean"],
        constant=False,
    )


def rival(kind: str) -> Casmopolitan:
    sizes = [2, 3] * (6 if kind == "categories" else 4)
    parameters: list[Any] = [Categorical(f"c{i}", list("abc"[:size])) for i, size in enumerate(sizes)]
    return Casmopolitan(
        Space(parameters + [Real(f"r{i}", 0.0, 1.0) for i in range(2 * (kind == "mixed"))]), 50, 0, reach=4
    )


def centre(kind: str) -> np.ndarray:
    return np.asarray(np.array(GOLDEN[kind]["x"])[np.argmin(GOLDEN[kind]["raw"])])


def test_values_become_normal_quantiles_of_their_ranks_as_published() -> None:
    known = GOLDEN["copula"]
    np.testing.assert_allclose(copula(np.array(known["y"])), known["z"], rtol=1e-12)
    assert copula(np.array([1e300, -1e300, 0.0])) == pytest.approx([0.6744898, -0.6744898, 0.0])


def test_kernels_are_the_published_ones() -> None:
    known = GOLDEN["kernels"]
    a, b = np.array(known["a"]), np.array(known["b"])
    overlap = TransformedOverlap((0.01, 2.5), 1.0)(np.log([1.7]), a[:, :6], b[:, :6])
    np.testing.assert_allclose(overlap, known["overlap"], rtol=1e-6)
    np.testing.assert_allclose(mixture(6, 2)(np.log([0.9, 0.4]), a, b), known["mixture"], rtol=1e-5)


@pytest.mark.parametrize("kind", ["categories", "mixed"])
def test_gradients_of_the_fit_and_the_diagonal_are_those_of_the_kernel(kind: str) -> None:
    x, y = np.array(GOLDEN[kind]["x"]), np.array(GOLDEN[kind]["y"])
    kernel, fit = covariance(kind), Fit()
    at = np.append(np.full(len(kernel.start), -0.3), np.log([1.3, 0.02]))
    numeric = approx_fprime(at, lambda p: fit.loss(kernel, x, y, p)[0], 1e-7)
    np.testing.assert_allclose(fit.loss(kernel, x, y, at)[1], numeric, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(kernel.diagonal(at[:-2], x), np.diag(kernel(at[:-2], x, x)))


@pytest.mark.parametrize("kind", ["categories", "mixed"])
def test_the_model_has_the_parameters_of_the_published_training(kind: str) -> None:
    """Theirs is in single precision."""
    known = GOLDEN[kind]
    y = np.array(known["y"])
    gp = trained(rival(kind)._covariance(), np.array(known["x"]), y)
    np.testing.assert_allclose(np.exp(gp.theta), known["lengthscales"], rtol=1e-4)
    assert (gp.signal, gp.noise) == pytest.approx((known["signal"], known["noise"]), rel=1e-3)
    np.testing.assert_allclose(y - gp.y, known["mean"], atol=1e-4)


@pytest.mark.parametrize("kind", ["categories", "mixed"])
def test_augmented_expected_improvement_is_the_published_one(kind: str) -> None:
    gp, z = process(kind), np.array(GOLDEN[kind]["z"])
    best = float(gp.posterior(centre(kind)[None])[0][0])
    np.testing.assert_allclose(augmented_ei(gp, z, best), GOLDEN[kind]["aei"], rtol=2e-3, atol=1e-6)
    if kind == "mixed":
        slopes = np.array([augmented_slope(gp, row, best) for row in z])
        np.testing.assert_allclose(slopes[:, 8:], GOLDEN[kind]["slopes"], rtol=5e-3, atol=1e-5)
        assert not slopes[:, :8].any()


def test_regions_follow_the_published_schedule() -> None:
    values, region = GOLDEN["schedule"]["values"], Region()
    for i, (reach, side) in enumerate(GOLDEN["schedule"]["lengths"]):
        region = region.after(values[i + 1], min(values[: i + 1]))
        assert region.reach == reach
        assert region.side == pytest.approx(side)
    assert {reach for reach, _ in GOLDEN["schedule"]["lengths"]} >= {20, 30, 13, 8}


@pytest.mark.parametrize("kind", ["categories", "mixed"])
def test_searches_end_where_the_published_ones_do(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One chain of 30 steps: the mean value, distance and numbers agree within three standard errors."""
    monkeypatch.setattr(casmopolitan, "CHAINS", 1)
    monkeypatch.setattr(casmopolitan, "STEPS", GOLDEN["steps"])
    own, gp, at = rival(kind), process(kind), centre(kind)
    best = float(gp.posterior(at[None])[0][0])
    search = own._climb if kind == "categories" else own._interleave
    rows = np.array([search(gp, at, rng=np.random.default_rng(seed)) for seed in range(60)])
    c = len(own._categories)
    theirs = GOLDEN[kind]["searches"]

    def agree(ours: Any, published: Any) -> None:
        error = np.sqrt(np.var(ours, axis=0) / len(ours) + np.var(published, axis=0) / len(published))
        assert (np.abs(np.mean(ours, axis=0) - np.mean(published, axis=0)) <= 3.0 * error + 1e-6).all()

    distances = (rows[:, :c] != at[:c]).sum(axis=1)
    assert distances.max() <= 4
    agree(distances, theirs["distances"])
    if kind == "mixed":
        agree(rows[:, c:], theirs["numbers"])
        assert (np.abs(rows[:, c:] - at[c:]) <= 0.4).all()
    else:
        agree(augmented_ei(gp, rows, best), theirs["values"])


def test_neighbours_have_the_distribution_of_drawing_until_inside() -> None:
    """A row at the reach: one variable in ten can change, and steps end after 101 draws outside."""
    space = Space([Categorical(f"x{i}", list("abc")) for i in range(40)])
    own = Casmopolitan(space, 10, 0, reach=2)
    middle = np.zeros(40)
    row = middle.copy()
    row[[3, 7]] = 1.0
    rng = np.random.default_rng(0)
    drawn: Counter[tuple[int, int]] = Counter()
    ended = 0
    for _ in range(200):
        neighbours, found = own._neighbours(np.tile(row, (20, 1)), middle, 1, rng=rng)
        ended += int((~found).sum())
        for neighbour in neighbours[found]:
            (column,) = np.flatnonzero(neighbour != row)
            drawn[int(column), int(neighbour[column])] += 1
    assert set(drawn) == {(3, 0), (3, 2), (7, 0), (7, 2)}
    assert min(drawn.values()) > 0.22 * sum(drawn.values())
    assert ended / 4000 == pytest.approx((1 - 2 / 40) ** 101, abs=0.005)


def test_the_search_never_returns_to_the_centre_of_bits_nor_leaves_the_reach() -> None:
    space = Space([Binary(f"x{i}") for i in range(6)])
    own = Casmopolitan(space, 10, 0, reach=2)
    middle = np.zeros(6)
    for seed in range(50):
        start = np.eye(6)[[seed % 6]]
        neighbours, found = own._neighbours(start, middle, 1, rng=np.random.default_rng(seed))
        assert found.all()
        assert neighbours.sum() == 2


def run(own: Casmopolitan, values: list[float]) -> list[Region]:
    regions = []
    for value in values:
        (trial,) = own.ask()
        own.tell(trial, value)
        regions.append(own._region)
    return regions


def test_a_region_without_success_shrinks_every_40_values_and_restarts_at_a_new_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(casmopolitan, "STEPS", 2)
    monkeypatch.setattr(casmopolitan, "FAILURES", 4)
    space = Space([Binary(f"x{i}") for i in range(30)])
    own = Casmopolitan(space, 60, 0)
    reaches = [region.reach for region in run(own, [float(i) for i in range(36)])]
    # 5 first points, 4 failures at each of 20, 13, 8, 5, 3 and 2, and then a region with 5 first points of its own
    assert sorted(set(reaches)) == [2, 3, 5, 8, 13, 20]
    assert own._since == 29
    assert own._bests == [0]
    rows = np.array(own._rows)
    assert ((rows[30:34] != rows[29]).sum(axis=1) <= 20).all()  # its first points lie in the region of the first one


def test_a_second_region_starts_far_from_the_best_point_of_the_first() -> None:
    """The lower confidence bound of a process that has seen one point is lowest where the least is known."""
    space = Space([Binary(f"x{i}") for i in range(30)])
    own, best = Casmopolitan(space, 60, 0), np.zeros((1, 30))
    rows = own._restarted(best, np.zeros(1), rng=np.random.default_rng(5))
    candidates = space.sample(3000, rng=np.random.default_rng(5))
    assert rows[0].sum() == candidates.sum(axis=1).max()
    assert len(rows) == 5
    assert ((rows[1:] != rows[0]).sum(axis=1) > 0).all()


@pytest.mark.parametrize("kinds", ["bits", "mixed", "ordinals", "reals"])
def test_every_kind_of_space_restarts_and_stays_inside(kinds: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("STEPS", 2), ("FAILURES", 1), ("TRAINING", 3)):
        monkeypatch.setattr(casmopolitan, name, value)
    makers: dict[str, list[Any]] = {
        "bits": [lambda name: Binary(name)],
        "mixed": [lambda name: Binary(name), lambda name: Real(name, 0.0, 1.0), lambda name: Ordinal(name, [1, 2, 3])],
        "ordinals": [lambda name: Ordinal(name, [1, 2, 3, 4, 5])],
        "reals": [lambda name: Real(name, 0.0, 1.0)],
    }
    space = Space([makers[kinds][i % len(makers[kinds])](f"x{i}") for i in range(24)])
    own = Casmopolitan(space, 45, 0)
    run(own, [float(i) for i in range(45)])
    assert len(own._bests) >= 2
    assert all(trial.point in space for trial in own.trials)
    assert len({str(trial.point) for trial in own.trials}) == 45


def test_a_batch_counts_as_one_round(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(casmopolitan, "STEPS", 2)
    own = Casmopolitan(Space([Binary(f"x{i}") for i in range(20)]), 60, 0)
    own.tell(own.ask(5), [9.0, 8.0, 7.0, 6.0, 5.0])
    for _ in range(3):
        own.tell(own.ask(4), [8.0, 8.0, 8.0, 8.0])
    own.ask()
    assert own._region.failures == 3


def test_ordinals_are_numbers_that_stay_on_their_places() -> None:
    space = Space([Ordinal("a", [1, 2, 3, 4, 5]), Real("b", 0.0, 1.0), Categorical("c", list("xyz"))])
    own = Casmopolitan(space, 10, 0)
    codes = np.array([[2.0, 0.25, 1.0]])
    rows = own._arranged(codes)
    np.testing.assert_allclose(rows, [[1.0, 0.5, 0.25]] if list(own._numbers) == [0, 1] else [[1.0, 0.25, 0.5]])
    np.testing.assert_allclose(own._codes(rows), codes)
    np.testing.assert_allclose(own._placed(rows + np.array([0.0, 0.1, 0.0]))[0, 1], 0.5)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [Real, Binary])
def test_a_thousand_variables(kind: Any) -> None:
    space = Space([kind(f"x{i}", 0.0, 1.0) if kind is Real else kind(f"x{i}") for i in range(1000)])
    own = Casmopolitan(space, 8, 0)
    for _ in range(8):
        (trial,) = own.ask()
        assert trial.point in space
        own.tell(trial, float(space.encode([trial.point]).sum()))
