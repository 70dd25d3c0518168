from __future__ import annotations

import json
import logging
import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import bounce
from bounce import Binary, Bounce, Categorical, Integer, Ordinal, Real, Space, Trial
from bounce.acquire.maximise import Proposal, Search, propose
from bounce.errors import InvalidOption, InvalidState, InvalidTell, NothingToAsk
from bounce.gp.fit import fit
from bounce.gp.kernels import Hyper, Metric
from bounce.gp.linalg import Array
from bounce.method import Method
from bounce.optimizer.model import Data
from bounce.spaces.parameters import Codes, Parameter
from spaces import binary, mixed, reals

Point = dict[str, Any]


def ones(point: Point) -> float:
    """A cheap objective for any space: reals to 0.3 of their size, everything else as numbers or lengths."""
    return float(sum(abs(x - 0.3) if isinstance(x, float) else hash_free(x) for x in point.values()))


def hash_free(x: Any) -> float:
    return float(x) if isinstance(x, int | bool) else float(len(str(x)) + ord(str(x)[0]) % 7)


def drive(opt: Bounce, objective: Callable[[Point], float] = ones, batch: int | None = None) -> list[Trial]:
    while not opt.done:
        trials = opt.ask(batch)
        opt.tell(trials, [objective(t.point) for t in trials])
    return opt.trials


def facts(trials: list[Trial]) -> list[Any]:
    """Everything about trials but the clock."""
    return [(t.id, t.point, t.value, t.state, t.stage, t.target_dim, t.radius, t.side, t.acquisition) for t in trials]


def through_json(opt: Bounce) -> Bounce:
    return Bounce.from_state_dict(json.loads(json.dumps(opt.state_dict(), allow_nan=False)), space=opt.space)


# Budgets and batches


@pytest.mark.parametrize(("budget", "batch"), [(1, 1), (3, 5), (7, 3), (23, 4), (30, 30), (12, 1)])
def test_a_run_asks_for_exactly_its_budget(budget: int, batch: int) -> None:
    opt = Bounce(mixed(2), budget, batch_size=batch, seed=0)
    sizes = []
    while not opt.done:
        trials = opt.ask()
        sizes.append(len(trials))
        opt.tell(trials, [ones(t.point) for t in trials])
    assert sizes == [batch] * (budget // batch) + ([budget % batch] if budget % batch else [])
    assert [t.id for t in opt.trials] == list(range(budget))
    assert opt.remaining == 0
    with pytest.raises(NothingToAsk, match=f"all {budget} trials"):
        opt.ask()


def test_failed_trials_cost_budget_and_are_not_proposed_again() -> None:
    opt = Bounce(binary(3), 8, seed=0)
    seen = []
    while not opt.done:
        trial = opt.ask()[0]
        assert trial.point not in seen
        seen.append(trial.point)
        opt.fail(trial, "crashed") if trial.id % 2 else opt.tell(trial, float(trial.id))
    assert len(seen) == 8
    assert [t.state for t in opt.trials] == ["done", "failed"] * 4
    assert opt.trials[1].error == "crashed"
    assert opt.best is not None
    assert opt.best.id == 0


@pytest.mark.parametrize(
    "space",
    [
        Space([Binary("b")]),
        Space([Ordinal("o", [1, 2, 3])]),
        Space([Binary("b"), Categorical("c", ["x", "y", "z"])]),
        Space([Integer("n", 1, 80)]),
        Space([Integer("n", 1, 70), Binary("b")]),
        Space([Integer("n", 1, 9, log=True), Integer("m", 1, 9, log=True)]),
        binary(7),
    ],
    ids=["binary", "ordinal", "two", "integer", "integer+binary", "two integers", "seven bits"],
)
def test_a_small_space_is_exhausted_point_by_point(space: Space) -> None:
    opt = Bounce(space, 300, seed=1, batch_size=3)
    trials = drive(opt)
    assert len(trials) == space.size
    assert len({json.dumps(t.point) for t in trials}) == space.size
    assert opt.done
    assert opt.remaining == 0
    with pytest.raises(NothingToAsk, match=f"all {int(space.size)} points"):
        opt.ask()


@given(
    st.sampled_from([mixed(2), binary(12), reals(3), Space([Integer("n", 1, 100), Real("x", 0, 1)])]),
    st.integers(1, 25),
    st.integers(1, 8),
    st.integers(0, 3),
    st.sampled_from(["bounce", "baxus", "casmopolitan"]),
)
@settings(max_examples=25, deadline=None)
def test_points_are_in_the_space_and_never_repeated(
    space: Space, budget: int, batch: int, seed: int, strategy: str
) -> None:
    trials = drive(Bounce(space, budget, seed=seed, batch_size=batch, trust_region=strategy))
    assert len(trials) == budget
    assert all(t.point in space for t in trials)
    assert len({json.dumps(t.point) for t in trials}) == budget


def test_more_can_be_asked_for_than_the_batch_size_but_not_than_the_budget() -> None:
    opt = Bounce(binary(20), 10, seed=0, batch_size=2)
    assert len(opt.ask(7)) == 7
    assert len(opt.ask(7)) == 3
    with pytest.raises(NothingToAsk, match="extend the budget"):
        opt.ask(1)


def test_hundreds_of_asks_without_a_tell_give_new_points() -> None:
    for space in (reals(3), binary(30)):
        opt = Bounce(space, 300, seed=0)
        points = [opt.ask()[0].point for _ in range(300)]
        assert len({json.dumps(p) for p in points}) == 300
        assert not opt.done
        assert opt.best is None
        opt.tell(opt.trials, [ones(t.point) for t in opt.trials])
        assert opt.done


def test_the_model_speaks_as_soon_as_a_value_is_known() -> None:
    opt = Bounce(binary(30), 40, seed=0, initial_points=3)
    trials = opt.ask(8)
    assert all(t.acquisition is None for t in trials)
    opt.tell(trials[5], 1.0)
    assert opt.ask()[0].acquisition is not None


def test_a_short_design_is_finished_before_the_model_fills_the_batch() -> None:
    opt = Bounce(binary(30), 40, seed=0, initial_points=5)
    first = opt.ask(4)
    opt.tell(first, [3.0, 1.0, 2.0, 4.0])
    second = opt.ask(4)
    assert [t.acquisition is None for t in second] == [True, False, False, False]


def test_if_every_initial_evaluation_fails_the_design_goes_on() -> None:
    opt = Bounce(mixed(2), 30, seed=0)
    for _ in range(12):
        opt.fail(opt.ask())
    trial = opt.ask()[0]
    assert trial.acquisition is None
    opt.tell(trial, 1.0)
    assert opt.ask()[0].acquisition is not None


# Direction, best and scale


def test_maximising_is_minimising_the_negative() -> None:
    low = drive(Bounce(mixed(2), 20, seed=3))
    high = drive(Bounce(mixed(2), 20, seed=3, direction="maximize"), lambda p: -ones(p))
    assert [t.point for t in low] == [t.point for t in high]
    opt = Bounce(binary(3), 5, seed=0, direction="maximize")
    trials = opt.ask(3)
    assert opt.best is None
    opt.tell(trials, [1.0, 5.0, 5.0])
    assert opt.best == opt.trials[1]


@pytest.mark.parametrize("values", ["constant", "tiny", "huge", "outlier", "steps"])
def test_any_scale_of_values_works(values: str) -> None:
    def objective(p: Point) -> float:
        y = ones(p)
        return {
            "constant": 3.25,
            "tiny": 1e-12 * y,
            "huge": 1e12 * y,
            "outlier": 1e30 if y > 8 else y,
            "steps": float(y > 8),
        }[values]

    space = Space([*(Binary(f"b{i}") for i in range(15)), Real("x", 0, 1), Real("y", 0, 1)])
    trials = drive(Bounce(space, 40, seed=0), objective)
    assert len(trials) == 40
    if values in ("tiny", "huge"):
        best = min(t.value or 0.0 for t in trials)
        assert best < min(t.value or 0.0 for t in trials[:5])


def test_a_change_of_unit_changes_nothing() -> None:
    a = drive(Bounce(binary(20), 30, seed=0))
    b = drive(Bounce(binary(20), 30, seed=0), lambda p: 1024.0 * ones(p))
    assert [t.point for t in a] == [t.point for t in b]


@pytest.mark.parametrize(
    "space",
    [
        Space([Real("x", -5, 5)]),
        Space([Binary("b"), Real("x", 0, 1)]),
        Space([Categorical("c", list(range(500)))]),
        Space([Categorical(f"c{i}", list(range(2 + i))) for i in range(12)]),
        Space([Ordinal(f"o{i}", list(range(2 + i))) for i in range(12)]),
        Space([Integer("n", 1, 10**6, log=True)]),
        Space([Integer("n", 1, 10**6, log=True), Integer("m", -5, 5), Ordinal("o", ["low", "mid", "high"])]),
    ],
)
def test_unusual_spaces_simply_work(space: Space) -> None:
    trials = drive(Bounce(space, 25, seed=0, batch_size=2))
    assert len(trials) == 25
    assert all(t.point in space for t in trials)


def test_a_thousand_mixed_variables_work() -> None:
    space = mixed(200)
    assert len(space) == 1000
    opt = Bounce(space, 30, seed=0, batch_size=5, budget_to_input=20)
    trials = drive(opt)
    assert len(trials) == 30
    assert trials[-1].target_dim > 100


def test_fewer_bins_than_kinds_warn_and_work() -> None:
    with pytest.warns(UserWarning, match="raised to 4"):
        opt = Bounce(mixed(3), 8, seed=0, initial_dims=1)
    assert drive(opt)[0].target_dim == 4


# How the run goes


def test_the_target_space_grows_to_the_input_space() -> None:
    trials = drive(Bounce(binary(50), 120, seed=0), lambda p: 1.0 + trialless(p))
    dims = [t.target_dim for t in trials]
    assert sorted(set(dims)) == [5, 10, 20, 40, 50]
    assert dims == sorted(dims)
    # m_D = 60: spaces of 5, 10, 20, 40 bins have 2, 4, 7, 14 evaluations after the 5 initial ones.
    assert [dims.count(d) for d in (5, 10, 20, 40)] == [7, 4, 7, 14]


def trialless(p: Point) -> float:
    """No improvement on the first point by a thousandth: failures only."""
    return 1e-9 * sum(map(bool, p.values()))


def test_dimensions_start_at_two_for_reals_and_follow_the_option() -> None:
    assert Bounce(reals(20), 50, seed=0).ask()[0].target_dim == 2
    assert Bounce(binary(20), 50, seed=0).ask()[0].target_dim == 5
    assert Bounce(binary(20), 50, seed=0, initial_dims=9).ask()[0].target_dim == 9
    assert Bounce(binary(4), 50, seed=0).ask()[0].target_dim == 4


FORGET = Method(restart="forget")


def test_in_the_paper_a_run_restarts_in_the_input_space_and_forgets() -> None:
    options: dict[str, Any] = {"budget_to_input": 20, "trust_region": "baxus", "initial_points": 4}
    trials = drive(Bounce(reals(2), 200, seed=0, method=FORGET, **options), lambda p: 1.0)
    restarts = [t.restart for t in trials]
    assert max(restarts) >= 2
    for restart in range(1, max(restarts)):
        inside = [t for t in trials if t.restart == restart]
        assert [t.acquisition is None for t in inside[:5]] == [True] * 4 + [False]
        assert all(t.target_dim == 2 for t in inside)
        assert inside[4].side == 0.8


def test_a_region_that_collapses_in_the_input_space_opens_again_around_the_best_point() -> None:
    opt = Bounce(reals(2), 200, seed=0, budget_to_input=20, trust_region="baxus", initial_points=4)
    trials = drive(opt, lambda p: 1.0)
    assert {t.restart for t in trials} == {0}
    assert [t.acquisition is None for t in trials] == [True] * 4 + [False] * 196
    opened = [t for t, before in zip(trials[5:], trials[4:], strict=False) if t.side == 0.8 != before.side]
    assert len(opened) >= 2
    assert [t.stage for t in opened] == list(range(opened[0].stage, opened[0].stage + len(opened)))


def test_after_the_region_opens_again_the_model_knows_all_data(monkeypatch: pytest.MonkeyPatch) -> None:
    known: dict[str, list[int]] = {"default": [], "paper": []}
    for method, sizes in known.items():

        def watched(
            search: Search, pending: Codes, n: int, *, rng: np.random.Generator, sizes: list[int] = sizes
        ) -> list[Proposal]:
            sizes.append(len(search.gp.z))
            return propose(search, pending, n, rng=rng)

        monkeypatch.setattr("bounce.optimizer.model.propose", watched)
        drive(Bounce(reals(2), 80, seed=0, trust_region="baxus", budget_to_input=20, method=method), lambda p: 1.0)
    assert known["default"] == list(range(5, 80))
    assert known["paper"].count(5) >= 2
    assert max(known["paper"]) < 60


def test_each_trial_records_what_made_it() -> None:
    space = Space([*(Binary(f"b{i}") for i in range(20)), Real("x", 0, 1)])
    trials = drive(Bounce(space, 30, seed=0))
    for t in trials:
        assert t.seconds_ask > 0
        assert t.target_dim >= 5
        assert (t.acquisition is None) == (t.id < 5)
        assert t.radius >= 1
        assert 2**-7 <= t.side <= 1.6
    assert [t.stage for t in trials] == sorted(t.stage for t in trials)
    assert trials[-1].stage > 0


def test_it_logs_where_it_goes_and_is_quiet_by_default(
    caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    drive(Bounce(binary(20), 30, seed=0))
    assert capfd.readouterr() == ("", "")
    with caplog.at_level(logging.DEBUG, logger="bounce"):
        drive(Bounce(binary(20), 30, seed=0))
    assert any("of 20 dimensions" in message for message in caplog.messages)
    assert any("fit to" in message for message in caplog.messages)


def test_low_sequency_runs_start_with_few_changes() -> None:
    opt = Bounce(binary(40), 50, seed=0, low_sequency=True, initial_dims=1, initial_points=2)
    for trial in opt.ask(2):
        assert len(set(trial.point.values())) == 1


# Asynchrony


def test_a_batch_gives_the_same_run_in_whatever_order_it_comes_back() -> None:
    a, b = (Bounce(mixed(2), 40, seed=5, batch_size=5) for _ in range(2))
    rng = np.random.default_rng(0)
    while not a.done:
        x, y = a.ask(), b.ask()
        assert [t.point for t in x] == [t.point for t in y]
        a.tell(x, [ones(t.point) for t in x])
        for i in rng.permutation(len(y)):
            b.tell(y[i], ones(y[i].point))
    assert facts(a.trials) == facts(b.trials)


def test_the_region_moves_once_per_batch_when_its_last_trial_is_in() -> None:
    opt = Bounce(binary(40), 60, seed=0, initial_dims=40)
    opt.tell(opt.ask(5), [1.0] * 5)
    batch = opt.ask(4)
    before = batch[0].radius
    for trial in (batch[2], batch[0], batch[3]):
        opt.tell(trial, 1.0)
        assert opt.ask()[0].radius == before
    opt.fail(batch[1])
    after = opt.ask()[0].radius
    left = 60 - 5
    assert after == pytest.approx(before * (1 / before) ** (4 / left))


def test_a_success_is_judged_against_everything_outside_its_batch() -> None:
    for values, grows in (([0.5, 0.9], True), ([0.99995, 2.0], False)):
        opt = Bounce(binary(60), 100, seed=0, initial_dims=60)
        opt.tell(opt.ask(5), [1.0, 2.0, 3.0, 4.0, 5.0])
        batch = opt.ask(2)
        for trial, value in zip(batch, values, strict=True):
            opt.tell(trial, value)
        assert (opt.ask()[0].radius > batch[0].radius) is grows


def test_late_tells_from_an_earlier_space_add_data_and_move_nothing() -> None:
    opt = Bounce(binary(40), 100, seed=0, initial_dims=5)
    opt.tell(opt.ask(5), [1.0] * 5)
    late = opt.ask(2)
    while opt.ask()[0].target_dim == 5:
        pending = [t for t in opt.trials if t.state == "pending" and t not in late]
        opt.tell(pending, [1.0] * len(pending))
    now = opt.trials[-1]
    opt.tell(late, [0.1, 0.2])
    nxt = opt.ask()[0]
    assert nxt.stage == now.stage
    assert (nxt.radius, nxt.side) == (now.radius, now.side)
    assert opt.best is not None
    assert opt.best.value == 0.1


def test_tells_from_before_a_restart_go_to_the_history_only() -> None:
    opt = Bounce(reals(2), 200, seed=0, trust_region="baxus", budget_to_input=20, method=FORGET)
    opt.tell(opt.ask(5), [1.0] * 5)
    late = opt.ask()[0]
    while opt.ask()[0].restart == 0:
        pending = [t for t in opt.trials if t.state == "pending" and t != late]
        opt.tell(pending, [1.0] * len(pending))
    opt.tell(late, 0.0)
    assert opt.ask()[0].acquisition is None  # no value of the new model is known yet
    assert opt.best is not None
    assert opt.best.id == late.id
    pending = [t for t in opt.trials if t.state == "pending"]
    opt.tell(pending, [1.0] * len(pending))
    opt.tell(opt.ask(5), [1.0] * 5)
    assert opt.ask()[0].acquisition is not None


@given(st.integers(0, 10**6), st.sampled_from([binary(15), mixed(2), reals(3)]))
@settings(max_examples=12, deadline=None)
def test_any_order_of_asks_and_tells_works(seed: int, space: Space) -> None:
    rng = np.random.default_rng(seed)
    opt = Bounce(space, 40, seed=0)
    while not opt.done:
        pending = [t for t in opt.trials if t.state == "pending"]
        if opt.remaining and (not pending or rng.random() < 0.5):
            opt.ask(int(rng.integers(1, 6)))
        else:
            trial = pending[rng.integers(len(pending))]
            opt.fail(trial) if rng.random() < 0.2 else opt.tell(trial, ones(trial.point))
    assert len({json.dumps(t.point) for t in opt.trials}) == 40


# Determinism and state


@pytest.mark.parametrize("space", [mixed(2), binary(25), reals(6)], ids=["mixed", "binary", "real"])
def test_the_same_seed_gives_the_same_run_and_another_seed_another(space: Space) -> None:
    runs = [facts(drive(Bounce(space, 30, seed=seed, batch_size=3))) for seed in (7, 7, 8)]
    assert runs[0] == runs[1]
    assert runs[0] != runs[2]


def test_a_drawn_seed_is_recorded_and_makes_the_same_run() -> None:
    opt = Bounce(binary(10), 12)
    again = Bounce(binary(10), 12, seed=opt.options["seed"])
    assert facts(drive(opt)) == facts(drive(again))
    assert Bounce(binary(10), 12).options["seed"] != Bounce(binary(10), 12).options["seed"]


@pytest.mark.parametrize(
    ("space", "options"),
    [
        (mixed(2), {}),
        (binary(25), {}),
        (reals(2), {"trust_region": "baxus", "budget_to_input": 15}),
        (Space([Integer("n", 1, 70), Binary("b")]), {"direction": "maximize"}),
    ],
    ids=["mixed", "binary", "restarting", "small"],
)
def test_a_run_goes_on_bit_for_bit_from_a_state_taken_at_any_moment(space: Space, options: dict[str, Any]) -> None:
    def run(*, restore: bool) -> list[Any]:
        rng = np.random.default_rng(3)
        opt = Bounce(space, 60, seed=11, **options)
        while not opt.done:
            if restore:
                opt = through_json(opt)
            pending = [t for t in opt.trials if t.state == "pending"]
            if opt.remaining and (not pending or rng.random() < 0.6):
                opt.ask(int(rng.integers(1, 4)))
            else:
                trial = pending[rng.integers(len(pending))]
                opt.fail(trial) if rng.random() < 0.1 else opt.tell(trial, math.sin(ones(trial.point)))
        return facts(opt.trials)

    assert run(restore=True) == run(restore=False)


@pytest.mark.parametrize("space", [binary(12), mixed(3), reals(3)], ids=["binary", "mixed", "real"])
def test_of_many_observations_the_nearest_count(space: Space, monkeypatch: pytest.MonkeyPatch) -> None:
    """The model holds few enough points, a fit fewer and in the same units, and a restored run the same ones."""
    method = Method(nearest=12, nearest_fit=8)
    sizes = []
    fitted: list[tuple[Codes, Array]] = []

    def watched_fit(latent: Space, z: Codes, y: Array, starts: Sequence[Hyper], method: Method) -> Hyper:
        fitted.append((z, y))
        return fit(latent, z, y, starts, method)

    def watched(search: Search, pending: Codes, n: int, *, rng: np.random.Generator) -> list[Proposal]:
        gp = search.gp
        sizes.append(len(gp.z))
        if fitted:  # this ask has fitted: its targets are those of the model, which are shifted by a mean
            z, targets = fitted.pop()
            assert len(z) <= (8 if len(gp.kernel.space.reals) else 12)
            rows = [int(np.flatnonzero((gp.z == row).all(axis=1))[0]) for row in z]
            np.testing.assert_allclose(np.diff(search.y[rows]), np.diff(targets), atol=1e-9)
        return propose(search, pending, n, rng=rng)

    monkeypatch.setattr("bounce.optimizer.model.fit", watched_fit)
    monkeypatch.setattr("bounce.optimizer.model.propose", watched)

    def run(*, restore: bool) -> Bounce:
        opt = Bounce(space, 60, seed=3, batch_size=3, initial_dims=len(space), method=method)
        while not opt.done:
            if restore:
                opt = through_json(opt)
            trials = opt.ask()
            for trial in reversed(trials):
                opt.tell(trial, ones(trial.point))
        return opt

    opt = run(restore=False)
    assert max(sizes) == 12
    assert facts(run(restore=True).trials) == facts(opt.trials)


def test_the_nearest_are_those_with_the_smallest_distance_to_the_best() -> None:
    rng = np.random.default_rng(0)
    space = mixed(4)
    z, values = space.sample(90, rng=rng), rng.normal(size=90)
    done, since = rng.random(90) < 0.9, np.arange(90) >= 80
    values[[85, 7]] = -9.0, -10.0
    done[7] = False  # a failed trial is not the best one
    best = int(np.argmin(np.where(done & ~since, values, np.inf)))
    data = Data(space, z, values, done, np.arange(90))
    found = data.nearest(np.flatnonzero(~since), 30)
    assert len(found) == 30
    assert best in found
    assert list(found) == sorted(found)
    square = Metric(space)(z[:80], z[best : best + 1])[:, 0]
    square += np.square(z[:80, space.reals] - z[best, space.reals]).sum(axis=1)
    others = np.setdiff1d(np.arange(80), found)
    assert square[found].max() <= square[others].min()


def permuted(space: Space, codes: Codes, permutations: Sequence[Any], mirrored: NDArray[np.bool_]) -> Codes:
    """Return codes with every variable relabelled: by its permutation, or mirrored where it is real."""
    moved = codes.copy()
    for j, permutation in enumerate(permutations):
        if len(permutation):
            moved[:, j] = permutation[codes[:, j].astype(int)]
        elif mirrored[j]:
            moved[:, j] = 1.0 - codes[:, j]
    return moved


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("method", ["default", "paper"])
def test_a_run_under_other_labels_is_the_same_run_relabelled(method: str, batch: int) -> None:
    """Bits and reals flipped, orders reversed, categories permuted: every point maps exactly, in every stage."""
    kinds: list[list[Parameter]] = [
        [Binary(f"b{i}"), Categorical(f"c{i}", list("vwxyz")[: 2 + i % 4]), Ordinal(f"o{i}", range(2 + i % 5))]
        for i in range(7)
    ]
    space = Space([*(p for group in kinds for p in group), *(Real(f"x{i}", 0, 1) for i in range(4))])
    rng = np.random.default_rng(1)
    permutations = [
        rng.permutation(c) if isinstance(p, Categorical) else np.arange(c)[:: rng.choice([-1, 1])]
        for p, c in zip(space.parameters, space.cardinalities, strict=True)
    ]
    flips = np.isin(np.arange(len(space)), space.reals[::2])
    a = Bounce(space, 60, seed=2, batch_size=batch, method=method)
    state = json.loads(json.dumps(a.state_dict()))
    embedding = state["head"]["stage"]["embedding"]
    embedding["tables"] = [
        p[t].tolist() if len(t) else [] for p, t in zip(permutations, embedding["tables"], strict=True)
    ]
    embedding["mirrored"] = sorted({*embedding["mirrored"]} ^ set(np.flatnonzero(flips).tolist()))
    b = Bounce.from_state_dict(state)
    weights = rng.normal(size=len(space))
    changed = 0
    while not a.done:
        ours, theirs = a.ask(), b.ask()
        codes, others = (space.encode([t.point for t in trials]) for trials in (ours, theirs))
        np.testing.assert_array_equal(permuted(space, codes, permutations, flips), others)
        changed += int(np.count_nonzero(codes != others))
        values = np.sin(codes @ weights).tolist()
        a.tell(ours, values)
        b.tell(theirs, values)
    assert changed > 60 * len(space) / 4
    assert len({t.target_dim for t in a.trials}) > 2
    assert max(t.restart for t in a.trials) == 0  # a restart draws another embedding


def test_a_restored_run_knows_everything_a_user_sees() -> None:
    opt = Bounce(mixed(2), 30, seed=0, batch_size=3)
    trials = opt.ask()
    opt.tell(trials[0], 2.0)
    opt.fail(trials[1], "no")
    again = through_json(opt)
    assert again.trials == opt.trials
    assert (again.best, again.remaining, again.done, again.options) == (
        opt.best,
        opt.remaining,
        opt.done,
        opt.options,
    )
    again.tell(trials[2], 1.0)  # trials of before are still known


def test_an_ask_that_raises_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    opt, twin = (Bounce(binary(30), 40, seed=0) for _ in range(2))
    for o in (opt, twin):
        o.tell(o.ask(6), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    state = json.dumps(opt.state_dict())
    with monkeypatch.context() as patch:
        patch.setattr("bounce.optimizer.model.propose", lambda *a, rng, **k: [rng.random(), 1 / 0])
        with pytest.raises(ZeroDivisionError):
            opt.ask()
        patch.setattr("bounce.optimizer.model.propose", lambda *a, rng, **k: exec("raise KeyboardInterrupt"))
        with pytest.raises(KeyboardInterrupt):
            opt.ask()
    assert json.dumps(opt.state_dict()) == state
    assert [t.point for t in opt.ask()] == [t.point for t in twin.ask()]


# Extending


def test_extending_goes_on_where_the_budget_ended() -> None:
    opt = Bounce(binary(30), 20, seed=0)
    drive(opt)
    assert opt.done
    opt.extend(35)
    assert not opt.done
    assert opt.remaining == 15
    assert len(drive(opt)) == 35
    assert through_json(opt).done


def sphere(point: Point) -> float:
    return float(sum((x - 0.3) ** 2 for x in point.values()))


@pytest.mark.parametrize("method", ["default", "paper"])
@pytest.mark.parametrize("restored", [False, True])
def test_a_run_that_ended_continues_around_its_best_point(method: str, restored: bool) -> None:
    opt = Bounce(reals(3), 30, seed=0, method=method)
    old = drive(opt, sphere)
    assert opt.stage.region.collapsed
    best = min(t.value for t in old if t.value is not None)
    if restored:
        opt = through_json(opt)
    opt.extend(45)
    new = drive(opt, sphere)[30:]
    assert len(new) == 15
    assert all(t.acquisition is not None for t in new)
    assert {t.restart for t in new} == {old[-1].restart}
    assert new[0].side == 0.8
    values = [t.value for t in new if t.value is not None]
    assert min(values) <= max(best, 1e-3)
    assert np.median(values) < 0.1 * np.median([t.value for t in old[:5] if t.value is not None])


@pytest.mark.parametrize("space", [binary(12), mixed(2)], ids=["binary", "mixed"])
@pytest.mark.parametrize("method", ["default", "paper"])
def test_an_extended_run_of_any_kind_has_no_new_initial_points(space: Space, method: str) -> None:
    opt = Bounce(space, 40, seed=0, method=method)
    drive(opt, lambda p: 1.0)
    restart = opt.trials[-1].restart
    opt.extend(46)
    new = drive(opt, lambda p: 1.0)[40:]
    assert all(t.acquisition is not None for t in new)
    assert {t.restart for t in new} == {restart}


@pytest.mark.parametrize("method", ["default", "paper"])
def test_a_design_that_the_budget_cut_short_is_completed(method: str) -> None:
    opt, whole = Bounce(mixed(2), 3, seed=0, method=method), Bounce(mixed(2), 50, seed=0, method=method)
    drive(opt)
    opt.extend(50)
    trials, expected = drive(opt)[:7], drive(whole)[:7]
    assert [t.acquisition is None for t in trials] == [True] * 5 + [False] * 2
    assert [t.point for t in trials[:5]] == [t.point for t in expected[:5]]
    assert (opt.stage.entered, opt.stage.restart) == (whole.stage.entered, 0)


def test_a_design_grows_only_as_far_as_the_budget() -> None:
    opt = Bounce(binary(20), 2, seed=0)
    drive(opt)
    opt.extend(4)
    assert [t.acquisition for t in drive(opt)] == [None] * 4
    opt.extend(6)
    assert [t.acquisition is None for t in drive(opt)] == [True] * 5 + [False]


def test_extending_in_the_middle_slows_the_shrinking_down() -> None:
    opts = [Bounce(binary(40), 50, seed=0, initial_dims=40, budget_to_input=25) for _ in range(2)]
    opts[1].extend(500)
    for opt in opts:
        opt.tell(opt.ask(5), [1.0] * 5)
        opt.tell(opt.ask(), [1.0])
    assert opts[1].ask()[0].radius > opts[0].ask()[0].radius


@pytest.mark.parametrize("total", [4, 0, -1, 2.5, "ten", None, True])
def test_a_budget_that_cannot_be_is_refused(total: Any) -> None:
    opt = Bounce(binary(10), 9, seed=0)
    opt.ask(5)
    with pytest.raises(InvalidOption, match="budget must be"):
        opt.extend(total)
    assert opt.remaining == 4


# Bad input


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"budget": 0}, "budget must be an integer of at least 1, not 0"),
        ({"budget": 2.5}, "not 2.5"),
        ({"budget": "100"}, "not '100'"),
        ({"budget": True}, "not True"),
        ({"budget": 10**400}, "budget must be at most"),
        ({"batch_size": 0}, "batch_size must be an integer of at least 1, not 0"),
        ({"seed": -1}, "seed must be an integer of at least 0"),
        ({"seed": 0.5}, "not 0.5"),
        ({"direction": "up"}, r"direction must be one of \['minimize', 'maximize'\], not 'up'"),
        ({"initial_points": 0}, "initial_points"),
        ({"initial_dims": 0}, "initial_dims"),
        ({"new_bins": 0}, "new_bins"),
        ({"budget_to_input": 0}, "budget_to_input"),
        ({"low_sequency": 1}, "low_sequency must be true or false"),
        ({"method": "robust"}, "method must be 'default' or 'paper', or a table of its fields, not 'robust'"),
        ({"trust_region": "turbo"}, r"trust_region must be one of \['bounce', 'baxus', 'casmopolitan'\]"),
        (
            {"batchsize": 3},
            r"unknown option 'batchsize'; did you mean 'batch_size'\? The options are batch_size, budget",
        ),
    ],
)
def test_a_bad_option_is_refused_with_what_would_be_right(options: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidOption, match=said):
        Bounce(binary(3), **({"budget": 10} | options))


def test_a_space_must_be_a_space() -> None:
    with pytest.raises(InvalidOption, match=r"must be a bounce\.Space"):
        Bounce([Binary("b")], 10)  # type: ignore[arg-type]


@pytest.mark.parametrize("n", [0, -1, 1.5, "2", True])
def test_a_bad_number_of_trials_is_refused(n: Any) -> None:
    opt = Bounce(binary(5), 10, seed=0)
    with pytest.raises(InvalidOption, match="number of trials"):
        opt.ask(n)
    assert opt.remaining == 10


@pytest.mark.parametrize(
    "value",
    [
        math.nan,
        math.inf,
        -math.inf,
        None,
        "1.0",
        b"1",
        [1.0],
        np.array([1.0, 2.0]),
        1j,
        np.complex128(1),
        np.array("1"),
        10**400,
        object(),
    ],
)
def test_a_bad_value_is_refused_and_nothing_is_taken(value: Any) -> None:
    opt = Bounce(binary(5), 10, seed=0, batch_size=3)
    trials = opt.ask()
    with pytest.raises(InvalidTell, match="finite number"):
        opt.tell(trials[0], value)
    with pytest.raises(InvalidTell, match="finite number"):
        opt.tell(trials, [1.0, 2.0, value])
    assert {t.state for t in opt.trials} == {"pending"}
    opt.tell(trials, [1.0, 2.0, 3.0])


@pytest.mark.parametrize("seconds", [math.nan, math.inf, -math.inf, "2", [1.0]])
def test_a_time_that_is_not_a_finite_number_is_refused_and_nothing_is_taken(seconds: Any) -> None:
    opt = Bounce(binary(5), 10, seed=0, batch_size=2)
    trials = opt.ask()
    before = json.dumps(opt.state_dict(), allow_nan=False)
    with pytest.raises(InvalidTell, match="seconds must be a finite number, not"):
        opt.tell(trials, [1.0, 2.0], seconds=seconds)
    with pytest.raises(InvalidTell, match="seconds must be a finite number, not"):
        opt.fail(trials, "no", seconds=seconds)
    assert json.dumps(opt.state_dict(), allow_nan=False) == before
    opt.tell(trials, [1.0, 2.0], seconds=0.5)
    assert [t.seconds_eval for t in opt.trials] == [0.5, 0.5]


@pytest.mark.parametrize("id", [99, -1, 3, True, False, None, "0", 0.0])
def test_a_trial_that_does_not_exist_is_not_shown(id: Any) -> None:
    opt = Bounce(binary(5), 10, seed=0)
    with pytest.raises(InvalidTell, match=r"no trial .*: no trial has been asked for yet"):
        opt.trial(0)
    opt.ask(3)
    with pytest.raises(InvalidTell, match=r"there is no trial .*: the ids are 0 to 2") as caught:
        opt.trial(id)
    assert caught.value.trial == (id if type(id) is int else None)
    assert [opt.trial(i) for i in range(3)] == opt.trials


@pytest.mark.parametrize("value", [1, 1.5, True, np.float32(1.5), np.int64(3), np.array(2.0), Fraction(1, 3)])
def test_any_kind_of_real_number_is_taken(value: Any) -> None:
    opt = Bounce(binary(5), 10, seed=0)
    opt.tell(opt.ask()[0], value)
    assert opt.trials[0].value == float(value)
    assert type(opt.trials[0].value) is float


@pytest.mark.parametrize("values", [{0: 1.0, 1: 2.0}, {1.0, 2.0}, "12", b"12", 1.0, np.array(1.0), None])
def test_several_values_must_be_a_list(values: Any) -> None:
    opt = Bounce(binary(5), 10, seed=0, batch_size=2)
    with pytest.raises(InvalidTell, match="need a list of values"):
        opt.tell(opt.ask(), values)
    assert {t.state for t in opt.trials} == {"pending"}


def test_snapshots_belong_to_the_caller() -> None:
    opt = Bounce(mixed(2), 20, seed=0, batch_size=2)
    trials = opt.ask()
    before = opt.trials
    for trial in (*trials, *opt.trials):
        trial.point.clear()
    assert opt.trials == before
    opt.tell(0, 1.0)
    assert opt.best is not None
    opt.best.point.clear()
    assert opt.best.point == before[0].point
    assert len({*opt.trials, *before}) == 3  # trials can be kept in sets; the told one has changed


def test_a_huge_batch_in_a_small_space_succeeds() -> None:
    opt = Bounce(reals(30), 330, seed=0, batch_size=160)
    assert len(drive(opt, lambda p: sum((x - 0.3) ** 2 for x in p.values()))) == 330


def test_spaces_of_more_points_than_a_float_counts_work() -> None:
    space = Space([Categorical(f"c{i}", range(5)) for i in range(1000)])
    assert len(drive(Bounce(space, 8, seed=0, batch_size=4))) == 8


def test_bad_trials_are_refused_and_nothing_is_taken() -> None:
    opt, other = Bounce(mixed(3), 20, seed=0, batch_size=3), Bounce(mixed(3), 20, seed=1, batch_size=3)
    trials, foreign = opt.ask(), other.ask()
    opt.tell(trials[0], 1.0)
    for bad, said in (
        (99, "there is no trial 99: the ids are 0 to 2"),
        (-1, "there is no trial -1"),
        (True, "there is no trial True"),
        (foreign[1], "belongs to another run"),
        (trials[0], "trial 0 is already done"),
        (0, "trial 0 is already done"),
        ("1", "a trial or its id is needed"),
        (None, "a trial or its id is needed"),
        (b"\x01", "a trial or its id is needed"),
        (1.0, "a trial or its id is needed"),
    ):
        with pytest.raises(InvalidTell, match=said):
            opt.tell(bad, 1.0)  # type: ignore[arg-type]
        with pytest.raises(InvalidTell, match=said):
            opt.fail(bad)  # type: ignore[arg-type]
        with pytest.raises(InvalidTell, match=said):
            opt.tell([trials[1], bad], [1.0, 2.0])  # type: ignore[list-item]
    for ids, values, said in (
        ([1, 2], [1.0], "2 trials need 2 values, not 1"),
        ([1, 2], [1.0, 2.0, 3.0], "not 3"),
        ([1, 1], [1.0, 2.0], "named twice"),
        ([1, 2], 1.0, "need a list of values"),
    ):
        with pytest.raises(InvalidTell, match=said):
            opt.tell(ids, values)
    assert [t.state for t in opt.trials] == ["done", "pending", "pending"]
    opt.tell([1, 2], np.array([1.0, 2.0]))


def test_a_damaged_state_is_refused() -> None:
    opt = Bounce(mixed(2), 30, seed=0, batch_size=4)
    for _ in range(3):
        opt.tell(opt.ask(), [1.0, 2.0, 3.0, 4.0])
    opt.ask()
    good = json.loads(json.dumps(opt.state_dict()))
    Bounce.from_state_dict(good)
    for change, said in STATE_DAMAGES:
        bad = json.loads(json.dumps(good))
        change(bad)
        with pytest.raises(InvalidState, match=said):
            Bounce.from_state_dict(bad)
    for key in good:
        with pytest.raises(InvalidState):
            Bounce.from_state_dict({k: v for k, v in good.items() if k != key})
    for key in good["head"]:
        bad = json.loads(json.dumps(good))
        del bad["head"][key]
        with pytest.raises(InvalidState, match="damaged"):
            Bounce.from_state_dict(bad)
    for key in good["trials"][0]:
        bad = json.loads(json.dumps(good))
        del bad["trials"][3][key]
        with pytest.raises(InvalidState, match="damaged"):
            Bounce.from_state_dict(bad)
    others: list[Any] = [None, [], "state", 3, {"format": "other"}]
    for other in others:
        with pytest.raises(InvalidState, match="not a state of Bounce"):
            Bounce.from_state_dict(other)


def _set(path: str, value: Any) -> Callable[[dict[str, Any]], None]:
    def change(document: Any) -> None:
        *steps, last = [int(s) if s.isdigit() else s for s in path.split("/")]
        for step in steps:
            document = document[step]
        document[last] = value

    return change


STATE_DAMAGES = [
    (_set("version", 99), "version 99; this release reads versions 1 to 2"),
    (_set("space", {"parameters": []}), "damaged"),
    (_set("options/budget", -3), "damaged"),
    (_set("options/budget", 2), "more trials than its budget"),
    (_set("options/color", "red"), "damaged"),
    (_set("rng", {}), "damaged"),
    (_set("rng/state/state", "x"), "damaged"),
    (_set("tells", 7), "tells"),
    (_set("head/stage/region/radius", "long"), "not fit"),
    (_set("head/stage/region/n_combinatorial", 77), "not fit"),
    (_set("head/stage/region/extra", 1), "damaged"),
    (_set("head/stage/number", 1.5), "not fit"),
    (_set("head/stage/embedding/members/0", []), "damaged|does not fit"),
    (_set("head/fit/hyper/real_lengthscales", [1.0] * 99), "not fit"),
    (_set("head/fit/hyper/signal", math.nan), "not fit"),
    (_set("head/fit/hyper/combinatorial_lengthscales", [0.0]), "lengthscales are damaged"),
    (_set("head/fit/hyper/combinatorial_lengthscales", [1.0] * 99), "not fit"),
    (_set("head/fit/hyper/combinatorial_lengthscales", ["1.0"]), "damaged"),
    (_set("head/fit/hyper/combinatorial_lengthscales", "1.0"), "damaged"),
    (_set("head/fit/hyper/real_lengthscales", 1.0), "damaged"),
    (_set("head/fit/hyper/noise", 0.0), "not fit"),
    (_set("head/fit/hyper/rho", 2.0), "not fit"),
    (_set("head/fit/tells", 99), "tells"),
    (_set("head/stage/restart", -1), "not fit"),
    (_set("tells", 10**9), "tells"),
    (_set("trials/1/codes", [0.0]), "trial 1 of the state is damaged"),
    (_set("trials/1/codes/0", 7.0), "trial 1 of the state is damaged"),
    (_set("trials/1/id", 5), "trial 1 of the state is damaged"),
    (_set("trials/1/value", None), "trial 1 of the state is damaged"),
    (_set("trials/1/value", "1"), "trial 1 of the state is damaged"),
    (_set("trials/1/state", "lost"), "trial 1 of the state is damaged"),
    (_set("trials/1/told", None), "trial 1 of the state is damaged"),
    (_set("trials/1/told", 0), "tells"),
    (_set("trials/1/batch", 3), "trial 1 of the state is damaged"),
    (_set("trials/1", 3), "damaged"),
    (_set("trials", None), "damaged"),
]


def test_a_state_for_another_space_is_refused() -> None:
    state = Bounce(binary(4), 10, seed=0).state_dict()
    Bounce.from_state_dict(state, space=binary(4))
    with pytest.raises(InvalidState, match="another space: it has 4 parameters, the given space has 5"):
        Bounce.from_state_dict(state, space=binary(5))
    other = Space([Binary("x0"), *(Real(f"x{i}", 0, 1) for i in range(1, 4))])
    with pytest.raises(InvalidState, match=r"it has Binary\(name='x1'\) where the given space has Real"):
        Bounce.from_state_dict(state, space=other)


def test_errors_form_one_tree() -> None:
    names = [
        n for n in bounce.__all__ if isinstance(getattr(bounce, n), type) and issubclass(getattr(bounce, n), Exception)
    ]
    assert len(names) == 15
    for name in names:
        error = getattr(bounce, name)
        assert issubclass(error, bounce.BounceError)
        if name.startswith("Invalid"):
            assert issubclass(error, ValueError)
    assert issubclass(bounce.NothingToAsk, RuntimeError)
