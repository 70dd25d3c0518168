from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import LinAlgError
from scipy.special import gammaln

from bounce import Binary, Categorical, Ordinal, Space
from bounce.gp.fit import LENGTHSCALE_PRIOR, NOISE_FLOOR, LogPosterior, cold, fit
from bounce.gp.kernels import Hyper, Kernel, Metric
from bounce.gp.linalg import BLOCK, cholesky, product
from bounce.gp.posterior import GP
from bounce.gp.targets import clipped, standardized
from bounce.spaces.parameters import Kind
from spaces import binary, mixed, reals, rows


def hyper(space: Space) -> Hyper:
    cont = np.linspace(0.3, 0.9, len(space.reals))
    return Hyper(combinatorial_lengthscales=np.array([1.7]), real_lengthscales=cont, signal=1.3, noise=0.02, rho=0.3)


def targets(z: np.ndarray, seed: int = 0) -> np.ndarray:
    weights = np.random.default_rng(seed).normal(size=z.shape[1])
    return standardized(np.sin(z @ weights))


@pytest.mark.parametrize("space", [binary(8), reals(3), mixed(2)], ids=["binary", "real", "mixed"])
def test_extending_the_factor_equals_building_it(space: Space) -> None:
    z = rows(space, 15)
    kernel = Kernel(space, hyper(space))
    whole = GP.at(kernel, z)
    grown = GP.at(kernel, z[:9]).extended(z[9:12], noise=0.02).extended(z[12:], noise=0.02)
    np.testing.assert_allclose(grown.factor, whole.factor, atol=1e-10)
    y = targets(z)
    for one, other in zip(grown.posterior(rows(space, 7, 1), y), whole.posterior(rows(space, 7, 1), y), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-9)


def test_extending_by_nothing_changes_nothing() -> None:
    gp = GP.at(Kernel(binary(4), hyper(binary(4))), rows(binary(4), 3))
    assert gp.extended(np.empty((0, 4)), noise=0.1) is gp


def test_the_posterior_interpolates_and_reverts_to_the_prior() -> None:
    space = reals(2)
    kernel = Kernel(
        space,
        Hyper(
            combinatorial_lengthscales=np.array([1.0]),
            real_lengthscales=np.array([0.05, 0.05]),
            signal=2.0,
            noise=1e-8,
            rho=0.5,
        ),
    )
    z = np.array([[0.1, 0.1], [0.2, 0.3]])
    y = np.array([1.0, -1.0])
    gp = GP.at(kernel, z)
    mean, variance = gp.posterior(np.vstack([z, [[0.95, 0.95]]]), y)
    np.testing.assert_allclose(mean, [1.0, -1.0, 0.0], atol=1e-5)
    np.testing.assert_allclose(variance, [0.0, 0.0, 2.0], atol=1e-5)


def test_the_constant_mean_is_that_of_generalised_least_squares() -> None:
    space = mixed(1)
    z = rows(space, 9)
    kernel = Kernel(space, hyper(space))
    y = targets(z)
    covariance = kernel(z, z) + 0.02 * np.eye(9)
    one = np.ones(9)
    expected = one @ np.linalg.solve(covariance, y) / (one @ np.linalg.solve(covariance, one))
    assert GP.at(kernel, z).mean(y) == pytest.approx(expected)


def test_no_other_mean_is_more_likely() -> None:
    space = binary(6)
    z = rows(space, 10)
    y = targets(z)
    posterior = LogPosterior(space, z, y)
    theta = posterior.pack(hyper(space))
    value, _ = posterior(theta)
    for shift in (-0.1, 0.1, 5.0):  # the mean follows a shift of the targets
        assert LogPosterior(space, z, y + shift)(theta)[0] == pytest.approx(value)


def test_a_fit_finds_a_stationary_point_inside_its_bounds() -> None:
    space = mixed(1)
    z = rows(space, 40)
    y = targets(z)
    posterior = LogPosterior(space, z, y)
    found = fit(space, z, y, [cold(space)])
    theta = posterior.pack(found)
    _, gradient = posterior(theta)
    low, high = np.array(posterior.bounds).T
    free = (theta > low + 1e-6) & (theta < high - 1e-6)
    assert np.abs(gradient[free]).max() < 0.05
    assert posterior(theta)[0] >= posterior(posterior.pack(cold(space)))[0]
    assert found.noise >= NOISE_FLOOR * (1 - 1e-12)


def test_a_fit_takes_the_best_of_its_starts() -> None:
    space = binary(10)
    z = rows(space, 30)
    y = targets(z)
    bad = Hyper(
        combinatorial_lengthscales=np.array([900.0]), real_lengthscales=np.empty(0), signal=1e-3, noise=9.0, rho=0.5
    )
    posterior = LogPosterior(space, z, y)
    both = posterior(posterior.pack(fit(space, z, y, [bad, cold(space)])))[0]
    assert both >= posterior(posterior.pack(fit(space, z, y, [cold(space)])))[0] - 1e-9


def test_a_fit_recovers_the_scale_of_the_data_it_was_drawn_from() -> None:
    space = reals(2)
    rng = np.random.default_rng(3)
    z = space.sample(120, rng=rng)
    truth = Hyper(
        combinatorial_lengthscales=np.array([1.0]),
        real_lengthscales=np.array([0.15, 0.6]),
        signal=1.0,
        noise=1e-3,
        rho=0.5,
    )
    y = GP.at(Kernel(space, truth), z).factor @ rng.normal(size=120)
    found = fit(space, z, standardized(y), [cold(space)])
    assert found.cont[0] == pytest.approx(0.15, rel=0.5)
    assert found.cont[1] == pytest.approx(0.6, rel=0.5)


@pytest.mark.parametrize("space", [binary(20), mixed(3)], ids=["binary", "mixed"])
def test_hyperparameters_survive_packing(space: Space) -> None:
    posterior = LogPosterior(space, rows(space, 4), np.zeros(4))
    h = posterior.unpack(posterior.pack(hyper(space)))
    assert h.comb == pytest.approx(1.7)
    assert h.signal == pytest.approx(1.3)
    assert h.noise == pytest.approx(0.02)
    np.testing.assert_allclose(h.cont, hyper(space).cont)
    assert h.rho == pytest.approx(0.3 if len(space.reals) else 0.5)


def test_distances_are_those_of_one_hot_columns() -> None:
    space = mixed(4)
    a, b = rows(space, 6), rows(space, 5, 1)

    def one_hot(z: np.ndarray) -> np.ndarray:
        columns = []
        for j in space.combinatorial:
            c = space.cardinalities[j]
            if space.kinds[j] is Kind.CATEGORICAL:
                columns += [(z[:, j] == i).astype(float) for i in range(c)]
            else:
                columns.append(z[:, j] / (c - 1))
        return np.stack(columns, axis=1)

    expected = ((one_hot(a)[:, None] - one_hot(b)[None]) ** 2).sum(axis=2)
    np.testing.assert_allclose(Metric(space)(a, b), expected, atol=1e-12)


def test_distances_work_for_many_categories_of_many_codes() -> None:
    space = Space([Categorical(f"c{i}", list(range(500))) for i in range(300)])
    z = rows(space, 3)
    expected = 2.0 * (z[:, None] != z[None]).sum(axis=2)
    np.testing.assert_array_equal(Metric(space)(z, z), expected)
    assert Metric(space)(z, z)[0, 1] > 510  # more than a byte holds


@pytest.mark.parametrize("space", [binary(30), mixed(3)], ids=["binary", "mixed"])
def test_the_kernel_is_invariant_to_relabelling(space: Space) -> None:
    rng = np.random.default_rng(0)
    a, b = rows(space, 6), rows(space, 5, 1)
    x, y = a.copy(), b.copy()
    for j in range(len(space)):
        c = space.cardinalities[j]
        permutation = rng.permutation(c) if space.kinds[j] is Kind.CATEGORICAL else np.arange(c)[::-1]
        for z in (x, y):
            z[:, j] = permutation[z[:, j].astype(int)] if c else 1.0 - z[:, j]
    kernel = Kernel(space, hyper(space))
    np.testing.assert_allclose(kernel(x, y), kernel(a, b), rtol=1e-12)


def test_the_table_of_small_integers_equals_the_formula() -> None:
    space = Space([*(Binary(f"b{i}") for i in range(6)), Categorical("c", ["a", "b", "c"])])
    kernel = Kernel(space, hyper(space))
    z = rows(space, 40)
    d2 = kernel.metric(z, z)
    np.testing.assert_allclose(
        kernel.combinatorial(d2),
        [kernel.combinatorial(row[:3]).tolist() + kernel.combinatorial(row)[3:].tolist() for row in d2],
    )
    r = np.sqrt(5 * d2) / 1.7
    np.testing.assert_allclose(kernel.combinatorial(d2), (1 + r + r**2 / 3) * np.exp(-r), rtol=1e-12)


def test_standardising_takes_any_scale() -> None:
    base = np.array([1.0, 2.0, 4.0, 9.0])
    expected = (base - base.mean()) / base.std()
    for scale in (1e-300, 1e-12, 1.0, 1e12, 1e300):
        np.testing.assert_allclose(standardized(base * scale), expected, rtol=1e-12)
    for constant in (0.0, 0.1, 1e12, -1e-12):
        np.testing.assert_array_equal(standardized(np.full(7, constant)), np.zeros(7))
    with np.errstate(all="raise"):
        standardized(np.array([1e308, -1e308]))


@given(st.lists(st.floats(-1.7e308, 1.7e308), min_size=1, max_size=20))
def test_clipping_keeps_the_better_half_and_every_order(values: list[float]) -> None:
    y = np.array(values)
    with np.errstate(all="raise"):
        kept = clipped(y)
    better = y <= np.sort(y)[(len(y) - 1) // 2]
    np.testing.assert_array_equal(kept[better], y[better])
    ordered = kept[np.argsort(y)]
    assert (ordered[1:] >= ordered[:-1]).all()
    assert (kept <= y).all()


def test_a_penalty_is_clipped_to_the_scale_of_the_rest() -> None:
    y = np.array([1e18, 4.0, 2.0, 3.0, 24.0, 1e9, 2.5])
    tamed = clipped(y)
    np.testing.assert_array_equal(tamed[y < 25.0], y[y < 25.0])
    assert (tamed[y > 25.0] > 24.0).all()
    assert tamed.max() == pytest.approx(24.0 + 0.25 * (24.0 - 4.0))  # a quarter of the room of the others
    assert list(np.argsort(tamed, kind="stable")) == list(np.argsort(y, kind="stable"))
    np.testing.assert_array_equal(clipped(np.array([1.0, 1.0, 1.0, 7.0])), [1.0, 1.0, 1.0, 7.0])


def test_the_believed_best_is_the_lowest_posterior_mean() -> None:
    space = mixed(1)
    z = rows(space, 12)
    gp = GP.at(Kernel(space, hyper(space)), z)
    y = targets(z)
    assert gp.believed_best(y) == pytest.approx(gp.posterior(z, y)[0].min(), abs=1e-10)


def test_a_singular_matrix_is_factored_with_jitter() -> None:
    factor = cholesky(np.ones((3, 3)))
    np.testing.assert_allclose(factor @ factor.T, np.ones((3, 3)), atol=1e-6)
    with pytest.raises(LinAlgError):
        cholesky(np.full((2, 2), np.nan))


def test_duplicated_points_and_one_point_can_be_fitted() -> None:
    space = mixed(1)
    z = np.repeat(rows(space, 1), 5, axis=0)
    found = fit(space, z, np.array([0.0, 1.0, 2.0, -1.0, -2.0]), [cold(space)])
    assert np.isfinite(found.noise)
    assert found.noise > 0.3
    assert np.isfinite(fit(space, z[:1], np.zeros(1), [cold(space)]).signal)


def test_a_product_is_that_of_numpy_in_any_order_of_memory() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(5, 3)), rng.normal(size=(3, 4))
    for left in (a, np.asfortranarray(a), np.repeat(a, 2, axis=0)[::2]):
        for right in (b, np.asfortranarray(b), np.repeat(b, 2, axis=1)[:, ::2]):
            np.testing.assert_allclose(product(left, right), a @ b, rtol=1e-14)
    assert product(a[:, :0], b[:0]).tolist() == np.zeros((5, 4)).tolist()


def test_a_large_covariance_matrix_is_that_of_its_rows() -> None:
    space = mixed(6)
    kernel = Kernel(space, hyper(space))
    a, b = rows(space, 700, 1), rows(space, 200, 2)
    assert len(a) * len(b) > 2 * BLOCK  # more than two blocks of rows
    np.testing.assert_allclose(kernel(a, b), np.concatenate([kernel(row[None], b) for row in a]), rtol=1e-12)


def test_one_move_changes_the_distances_of_kinds_apart_as_the_kernel_says() -> None:
    space = Space([Binary("b"), Categorical("c", ["x", "y", "z"]), Ordinal("o", [1, 2, 3, 4, 5])])
    own = Hyper(
        combinatorial_lengthscales=np.array([2.0, 0.7, 0.25]),
        real_lengthscales=np.empty(0),
        signal=1.5,
        noise=0.01,
        rho=0.5,
    )
    metric, points, z = Kernel(space, own).metric, rows(space, 9), np.array([[0.0, 1.0, 3.0]])
    columns, new = np.arange(3), np.array([1.0, 2.0, 0.0])
    moved = np.repeat(z, 3, axis=0)
    moved[columns, columns] = new
    d2 = np.repeat(metric(z, points), 3, axis=0)
    np.testing.assert_allclose(metric.moved(d2, columns, z[0], new, points), metric(moved, points), atol=1e-12)


def test_a_lengthscale_for_all_kinds_is_where_a_fit_of_kinds_apart_starts() -> None:
    """At equal lengthscales, nothing differs but the prior of two more of them."""
    space = mixed(2)
    z = rows(space, 25)
    one, apart = (LogPosterior(space, z, targets(z), apart=apart) for apart in (False, True))
    h = hyper(space)
    assert apart.unpack(apart.pack(h)).comb == pytest.approx(np.full(3, 1.7))
    shape, rate = LENGTHSCALE_PRIOR
    prior = (shape - 1) * np.log(1.7) - rate * 1.7 + shape * np.log(rate) - gammaln(shape)
    assert apart(apart.pack(h))[0] == pytest.approx(one(one.pack(h))[0] + 2 * prior)


def test_a_fit_apart_tells_what_matters_from_what_does_not() -> None:
    flags = [Binary(f"b{i}") for i in range(8)]
    space = Space([Ordinal("o", list(range(12))), Categorical("c", list("uvwxyz")), *flags])
    z = rows(space, 60)
    y = standardized(5 * np.sin(z[:, 0] / 2) + z[:, 2:].sum(axis=1))
    bits, category, ordinal = fit(space, z, y, [cold(space)], apart=True).comb
    assert ordinal < bits / 4
    assert category > 2 * bits
    assert len(fit(space, z, y, [cold(space)]).comb) == 1
    assert len(fit(binary(8), z[:, 2:], y, [cold(binary(8))], apart=True).comb) == 1
