"""Noisy values: the option, standard errors that are told, and what the model recommends."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from bounce import Binary, Bounce, InvalidTell, Method, Recommendation, Space
from bounce.acquire.maximise import Proposal, Search, propose
from bounce.gp.points import Points
from bounce.gp.targets import clipped
from bounce.optimizer.ledger import Tell
from runs import drive, facts, ones, sphere, through_json
from spaces import binary, mixed, reals

# Where the defaults of versions 6, 5 and 4 were other ones.
LAST: dict[str, Any] = {"auditions": None, "limit_unit": "median", "limit_changes": "radius"}
FORMER = LAST | {"repeats": None, "climbs": "one", "capped": "mixed"}
BEFORE = FORMER | {"lengthscale_prior": "gamma", "real_lengthscales": "apart", "design": "latin", "tolerance": "fixed"}
KINDS = pytest.mark.parametrize("space", [binary(8), mixed(2), reals(3)], ids=["binary", "mixed", "real"])


def drawn(space: Space, n: int, seed: int = 0) -> list[dict[str, Any]]:
    codes = space.sample(n, rng=np.random.default_rng(seed))
    return space.decode(space.encode(space.decode(codes)))  # as trials have them


# Standard errors that are told


@pytest.mark.parametrize(
    ("sem", "kept"),
    [
        (None, [None, None, None]),
        (0.5, [0.5, 0.5, 0.5]),
        (0, [0.0, 0.0, 0.0]),
        ([0.1, None, 0], [0.1, None, 0.0]),
        (np.array([0.1, 0.2, 0.25]), [0.1, 0.2, 0.25]),
    ],
)
def test_a_standard_error_is_kept_with_its_value(sem: Any, kept: list[float | None]) -> None:
    opt = Bounce(binary(5), 10, seed=0)
    opt.tell(opt.ask(3), [1.0, 2.0, 3.0], sem=sem)
    added = opt.add(drawn(binary(5), 3), [4.0, 5.0, 6.0], sems=sem)
    assert [t.sem for t in opt.trials] == kept * 2
    assert [t.sem for t in added] == kept
    assert through_json(opt).trials == opt.trials
    assert json.dumps(through_json(opt).state_dict()) == json.dumps(opt.state_dict())


def test_one_trial_has_one_standard_error() -> None:
    opt = Bounce(binary(5), 10, seed=0)
    trials = opt.ask(3)
    opt.tell(trials[0], 1.0, sem=0.25)
    opt.tell(trials[1], 1.0, sem=np.float64(0.5))
    opt.settle([Tell(2, 3.0, sem=0.125)])
    assert [t.sem for t in opt.trials] == [0.25, 0.5, 0.125]


@pytest.mark.parametrize("sem", [-1.0, float("nan"), float("inf"), "0.1", "unknown", [0.1, -0.1], [None, "x"]])
def test_a_wrong_standard_error_is_refused_and_nothing_is_taken(sem: Any) -> None:
    opt = Bounce(binary(5), 10, seed=0)
    trials = opt.ask(2)
    before = json.dumps(opt.state_dict())
    calls: list[Callable[[], Any]] = [
        lambda: opt.tell(trials, [1.0, 2.0], sem=sem),
        lambda: opt.add(drawn(binary(5), 2), [1.0, 2.0], sems=sem),
    ]
    for call in calls:
        with pytest.raises(InvalidTell, match="a standard error must be a finite number that is not negative, not"):
            call()
    assert json.dumps(opt.state_dict()) == before


def test_the_standard_errors_are_as_many_as_the_values() -> None:
    opt = Bounce(binary(5), 10, seed=0)
    trials = opt.ask(2)
    for call in (
        lambda: opt.tell(trials, [1.0, 2.0], sem=[0.1]),
        lambda: opt.add(drawn(binary(5), 2), [1.0, 2.0], sems=[0.1] * 3),
    ):
        with pytest.raises(InvalidTell, match=r"2 values need 2 standard errors, not [13]"):
            call()
    assert [t.state for t in opt.trials] == ["pending", "pending"]


def test_a_failed_trial_has_no_standard_error() -> None:
    opt = Bounce(binary(5), 10, seed=0)
    opt.ask()
    with pytest.raises(InvalidTell, match="trial 0 failed, so it cannot have a standard error"):
        opt.settle([Tell(0, None, "it boiled over", sem=0.1)])


def test_a_standard_error_is_corrected_taken_back_and_otherwise_stays() -> None:
    opt = Bounce(binary(5), 10, seed=0)
    opt.tell(opt.ask(), [1.0], sem=0.5)
    opt.correct(0, 2.0)
    assert (opt.trial(0).value, opt.trial(0).sem) == (2.0, 0.5)
    opt.correct(0, sem=0)
    assert (opt.trial(0).value, opt.trial(0).sem) == (2.0, 0.0)
    opt.correct(0, 3.0, sem=0.25)
    assert (opt.trial(0).value, opt.trial(0).sem) == (3.0, 0.25)
    for wrong in (-0.1, "none", float("nan")):
        with pytest.raises(InvalidTell, match="a standard error must be"):
            opt.correct(0, 4.0, sem=wrong)  # type: ignore[arg-type]
    assert (opt.trial(0).value, opt.trial(0).sem) == (3.0, 0.25)
    opt.correct(0, sem="unknown")
    assert opt.trial(0).sem is None


def test_a_standard_error_leaves_with_its_trial_and_returns_with_it() -> None:
    space = Space([Binary("a"), Binary("b"), Binary("c")])
    opt = Bounce(space, 6, seed=0)
    opt.add([{"a": True, "b": True, "c": False}], [1.0], sems=[0.5])
    opt.change(Space(space.parameters[:2]), {"c": True})
    assert (opt.trial(0).state, opt.trial(0).sem) == ("outside", 0.5)
    assert through_json(opt).trial(0).sem == 0.5
    opt.change(space, {"c": True})
    assert (opt.trial(0).state, opt.trial(0).sem) == ("added", 0.5)


# What the model makes of them


@pytest.fixture
def searches(monkeypatch: pytest.MonkeyPatch) -> list[Search]:
    seen: list[Search] = []

    def watched(search: Search, pending: Points, n: int, *, rng: np.random.Generator) -> list[Proposal]:
        seen.append(search)
        return propose(search, pending, n, rng=rng)

    monkeypatch.setattr("bounce.optimizer.model.propose", watched)
    return seen


@KINDS
def test_the_model_has_the_told_noise_of_each_value_in_its_own_units(space: Space, searches: list[Search]) -> None:
    """Also as the units change from ask to ask, and with an outlier, which has the scale of the rest."""
    opt = Bounce(space, 30, seed=0, initial_dims=len(space))
    points = drawn(space, 6)
    opt.add(points, [5.0, 1e6, 3.0, 4.0, 2.0, 1.0], sems=[0.5, 0.5, None, 1e-9, 1e9, 0.0])
    floor = 1e-6 if len(space.combinatorial) else 1e-4
    told = [0.5, 0.5, None, 1e-9, 1e9, 0.0]
    for i in range(8):
        (trial,) = opt.ask()
        gp = searches[-1].gp
        values = clipped(np.array([t.value for t in opt.trials if t.value is not None]))
        by_point = {tuple(point.items()): sem for point, sem in zip(points, told, strict=True)}
        natives = space.decode(opt.stage.embedding.up(gp.points.z))
        assert len(natives) == 6 + i
        for point, noise in zip(natives, gp.noise, strict=True):
            sem = by_point.get(tuple(point.items()))
            expected = gp.kernel.hyper.noise if sem is None else np.clip((sem / values.std()) ** 2, floor, 10.0)
            assert noise == pytest.approx(expected, rel=1e-6)
        opt.tell(trial, 1.5 + (i * i) % 7)


@KINDS
@pytest.mark.parametrize("noise", ["none", 0.7])
def test_a_noise_that_is_given_is_not_fitted(space: Space, noise: str | float, searches: list[Search]) -> None:
    opt = Bounce(space, 14, seed=0, noise=noise)
    floor = 1e-6 if len(space.combinatorial) else 1e-4
    while not opt.done:
        (trial,) = opt.ask()
        if searches:
            values = clipped(np.array([t.value for t in opt.trials if t.value is not None]))
            expected = floor if noise == "none" else max(floor, (0.7 / values.std()) ** 2)
            gp = searches[-1].gp
            np.testing.assert_allclose(gp.noise, expected, rtol=1e-6)
            assert gp.kernel.hyper.noise == pytest.approx(expected, rel=1e-6)
        opt.tell(trial, ones(trial.point) + trial.id % 3)
    assert len(searches) == 9


def test_a_noise_is_in_the_units_of_the_user() -> None:
    """The same run in other units has the same points."""
    runs = []
    for scale in (1.0, 2.0**-40, 2.0**40):
        opt = Bounce(mixed(2), 20, seed=0, noise=0.5 * scale, method=Method(targets="raw"))  # logs round
        while not opt.done:
            (trial,) = opt.ask()
            opt.tell(trial, scale * ones(trial.point), sem=0.25 * scale if trial.id % 3 == 0 else None)
        runs.append([(t.point, t.acquisition) for t in opt.trials])
    assert runs[0] == runs[1] == runs[2]


def test_the_limits_of_the_noise_hold(searches: list[Search]) -> None:
    for noise, expected in ((1e-30, 1e-6), (1e30, 10.0)):
        drive(Bounce(binary(10), 8, seed=0, noise=noise))
        np.testing.assert_allclose(searches[-1].gp.noise, expected, rtol=1e-9)


@KINDS
@pytest.mark.parametrize("noise", ["auto", "none", 0.3])
def test_a_restored_run_with_noise_continues_bit_for_bit(space: Space, noise: str | float) -> None:
    def run(*, restore: bool) -> list[Any]:
        rng = np.random.default_rng(0)
        method = Method(nearest=30, nearest_fit=12, flat=None)
        opt = Bounce(space, 40, seed=4, noise=noise, initial_points=24, method=method)  # several asks between fits
        opt.add(drawn(space, 3), [3.0, 2.0, 4.0], sems=[0.1, None, 0.0])
        while not opt.done:
            if restore:
                opt = through_json(opt)
            for trial in opt.ask():
                if rng.random() < 0.1:
                    opt.fail(trial)
                else:
                    opt.tell(trial, ones(trial.point) + 0.2 * rng.normal(), sem=rng.choice([0.0, 0.2, 0.4]))
            if len(opt.trials) == 15:
                opt.correct(0, sem=0.4)
        return facts(opt.trials)

    assert run(restore=True) == run(restore=False)


def test_noise_that_is_told_changes_what_is_proposed() -> None:
    points = []
    for sem in (None, 0.0, 2.0):
        opt = Bounce(mixed(2), 20, seed=0)
        while not opt.done:
            (trial,) = opt.ask()
            opt.tell(trial, ones(trial.point), sem=sem)
        points.append([trial.point for trial in opt.trials])
    assert points[0][:5] == points[1][:5] == points[2][:5]  # the initial points
    assert points[0][5:] != points[2][5:] != points[1][5:]


# States of version 3


def of_version_3(state: dict[str, Any]) -> dict[str, Any]:
    """Return a state of the method "0.1" as version 3 had it, where this was the default."""
    old = json.loads(json.dumps(state)) | {"version": 3}
    assert old["options"].pop("method") == "0.1"
    old["options"]["method"] = "default"
    del old["options"]["noise"]
    for trial in old["trials"]:
        del trial["sem"]
    return dict(old)


@KINDS
def test_a_state_of_version_3_continues_bit_for_bit(space: Space) -> None:
    opt = Bounce(space, 24, seed=1, method="0.1")
    for _ in range(12):
        (trial,) = opt.ask()
        opt.tell(trial, ones(trial.point))
    again = Bounce.from_state_dict(of_version_3(opt.state_dict()))
    assert again.options == opt.options
    assert again.options["noise"] == "auto"
    assert json.dumps(again.state_dict()) == json.dumps(opt.state_dict())
    assert facts(drive(again)) == facts(drive(opt))


@pytest.mark.parametrize(("version", "default"), [(4, BEFORE), (5, FORMER), (6, LAST)])
@pytest.mark.parametrize(
    ("method", "own"),
    [
        ("default", {}),
        ("paper", None),
        ({"caution": 1.0}, {"caution": 1.0}),
        ({"base": "paper", "caution": 1.4}, None),
    ],
)
def test_a_state_of_a_former_version_keeps_its_default(version: int, default: Any, method: Any, own: Any) -> None:
    then = Method.of(method).document() if own is None else {**default, **own}
    state = Bounce(binary(6), 10, seed=0).state_dict()
    old = {**state, "version": version, "options": {**state["options"], "method": method}}
    assert Bounce.from_state_dict(old).options["method"] == then


# What the model recommends


def believed(opt: Bounce) -> Recommendation:
    found = opt.recommend()
    assert found is not None
    return found


@KINDS
@pytest.mark.parametrize("direction", ["minimize", "maximize"])
@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
def test_a_lucky_value_among_repeats_is_not_recommended(space: Space, direction: str, scale: float) -> None:
    """The better point has four values around 1, the other one four around 1.3, among them the best of all."""
    good, lucky, *others = drawn(space, 8)
    values = np.array([1.0, 1.1, 0.9, 0.95, 0.5, 1.6, 1.5, 1.7, 3.0, 2.5, 4.0, 3.5, 3.2, 2.9])
    sign = 1.0 if direction == "minimize" else -1.0
    opt = Bounce(space, 20, seed=0, direction=direction)
    opt.add([good] * 4 + [lucky] * 4 + others, sign * scale * values)
    assert opt.best is not None
    assert opt.best.point == lucky
    found = believed(opt)
    assert found.point == found.trial.point == good
    assert found.trial.id == 2  # of the repeats, the one with the best value
    assert sign * found.mean / scale == pytest.approx(1.0, abs=0.15)
    assert 0.05 < found.deviation / scale < 0.4


def test_a_value_that_is_told_to_be_exact_is_believed() -> None:
    """Told to be as noisy as the others, a single low value looks like luck; told to be exact, it is the best."""
    space = reals(1)
    rng = np.random.default_rng(0)
    points = [{"x0": x} for x in np.linspace(0, 1, 30)]
    values = np.array([10 * (p["x0"] - 0.3) ** 2 for p in points]) + 0.5 * rng.normal(size=30)
    values[25] = -1.5
    beliefs = []
    for sem in (0.5, 0.0):
        opt = Bounce(space, 40, seed=0)
        opt.add(points, values, sems=[sem if i == 25 else 0.5 for i in range(30)])
        beliefs.append(believed(opt))
    noisy, exact = beliefs
    assert abs(noisy.point["x0"] - 0.3) < 0.2
    assert exact.trial.id == 25
    assert exact.mean == pytest.approx(-1.5, abs=0.05)
    assert exact.deviation < 0.1 < noisy.deviation


@pytest.mark.parametrize("noise", ["none", "auto"])
def test_exact_values_recommend_the_best_of_them(noise: str) -> None:
    opt = Bounce(reals(2), 30, seed=0, noise=noise)
    drive(opt, sphere)
    found = believed(opt)
    assert opt.best is not None
    assert found.mean == pytest.approx(opt.best.value, abs=1e-2)
    if noise == "none":
        assert (found.trial, found.mean, found.deviation) == (opt.best, opt.best.value, 0.0)
    else:  # the best values differ by less than the model can tell
        assert found.trial.value == pytest.approx(opt.best.value, abs=1e-6)


def test_without_a_value_nothing_is_recommended() -> None:
    opt = Bounce(mixed(2), 10, seed=0)
    assert opt.recommend() is None
    opt.enqueue({})
    trials = opt.ask(3)
    assert opt.recommend() is None
    opt.fail(trials, "no power")
    assert opt.recommend() is None


@pytest.mark.parametrize(
    ("noise", "sem", "deviation"), [("auto", None, 0.0), ("none", None, 0.0), (0.5, None, 0.5), ("auto", 0.25, 0.25)]
)
@pytest.mark.parametrize("value", [0.1, 0.0, -1e-12, 1e300])
def test_one_value_and_equal_values_recommend_the_first(
    noise: str | float, sem: float | None, deviation: float, value: float
) -> None:
    opt = Bounce(mixed(2), 10, seed=0, noise=noise, direction="maximize")
    for _ in range(4):
        opt.tell(opt.ask(), [value], sem=sem)
        assert believed(opt) == Recommendation(opt.trials[0], value, deviation)


def test_of_equal_beliefs_the_best_value_is_recommended_and_then_the_first() -> None:
    """Far from each other and from everything, points are believed to be what their values are, which are equal."""
    space = binary(2)
    points = [{"x0": a, "x1": b} for a in (False, True) for b in (False, True)]
    opt = Bounce(space, 4, seed=0, noise=0.5)
    opt.add([points[3], points[0], points[0], points[3]], [2.0, 1.5, 0.5, 0.0])  # both have the mean 1
    assert believed(opt).trial.id == 3
    opt = Bounce(space, 4, seed=0, noise=0.5)
    opt.add([points[3], points[0], points[0], points[3]], [2.0, 2.0, 0.5, 0.5])
    assert believed(opt).trial.id == 2


@pytest.mark.parametrize("seed", range(8))
def test_beliefs_that_differ_by_rounding_are_equal(seed: int) -> None:
    """Every point has a mirror image with equal values, so the model knows as much about both."""
    points = [point | {"x0": False} for point in drawn(binary(9), 7, seed)]
    mirrored = [{name: not x for name, x in point.items()} for point in points]
    values = [3.0, 1.25, 2.0, 4.0, 2.5, 3.5, 1.0]
    for both in (points + mirrored, mirrored + points):
        opt = Bounce(binary(9), 20, seed=0, noise=0.5)
        opt.add(both, values * 2)
        first = believed(opt).trial.id
        assert first < 7
        opt.add([both[first], both[first + 7]], [values[first], values[first] - 1e-13])
        assert believed(opt).trial.id == 15  # the best value by a hair


@KINDS
@pytest.mark.parametrize("method", ["default", "paper"])
def test_a_recommendation_changes_nothing_and_works_in_every_phase(space: Space, method: str) -> None:
    opt, twin = (Bounce(space, 26, seed=3, method=method) for _ in range(2))
    while not opt.done:
        state = json.dumps(opt.state_dict())
        found = opt.recommend()
        assert json.dumps(opt.state_dict()) == state
        assert (found is None) == (opt.best is None)
        if found is not None:
            again = through_json(opt).recommend()
            assert again == found
            assert found.trial.value is not None
            assert np.isfinite([found.mean, found.deviation]).all()
        for o in (opt, twin):
            (trial,) = o.ask()
            o.fail(trial) if trial.id % 6 == 2 else o.tell(trial, ones(trial.point) + (trial.id * 7) % 5)
        assert not opt.touched or opt.touched == twin.touched
    assert facts(opt.trials) == facts(twin.trials)
    assert opt.state_dict()["rng"] == twin.state_dict()["rng"]


def test_a_recommendation_is_a_snapshot() -> None:
    opt = Bounce(mixed(1), 10, seed=0)
    opt.tell(opt.ask(4), [3.0, 1.0, 2.0, 4.0])
    believed(opt).point.clear()
    assert len(believed(opt).point) == 5


def test_of_many_results_those_nearest_to_the_best_are_used(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []

    def counted(latent: Space, points: Points, y: Any, starts: Any, method: Method, **noise: Any) -> Any:
        sizes.append(len(points))
        return starts[0]

    monkeypatch.setattr("bounce.optimizer.recommendation.fit", counted)
    for space, expected in ((binary(20), 30), (reals(3), 10)):
        opt = Bounce(space, 10, seed=0, method=Method(nearest=30, nearest_fit=10))
        points = drawn(space, 60)
        opt.add(points, [ones(point) for point in points])
        believed(opt)
        assert sizes.pop() == expected


def test_results_from_before_a_restart_count() -> None:
    opt = Bounce(reals(1), 60, seed=0, trust_region="baxus", budget_to_input=10, method="paper", noise=0.01)
    while not opt.done:
        (trial,) = opt.ask()
        if trial.restart:
            opt.fail(trial, "it broke")
        else:
            opt.tell(trial, 1.0 + (trial.point["x0"] - 0.3) ** 2)
    assert opt.trials[-1].restart > 0
    assert believed(opt).trial.restart == 0
    assert abs(believed(opt).mean - 1.0) < 0.05


def test_a_point_that_was_good_many_times_is_recommended_before_one_that_was_better_once() -> None:
    space = Space([Binary(f"b{i}") for i in range(8)])
    rng = np.random.default_rng(0)
    often, once = ({f"b{i}": value for i in range(8)} for value in (True, False))
    opt = Bounce(space, 20, seed=0, noise=0.3)
    others = space.decode(space.sample(20, rng=rng))
    opt.add(others, 1.0 + 0.2 * rng.normal(size=20))
    opt.add([often] * 8 + [once], [-0.9] * 8 + [-1.3])
    found = opt.recommend()
    assert opt.best is not None
    assert opt.best.point == once
    assert found is not None
    assert found.point == often
