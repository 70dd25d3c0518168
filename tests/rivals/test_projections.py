from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

from bounce import Binary, Categorical, Ordinal, Space
from bounce.baselines.rivals.gaussian import Gaussian
from bounce.baselines.rivals.projections import (
    LENGTHSCALES,
    Mapping,
    RandomProjections,
    RandomProjectionsPublished,
    bound_weight,
    fitted,
)

MIXED = Space(
    [Binary("a"), Categorical("b", list("xyz")), Ordinal("c", [1, 2, 3, 4]), Binary("d"), Categorical("e", list("pq"))]
)
BITS = Space([Binary(f"x{i}") for i in range(40)])


def mapping(space: Space, d: int = 20, seed: int = 0) -> Mapping:
    return Mapping.drawn(space, d, rng=np.random.default_rng(seed))


def test_the_image_is_the_mean_of_the_vectors_of_the_values() -> None:
    """For bits, c·W/D with W uniform in the unit cube, as in the published scripts."""
    phi = mapping(BITS)
    weights = phi.vectors[1::2] * len(BITS)
    assert weights.min() >= 0
    assert weights.max() <= 1
    assert weights.mean() == pytest.approx(0.5, abs=0.05)
    codes = BITS.sample(6, rng=np.random.default_rng(1))
    np.testing.assert_allclose(phi(codes), codes @ weights / 40)


def test_images_lie_in_the_unit_cube_and_are_distinct() -> None:
    images = mapping(MIXED)(MIXED.grid())
    assert images.min() >= 0
    assert images.max() <= 1
    assert len(np.unique(images.round(9), axis=0)) == MIXED.size


def test_ordinals_lie_on_a_line_and_categories_do_not() -> None:
    phi = mapping(MIXED)
    ordinal, category = phi.vectors[phi.owner == 2], phi.vectors[phi.owner == 1]
    np.testing.assert_allclose(ordinal[1] - ordinal[0], ordinal[3] - ordinal[2])
    assert np.linalg.matrix_rank(category - category[0]) == 2


def test_the_left_inverse_gives_every_combination_back_and_else_the_nearest() -> None:
    phi = mapping(MIXED)
    rng = np.random.default_rng(0)
    rows = MIXED.grid()
    for row in rows[::7]:
        np.testing.assert_array_equal(phi.nearest(phi(row[None])[0], set(), rng=rng), row)
    z = rng.random(20)
    order = np.argsort(np.linalg.norm(phi(rows) - z, axis=1))
    np.testing.assert_array_equal(phi.nearest(z, set(), rng=rng), rows[order[0]])
    known = set(MIXED.keys(rows[order[:3]]))
    np.testing.assert_array_equal(phi.nearest(z, known, rng=rng), rows[order[3]])


def test_in_a_large_space_no_neighbour_is_nearer_and_images_are_found_again() -> None:
    rng = np.random.default_rng(0)
    phi = mapping(BITS)
    z = phi(np.full((1, 40), 0.5).round())[0] * 0.5 + 0.1
    found = phi.nearest(z, set(), rng=rng)
    far = np.linalg.norm(phi(phi.beside(found)) - z, axis=1)
    assert np.linalg.norm(phi(found[None])[0] - z) <= far.min() + 1e-12
    small = Space([Binary(f"x{i}") for i in range(18)])
    phi = mapping(small, 20)
    rows = small.sample(20, rng=rng)
    again = [phi.nearest(phi(row[None])[0], set(), rng=rng) for row in rows]
    assert np.mean([(a == b).all() for a, b in zip(again, rows, strict=True)]) > 0.9


def test_descending_ends_where_brute_force_over_neighbours_ends() -> None:
    phi = mapping(MIXED, 3)
    rng = np.random.default_rng(0)
    z = rng.random(3) * 0.6
    for row, end in zip(rows := MIXED.sample(10, rng=rng), phi.nearer(rows, z), strict=True):
        here = row
        while True:
            beside = [here]
            for j, c in enumerate(MIXED.cardinalities.tolist()):
                beside += [np.where(np.arange(5) == j, v, here) for v in range(c)]
            step = min(beside, key=lambda r: float(np.linalg.norm(phi(r[None])[0] - z)))
            if np.linalg.norm(phi(step[None])[0] - z) >= np.linalg.norm(phi(here[None])[0] - z) - 1e-9:
                break
            here = step
        np.testing.assert_array_equal(end, here)


def process(phi: Mapping, n: int = 15, seed: int = 0) -> Gaussian:
    rng = np.random.default_rng(seed)
    x = phi(phi.space.sample(n, rng=rng))
    y = np.sin(9.0 * x).sum(axis=1)
    return fitted(x, (y - y.mean()) / y.std())


def test_a_fit_does_not_end_at_white_noise_where_images_lie_close_together() -> None:
    """The images of 25 bits have a deviation of 0.06; from lengthscales of 1 alone, all of them end at the least."""
    rng = np.random.default_rng(0)
    space = Space([Binary(f"x{i}") for i in range(25)])
    x, weights = space.sample(300, rng=rng), rng.standard_normal((25, 25)) * 0.3
    y = x @ rng.standard_normal(25) + np.einsum("ni,ij,nj->n", x, weights, x)
    y = (y - y[:100].mean()) / y[:100].std()
    z = mapping(space)(x)
    gp = fitted(z[:100], y[:100])
    assert np.median(np.exp(gp.theta)) > 2.0 * LENGTHSCALES[0]
    assert np.corrcoef(gp.posterior(z[100:])[0], y[100:])[0, 1] > 0.4


def bound(gp: Gaussian, z: np.ndarray) -> np.ndarray:
    mean, sd = gp.posterior(z)
    return np.asarray(2.0 * np.log(len(gp.y) + 1) * sd - mean)


def test_the_bound_is_maximised_over_the_convex_hull_of_the_images() -> None:
    optimizer = RandomProjections(MIXED, 10, 0)
    phi = optimizer._mapping
    gp = process(phi)
    assert bound_weight(gp) == pytest.approx(2.0 * np.log(16))
    found = optimizer._highest(gp, rng=np.random.default_rng(1))
    rows = phi(MIXED.grid())
    inside: Any = linprog(
        np.zeros(len(rows)), A_eq=np.vstack([rows.T, np.ones(len(rows))]), b_eq=np.append(found, 1.0), bounds=(0, 1)
    )
    assert inside.success
    weights = np.random.default_rng(2).dirichlet(np.full(len(rows), 0.05), size=3000)
    assert bound(gp, found[None])[0] >= bound(gp, np.concatenate([rows, weights @ rows])).max() - 1e-6


def test_the_published_variant_maximises_over_the_cube_which_is_mostly_not_images() -> None:
    """In the published search the bound's highest point lies beyond the images, and its inverse has mostly ones."""
    optimizer = RandomProjectionsPublished(BITS, 10, 0)
    phi = optimizer._mapping
    gp = process(phi)
    found = optimizer._highest(gp, rng=np.random.default_rng(1))
    cube = np.random.default_rng(2).random((3000, 20))
    assert bound(gp, found[None])[0] >= bound(gp, cube).max()
    hull = RandomProjections(BITS, 10, 0)._highest(gp, rng=np.random.default_rng(1))
    assert bound(gp, found[None])[0] >= bound(gp, hull[None])[0] - 1e-6


@pytest.mark.slow
def test_a_few_starts_find_what_all_find(monkeypatch: pytest.MonkeyPatch) -> None:
    optimizer = RandomProjections(MIXED, 10, 0)
    gaps = []
    for seed in range(4):
        gp = process(optimizer._mapping, seed=seed)
        some = bound(gp, optimizer._highest(gp, rng=np.random.default_rng(3))[None])[0]
        with monkeypatch.context() as patch:
            patch.setattr("bounce.baselines.rivals.projections.CLIMBS", 128)
            gaps.append(bound(gp, optimizer._highest(gp, rng=np.random.default_rng(3))[None])[0] - some)
    assert max(gaps) < 1e-3


def test_shares_are_those_of_a_relaxed_combination() -> None:
    phi = mapping(MIXED)
    shares = phi.shares(np.random.default_rng(0).normal(size=(4, len(phi.owner))) * 5)
    for j in range(len(MIXED)):
        np.testing.assert_allclose(shares[:, phi.owner == j].sum(axis=1), 1.0)
    for row in itertools.islice(MIXED.grid(), 0, None, 11):
        hot = np.where(np.isin(np.arange(len(phi.owner)), phi.first + row.astype(int)), 800.0, 0.0)
        np.testing.assert_allclose(phi.shares(hot[None]) @ phi.vectors, phi(row[None]), atol=1e-12)
