"""GTBO: the posterior over active variables, the choice of groups, the two phases."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import approx_fprime

from bounce import Real, Space, baselines
from bounce.baselines.rivals import groups as gt
from bounce.baselines.rivals import gtbo
from bounce.baselines.rivals.gaussian import Fit, Matern52
from bounce.benchmarks.branin import Branin
from bounce.benchmarks.hartmann import Hartmann6
from bounce.benchmarks.wrappers import Padded

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "rivals" / "gtbo.json").read_text())


def array(name: str) -> np.ndarray:
    return np.array(GOLDEN[name])


def space(d: int) -> Space:
    return Space([Real(f"x{i}", 0.0, 1.0) for i in range(d)])


# Group tests against the published code


def test_the_scales_are_the_published_ones() -> None:
    scales = gtbo.Scales.of(array("defaults"), array("changed"), 30)
    assert scales.default * scales.unit == pytest.approx(GOLDEN["default"])
    assert scales.signal * scales.unit == pytest.approx(GOLDEN["signal"])
    assert scales.noise * scales.unit == pytest.approx(GOLDEN["noise"])


def test_scales_do_not_depend_on_the_unit_of_the_values() -> None:
    one, huge = (gtbo.Scales.of(array("defaults") * s, array("changed") * s, 30) for s in (1.0, 1e300))
    assert (huge.signal, huge.noise) == pytest.approx((one.signal, one.noise))
    constant = gtbo.Scales.of(np.full(3, 2.0), np.full(9, 2.0), 9)
    assert constant.signal == constant.noise == 0.0


def test_the_mutual_information_is_the_published_one() -> None:
    information = gt.Information(GOLDEN["signal"], GOLDEN["noise"])
    np.testing.assert_allclose(information.exact(array("gammas")), GOLDEN["information"], atol=2e-4)  # theirs: float32
    np.testing.assert_allclose(information(array("gammas")), information.exact(array("gammas")), atol=1e-5)
    assert information.exact(np.array([0.0, 1.0])) == pytest.approx([0.0, 0.0], abs=0.01)  # the quantiles' error


def test_the_likelihood_of_subsets_is_the_published_one() -> None:
    groups, particles = array("groups").astype(bool), array("particles").astype(bool)
    tests = gt.Tests.of(groups, array("results"), 0.5, 0.1)
    logs = tests.ratios @ (groups.astype(int) @ particles.T.astype(int) > 0)
    logs += particles.sum(axis=1) * np.log(gt.PRIOR / (1.0 - gt.PRIOR))
    expected = array("logs")
    np.testing.assert_allclose(logs - logs[0], expected - expected[0], atol=1e-9)


def test_the_steps_of_the_temperature_are_the_published_ones() -> None:
    for rho, scale, step in GOLDEN["steps"]:
        assert gt.temperature_step(rho, scale * array("logs")) == pytest.approx(step)


def test_the_density_of_the_process_is_the_published_one() -> None:
    x, y = array("x"), array("y")
    means = np.array([gtbo.SHORT, gtbo.LONG, gtbo.SHORT, gtbo.LONG])
    at = np.log([0.5, 9.0, 1.2, 20.0, 1.7, 0.03])
    prior, slope = gtbo.lengthscale_prior(means)(at)
    constant = -4 * 0.5 * np.log(2 * np.pi) + 2 * np.log(0.15)
    assert prior + constant == pytest.approx(GOLDEN["prior"])
    np.testing.assert_allclose(slope, approx_fprime(at, lambda p: gtbo.lengthscale_prior(means)(p)[0], 1e-7), atol=1e-5)
    loss = Fit(constant=False).loss(Matern52(4, gtbo.LENGTHSCALES), x, y - 0.2, at)[0]
    assert -loss == pytest.approx(GOLDEN["likelihood"], abs=1e-6)


# The posterior over subsets


def exact(d: int, tests: gt.Tests) -> tuple[np.ndarray, np.ndarray]:
    """All subsets of d variables and their posterior probabilities."""
    subsets = np.array(list(itertools.product([0, 1], repeat=d)))
    logs = tests.ratios @ (tests.groups.astype(int) @ subsets.T > 0) + subsets.sum(axis=1) * np.log(0.05 / 0.95)
    weights = np.exp(logs - logs.max())
    return subsets, weights / weights.sum()


def some_tests(d: int, n: int, noise: float, seed: int) -> gt.Tests:
    """Tests of random groups, where variables 1 and 4 are active."""
    rng = np.random.default_rng(seed)
    groups = rng.random((n, d)) < 0.35
    v = rng.standard_normal(n) * np.where(groups[:, [1, 4]].any(axis=1), 1.0, noise)
    return gt.Tests.of(groups, v, 1.0, noise)


@pytest.mark.parametrize("noise", [0.5, 0.1, 0.001])
def test_particles_have_the_posterior_that_enumeration_gives(noise: float) -> None:
    """The distance in total variation is what 10,000 draws leave, also when the tests come in batches."""
    d, n = 8, 12
    for seed in range(3):
        tests, rng = some_tests(d, n, noise, seed), np.random.default_rng([seed, 1])
        cloud = gt.Cloud.prior(d, rng=rng)
        for known in (1, 2, 5, 9, n):
            cloud = cloud.updated(gt.Tests(tests.groups[:known], tests.ratios[:known]), rng=rng)
        subsets, weights = exact(d, tests)
        found = np.bincount((2 ** np.arange(d)[::-1]) @ cloud.active, weights=cloud.weights, minlength=2**d)
        np.testing.assert_allclose(cloud.marginals, weights @ subsets, atol=0.04)
        assert 0.5 * np.abs(found - weights).sum() < 0.06


def test_tests_that_say_little_add_up() -> None:
    """Weights of one update are not forgotten in the next."""
    tests = gt.Tests(np.eye(6, dtype=bool)[[2] * 12], np.full(12, 0.35))
    cloud = gt.Cloud.prior(6, rng=np.random.default_rng(0))
    for known in range(1, 13):
        cloud = cloud.updated(
            gt.Tests(tests.groups[:known], tests.ratios[:known]), rng=np.random.default_rng([0, known])
        )
    odds = 0.05 / 0.95 * np.exp(12 * 0.35)
    assert cloud.marginals[2] == pytest.approx(odds / (1 + odds), abs=0.05)


def test_particles_are_drawn_by_their_weights() -> None:
    weights = np.array([0.1, 0.0, 0.6, 0.3])
    drawn = [gt.systematic(weights, rng=np.random.default_rng(seed)) for seed in range(4000)]
    np.testing.assert_allclose(np.bincount(np.concatenate(drawn), minlength=4) / 16_000, weights, atol=0.01)


# The choice of groups


def test_a_group_is_as_good_as_the_best_of_all_groups() -> None:
    d, information = 8, gt.Information(1.0, 0.1)
    for seed in range(4):
        rng = np.random.default_rng(seed)
        cloud = gt.Cloud.prior(d, rng=rng).updated(some_tests(d, 3, 0.1, seed), rng=rng)
        every = np.array(list(itertools.product([False, True], repeat=d)))
        values = information((every @ cloud.active > 0) @ cloud.weights)
        group, value = gt.best_group(cloud, information, np.ones(d, dtype=bool), rng=rng)
        gamma = float((group @ cloud.active > 0) @ cloud.weights)
        assert value == pytest.approx(float(information(np.array([gamma]))[0]), abs=1e-5)
        assert value > 0.98 * values.max()


def test_groups_of_a_batch_share_no_variable_and_are_almost_as_good_as_the_first() -> None:
    rng, information = np.random.default_rng(0), gt.Information(1.0, 0.01)
    cloud = gt.Cloud.prior(100, rng=rng)
    taken = np.arange(100) < 10
    chosen = gt.next_groups(cloud, information, taken, rng=rng)
    assert 2 <= len(chosen) <= gt.BATCH
    assert chosen.sum(axis=0).max() == 1
    assert not chosen[:, :10].any()
    values = information((chosen @ cloud.active > 0) @ cloud.weights)
    assert values.min() > 0.98 * values.max()


# The two phases


def test_the_first_phase_evaluates_the_default_and_bins_and_then_tests() -> None:
    d, method = 50, gtbo.Gtbo(space(50), 200, 0)
    rows: list[np.ndarray] = []
    while method.active is None:
        trial = method.ask()[0]
        row = np.array([trial.point[f"x{i}"] for i in range(d)])
        rows.append(row)
        method.tell(trial, float(row[3] - 2.0 * row[7]))
    x = np.array(rows)[5:-1]  # after the common points, before the first of the second phase
    assert np.abs(x[:10] - 0.5).max() < 1e-7
    moved = x[10:35] != 0.5
    assert (moved.sum(axis=1) == 2).all()  # ⌊√50/3⌋ variables in a bin
    assert (moved.sum(axis=0) == 1).all()
    assert set(np.round(x[10:35][moved], 9)) == {0.1, 0.9}
    tests = x[35:]
    assert (np.abs(tests[tests != 0.5] - 0.5) >= 0.4 - 1e-12).all()
    assert method.active.tolist() == [3, 7]
    marginals = method.marginals
    assert marginals is not None
    assert (np.delete(marginals, [3, 7]) < gtbo.ACTIVE).all()


def test_pending_tests_keep_their_variables_to_themselves() -> None:
    method = gtbo.Gtbo(space(60), 400, 0)
    for n in (5, 10 + 30):
        trials = method.ask(n)
        method.tell(trials, [trial.point["x3"] for trial in trials])
    tests = method.ask(4)
    moved = np.array([[trial.point[f"x{i}"] != 0.5 for i in range(60)] for trial in tests])
    assert moved.any(axis=1).all()
    assert moved.sum(axis=0).max() == 1


def test_few_variables_are_all_active_and_a_constant_has_none() -> None:
    assert gtbo.Gtbo(space(4), 50, 0).active is not None
    method = gtbo.Gtbo(space(7), 22, 0)
    while not method.done:
        method.tell(method.ask(), [3.0])
    assert method.active is not None
    assert not len(method.active)


def test_the_process_has_one_point_of_the_first_phase_for_each_pattern() -> None:
    method = gtbo.Gtbo(space(20), 200, 0)
    while method.active is None:
        trial = method.ask()[0]
        row = method.space.encode([trial.point])[0]
        method.tell(trial, float(row[0] - 3.0 * row[1]))
    x = np.array(method._rows)
    kept = method._kept(x)
    assert kept[:5].tolist() == [0, 1, 2, 3, 4]
    patterns = [tuple(np.sign(np.round(row[[0, 1]] - 0.5, 6))) for row in x[kept[5:]]]
    assert (0.0, 0.0) in patterns
    assert len(set(patterns)) == len(patterns) >= 3


def test_the_noisy_improvement_is_a_mean_over_the_joint_posterior() -> None:
    rng = np.random.default_rng(0)
    x = rng.random((12, 3))
    y = np.sin(5.0 * x[:, 0]) + 0.3 * rng.standard_normal(12)
    gp = Fit(noise=(0.05, 0.05))(Matern52(3, (0.2, 5.0)), x, y)
    z = rng.random((3, 3))
    drawn = gp.sample(np.concatenate([x, z]), 400_000, rng=rng)
    expected = np.maximum(drawn[:, :12].min(axis=1, keepdims=True) - drawn[:, 12:], 0.0).mean(axis=0)
    found = np.mean([np.exp(gtbo.NoisyImprovement.of(gp, rng=rng)(z)) for _ in range(100)], axis=0)
    np.testing.assert_allclose(found, expected, rtol=0.04, atol=1e-4)
    acquisition = gtbo.NoisyImprovement.of(gp, rng=rng)
    value, gradient = acquisition.with_gradient(z)
    np.testing.assert_allclose(value, acquisition(z))
    for row, slope in zip(z, gradient, strict=True):
        np.testing.assert_allclose(slope, approx_fprime(row, lambda p: acquisition(p[None])[0], 1e-7), rtol=1e-3)


def test_points_around_the_best_ones_stay_close_and_inside() -> None:
    rng = np.random.default_rng(0)
    x = 0.2 + 0.6 * rng.random((20, 30))
    gp = Fit()(Matern52(30, (0.5, 5.0)), x, x.sum(axis=1))
    near = gtbo.near_best(gp, 4000, rng=rng)
    assert ((near >= 0.0) & (near <= 1.0)).all()
    best = x[np.argmin(gp.posterior(x)[0])]
    gap = near - best
    assert gap[:2000].std() == pytest.approx(gtbo.NEAR, rel=0.1)
    moved = gap[2000:] != 0.0
    assert moved.mean() == pytest.approx(20 / 30, abs=0.02)
    assert gap[2000:][moved].std() == pytest.approx(gtbo.NEAR_SUBSET, rel=0.1)


@pytest.mark.slow
@pytest.mark.parametrize(("inner", "d"), [(Branin(), 50), (Hartmann6(), 20)])
def test_the_active_variables_of_a_problem_are_found(inner: Branin | Hartmann6, d: int) -> None:
    """With at least two of three seeds all of them, and at most one other on average."""
    problem, active, hits, others = Padded(inner, d), len(inner.space), 0, 0
    for seed in range(3):
        method = baselines.make("gtbo", problem.space, 200, seed)
        assert isinstance(method, gtbo.Gtbo)
        while method.active is None and not method.done:
            trial = method.ask()[0]
            method.tell(trial, problem(trial.point))
        assert method.active is not None
        hits += set(range(active)) <= set(method.active.tolist())
        others += int((method.active >= active).sum())
    assert hits >= 2
    assert others <= 3
