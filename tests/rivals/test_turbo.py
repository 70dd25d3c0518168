"""TuRBO: its fits, its schedule and its draws are those of the published code (golden values)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bounce import Real, Space
from bounce.baselines.rivals import thompson
from bounce.baselines.rivals.gaussian import Gaussian
from bounce.baselines.rivals.thompson import centred, fit, pathwise
from bounce.baselines.rivals.turbo import Region, Turbo, TurboM, candidates, latin_hypercube

GOLDEN: dict[str, Any] = json.loads((Path(__file__).parents[1] / "golden/rivals/turbo.json").read_text())


def space(d: int) -> Space:
    return Space([Real(f"x{i}", 0.0, 1.0) for i in range(d)])


@pytest.mark.parametrize("golden", GOLDEN["fits"], ids=lambda case: f"{len(case['x'])} x {len(case['x'][0])}")
def test_fits_and_predictions_are_those_of_the_published_code(golden: dict[str, Any]) -> None:
    model = fit(np.array(golden["x"]), centred(np.array(golden["y"]))[0])
    gp = model.process
    np.testing.assert_allclose(np.exp(gp.theta), golden["lengthscales"], rtol=1e-6)
    np.testing.assert_allclose(model.weights, golden["weights"], rtol=1e-6)
    assert [gp.signal, gp.noise, model.mean] == pytest.approx(
        [golden["signal"], golden["noise"], golden["mean"]], rel=1e-6
    )
    mean, sd = gp.posterior(np.array(golden["z"]))
    np.testing.assert_allclose(model.mean + mean, golden["observed_mean"], atol=1e-7)
    np.testing.assert_allclose(sd**2 + gp.noise, golden["observed_variance"], atol=1e-7)


@pytest.mark.parametrize("golden", GOLDEN["schedules"], ids=lambda case: f"m {case['m']}, rounds of {case['size']}")
def test_lengths_and_counters_are_those_of_the_published_code(golden: dict[str, Any]) -> None:
    method = Turbo if golden["m"] == 1 else TurboM
    tolerance = max(method.fewest, golden["d"])
    region, best = Region(), min(golden["first"])
    for values, (length, successes, failures) in zip(golden["rounds"], golden["states"], strict=True):
        region = region.after(np.array(values), best, tolerance)
        # TuRBO-1 counts failed rounds, TuRBO-m failed points
        counted = region.failures // golden["size"] if golden["m"] == 1 else region.failures
        assert (region.length, region.successes, counted) == (length, successes, failures)
        best = min(best, *values)
    assert len({state[0] for state in golden["states"]}) >= 4


def process(n: int = 30, d: int = 3) -> Gaussian:
    rng = np.random.default_rng(0)
    x = rng.random((n, d))
    return fit(x, centred(np.sin(5.0 * x[:, 0]) * x[:, 1])[0]).process


def test_a_draw_by_features_has_the_distribution_of_an_exact_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Even with few features: over their draw, mean and covariance are those of the posterior."""
    monkeypatch.setattr(thompson, "FEATURES", 64)
    gp, rng = process(), np.random.default_rng(1)
    z = rng.random((4, 3))
    drawn = np.array([pathwise(gp, z, rng=rng) for _ in range(4000)])
    mean, covariance = gp.joint(z)
    sd = np.sqrt(np.diag(covariance))
    assert (np.abs(drawn.mean(axis=0) - mean) < 5.0 * sd / np.sqrt(4000)).all()
    np.testing.assert_allclose(np.cov(drawn.T), covariance, atol=0.1 * float(covariance.max()))


def test_both_draws_choose_candidates_alike() -> None:
    """The distance of the chosen candidate from the best point, by 300 draws each, within three standard errors."""
    gp, rng = process(), np.random.default_rng(2)
    z = rng.random((120, 3))
    centre = gp.x[gp.y.argmin()]
    exact = z[gp.sample(z, 300, rng=rng).argmin(axis=1)]
    features = z[[pathwise(gp, z, rng=rng).argmin() for _ in range(300)]]
    a, b = (np.linalg.norm(chosen - centre, axis=1) for chosen in (exact, features))
    assert abs(a.mean() - b.mean()) < 3.0 * np.sqrt((a.var() + b.var()) / 300)


def test_samples_have_the_noise_of_an_observation() -> None:
    x = np.random.default_rng(0).random((30, 2))
    model = fit(x, centred(np.random.default_rng(1).standard_normal(30))[0])
    drawn = np.array([model.sample(x[:1], rng=np.random.default_rng(i))[0] for i in range(2000)])
    sd = model.process.posterior(x[:1])[1][0]
    assert drawn.var() == pytest.approx(sd**2 + model.process.noise, rel=0.1)


def test_candidates_lie_in_the_box_and_move_twenty_coordinates_on_average() -> None:
    rng = np.random.default_rng(0)
    centre = np.full(100, 0.5)
    z = candidates(centre, centre - 0.1, centre + 0.2, rng=rng)
    moved = z != centre
    assert z.shape == (5000, 100)
    assert moved.sum(axis=1).mean() == pytest.approx(20.0, abs=0.3)
    assert moved.any(axis=1).all()
    assert ((z >= 0.4) & (z <= 0.7)).all()
    assert len(candidates(centre[:3], centre[:3] - 0.1, centre[:3] + 0.2, rng=rng)) == 300


def test_a_latin_hypercube_has_a_point_in_every_slice() -> None:
    x = latin_hypercube(7, 5, rng=np.random.default_rng(0))
    np.testing.assert_array_equal(np.sort((x * 7).astype(int), axis=0), np.tile(np.arange(7)[:, None], 5))


def test_points_lie_in_the_region_around_the_best_point() -> None:
    optimizer = Turbo(space(3), 20, 0, 8)
    trials = optimizer.ask(8)
    optimizer.tell(trials, [float(i) for i in range(8)])
    optimizer._regions[0] = Region(0.02)
    x = optimizer.space.encode([trials[0].point])[0]
    sides = 0.02 * fit(np.array(optimizer._rows), centred(np.arange(8.0))[0]).weights
    for trial in optimizer.ask(4):
        assert (np.abs(optimizer.space.encode([trial.point])[0] - x) <= 0.5 * sides + 1e-12).all()


def test_a_region_that_collapses_forgets_its_values_and_gets_a_new_design() -> None:
    optimizer = Turbo(space(2), 200, 0)
    best = []
    while optimizer.remaining and 1 not in optimizer._regions:
        trial = optimizer.ask()[0]
        optimizer.tell(trial, 1.0)  # no value is ever better
        best.append(trial)
    # 5 initial points; 4 failures each for 7 halvings of 0.8, after which the ask for the next point restarts
    assert len(best) == 5 + 4 * 7 + 1
    assert optimizer._regions == {1: Region()}
    assert optimizer._sources[-1] == (1, True)
    design = [best[-1], *optimizer.ask(4)]
    x = optimizer.space.encode([trial.point for trial in design])
    np.testing.assert_array_equal(np.sort((x * 5).astype(int), axis=0), np.tile(np.arange(5)[:, None], 2))


def test_a_batch_is_a_round() -> None:
    optimizer = Turbo(space(6), 40, 0, 4)
    optimizer.tell(optimizer.ask(4), [0.0] * 4)
    for size in (3, 3, 1):
        optimizer.tell(optimizer.ask(size), [1.0] * size)
    optimizer.ask()
    assert optimizer._regions[0] == Region(0.4, 0, 1)  # six failed points, then one more
    optimizer = Turbo(space(6), 40, 0, 4)
    optimizer.tell(optimizer.ask(4), [0.0] * 4)
    optimizer.tell(optimizer.ask(3), [-1.0, -2.0, -3.0])
    optimizer.ask()
    assert optimizer._regions[0] == Region(0.8, 1, 0)


def test_turbo_m_gives_every_region_its_own_design_and_prefers_the_best_one() -> None:
    optimizer = TurboM(space(2), 60, 0, 4)
    values = []
    for _ in range(20):
        trial = optimizer.ask()[0]
        values.append(trial)
        optimizer.tell(trial, 0.0 if 8 <= trial.id < 12 else 100.0 + trial.id)
    assert [source[0] for source in optimizer._sources] == [i // 4 for i in range(20)]
    trials = optimizer.ask(6)
    assert [token for _, token in optimizer._tokens.values()] == [(2, False)] * 6
    assert len(trials) == 6
