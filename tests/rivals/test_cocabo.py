"""What makes CoCaBO: its bandits and their rewards as published, its kernel, its bound, and the order of its fits."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from scipy.spatial.distance import cdist

from bounce import Binary, Categorical, InvalidSpace, Ordinal, Real, Space
from bounce.baselines.rivals import cocabo
from bounce.baselines.rivals.cocabo import (
    Bandit,
    Cocabo,
    bound,
    bound_and_slope,
    exploration,
    lowest,
    mixture,
    rewards,
)
from bounce.baselines.rivals.gaussian import Fit, Gaussian

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "rivals" / "cocabo.json").read_text())
SPACE = Space(
    [Categorical("a", list("xyz")), Real("u", 0.0, 1.0), Categorical("b", list("pqrst")), Real("v", 0.0, 1.0)]
)


def data(n: int = 25) -> tuple[np.ndarray, np.ndarray]:
    """Rows of two categories and two reals in [-1, 1], and values."""
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.integers(0, [3, 5], (n, 2)), rng.uniform(-1, 1, (n, 2))], axis=1)
    y = np.sin(3 * x[:, 2]) + x[:, 3] ** 2 + 0.5 * x[:, 0]
    return x, (y - y.mean()) / y.std()


def process() -> Gaussian:
    return Gaussian(mixture(2, 2), np.log([0.4]), 1.0, 0.01, *data(), constant=False)


def test_bandits_follow_the_published_ones() -> None:
    """Their published rewards are values as they are, which for values that fill [-1, 0] are ours."""
    arms, values = np.array(GOLDEN["arms"], dtype=float), np.array(GOLDEN["values"])
    bandits = [Bandit(exploration(c, GOLDEN["rounds"]), np.zeros(c)) for c in GOLDEN["sizes"]]
    assert [bandit.gamma for bandit in bandits] == pytest.approx(GOLDEN["gammas"])
    for t, step in enumerate(GOLDEN["steps"], start=4):
        got = rewards(arms[: t + 1], values[: t + 1], arms[t])
        np.testing.assert_allclose(got, step["rewards"])
        for j, bandit in enumerate(bandits):
            np.testing.assert_allclose(bandit.probabilities, step["probabilities"][j])
            arm = int(arms[t, j])
            bandits[j] = bandit.rewarded(arm, float(got[j]), float(bandit.probabilities[arm]))
    for bandit, weights in zip(bandits, GOLDEN["weights"], strict=True):
        np.testing.assert_allclose(np.exp(bandit.logs), weights)


def test_exploration_is_that_of_exp3_and_at_most_one() -> None:
    assert exploration(4, 90) == pytest.approx(math.sqrt(4 * math.log(4) / ((math.e - 1) * 60)))
    assert exploration(30, 2) == exploration(5, 0) == 1.0
    assert Bandit(1.0, np.array([50.0, 0.0])).probabilities == pytest.approx([0.5, 0.5])


def test_rewards_do_not_depend_on_the_scale_of_values() -> None:
    rows = np.array([[0.0, 1.0], [1.0, 1.0], [0.0, 0.0]])
    y = np.array([3.0, 1.0, 2.0])
    for scale, shift in ((1.0, 0.0), (1e-12, 0.0), (1e300, 0.0), (2.0, -7.0)):
        np.testing.assert_allclose(rewards(rows, scale * y + shift, np.array([0.0, 1.0])), [0.5, 1.0])
    assert not rewards(rows, np.full(3, 7.0), np.array([0.0, 1.0])).any()


def test_weights_of_any_size_give_probabilities() -> None:
    bandit = Bandit(0.1, np.zeros(3))
    for _ in range(2000):
        bandit = bandit.rewarded(1, 1.0, 1e-3)
    assert bandit.probabilities == pytest.approx([0.1 / 3, 0.9 + 0.1 / 3, 0.1 / 3])


def test_the_kernel_is_half_the_mean_and_half_the_product_of_matches_and_matern() -> None:
    a, b = data(6)[0], data(9)[0][4:]
    agree = (a[:, None, :2] == b[None, :, :2]).mean(axis=2)
    s = math.sqrt(5) * cdist(a[:, 2:], b[:, 2:]) / 0.4
    matern = (1 + s + s**2 / 3) * np.exp(-s)
    np.testing.assert_allclose(mixture(2, 2)(np.log([0.4]), a, b), 0.25 * (agree + matern) + 0.5 * agree * matern)
    np.testing.assert_allclose(mixture(2, 2).diagonal(np.log([0.4]), a), 1.0)


def test_the_gradient_of_the_fit_is_that_of_its_loss() -> None:
    x, y = data()
    fit, at = Fit((1.0, 1.0), constant=False), np.log([0.5, 1.0, 0.02])
    numeric = approx_fprime(at, lambda p: fit.loss(mixture(2, 2), x, y, p)[0], 1e-7)
    np.testing.assert_allclose(fit.loss(mixture(2, 2), x, y, at)[1], numeric, rtol=1e-4, atol=1e-5)


def test_the_bound_is_two_deviations_of_a_measurement_below_the_mean_and_its_gradient_exact() -> None:
    gp, z = process(), np.array([1.0, 2.0, 0.3, -0.2])
    k, cross = gp.covariance(gp.theta, gp.x, gp.x) + 0.01 * np.eye(25), gp.covariance(gp.theta, z[None], gp.x)[0]
    variance = 1.0 - cross @ np.linalg.solve(k, cross) + 0.01
    value, slope = bound_and_slope(gp, z)
    assert value == pytest.approx(cross @ np.linalg.solve(k, gp.y) - 2.0 * math.sqrt(variance))
    assert bound(gp, z[None])[0] == pytest.approx(value)
    np.testing.assert_allclose(slope[2:], approx_fprime(z, lambda p: bound(gp, p[None])[0], 1e-7)[2:], atol=1e-5)


def test_reals_are_where_the_bound_is_lowest_for_the_given_categories() -> None:
    gp, arms = process(), np.array([1.0, 2.0])
    found = lowest(gp, arms, rng=np.random.default_rng(0))
    grid = np.stack(np.meshgrid(*[np.linspace(-1, 1, 101)] * 2), axis=-1).reshape(-1, 2)
    rows = np.concatenate([np.tile(arms, (len(grid), 1)), grid], axis=1)
    assert bound(gp, np.concatenate([arms, found])[None])[0] <= bound(gp, rows).min() + 1e-6


def run(own: Cocabo, rounds: int, value: Any) -> None:
    for _ in range(rounds):
        (trial,) = own.ask()
        own.tell(trial, value(trial.point))


def test_the_first_fit_comes_at_the_eleventh_round_and_lasts_ten() -> None:
    own = Cocabo(SPACE, 60, 0)
    seen = []
    for _ in range(26):
        run(own, 1, lambda point: (point["u"] - 0.3) ** 2 + (point["a"] == "x"))
        seen.append((float(own._theta[0]), own._noise))
    assert set(seen[:15]) == {(math.log(0.2), 0.1)}
    assert len(set(seen[15:25])) == 1
    assert seen[15] != seen[14]
    assert seen[25] != seen[24]


def test_only_points_that_the_bandits_drew_are_rewarded() -> None:
    own = Cocabo(SPACE, 60, 0)
    run(own, 5, lambda point: point["u"])
    assert all(not bandit.logs.any() for bandit in own._bandits)
    run(own, 1, lambda point: -1.0)
    a, b = own._bandits
    row = own._rows[-1]
    assert a.logs[int(row[0])] == pytest.approx(a.gamma)  # reward 1 at probability 1/3, over 3 arms
    assert b.logs[int(row[2])] == pytest.approx(b.gamma)
    assert np.count_nonzero(a.logs) == np.count_nonzero(b.logs) == 1


def test_values_of_a_batch_are_rewarded_with_the_probabilities_of_their_draw() -> None:
    own = Cocabo(SPACE, 60, 0)
    run(own, 5, lambda point: point["u"])
    trials = own.ask(4)
    own.tell(list(reversed(trials)), [-1.0] * 4)
    rows = SPACE.encode([trial.point for trial in trials])
    for bandit, column in zip(own._bandits, (0, 2), strict=True):
        counts = np.bincount(rows[:, column].astype(int), minlength=len(bandit.logs))
        np.testing.assert_allclose(bandit.logs, counts * bandit.gamma)


def test_good_categories_are_drawn_more_often() -> None:
    rng, bandit = np.random.default_rng(0), Bandit(exploration(5, 300), np.zeros(5))
    drawn = []
    for _ in range(300):
        likely = bandit.probabilities
        drawn.append(int(rng.choice(5, p=likely)))
        bandit = bandit.rewarded(drawn[-1], 1.0 if drawn[-1] == 3 else 0.1, float(likely[drawn[-1]]))
    assert drawn[-100:].count(3) > 60
    assert bandit.probabilities.argmax() == 3


@pytest.mark.parametrize(
    ("space", "reason"),
    [
        (Space([Real("a", 0, 1), Real("b", 0, 1)]), "no binary or categorical variable"),
        (Space([Binary("a"), Categorical("b", ["x", "y"])]), "no real variable"),
        (Space([Binary("a"), Real("b", 0, 1), Ordinal("c", [1, 2, 3])]), "ordinal"),
    ],
)
def test_spaces_without_reals_or_categories_and_ordinals_are_refused(space: Space, reason: str) -> None:
    with pytest.raises(InvalidSpace, match=f"cocabo.*{reason}"):
        Cocabo(space, 10, 0)


def test_published_numbers() -> None:
    assert (cocabo.MIX, cocabo.KAPPA, cocabo.SAMPLES, cocabo.LOCAL, cocabo.EVERY) == (0.5, 2.0, 5000, 3, 10)
