from __future__ import annotations

import math
from dataclasses import fields, replace

import numpy as np
import pytest
from scipy.special import gammaln
from scipy.stats import gamma, multivariate_normal, norm

from bounce import Binary, Categorical, Ordinal, Space
from bounce.gp.fit import LENGTHSCALE_PRIOR, PROMISING, LogPosterior, cold, fit, fit_and_value
from bounce.gp.kernels import Hyper, Kernel
from bounce.gp.linalg import Array
from bounce.gp.points import Points
from bounce.gp.posterior import GP
from bounce.gp.targets import standardized
from bounce.method import Method
from spaces import binary, hyper, mixed, reals, rows, wave

SHARED = Method(lengthscales="shared")
APART = Method(lengthscales="per-kind")
ZERO = replace(SHARED, mean="zero")


def test_the_constant_mean_is_the_one_of_highest_likelihood() -> None:
    space = mixed(1)
    z = rows(space, 10)
    y = wave(z) + 3.0
    theta = LogPosterior(space, Points(z), y, SHARED).pack(hyper(space))
    learned, _ = LogPosterior(space, Points(z), y, SHARED)(theta)

    def likelihood(mean: float) -> float:
        return LogPosterior(space, Points(z), y - mean, ZERO)(theta)[0]

    mean = GP.at(Kernel(space, hyper(space)), Points(z)).mean(y)
    assert learned == pytest.approx(likelihood(mean), rel=1e-12)
    for other in (mean - 1e-3, mean + 1e-3, 0.0, float(y.mean())):
        assert likelihood(other) < learned


def test_a_zero_mean_is_the_density_of_the_targets_as_they_are() -> None:
    space = mixed(1)
    z, h = rows(space, 10), hyper(space)
    covariance = Kernel(space, h)(Points(z), Points(z)) + h.noise * np.eye(10)
    posterior = LogPosterior(space, Points(z), wave(z), ZERO)
    prior = posterior(posterior.pack(h))[0] - multivariate_normal(np.zeros(10), covariance).logpdf(wave(z))
    for shift in (0.5, -2.0):
        shifted = LogPosterior(space, Points(z), wave(z) + shift, ZERO)(posterior.pack(h))[0]
        density = multivariate_normal(np.zeros(10), covariance).logpdf(wave(z) + shift)
        assert shifted == pytest.approx(density + prior, rel=1e-10)


@pytest.mark.parametrize("space", [binary(6), reals(3), mixed(2)], ids=["binary", "real", "mixed"])
@pytest.mark.parametrize(
    "method", [Method(), Method.paper(), Method(real_lengthscales="tied")], ids=["default", "paper", "tied"]
)
def test_the_gradient_of_the_log_posterior_is_its_slope(space: Space, method: Method) -> None:
    z = rows(space, 8)
    posterior = LogPosterior(space, Points(z), wave(z), method)
    theta = posterior.pack(hyper(space)) + np.linspace(-0.3, 0.2, len(posterior.bounds))  # no two lengthscales equal
    _, gradient = posterior(theta)
    slopes = [(posterior(theta + e)[0] - posterior(theta - e)[0]) / 2e-5 for e in 1e-5 * np.eye(len(theta))]
    np.testing.assert_allclose(gradient, slopes, rtol=1e-6, atol=1e-8)


TIED, UNTIED = Method(real_lengthscales="tied"), Method(real_lengthscales="apart")


def test_tied_real_lengthscales_have_one_prior_for_their_mean_and_a_normal_one_around_it() -> None:
    space = reals(3)
    z = rows(space, 8)
    tied, apart = (LogPosterior(space, Points(z), wave(z), method) for method in (TIED, UNTIED))
    logs = np.log([0.2, 0.5, 3.0])
    theta = np.concatenate([logs, [0.1, -3.0]])
    shape, rate = LENGTHSCALE_PRIOR

    def prior(log: float) -> float:
        return float(gamma(shape, scale=1 / rate).logpdf(math.exp(log)))

    instead = prior(logs.mean()) - 0.5 * float(((logs - logs.mean()) ** 2).sum()) - sum(map(prior, logs))
    assert tied(theta)[0] - apart(theta)[0] == pytest.approx(instead, rel=1e-9)


def test_one_real_or_many_reals_are_not_tied() -> None:
    for n, same in ((1, True), (20, False), (21, True)):
        space = reals(n)
        z = rows(space, 6)
        theta = LogPosterior(space, Points(z), wave(z), TIED).pack(hyper(space))
        values = [LogPosterior(space, Points(z), wave(z), method)(theta)[0] for method in (TIED, UNTIED)]
        assert (values[0] == values[1]) == same


def test_reals_beside_categories_are_not_tied() -> None:
    for other, same in ((Binary("b"), False), (Ordinal("o", [1, 2, 3]), False), (Categorical("c", list("xyz")), True)):
        space = Space([other, *reals(3).parameters])
        z = rows(space, 6)
        theta = LogPosterior(space, Points(z), wave(z), TIED).pack(hyper(space))
        values = [LogPosterior(space, Points(z), wave(z), method)(theta)[0] for method in (TIED, UNTIED)]
        assert (values[0] == values[1]) == same


def test_a_few_values_along_one_variable_do_not_make_the_others_flat() -> None:
    space = reals(4)
    z = rows(space, 12)
    y = np.sin(9.0 * z[:, 0])
    y = (y - y.mean()) / y.std()
    tied, apart = (fit(space, Points(z), y, [cold(space)], method).real_lengthscales for method in (TIED, UNTIED))
    assert tied.max() / tied.min() < apart.max() / apart.min()


@pytest.mark.parametrize(
    ("space", "method", "floor"),
    [
        (binary(6), Method(), 1e-6),
        (mixed(1), Method(), 1e-6),
        (reals(2), Method(), 1e-4),
        (binary(6), Method.paper(), 1e-4),
        (mixed(1), Method.paper(), 1e-4),
        (reals(2), Method.paper(), 1e-4),
        (binary(6), Method(noise_floor=0.3), 0.3),
        (reals(2), Method(real_noise_floor=0.3), 0.3),
    ],
)
def test_the_noise_ends_at_its_floor_where_there_is_none(space: Space, method: Method, floor: float) -> None:
    z = space.sample(30, rng=np.random.default_rng(1))
    y = standardized(z @ np.arange(1.0, len(space) + 1))  # linear, so almost free of noise
    found = fit(space, Points(z), y, [replace(cold(space), noise=floor)], method)
    assert floor * (1 - 1e-12) <= found.noise < 3 * floor


def test_a_fit_finds_a_stationary_point_inside_its_bounds() -> None:
    space = mixed(1)
    z = rows(space, 40)
    y = wave(z)
    posterior = LogPosterior(space, Points(z), y, SHARED)
    found = fit(space, Points(z), y, [cold(space)], SHARED)
    theta = posterior.pack(found)
    _, gradient = posterior(theta)
    low, high = np.array(posterior.bounds).T
    free = (theta > low + 1e-6) & (theta < high - 1e-6)
    assert np.abs(gradient[free]).max() < 0.05
    assert posterior(theta)[0] >= posterior(posterior.pack(cold(space)))[0]
    assert found.noise >= SHARED.noise_floor * (1 - 1e-12)


def test_a_fit_takes_the_best_of_its_starts() -> None:
    space = binary(10)
    z = rows(space, 30)
    y = wave(z)
    bad = Hyper(
        combinatorial_lengthscales=np.array([900.0]), real_lengthscales=np.empty(0), signal=1e-3, noise=9.0, rho=0.5
    )
    posterior = LogPosterior(space, Points(z), y, SHARED)
    both = posterior(posterior.pack(fit(space, Points(z), y, [bad, cold(space)], SHARED)))[0]
    assert both >= posterior(posterior.pack(fit(space, Points(z), y, [cold(space)], SHARED)))[0] - 1e-9


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
    y = GP.at(Kernel(space, truth), Points(z)).factor @ rng.normal(size=120)
    found = fit(space, Points(z), standardized(y), [cold(space)], SHARED)
    assert found.real_lengthscales[0] == pytest.approx(0.15, rel=0.5)
    assert found.real_lengthscales[1] == pytest.approx(0.6, rel=0.5)


@pytest.mark.parametrize("space", [binary(20), mixed(3)], ids=["binary", "mixed"])
def test_hyperparameters_survive_packing(space: Space) -> None:
    posterior = LogPosterior(space, Points(rows(space, 4)), np.zeros(4), SHARED)
    h = posterior.unpack(posterior.pack(hyper(space)))
    assert h.combinatorial_lengthscales == pytest.approx(1.7)
    assert h.signal == pytest.approx(1.3)
    assert h.noise == pytest.approx(0.02)
    np.testing.assert_allclose(h.real_lengthscales, hyper(space).real_lengthscales)
    assert h.rho == pytest.approx(0.3 if len(space.reals) else 0.5)


def test_duplicated_points_and_one_point_can_be_fitted() -> None:
    space = mixed(1)
    z = np.repeat(rows(space, 1), 5, axis=0)
    found = fit(space, Points(z), np.array([0.0, 1.0, 2.0, -1.0, -2.0]), [cold(space)], SHARED)
    assert np.isfinite(found.noise)
    assert found.noise > 0.3
    assert np.isfinite(fit(space, Points(z[:1]), np.zeros(1), [cold(space)], SHARED).signal)


def test_a_lengthscale_for_all_kinds_is_where_a_fit_of_kinds_apart_starts() -> None:
    """At equal lengthscales, nothing differs but the prior of two more of them."""
    space = mixed(2)
    z = rows(space, 25)
    one, apart = (LogPosterior(space, Points(z), wave(z), method) for method in (SHARED, APART))
    h = hyper(space)
    assert apart.unpack(apart.pack(h)).combinatorial_lengthscales == pytest.approx(np.full(3, 1.7))
    shape, rate = LENGTHSCALE_PRIOR
    prior = (shape - 1) * np.log(1.7) - rate * 1.7 + shape * np.log(rate) - gammaln(shape)
    assert apart(apart.pack(h))[0] == pytest.approx(one(one.pack(h))[0] + 2 * prior)


def test_a_fit_apart_tells_what_matters_from_what_does_not() -> None:
    flags = [Binary(f"b{i}") for i in range(8)]
    space = Space([Ordinal("o", list(range(12))), Categorical("c", list("uvwxyz")), *flags])
    z = rows(space, 60)
    y = standardized(5 * np.sin(z[:, 0] / 2) + z[:, 2:].sum(axis=1))
    bits, category, ordinal = fit(space, Points(z), y, [cold(space)], APART).combinatorial_lengthscales
    assert ordinal < bits / 4
    assert category > 2 * bits
    assert len(fit(space, Points(z), y, [cold(space)], SHARED).combinatorial_lengthscales) == 1
    assert len(fit(binary(8), Points(z[:, 2:]), y, [cold(binary(8))], APART).combinatorial_lengthscales) == 1


# Noise or short lengthscales

GAMMA, SCALED, EITHER = (Method(lengthscale_prior=name) for name in ("gamma", "scaled", "either"))


def noisy_bits(n: int, sd: float, *, seed: int = 0) -> tuple[Space, Array, Array]:
    """Return a space of 40 bits, points near one another, and their number of ones with noise, standardised."""
    rng = np.random.default_rng(seed)
    z = (rng.random((n, 40)) < 0.25).astype(float)
    return binary(40), z, standardized(z.sum(axis=1) + sd * rng.standard_normal(n))


def same(one: Hyper, other: Hyper) -> bool:
    return all(np.array_equal(getattr(one, f.name), getattr(other, f.name)) for f in fields(Hyper))


def test_the_scaled_prior_is_log_normal_around_twice_the_root_of_the_number_of_bins() -> None:
    space = binary(9)
    z = rows(space, 10)
    gamma_prior, scaled = (LogPosterior(space, Points(z), wave(z), method) for method in (GAMMA, SCALED))
    shape, rate = LENGTHSCALE_PRIOR
    for length in (0.7, 6.0, 20.0):
        theta = gamma_prior.pack(replace(hyper(space), combinatorial_lengthscales=np.array([length])))
        instead = norm(math.log(6.0), 1.0).logpdf(math.log(length)) - gamma(shape, scale=1 / rate).logpdf(length)
        assert scaled(theta)[0] - gamma_prior(theta)[0] == pytest.approx(instead, rel=1e-9)


def test_what_short_lengthscales_and_noise_explain_alike_is_called_noise() -> None:
    """Under the paper's prior, lengthscales below one bit make every value an exact one."""
    space, z, y = noisy_bits(40, 6.0)
    exact, found = (fit(space, Points(z), y, [cold(space)], method) for method in (GAMMA, EITHER))
    assert found.noise > 0.5 * (found.noise + found.signal)
    assert np.median(found.combinatorial_lengthscales) > 2.0
    assert exact.noise < found.noise
    beliefs = GP.at(Kernel(space, found), Points(z)).posterior(Points(z), y)[0]
    assert beliefs.min() > 0.6 * y.min()  # the lowest value was lucky


def test_values_without_noise_are_fitted_under_the_prior_of_the_paper() -> None:
    space, z, y = noisy_bits(40, 0.0)
    assert same(*(fit(space, Points(z), y, [cold(space)], method) for method in (EITHER, GAMMA)))


def test_few_values_and_a_noise_that_is_given_are_fitted_under_the_prior_of_the_paper() -> None:
    space, z, y = noisy_bits(19, 6.0)
    assert same(*(fit(space, Points(z), y, [cold(space)], method) for method in (EITHER, GAMMA)))
    space, z, y = noisy_bits(40, 6.0)
    assert same(*(fit(space, Points(z), y, [cold(space)], method, fixed=0.3) for method in (EITHER, GAMMA)))


# Noise that is known

NOISE = np.array([0.3, np.nan, 1e-3, np.nan, np.nan, 2.0, 0.05, np.nan])


@pytest.mark.parametrize("space", [binary(6), reals(2), mixed(1)], ids=["binary", "real", "mixed"])
@pytest.mark.parametrize("method", [Method(), Method.paper()], ids=["default", "paper"])
@pytest.mark.parametrize("known", [NOISE, np.full(8, 0.1)], ids=["some", "all"])
def test_with_known_noise_the_gradient_of_the_log_posterior_is_its_slope(
    space: Space, method: Method, known: Array
) -> None:
    z = rows(space, 8)
    posterior = LogPosterior(space, Points(z), wave(z), method, known=known)
    theta = posterior.pack(hyper(space))
    _, gradient = posterior(theta)
    slopes = [(posterior(theta + e)[0] - posterior(theta - e)[0]) / 2e-5 for e in 1e-5 * np.eye(len(theta))]
    np.testing.assert_allclose(gradient, slopes, rtol=1e-6, atol=1e-8)


def test_known_noise_is_on_the_diagonal_of_its_observations() -> None:
    space = mixed(1)
    z, h = rows(space, 8), hyper(space)
    plain, noisy = (LogPosterior(space, Points(z), wave(z), ZERO, known=known) for known in (None, NOISE))
    kernel = Kernel(space, h)(Points(z), Points(z))
    densities = [
        multivariate_normal(np.zeros(8), kernel + np.diag(noise)).logpdf(wave(z))
        for noise in (np.full(8, h.noise), np.where(np.isnan(NOISE), h.noise, NOISE))
    ]
    theta = plain.pack(h)
    assert noisy(theta)[0] - plain(theta)[0] == pytest.approx(densities[1] - densities[0], rel=1e-9)


def test_noise_that_is_known_nowhere_changes_no_bit_of_a_fit() -> None:
    space = mixed(2)
    z = rows(space, 30)
    one = fit(space, Points(z), wave(z), [cold(space)], Method())
    other = fit(space, Points(z), wave(z), [cold(space)], Method(), known=np.full(30, np.nan))
    assert repr(one) == repr(other)


@pytest.mark.parametrize("fixed", [1e-6, 0.25, 10.0])
def test_a_fixed_noise_is_not_fitted(fixed: float) -> None:
    space = mixed(1)
    z = rows(space, 30)
    found = fit(space, Points(z), wave(z), [cold(space)], Method(), fixed=fixed)
    assert found.noise == pytest.approx(fixed, rel=1e-12)
    assert found.signal != cold(space).signal  # the others are


def test_values_that_are_known_to_be_noisy_leave_the_fitted_noise_small() -> None:
    """Half of the observations are noisy. Only if that is known, the noise of the others is found to be small."""
    space, rng = reals(1), np.random.default_rng(0)
    z = rows(space, 60)
    known = np.where(np.arange(60) % 2, 0.5, np.nan)
    y = np.sin(6 * z[:, 0]) + np.where(np.isnan(known), 0.01, np.sqrt(0.5)) * rng.normal(size=60)
    told = fit(space, Points(z), y, [cold(space)], Method(), known=known)
    assert told.noise < 0.01
    assert fit(space, Points(z), y, [cold(space)], Method()).noise > 0.1


# Further climbs


def five_of_sixty(seed: int) -> tuple[Space, Points, Array]:
    """Return 40 points of 60 reals, of which the first five matter."""
    x = np.random.default_rng(seed).random((40, 60))
    away = x[:, :5] - [0.2, 0.4, 0.6, 0.8, 0.3]
    return reals(60), Points(x), standardized(-np.exp(-3.0 * (away**2).sum(axis=1)))


def test_the_promising_lengthscales_are_those_whose_inverse_square_the_likelihood_wants_larger() -> None:
    space, points, y = five_of_sixty(0)
    posterior = LogPosterior(space, points, y, Method())
    lengths = np.full(60, 5.0)
    lengths[3] = 0.5  # short already
    start = replace(cold(space), real_lengthscales=lengths)

    def likelihood(inverse_squares: Array) -> float:
        theta = posterior.pack(replace(start, real_lengthscales=inverse_squares**-0.5))
        return posterior(theta)[0] - posterior._with_priors(theta, 0.0, np.zeros(len(theta)))

    at = lengths**-2.0
    slopes = np.array([(likelihood(at + e) - likelihood(at - e)) / 2e-5 for e in 1e-5 * np.eye(60)])
    slopes[3] = -np.inf
    assert posterior.promising(start).tolist() == np.argsort(-slopes)[:PROMISING].tolist()


def test_further_climbs_find_a_variable_that_the_first_one_called_noise() -> None:
    gains, found = [], {"one": 0, "several": 0}
    for seed in range(4):
        space, points, y = five_of_sixty(seed)
        values = {}
        for climbs in found:
            hyper, values[climbs] = fit_and_value(space, points, y, [cold(space)], Method.of({"climbs": climbs}))
            found[climbs] += int((hyper.real_lengthscales[:5] < 1.0).sum())
        gains.append(values["several"] - values["one"])
    assert min(gains) >= 0.0
    assert max(gains) > 1.0
    assert found["several"] > found["one"]
