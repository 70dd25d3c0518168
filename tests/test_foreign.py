from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bounce import Binary, Categorical, Ordinal, Real, Space
from bounce.acquire.improvement import Acquisition
from bounce.gp.fit import LogPosterior, cold
from bounce.gp.kernels import Hyper, Kernel, Metric
from bounce.gp.linalg import Array
from bounce.gp.points import Points
from bounce.gp.posterior import GP
from bounce.method import Method
from bounce.optimizer.foreign import points_of
from bounce.spaces.parameters import Codes, Kind, Parameter
from bounce.subspace.embedding import Embedding
from spaces import generators, mixed, spaces


def features(embedding: Embedding, x: Codes) -> tuple[Array, Array]:
    """What the distances are made of, one vector per point: combinatorial ones and reals, without any shortcut."""
    inputs, (z, inside) = embedding.inputs, embedding.down(x)
    v = np.where(inside[:, None], z[:, embedding.bin_of], embedding.positions(x))
    sizes = np.array([len(part) for part in embedding.members])[embedding.bin_of]
    combinatorial, real = [np.zeros((len(x), 0))], [np.zeros((len(x), 0))]
    for i, kind in enumerate(inputs.kinds):
        table = embedding.tables[i]
        if kind is Kind.REAL:
            real.append(v[:, [i]] / np.sqrt(sizes[i]))
        elif kind is Kind.CATEGORICAL:
            code = np.arange(len(table)) == z[:, [embedding.bin_of[i]]]
            share = np.where(inside[:, None], code, table == x[:, [i]]).astype(float)
            combinatorial.append(share / share.sum(axis=1, keepdims=True) / np.sqrt(sizes[i]))
        else:
            combinatorial.append(v[:, [i]] / (len(table) - 1) / np.sqrt(sizes[i]))
    return np.concatenate(combinatorial, axis=1), np.concatenate(real, axis=1)


def squares(a: Array, b: Array) -> Array:
    distances: Array = np.square(a[:, None] - b[None]).sum(axis=2)
    return distances


@st.composite
def stages(draw: st.DrawFn) -> tuple[Embedding, Codes, np.random.Generator]:
    """An embedding of any stage, perhaps anchored, with points inside and outside of it."""
    rng = draw(generators())
    space = draw(spaces(most=9))
    embedding = Embedding.random(space, draw(st.integers(1, 6)), rng=rng)
    if draw(st.booleans()):
        embedding = embedding.anchored(space.sample(1, rng=rng)[0], rng=rng)
    for _ in range(draw(st.integers(0, 2))):
        embedding = embedding.split(2, rng=rng)
    x = np.concatenate([embedding.up(embedding.latent.sample(3, rng=rng)), space.sample(5, rng=rng)])
    return embedding, x[rng.permutation(len(x))], rng


def hyper(space: Space) -> Hyper:
    kinds = max(1, len(space.combinatorial_kinds))
    return Hyper(np.linspace(0.7, 1.3, kinds), np.linspace(0.4, 0.8, len(space.reals)), 1.3, 1e-6, 0.3)


@given(stages())
@settings(max_examples=60, deadline=None)
def test_distances_are_those_of_one_feature_vector_per_point(
    stage: tuple[Embedding, Codes, np.random.Generator],
) -> None:
    embedding, x, _ = stage
    points, (combinatorial, real) = points_of(embedding, x), features(embedding, x)
    latent = embedding.latent
    ones = Hyper(np.ones(1), np.ones(len(latent.reals)), 1.0, 1e-6, 0.5)
    np.testing.assert_allclose(Metric(latent)(points, points), squares(combinatorial, combinatorial), atol=1e-9)
    np.testing.assert_allclose(Kernel(latent, ones).real_distance(points, points), squares(real, real), atol=1e-9)


@given(stages())
@settings(max_examples=60, deadline=None)
def test_candidates_see_foreign_points_at_the_distances_of_their_features(
    stage: tuple[Embedding, Codes, np.random.Generator],
) -> None:
    embedding, x, rng = stage
    z = embedding.latent.sample(6, rng=rng)
    d2 = Metric(embedding.latent)(Points(z), points_of(embedding, x))
    expected = squares(features(embedding, embedding.up(z))[0], features(embedding, x)[0])
    np.testing.assert_allclose(d2, expected, atol=1e-9)


@given(stages())
@settings(max_examples=60, deadline=None)
def test_one_move_changes_distances_as_computing_them_again_does(
    stage: tuple[Embedding, Codes, np.random.Generator],
) -> None:
    embedding, x, rng = stage
    latent, points = embedding.latent, points_of(embedding, x)
    if not len(latent.combinatorial):
        return
    z = latent.sample(8, rng=rng)
    columns = rng.choice(latent.combinatorial, 8)
    new = np.floor(rng.random(8) * latent.cardinalities[columns])
    metric = Kernel(latent, hyper(latent)).metric
    moved = z.copy()
    moved[np.arange(8), columns] = new
    old = z[np.arange(8), columns]
    d2 = metric.moved(metric(Points(z), points), columns, old, new, points)
    np.testing.assert_allclose(d2, metric(Points(moved), points), atol=1e-9)


@given(stages())
@settings(max_examples=60, deadline=None)
def test_the_kernel_is_positive_definite_for_any_mix_of_points(
    stage: tuple[Embedding, Codes, np.random.Generator],
) -> None:
    embedding, x, _ = stage
    x = x[np.unique(embedding.inputs.keys(x), return_index=True)[1]]
    points = points_of(embedding, x)
    k = Kernel(embedding.latent, hyper(embedding.latent), grain=None)(points, points)
    np.testing.assert_allclose(k, k.T, atol=1e-12)
    assert np.linalg.eigvalsh(k).min() > -1e-9


@pytest.mark.parametrize("make", [lambda i: Binary(f"b{i}"), lambda i: Categorical(f"c{i}", list("abcd"))])
@given(rng=generators())
@settings(max_examples=20, deadline=None)
def test_a_table_of_kernel_values_gives_what_the_formula_gives(
    make: Callable[[int], Parameter], rng: np.random.Generator
) -> None:
    space = Space([make(i) for i in range(23)])
    embedding = Embedding.random(space, 6, rng=rng)
    points = points_of(
        embedding, np.concatenate([embedding.up(embedding.latent.sample(20, rng=rng)), space.sample(20, rng=rng)])
    )
    assert points.foreign is not None
    assert points.foreign.grain == 12  # bins of three and four variables
    one = hyper(embedding.latent)
    looked_up, computed = (Kernel(embedding.latent, one, grain)(points, points) for grain in (12, None))
    np.testing.assert_allclose(looked_up, computed, rtol=1e-12, atol=1e-12)


def test_unequal_cardinalities_have_no_table() -> None:
    rng = np.random.default_rng(0)
    space = Space([Categorical(f"c{i}", range(2 + i % 3)) for i in range(12)])
    points = points_of(Embedding.random(space, 3, rng=rng), space.sample(20, rng=rng))
    assert points.foreign is not None
    assert points.foreign.grain is None


@given(stages())
@settings(max_examples=60, deadline=None)
def test_points_of_the_embedding_have_the_latent_kernel(stage: tuple[Embedding, Codes, np.random.Generator]) -> None:
    embedding, _, rng = stage
    z = embedding.latent.sample(7, rng=rng)
    points = points_of(embedding, embedding.up(z))
    assert points.foreign is None
    down, inside = embedding.down(embedding.up(z))
    assert inside.all()
    np.testing.assert_array_equal(embedding.up(down), embedding.up(z))


@given(generators(), st.integers(1, 3))
@settings(max_examples=30, deadline=None)
def test_in_the_last_stage_nothing_is_foreign(rng: np.random.Generator, n: int) -> None:
    space = mixed(n)
    embedding = Embedding.random(space, 2, rng=rng).anchored(space.sample(1, rng=rng)[0], rng=rng)
    while not embedding.is_input:
        embedding = embedding.split(2, rng=rng)
    x = space.sample(20, rng=rng)
    points = points_of(embedding, x)
    assert points.foreign is None
    ordinary = Points(x)
    np.testing.assert_allclose(
        np.sort(Metric(embedding.latent)(points, points)[0]), np.sort(Metric(space)(ordinary, ordinary)[0]), atol=1e-9
    )


@given(spaces(most=10), generators(), st.integers(1, 6))
@settings(max_examples=80, deadline=None)
def test_an_anchored_embedding_contains_its_anchor_and_nests(space: Space, rng: np.random.Generator, n: int) -> None:
    anchor = space.sample(1, rng=rng)
    embedding = Embedding.random(space, n, rng=rng).anchored(anchor[0], rng=rng)
    while True:
        z, inside = embedding.down(anchor)
        assert inside.all()
        np.testing.assert_array_equal(embedding.up(z), anchor)
        if embedding.is_input:
            break
        child = embedding.split(2, rng=rng)
        x = embedding.up(embedding.latent.sample(20, rng=rng))
        back, inside = child.down(x)
        assert inside.all()
        np.testing.assert_array_equal(child.up(back), x)
        embedding = child


@pytest.mark.parametrize("kind", ["real", "ordinal"])
def test_a_monotone_map_through_the_anchor_reaches_both_ends(kind: str) -> None:
    rng = np.random.default_rng(0)
    space = Space([Real(f"x{i}", 0, 1) if kind == "real" else Ordinal(f"x{i}", list(range(3 + i))) for i in range(6)])
    anchor = space.sample(1, rng=rng)[0]
    embedding = Embedding.random(space, 1, rng=rng).anchored(anchor, rng=rng)
    ends = embedding.up(np.array([[0.0], [1.0 if kind == "real" else embedding.latent.cardinalities[0] - 1.0]]))
    top = np.ones(6) if kind == "real" else space.cardinalities - 1.0
    np.testing.assert_array_equal(np.sort(ends, axis=0), np.stack([np.zeros(6), top]))
    z = np.linspace(0, 1, 50) if kind == "real" else np.arange(embedding.latent.cardinalities[0], dtype=float)
    steps = np.diff(embedding.up(z[:, None]), axis=0)
    assert ((steps >= 0).all(axis=0) | (steps <= 0).all(axis=0)).all()
    if kind == "ordinal":
        assert np.abs(steps).max() == 1  # every level is reached


def test_an_anchored_embedding_survives_its_document() -> None:
    rng = np.random.default_rng(1)
    space = Space([Real("a", 0, 1), Real("b", 0, 1), Categorical("c", ["x", "z"]), Binary("d"), Binary("e")])
    embedding = Embedding.random(space, 2, rng=rng).anchored(space.sample(1, rng=rng)[0], rng=rng)
    again = Embedding.from_dict(space, embedding.to_dict())
    z = embedding.latent.sample(30, rng=rng)
    np.testing.assert_array_equal(again.up(z), embedding.up(z))


@pytest.mark.parametrize("lengthscales", ["per-kind", "shared"])
def test_the_gradient_of_the_fit_is_right_beside_foreign_points(lengthscales: Any) -> None:
    rng = np.random.default_rng(3)
    space = mixed(3)
    embedding = Embedding.random(space, 6, rng=rng)
    x = np.concatenate([embedding.up(embedding.latent.sample(6, rng=rng)), space.sample(8, rng=rng)])
    points = points_of(embedding, x)
    assert points.foreign is not None
    posterior = LogPosterior(embedding.latent, points, rng.normal(size=14), Method(lengthscales=lengthscales))
    theta = posterior.pack(cold(embedding.latent)) + 0.1 * rng.normal(size=len(posterior.bounds))
    _, gradient = posterior(theta)
    for i in range(len(theta)):
        step = np.zeros(len(theta))
        step[i] = 1e-6
        slope = (posterior(theta + step)[0] - posterior(theta - step)[0]) / 2e-6
        assert gradient[i] == pytest.approx(slope, rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("n", [0, 8])
def test_the_gradient_of_the_acquisition_is_right_beside_foreign_points(n: int) -> None:
    rng = np.random.default_rng(4)
    space = mixed(3)
    embedding = Embedding.random(space, 6, rng=rng).anchored(space.sample(1, rng=rng)[0], rng=rng)
    latent = embedding.latent
    x = np.concatenate([embedding.up(latent.sample(6, rng=rng)), space.sample(n, rng=rng)])
    points = points_of(embedding, x)
    gp = GP.at(Kernel(latent, hyper(latent), points.foreign is not None), points)
    acquisition = Acquisition.of(gp, rng.normal(size=len(x)), Points(latent.sample(0, rng=rng)), np.empty((0, 64)))
    z = latent.sample(4, rng=rng)
    values, gradient = acquisition.with_gradient(z)
    np.testing.assert_allclose(values, acquisition(z), atol=1e-9)
    for j, column in enumerate(latent.reals):
        up, down = z.copy(), z.copy()
        up[:, column] += 1e-6
        down[:, column] -= 1e-6
        slope = (acquisition(up) - acquisition(down)) / 2e-6
        np.testing.assert_allclose(gradient[:, j], slope, rtol=1e-3, atol=1e-5)
