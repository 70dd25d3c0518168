"""The probability that limits hold, and the acquisition that takes it into account."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.stats import norm

from bounce import Binary, Bounce, Categorical, Integer, Method, Real, Space
from bounce.acquire.feasibility import Belief, Constrained, Limits, log_between
from bounce.acquire.improvement import Acquisition
from bounce.acquire.maximise import Search, propose
from bounce.gp.fit import LogPosterior, cold
from bounce.gp.joint import JointPosterior, fit_jointly
from bounce.gp.kernels import Kernel
from bounce.gp.points import Points
from bounce.gp.posterior import GP
from bounce.optimizer import model
from bounce.optimizer.limits import levels
from bounce.spaces.outcomes import Limit
from bounce.spaces.parameters import Ordinal

SPACES = {
    "real": Space([Real("a", 0.0, 1.0), Real("b", 0.0, 1.0)]),
    "mixed": Space([Real("a", 0.0, 1.0), Real("b", 0.0, 1.0), Categorical("c", ["x", "y", "z"]), Binary("d")]),
    "combinatorial": Space([Binary("a"), Categorical("c", ["x", "y", "z"]), Ordinal("o", [1, 2, 4, 8])]),
}


def belief(space: Space, seed: int, k: int = 2, n: int = 12) -> tuple[Belief, np.random.Generator]:
    rng = np.random.default_rng(seed)
    gp = GP.at(Kernel(space, cold(space)), Points(space.sample(n, rng=rng)))
    low, high = np.full(k, -np.inf), rng.normal(size=k)
    low[0] = high[0] - 1.0
    return Belief.of(gp, rng.normal(size=(n, k)), low, high), rng


@given(
    a=st.floats(-40, 40) | st.just(-math.inf),
    width=st.floats(1e-3, 30) | st.just(math.inf),
)
def test_a_probability_between_two_ends_is_that_of_a_normal(a: float, width: float) -> None:
    b = a + width if math.isfinite(a) else (width if math.isfinite(width) else math.inf)
    found = float(log_between(np.array([a]), np.array([b]))[0])
    tail = -b if a > 0 else a
    head = -a if a > 0 else b
    expected = norm.logcdf(head) + math.log(-math.expm1(norm.logcdf(tail) - norm.logcdf(head)))
    assert found <= 0
    assert found == pytest.approx(expected, rel=1e-6, abs=1e-12)


@pytest.mark.parametrize("kind", SPACES)
def test_a_belief_is_the_posterior_of_each_outcome(kind: str) -> None:
    space = SPACES[kind]
    own, rng = belief(space, 0)
    z = space.sample(7, rng=rng)
    expected = np.zeros(7)
    for j in range(2):
        mean, variance = own.gp.posterior(Points(z), own.gp.factor @ own.beta[:, j])
        sigma = np.sqrt(variance)
        expected += np.log(norm.cdf((own.high[j] - mean) / sigma) - norm.cdf((own.low[j] - mean) / sigma))
    np.testing.assert_allclose(own(Points(z)), expected, rtol=1e-5)


def test_at_fixed_points_the_mean_stays_and_the_deviation_shrinks() -> None:
    space = SPACES["mixed"]
    own, rng = belief(space, 1)
    fixed = Points(space.sample(3, rng=rng))
    beside = own.beside(fixed)
    points = Points(space.sample(9, rng=rng))
    moments = [b._moments(b.gp.whitened(b.gp.kernel(points, b.gp.points))) for b in (own, beside)]
    np.testing.assert_allclose(moments[0][0], moments[1][0])
    assert (moments[1][1] <= moments[0][1] + 1e-12).all()
    assert (moments[1][1] < moments[0][1]).any()


def acquisition(kind: str, seed: int, fixed: int, *, known: bool) -> tuple[Constrained, np.random.Generator]:
    space = SPACES[kind]
    own, rng = belief(space, seed)
    y = rng.normal(size=len(own.gp.points))
    gp = GP.at(Kernel(space, cold(space)), own.gp.points)
    limits = Limits([own, belief(space, seed + 100, 1)[0]], float(y.min()) if known else math.inf)
    points = Points(space.sample(fixed, rng=rng))
    plain = Acquisition.of(gp, y, points, rng.normal(size=(fixed, 16)), limits.best)
    return Constrained.beside(plain, limits, points), rng


@pytest.mark.parametrize("kind", ["real", "mixed"])
@pytest.mark.parametrize("fixed", [0, 2])
@pytest.mark.parametrize("known", [True, False])
def test_the_gradient_is_that_of_finite_differences(kind: str, fixed: int, known: bool) -> None:
    own, rng = acquisition(kind, 3, fixed, known=known)
    z = SPACES[kind].sample(5, rng=rng)
    reals = SPACES[kind].reals
    values, gradient = own.with_gradient(z)
    np.testing.assert_allclose(values, own(z), rtol=1e-7)
    step = 1e-6
    for place, j in enumerate(reals):
        up, down = z.copy(), z.copy()
        up[:, j] += step
        down[:, j] -= step
        np.testing.assert_allclose(gradient[:, place], (own(up) - own(down)) / (2 * step), rtol=2e-4, atol=1e-5)


@given(seed=st.integers(0, 50), kind=st.sampled_from(list(SPACES)), known=st.booleans())
def test_a_bound_is_never_below_the_value(seed: int, kind: str, known: bool) -> None:
    own, rng = acquisition(kind, seed, 0, known=known)
    z = SPACES[kind].sample(20, rng=rng)
    cross = own.gp.kernel(Points(z), own.gp.points)
    assert (own(z) <= own.bound(cross, own.screen()) + 1e-9).all()


def test_before_a_point_keeps_the_limits_only_the_probability_counts() -> None:
    own, rng = acquisition("mixed", 5, 0, known=False)
    z = SPACES["mixed"].sample(6, rng=rng)
    assert not own.improving
    np.testing.assert_allclose(own(z), sum(b(Points(z)) for b in own.beliefs))


def test_a_fixed_point_that_is_likely_infeasible_lowers_no_threshold() -> None:
    space = SPACES["real"]
    own, rng = belief(space, 2, 1)
    y = rng.normal(size=len(own.gp.points))
    fixed = Points(space.sample(1, rng=rng))
    plain = Acquisition.of(own.gp, y, fixed, np.full((1, 8), -1e4), float(y.min()))
    assert (plain.thresholds < y.min()).all()
    for level, lowers in ((1e6, True), (-1e6, False)):
        wide = Belief(own.gp, own.beta, np.array([-np.inf]), np.array([level]))
        with_limits = Constrained.beside(plain, Limits([wide], plain.best), fixed)
        assert (with_limits.thresholds < y.min()).all() == lowers


# one kernel for several outcomes


def test_one_output_is_the_ordinary_posterior_and_gradients_are_right() -> None:
    space, rng = SPACES["mixed"], np.random.default_rng(0)
    points, y = Points(space.sample(10, rng=rng)), rng.normal(size=(10, 3))
    one, single = JointPosterior(space, points, y[:, :1], Method()), LogPosterior(space, points, y[:, 0], Method())
    theta = single.pack(cold(space)) + 0.1 * rng.normal(size=len(single.pack(cold(space))))
    np.testing.assert_allclose(one(theta)[0], single(theta)[0])
    np.testing.assert_allclose(one(theta)[1], single(theta)[1])
    joint = JointPosterior(space, points, y, Method())
    value, gradient = joint(theta)
    for i in range(len(theta)):
        step = np.zeros(len(theta))
        step[i] = 1e-6
        assert gradient[i] == pytest.approx(
            (joint(theta + step)[0] - joint(theta - step)[0]) / 2e-6, rel=1e-3, abs=1e-4
        )
    fitted = fit_jointly(space, points, y, [cold(space)], Method())
    assert joint(joint.pack(fitted))[0] >= value


# scales


@given(
    values=st.lists(st.floats(-1e200, 1e200), min_size=1, max_size=8),
    low=st.floats(-1e3, 1e3) | st.just(-math.inf),
    width=st.floats(0, 1e3) | st.just(math.inf),
)
@example(values=[6.1e-274], low=0.0, width=math.inf)
def test_a_scale_keeps_the_order_and_the_sides_of_limits(values: list[float], low: float, width: float) -> None:
    high = low + width if math.isfinite(low) else (width if math.isfinite(width) else 0.0)
    limit = Limit("a", low, high)
    y, a, b = levels(np.array(values), limit)
    assert np.isfinite(y).all()
    order = np.argsort(values, kind="stable")
    assert (np.diff(y[order]) >= -1e-12).all()
    for value, level in zip(values, y, strict=True):
        assert (level >= a - 1e-9) == (value >= low) or math.isclose(level, a, abs_tol=1e-6)
        assert (level <= b + 1e-9) == (value <= high) or math.isclose(level, b, abs_tol=1e-6)


def test_values_that_gather_at_a_limit_do_not_make_its_scale_a_step() -> None:
    spread, gathered = np.linspace(-10, 10, 21), np.tile([-0.01, 0.01], 15)
    y, _, _ = levels(np.concatenate([spread, gathered]), Limit("a", high=0.0))
    assert y[-1] - y[-2] < 0.01 * np.ptp(y)


def test_an_outlier_does_not_make_values_near_a_limit_look_equal() -> None:
    y, _, _ = levels(np.array([-1.0, 1.0, 2.0, 3.0, 1e100]), Limit("a", high=0.0))
    assert y[1] - y[0] > 0.002 * np.ptp(y)


# end to end


def constrained() -> Space:
    kinds: list[Any] = [Real("x", 0.0, 1.0), Real("y", 0.0, 1.0), Integer("n", 0, 9), Categorical("c", ["a", "b", "d"])]
    return Space(kinds, outcomes=["ring <= 0.02", "2 <= load <= 6"])


def evaluated(point: dict[str, Any]) -> tuple[float, dict[str, float]]:
    x, y, n = point["x"], point["y"], point["n"]
    value = x + y + 0.1 * n + (0.0 if point["c"] == "b" else 0.3)
    return value, {"ring": (x - 0.7) ** 2 + (y - 0.6) ** 2, "load": float(n)}


BEST = 0.7 + 0.6 - 0.2 + 0.2  # x and y on the near side of the ring, n = 2


@pytest.mark.parametrize("batch", [1, 4])
def test_a_run_finds_the_constrained_optimum_where_random_search_does_not(batch: int) -> None:
    opt = Bounce(constrained(), budget=48, batch_size=batch, seed=0)
    while not opt.done:
        for trial in opt.ask():
            value, beside = evaluated(trial.point)
            opt.tell(trial, value, constraints=beside)
    rng, space = np.random.default_rng(0), constrained()
    drawn = [evaluated(point) for point in space.decode(space.sample(48, rng=rng))]
    held = [v for v, o in drawn if all(limit.violation(o[limit.name]) == 0 for limit in space.limits)]
    assert opt.best is not None
    assert opt.best.feasible
    assert opt.best.value is not None
    assert BEST - 1e-9 <= opt.best.value < BEST + 0.03
    assert min(held, default=math.inf) > BEST + 0.1


def test_many_outcomes_share_a_kernel() -> None:
    names = [f"g{i} <= {0.1 * i}" for i in range(13)]
    opt = Bounce(Space([Real("x", 0.0, 1.0), Binary("b")], outcomes=names), budget=12, seed=0)
    while not opt.done:
        for trial in opt.ask():
            x = trial.point["x"]
            assert isinstance(x, float)
            opt.tell(trial, -x, constraints={f"g{i}": x * i / 5 for i in range(13)})
    assert list(opt.state_dict()["head"]["fit"]["beliefs"]) == ["<all>"]
    assert opt.best is not None
    assert opt.best.feasible
    assert opt.best.value == pytest.approx(-0.5, abs=0.02)


def test_the_recommendation_keeps_the_limits() -> None:
    opt = Bounce(Space([Real("x", 0.0, 1.0)], outcomes=["a >= 0.5"]), budget=20, seed=0)
    while not opt.done:
        for trial in opt.ask():
            x = trial.point["x"]
            assert isinstance(x, float)
            opt.tell(trial, x + 0.01 * math.sin(1e3 * x), constraints={"a": x})
    found = opt.recommend()
    assert found is not None
    assert found.trial.feasible


def test_one_trial_keeps_its_place_as_the_centre() -> None:
    """The point that breaks the limits least anchors the search before one keeps them."""
    space = Space([Binary(f"b{i}") for i in range(30)], outcomes=["a <= 0"])
    opt = Bounce(space, budget=40, seed=0)
    points = space.decode(space.sample(6, rng=np.random.default_rng(1)))
    opt.add(points, [0.0] * 6, constraints=[{"a": a} for a in (3.0, 2.0, 0.5, 4.0, 5.0, 6.0)])
    opt.ask()
    assert opt.stage.embedding.down(space.encode([points[2]]))[1].all()


# failures

LEARNED: Any = {"failures": "learned"}


def bowl(opt: Bounce, n: int) -> list[dict[str, Any]]:
    """Evaluate a bowl whose lowest point lies at the edge of a region that fails."""
    points = []
    for _ in range(n):
        for trial in opt.ask():
            x, y = (float(trial.point[name]) for name in "xy")
            points.append(trial.point)
            if x < 0.5:
                opt.fail(trial, "it broke")
            else:
                opt.tell(trial, x**2 + (y - 0.3) ** 2)
    return points


def test_where_evaluations_fail_is_learned(monkeypatch: pytest.MonkeyPatch) -> None:
    searches: list[Search] = []

    def watched(search: Search, *given: Any, **others: Any) -> Any:
        searches.append(search)
        return propose(search, *given, **others)

    monkeypatch.setattr(model, "propose", watched)
    opt = Bounce(Space([Real("x", 0.0, 1.0), Real("y", 0.0, 1.0)]), budget=30, seed=0, method=LEARNED)
    bowl(opt, 30)
    assert list(opt.state_dict()["head"]["fit"]["beliefs"]) == ["<success>"]
    assert opt.best is not None
    assert opt.best.value == pytest.approx(0.25, abs=0.01)
    limits = searches[-1].limits
    assert limits is not None
    z, _ = opt.stage.embedding.down(opt.space.encode([{"x": 0.4, "y": 0.3}, {"x": 0.55, "y": 0.3}]))
    fails, works = np.exp(limits.log_probability(Points(z)))
    assert fails < 0.1
    assert works > 0.5


def test_a_run_that_learns_failures_resumes_bit_for_bit() -> None:
    import json

    space = Space([Real("x", 0.0, 1.0), Real("y", 0.0, 1.0), Binary("b")])
    method: Any = {"failures": "learned"}
    expected = bowl(Bounce(space, budget=30, seed=1, method=method), 16)
    opt, points = Bounce(space, budget=30, seed=1, method=method), list[dict[str, Any]]()
    for _ in range(16):
        points += bowl(opt, 1)
        opt = Bounce.from_state_dict(json.loads(json.dumps(opt.state_dict())))
    assert points == expected


def test_without_failures_learning_them_changes_nothing() -> None:
    def run(failures: str) -> list[dict[str, Any]]:
        method: Any = {"failures": failures}
        opt = Bounce(SPACES["mixed"], budget=14, seed=0, method=method)
        while not opt.done:
            for trial in opt.ask():
                opt.tell(trial, float(trial.point["a"]) + float(trial.point["b"]))
        return [trial.point for trial in opt.trials]

    assert run("learned") == run("worst")
