from __future__ import annotations

import json
import logging
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import bounce
from bounce import Binary, Bounce, Categorical, Integer, Ordinal, Real, Space
from bounce.errors import InvalidOption, InvalidTell, NothingToAsk
from bounce.method import Method
from bounce.spaces.parameters import Codes, Parameter
from runs import GROWING, Point, drive, facts, ones
from spaces import binary, mixed, reals

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


@pytest.mark.slow
@pytest.mark.parametrize(
    "space",
    [
        Space([Binary("b")]),
        Space([Ordinal("o", [1, 2, 3])]),
        Space([Binary("b"), Categorical("c", ["x", "y", "z"])]),
        Space([Integer("n", 1, 40)]),
        Space([Integer("n", 1, 12, log=True), Binary("b")]),
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


@pytest.mark.slow
@given(
    st.sampled_from([mixed(2), binary(12), reals(3), Space([Integer("n", 1, 100), Real("x", 0, 1)])]),
    st.integers(1, 25),
    st.integers(1, 8),
    st.integers(0, 3),
    st.sampled_from(["bounce", "baxus", "casmopolitan"]),
    st.sampled_from(["default", GROWING]),
)
@settings(max_examples=25, deadline=None)
def test_points_are_in_the_space_and_never_repeated(
    space: Space, budget: int, batch: int, seed: int, strategy: str, method: Any
) -> None:
    trials = drive(Bounce(space, budget, seed=seed, batch_size=batch, trust_region=strategy, method=method))
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


@pytest.mark.slow
def test_maximising_is_minimising_the_negative() -> None:
    low = drive(Bounce(mixed(2), 20, seed=3, method=GROWING))
    high = drive(Bounce(mixed(2), 20, seed=3, direction="maximize", method=GROWING), lambda p: -ones(p))
    assert [t.point for t in low] == [t.point for t in high]
    opt = Bounce(binary(3), 5, seed=0, direction="maximize")
    trials = opt.ask(3)
    assert opt.best is None
    opt.tell(trials, [1.0, 5.0, 5.0])
    assert opt.best == opt.trials[1]


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
def test_the_target_space_grows_to_the_input_space() -> None:
    opt = Bounce(binary(50), 120, seed=0, method="0.1")
    for _ in range(40):
        trial = opt.ask()[0]
        opt.tell(trial, 1.0 + trialless(trial.point))
    dims = [t.target_dim for t in opt.trials]
    assert sorted(set(dims)) == [5, 10, 20, 40, 50]
    assert dims == sorted(dims)
    # m_D = 60: spaces of 5, 10, 20, 40 bins have 2, 4, 7, 14 evaluations after the 5 initial ones.
    assert [dims.count(d) for d in (5, 10, 20, 40)] == [7, 4, 7, 14]


def trialless(p: Point) -> float:
    """No improvement on the first point by a thousandth: failures only."""
    return 1e-9 * sum(map(bool, p.values()))


def test_dimensions_start_at_two_for_many_reals_and_follow_the_option() -> None:
    assert Bounce(reals(21), 50, seed=0).ask()[0].target_dim == 2
    assert Bounce(binary(21), 50, seed=0).ask()[0].target_dim == 20
    assert Bounce(binary(21), 50, seed=0, method={"flat": None}).ask()[0].target_dim == 5
    assert Bounce(reals(20), 50, seed=0).ask()[0].target_dim == 20
    assert Bounce(binary(20), 50, seed=0).ask()[0].target_dim == 20
    assert Bounce(reals(20), 50, seed=0, method="paper").ask()[0].target_dim == 2
    assert Bounce(binary(20), 50, seed=0, method="paper").ask()[0].target_dim == 5
    assert Bounce(binary(20), 50, seed=0, initial_dims=9).ask()[0].target_dim == 9
    assert Bounce(binary(4), 50, seed=0).ask()[0].target_dim == 4


SURE = Method(doubt=None)  # only initial points have no acquisition value
FORGET = Method(restart="forget", doubt=None)


@pytest.mark.slow
def test_in_the_paper_a_run_restarts_in_the_input_space_and_forgets() -> None:
    options: dict[str, Any] = {"budget_to_input": 20, "trust_region": "baxus", "initial_points": 4}
    trials = drive(Bounce(reals(2), 120, seed=0, method=FORGET, **options), lambda p: 1.0)
    restarts = [t.restart for t in trials]
    assert max(restarts) >= 2
    for restart in range(1, max(restarts)):
        inside = [t for t in trials if t.restart == restart]
        assert [t.acquisition is None for t in inside[:5]] == [True] * 4 + [False]
        assert all(t.target_dim == 2 for t in inside)
        assert inside[4].side == 0.8


@pytest.mark.slow
def test_a_region_that_collapses_in_the_input_space_opens_again_around_the_best_point() -> None:
    options: dict[str, Any] = {"budget_to_input": 20, "trust_region": "baxus", "initial_points": 4}
    opt = Bounce(reals(2), 100, seed=0, method=SURE, **options)
    trials = drive(opt, lambda p: 1.0)
    assert {t.restart for t in trials} == {0}
    assert [t.acquisition is None for t in trials] == [True] * 4 + [False] * 96
    opened = [t for t, before in zip(trials[5:], trials[4:], strict=False) if t.side == 0.8 != before.side]
    assert len(opened) >= 2
    assert [t.stage for t in opened] == list(range(opened[0].stage, opened[0].stage + len(opened)))


def test_each_trial_records_what_made_it() -> None:
    space = Space([*(Binary(f"b{i}") for i in range(20)), Real("x", 0, 1)])
    trials = drive(Bounce(space, 30, seed=0, method=SURE))
    for t in trials:
        assert t.seconds_ask > 0
        assert t.target_dim >= 20
        assert (t.acquisition is None) == (t.id < 10)
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


@pytest.mark.slow
@pytest.mark.parametrize("method", ["default", GROWING], ids=["default", "growing"])
def test_a_batch_gives_the_same_run_in_whatever_order_it_comes_back(method: Any) -> None:
    a, b = (Bounce(mixed(2), 40, seed=5, batch_size=5, method=method) for _ in range(2))
    rng = np.random.default_rng(0)
    while not a.done:
        x, y = a.ask(), b.ask()
        assert [t.point for t in x] == [t.point for t in y]
        a.tell(x, [ones(t.point) for t in x])
        for i in rng.permutation(len(y)):
            b.tell(y[i], ones(y[i].point))
    assert facts(a.trials) == facts(b.trials)


def test_the_region_moves_once_per_batch_when_its_last_trial_is_in() -> None:
    opt = Bounce(binary(40), 60, seed=0, initial_dims=40, initial_points=5)
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
        opt = Bounce(binary(60), 100, seed=0, initial_dims=60, initial_points=5)
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


@pytest.mark.slow
@given(
    st.integers(0, 10**6),
    st.sampled_from([binary(15), mixed(2), reals(3)]),
    st.sampled_from(["default", GROWING]),
)
@settings(max_examples=12, deadline=None)
def test_any_order_of_asks_and_tells_works(seed: int, space: Space, method: Any) -> None:
    rng = np.random.default_rng(seed)
    opt = Bounce(space, 30, seed=0, method=method)
    while not opt.done:
        pending = [t for t in opt.trials if t.state == "pending"]
        if opt.remaining and (not pending or rng.random() < 0.5):
            opt.ask(int(rng.integers(1, 6)))
        else:
            trial = pending[rng.integers(len(pending))]
            opt.fail(trial) if rng.random() < 0.2 else opt.tell(trial, ones(trial.point))
    assert len({json.dumps(t.point) for t in opt.trials}) == 30


# Labels


def permuted(space: Space, codes: Codes, permutations: Sequence[Any], mirrored: NDArray[np.bool_]) -> Codes:
    """Return codes with every variable relabelled: by its permutation, or mirrored where it is real."""
    moved = codes.copy()
    for j, permutation in enumerate(permutations):
        if len(permutation):
            moved[:, j] = permutation[codes[:, j].astype(int)]
        elif mirrored[j]:
            moved[:, j] = 1.0 - codes[:, j]
    return moved


@pytest.mark.slow
@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("method", [GROWING, "paper"], ids=["default", "paper"])
def test_a_run_under_other_labels_is_the_same_run_relabelled(method: Any, batch: int) -> None:
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
    a = Bounce(space, 48, seed=2, batch_size=batch, method=method)
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
    assert changed > 48 * len(space) / 4
    assert len({t.target_dim for t in a.trials}) > 2
    assert max(t.restart for t in a.trials) == 0  # a restart draws another embedding


# Bad input


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"budget": 0}, "budget must be an integer of at least 1, not 0"),
        ({"budget": 2.5}, "not 2.5"),
        ({"budget": "100"}, "not '100'"),
        ({"budget": True}, "not true"),
        ({"budget": 10**400}, "budget must be at most"),
        ({"batch_size": 0}, "batch_size must be an integer of at least 1, not 0"),
        ({"seed": -1}, "seed must be an integer of at least 0"),
        ({"seed": 0.5}, "not 0.5"),
        ({"direction": "up"}, "direction must be 'minimize' or 'maximize', not 'up'"),
        ({"initial_points": 0}, "initial_points"),
        ({"initial_dims": 0}, "initial_dims"),
        ({"new_bins": 0}, "new_bins"),
        ({"budget_to_input": 0}, "budget_to_input"),
        ({"low_sequency": 1}, "low_sequency must be true or false"),
        ({"method": "robust"}, "method must be 'default' or 'paper' or '0.1', or a table of its fields, not 'robust'"),
        ({"trust_region": "turbo"}, "trust_region must be 'bounce' or 'baxus' or 'casmopolitan', not 'turbo'"),
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


@pytest.mark.parametrize("seconds", [math.nan, math.inf, -math.inf, -1.0, "2", [1.0]])
def test_a_time_that_is_not_a_finite_number_is_refused_and_nothing_is_taken(seconds: Any) -> None:
    opt = Bounce(binary(5), 10, seed=0, batch_size=2)
    trials = opt.ask()
    before = json.dumps(opt.state_dict(), allow_nan=False)
    with pytest.raises(InvalidTell, match="seconds must be a finite number"):
        opt.tell(trials, [1.0, 2.0], seconds=seconds)
    with pytest.raises(InvalidTell, match="seconds must be a finite number"):
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


@pytest.mark.slow
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


def test_errors_form_one_tree() -> None:
    names = [
        n for n in bounce.__all__ if isinstance(getattr(bounce, n), type) and issubclass(getattr(bounce, n), Exception)
    ]
    assert len(names) == 16
    for name in names:
        error = getattr(bounce, name)
        assert issubclass(error, bounce.BounceError)
        if name.startswith("Invalid"):
            assert issubclass(error, ValueError)
    assert issubclass(bounce.NothingToAsk, RuntimeError)
