from __future__ import annotations

import logging
import math
import pickle
import signal
import subprocess
import sys
import warnings
from collections.abc import Iterator
from datetime import datetime, timedelta
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bounce
from bounce import Bounce, InvalidInput, InvalidOption, Space

optuna = pytest.importorskip("optuna")

from optuna.distributions import (  # noqa: E402
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.samplers import BaseSampler, RandomSampler  # noqa: E402
from optuna.trial import TrialState, create_trial  # noqa: E402

import optuna_worker  # noqa: E402
from bounce.integrations.optuna import BounceSampler  # noqa: E402
from bounce.integrations.optuna.distributions import Mapped  # noqa: E402
from bounce.integrations.optuna.fold import Fold  # noqa: E402
from bounce.integrations.optuna.history import ASK, Asked, Facts, events, ranges  # noqa: E402
from optuna_worker import load, small  # noqa: E402

WORKER = Path(__file__).parent / "optuna_worker.py"
MIXED: dict[str, Any] = {
    "rate": FloatDistribution(1e-4, 1.0, log=True),
    "share": FloatDistribution(0.0, 1.0),
    "width": IntDistribution(1, 8),
    "units": IntDistribution(1, 2000, log=True),
    "kernel": CategoricalDistribution(["a", "b", "c"]),
    "bias": CategoricalDistribution([False, True]),
}
SPACE = Space(
    [
        bounce.Real("rate", 1e-4, 1.0, log=True),
        bounce.Real("share", 0, 1),
        bounce.Integer("width", 1, 8),
        bounce.Integer("units", 1, 2000, log=True),
        bounce.Categorical("kernel", ["a", "b", "c"]),
        bounce.Binary("bias"),
    ]
)


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    yield
    optuna.logging.set_verbosity(before)


def cost(point: Any) -> float:
    kernel = "abc".index(point["kernel"])
    return float(
        (math.log10(point["rate"]) + 2) ** 2
        + (point["share"] - 0.3) ** 2
        + abs(point["width"] - 5)
        + abs(math.log(point["units"] / 100))
        + kernel
        - point["bias"]
    )


def suggested(trial: Any, space: Any = None) -> dict[str, Any]:
    return {name: trial._suggest(name, distribution) for name, distribution in (space or MIXED).items()}


def objective(trial: Any) -> float:
    return cost(suggested(trial))


def points(study: Any) -> list[dict[str, Any]]:
    return [trial.params for trial in study.trials]


def optimizer_of(sampler: BounceSampler, study: Any) -> Bounce:
    """Return the optimizer that has taken all results of a study: a trial asks for it."""
    suggested(study.ask())
    assert sampler._fold is not None
    return sampler._fold[1].optimizer


# The same points


def test_with_its_own_history_a_study_has_the_points_of_bounce() -> None:
    study = optuna.create_study(sampler=BounceSampler(budget=25, seed=7, search_space=MIXED))
    study.optimize(objective, n_trials=25)
    opt = Bounce(SPACE, 25, seed=7)
    while not opt.done:
        (trial,) = opt.ask()
        opt.tell(trial, cost(trial.point))
    assert points(study) == [trial.point for trial in opt.trials]


def test_a_study_that_learns_its_space_has_the_points_of_bounce_after_the_first() -> None:
    study = optuna.create_study(sampler=BounceSampler(budget=15, seed=7), direction="maximize")
    study.optimize(lambda trial: -objective(trial), n_trials=15)
    ordered = Space(sorted(SPACE.parameters, key=lambda parameter: parameter.name))
    opt = Bounce(ordered, 15, seed=7, direction="maximize")
    opt.add(points(study)[:1], [study.trials[0].value])
    for _ in range(14):
        (trial,) = opt.ask()
        opt.tell(trial, -cost(trial.point))
    assert points(study)[1:] == [trial.point for trial in opt.trials][1:]


def test_maximizing_is_minimizing_the_negative() -> None:
    down = optuna.create_study(sampler=BounceSampler(seed=1))
    down.optimize(objective, n_trials=12)
    up = optuna.create_study(sampler=BounceSampler(seed=1), direction="maximize")
    up.optimize(lambda trial: -objective(trial), n_trials=12)
    assert points(down) == points(up)


def test_a_new_sampler_for_every_trial_changes_nothing() -> None:
    kept = optuna.create_study(sampler=BounceSampler(seed=3))
    kept.optimize(objective, n_trials=12)
    study = optuna.create_study()
    for _ in range(12):
        study.sampler = BounceSampler(seed=3)
        study.optimize(objective, n_trials=1)
    assert points(study) == points(kept)


def test_without_a_seed_a_study_keeps_the_one_it_began_with() -> None:
    study = optuna.create_study(sampler=BounceSampler(search_space=MIXED))
    study.optimize(objective, n_trials=6)
    continued = optuna.create_study(sampler=BounceSampler(search_space=MIXED))
    continued.add_trials(study.trials)
    study.optimize(objective, n_trials=4)
    continued.optimize(objective, n_trials=4)
    assert points(continued) == points(study)
    assert len({trial.system_attrs[ASK]["seed"] for trial in continued.trials}) == 1


def test_a_sampler_can_be_pickled() -> None:
    study = optuna.create_study(sampler=BounceSampler(seed=3))
    study.optimize(objective, n_trials=7)
    other = optuna.create_study(sampler=pickle.loads(pickle.dumps(study.sampler)))
    other.optimize(objective, n_trials=7)
    assert points(other) == points(study)


# Several workers


def test_two_workers_with_the_same_history_propose_distinct_points() -> None:
    storage = optuna.storages.InMemoryStorage()
    one = optuna.create_study(storage=storage, study_name="s", sampler=BounceSampler(seed=0, search_space=MIXED))
    two = optuna.load_study(storage=storage, study_name="s", sampler=BounceSampler(seed=0, search_space=MIXED))
    alone = optuna.create_study(sampler=BounceSampler(seed=0, search_space=MIXED))
    for _ in range(5):
        first, second = one.ask(), two.ask()  # neither has a point yet
        later, sooner = suggested(second), suggested(first)
        assert later != sooner
        one.tell(first, cost(sooner))
        two.tell(second, cost(later))
        pair = [alone.ask(), alone.ask()]
        expected = [suggested(trial) for trial in pair]
        assert [sooner, later] == expected  # as if one worker had asked for both
        for trial, point in zip(pair, expected, strict=True):
            alone.tell(trial, cost(point))


def test_a_worker_that_proposed_what_another_wrote_meanwhile_yields() -> None:
    storage = optuna.storages.InMemoryStorage()
    one = optuna.create_study(storage=storage, study_name="s", sampler=BounceSampler(seed=0, search_space=MIXED))
    two = optuna.load_study(storage=storage, study_name="s", sampler=BounceSampler(seed=0, search_space=MIXED))
    slow = one.ask()  # it has not asked for a point when later trials are finished
    two.optimize(objective, n_trials=6)
    fast = two.ask()
    found: list[dict[str, Any]] = []
    write = storage.set_trial_system_attr

    def interrupted(trial_id: int, key: str, value: Any) -> None:
        if key == ASK and trial_id == fast._trial_id and not found:
            found.append(value)
            suggested(slow)  # the other worker asks and writes now, and cannot see this proposal
        write(trial_id, key, value)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(storage, "set_trial_system_attr", interrupted)
        suggested(fast)
    slow_asked, fast_asked = (one.trials[i].system_attrs[ASK]["point"] for i in (0, 7))
    assert found[0]["point"] == slow_asked  # both had proposed the same
    assert fast_asked != slow_asked
    assert slow.params != fast.params


def test_threads_propose_distinct_points() -> None:
    study = optuna.create_study(sampler=BounceSampler(seed=0, search_space=MIXED))
    study.optimize(objective, n_trials=16, n_jobs=4)
    assert len({repr(point) for point in points(study)}) == 16


def test_running_trials_of_other_samplers_are_pending() -> None:
    study = optuna.create_study(sampler=RandomSampler(seed=0))
    study.optimize(objective, n_trials=6)
    foreign = suggested(study.ask())
    study.sampler = sampler = BounceSampler(seed=0)
    trial = study.ask()
    seen: list[Any] = []
    hold = Fold.hold

    def spy(self: Fold, number: int, point: Any) -> None:
        seen.append(self.mapped.params(point))
        hold(self, number, point)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Fold, "hold", spy)
        assert suggested(trial) != foreign
    assert seen == [foreign]
    assert sampler._fold is not None
    assert not sampler._fold[1].optimizer.pending  # a guess about others is not kept


def run_worker(*arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, str(WORKER), *map(str, arguments)]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sqlite", "journal"])
def test_a_study_that_was_killed_resumes(kind: str, tmp_path: Path) -> None:
    """A process dies within trial 8; whoever continues proposes the same, and the dead trial counts as pending."""
    with run_worker(kind, tmp_path / "study", 8, "--kill") as killed:
        said = killed.communicate()
    assert killed.returncode == -signal.SIGKILL, said
    study = load(kind, tmp_path / "study")
    study.optimize(small, n_trials=4)
    assert [trial.state.name for trial in study.trials] == [*["COMPLETE"] * 8, "RUNNING", *["COMPLETE"] * 4]
    memory = optuna.create_study(sampler=BounceSampler(seed=5, budget=20))
    memory.optimize(small, n_trials=8)
    small(memory.ask())  # the trial that was never told
    memory.optimize(small, n_trials=4)
    assert points(memory) == points(study)
    dispose(study)


@pytest.mark.slow
def test_four_processes_share_a_study(tmp_path: Path) -> None:
    dispose(load("sqlite", tmp_path / "study"))
    context = get_context("forkserver")
    context.set_forkserver_preload(["optuna_worker"])
    arguments = ("sqlite", str(tmp_path / "study"), "3")
    workers = [context.Process(target=optuna_worker.main, args=arguments) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0] * 4
    study = load("sqlite", tmp_path / "study")
    assert [trial.state for trial in study.trials] == [TrialState.COMPLETE] * 12
    assert len({repr(point) for point in points(study)}) == 12
    assert sum(ASK in trial.system_attrs for trial in study.trials) >= 8  # all but the first of each worker
    next_points = []
    for _ in range(2):  # whoever reads the study folds it to the same state
        copy = optuna.create_study(sampler=BounceSampler(seed=5, budget=20))
        copy.add_trials(study.trials)
        trial = copy.ask()
        small(trial)
        next_points.append(trial.params)
    assert next_points[0] == next_points[1]
    assert next_points[0] not in points(study)
    dispose(study)


def dispose(study: Any) -> None:
    """Close the connections of a study in a database."""
    engine = getattr(getattr(study._storage, "_backend", None), "engine", None)
    if engine is not None:
        engine.dispose()


# What people do with studies


def test_results_of_others_are_learned() -> None:
    study = optuna.create_study(sampler=RandomSampler(seed=0))
    study.optimize(objective, n_trials=8)
    best = {"rate": 0.01, "share": 0.3, "width": 5, "units": 100, "kernel": "a", "bias": True}
    study.add_trial(create_trial(params=best, distributions=MIXED, value=cost(best)))
    study.enqueue_trial({**best, "bias": False})
    study.sampler = sampler = BounceSampler(seed=0)
    study.optimize(objective, n_trials=5)
    opt = optimizer_of(sampler, study)
    assert [trial.state for trial in opt.trials] == [*["added"] * 10, *["done"] * 4, "pending"]
    assert [trial.value for trial in opt.trials[:-1]] == pytest.approx([trial.value for trial in study.trials[:-1]])
    assert points(study)[9]["bias"] is False


def test_an_enqueued_part_is_kept_and_the_rest_proposed() -> None:
    study = optuna.create_study(sampler=BounceSampler(seed=0))
    study.optimize(objective, n_trials=6)
    study.enqueue_trial({"kernel": "c", "width": 7})
    study.optimize(objective, n_trials=2)
    assert (points(study)[6]["kernel"], points(study)[6]["width"]) == ("c", 7)
    fresh = optuna.create_study(sampler=BounceSampler(seed=0))
    fresh.add_trials(study.trials[:7])
    fresh.optimize(objective, n_trials=1)
    assert points(fresh) == points(study)


def test_old_results_that_come_late_do_not_change_the_order_of_what_was_asked() -> None:
    sampler = BounceSampler(seed=0)
    study = optuna.create_study(sampler=sampler)
    study.optimize(objective, n_trials=5)
    before = [event.digest for event in events(Facts().of(study.trials), key_of(study), 5)]
    old = create_trial(params=points(study)[0], distributions=MIXED, value=1.0)
    old.datetime_start = old.datetime_complete = datetime.now() - timedelta(days=9)
    study.add_trial(old)
    after = [event.digest for event in events(Facts().of(study.trials), key_of(study), 6)]
    assert after[: len(before) - 1] == before[:-1]  # all but the last result, which nobody had seen
    assert set(before) < set(after)


def key_of(study: Any) -> str:
    asked = Asked.of(study.trials[-1]) or Asked.of(study.trials[-2])
    assert asked is not None
    return asked.key


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_the_order_of_events_only_grows(data: st.DataObject) -> None:
    """Whatever the order of asks and tells of one worker, every ask follows what it followed when it was made."""
    study = optuna.create_study(sampler=RandomSampler(seed=0))
    space = {"x": FloatDistribution(0.0, 1.0)}
    open_trials: list[Any] = []
    followed: list[tuple[int, list[bytes]]] = []
    for _ in range(12):
        if open_trials and data.draw(st.sampled_from([True, False])):
            trial = open_trials.pop(data.draw(st.integers(0, len(open_trials) - 1)))
            study.tell(trial, data.draw(st.sampled_from([0.0, 1.0])))
            continue
        trial = study.ask()
        others = [t for t in study.get_trials(deepcopy=False) if t.number != trial.number]
        facts = Facts().of(others)
        followed.append((trial.number, [event.digest for event in events(facts, "k", trial.number)]))
        seen = ranges(t.number for t in others if t.state.is_finished())
        study._storage.set_trial_system_attr(trial._trial_id, ASK, Asked("k", 0, seen, ()).document())
        trial._suggest("x", space["x"])
        open_trials.append(trial)
    final = events(Facts().of(study.get_trials(deepcopy=False)), "k", 10**6)
    digests = [event.digest for event in final]
    for number, before in followed:
        place = next(i for i, e in enumerate(final) if e.kind == "ask" and e.trial.number == number)
        assert digests[:place] == before


def test_failed_trials_are_not_proposed_again_and_infinite_values_are_failures() -> None:
    sampler = BounceSampler(seed=0, search_space=MIXED)
    study = optuna.create_study(sampler=sampler)

    def fails(trial: Any) -> float:
        value = objective(trial)
        if trial.number == 2:
            raise ValueError("broken")
        return math.inf if trial.number == 3 else value

    study.optimize(fails, n_trials=6, catch=(ValueError,))
    states = [trial.state for trial in optimizer_of(sampler, study).trials]
    assert states == ["done", "done", "failed", "failed", "done", "done", "pending"]


def test_a_pruned_trial_counts_as_its_last_value_or_the_median() -> None:
    sampler = BounceSampler(seed=0, search_space=MIXED)
    study = optuna.create_study(sampler=sampler)
    reported = {5: -100.0, 6: 100.0}

    def pruned(trial: Any) -> float:
        suggested(trial)
        if trial.number in reported:
            trial.report(reported[trial.number], 0)
        if trial.number >= 5:
            raise optuna.TrialPruned
        return float(trial.number)

    study.optimize(pruned, n_trials=8)
    trials = optimizer_of(sampler, study).trials
    assert [trial.value for trial in trials[:7]] == [0.0, 1.0, 2.0, 3.0, 4.0, 2.0, 100.0]
    assert trials[7].state == "failed"  # it said nothing


def test_a_pruner_that_splits_a_study_does_not_disturb() -> None:
    def steps(trial: Any) -> float:
        value = objective(trial)
        for step in range(4):
            trial.report(value + 3 - step, step)
            if trial.should_prune():
                raise optuna.TrialPruned
        return value

    pruner = optuna.pruners.HyperbandPruner(min_resource=1, max_resource=4, reduction_factor=2)
    study = optuna.create_study(sampler=BounceSampler(seed=0, search_space=MIXED), pruner=pruner, study_name="s")
    study.optimize(steps, n_trials=12)
    again = optuna.create_study(sampler=BounceSampler(seed=0, search_space=MIXED), pruner=pruner, study_name="s")
    again.optimize(steps, n_trials=12)
    assert points(again) == points(study)
    assert all(ASK in trial.system_attrs for trial in study.trials)


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_constraints_that_all_trials_have_are_limits_of_the_optimizer(direction: str) -> None:
    broken = {1: 3.0, 2: math.inf, 4: 2.0}
    sign = 1 if direction == "minimize" else -1
    sampler = BounceSampler(
        seed=0,
        search_space=MIXED,
        constraints_func=lambda trial: (broken.get(trial.number, -1.0), -5.0),
    )
    study = optuna.create_study(sampler=sampler, direction=direction)
    study.optimize(lambda trial: suggested(trial) and sign * -10.0 * trial.number, n_trials=7)
    opt = optimizer_of(sampler, study)
    assert [trial.value for trial in opt.trials[:7]] == [sign * -10.0 * i for i in range(7)]
    assert [trial.feasible for trial in opt.trials[:7]] == [i not in broken for i in range(7)]
    assert list(opt.trials[1].outcomes.values()) == [3.0, -5.0]
    assert opt.best is not None
    assert opt.best.value == sign * -60.0


def test_a_pruned_trial_without_constraints_has_no_value_where_others_have_them() -> None:
    def stopped(trial: Any) -> float:
        suggested(trial)
        if trial.number == 2:
            trial.report(-1.0, 0)
            raise optuna.TrialPruned
        trial.set_constraint("mass", float(trial.number % 2) - 0.5)
        return float(trial.number)

    if not hasattr(optuna.Trial, "set_constraint"):
        pytest.skip("new in Optuna 5")
    sampler = BounceSampler(seed=0, search_space=MIXED)
    study = optuna.create_study(sampler=sampler)
    study.optimize(stopped, n_trials=5)
    opt = optimizer_of(sampler, study)
    assert [trial.state for trial in opt.trials] == ["added", "done", "failed", "done", "done", "pending"]
    assert [trial.feasible for trial in opt.trials] == [True, False, None, False, True, None]


def test_constraints_bound_what_is_proposed() -> None:
    """The best point without the constraint breaks it: the search finds the edge, and stays mostly within."""
    sampler = BounceSampler(budget=30, seed=0, constraints_func=lambda trial: [0.5 - trial.params["x"]])
    study = optuna.create_study(sampler=sampler)
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1) + trial.suggest_int("n", 0, 5), n_trials=30)
    feasible = [trial.value for trial in study.trials if trial.params["x"] >= 0.5]
    assert min(feasible) < 0.55


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_with_constraints_that_not_all_trials_have_violations_are_worse_than_all_feasible_ones(direction: str) -> None:
    broken = {1: 3.0, 2: 1.0, 4: 2.0}
    sign = 1 if direction == "minimize" else -1
    sampler = BounceSampler(
        seed=0,
        search_space=MIXED,
        constraints_func=lambda trial: (broken[trial.number],) if trial.number in broken else (-1.0, -5.0),
    )
    study = optuna.create_study(sampler=sampler, direction=direction)
    study.optimize(lambda trial: suggested(trial) and sign * -10.0 * trial.number, n_trials=7)
    told = [sign * (trial.value or 0.0) for trial in optimizer_of(sampler, study).trials[:7]]
    assert [told[i] for i in (0, 3, 5, 6)] == [0.0, -30.0, -50.0, -60.0]
    assert max(told[i] for i in (0, 3, 5, 6)) < told[2] < told[4] < told[1]


@pytest.mark.skipif(not hasattr(optuna.Trial, "set_constraint"), reason="new in Optuna 5")
def test_constraints_of_trials_are_read() -> None:
    sampler = BounceSampler(seed=0, search_space=MIXED)
    study = optuna.create_study(sampler=sampler)

    def limited(trial: Any) -> float:
        suggested(trial)
        trial.set_constraint("mass", 1.0 if trial.number == 1 else -1.0)
        return float(-trial.number)

    study.optimize(limited, n_trials=4)
    trials = optimizer_of(sampler, study).trials[:4]
    assert [trial.feasible for trial in trials] == [True, False, True, True]
    assert [trial.value for trial in trials] == [0.0, -1.0, -2.0, -3.0]


def test_constraints_must_be_numbers() -> None:
    sampler = BounceSampler(constraints_func=lambda trial: [math.nan])
    study = optuna.create_study(sampler=sampler)
    with pytest.raises(InvalidInput, match="not NaN"):
        study.optimize(objective, n_trials=1)


# Spaces


def test_the_part_that_all_trials_share_is_proposed_by_bounce(caplog: pytest.LogCaptureFixture) -> None:
    def grows(trial: Any) -> float:
        x = trial.suggest_float("x", -1, 1)
        if trial.suggest_categorical("deep", [True, False]):
            return float(x**2 + trial.suggest_float("y", 0, 1))
        return float(x**2 + trial.suggest_int("z", 0, 9))

    sampler = BounceSampler(seed=0)
    study = optuna.create_study(sampler=sampler)
    with caplog.at_level(logging.WARNING, "bounce"):
        study.optimize(grows, n_trials=15)
    assert [record.message.startswith("The parameter") for record in caplog.records] == [True]
    assert sampler._fold is not None
    assert [axis.name for axis in sampler._fold[1].mapped.axes] == ["deep", "x"]
    again = optuna.create_study(sampler=BounceSampler(seed=0, warn_independent_sampling=False))
    caplog.clear()
    again.optimize(grows, n_trials=15)
    assert points(again) == points(study)
    assert not caplog.records


def test_a_trial_that_began_before_any_was_complete_gives_no_warning(caplog: pytest.LogCaptureFixture) -> None:
    study = optuna.create_study(sampler=BounceSampler(seed=0))
    first, second = study.ask(), study.ask()
    with caplog.at_level(logging.WARNING, "bounce"):
        x = second.suggest_float("x", 0, 1)
        study.tell(first, first.suggest_float("x", 0, 1) + first.suggest_float("y", 0, 1))
        study.tell(second, x + second.suggest_float("y", 0, 1))
        assert not caplog.records
        study.ask().suggest_float("z", 0, 1)
    assert len(caplog.records) == 1


def test_a_space_that_changes_keeps_what_still_fits() -> None:
    sampler = BounceSampler(seed=0)
    study = optuna.create_study(sampler=sampler)
    study.optimize(objective, n_trials=6)
    study.optimize(lambda trial: objective(trial) + trial.suggest_float("new", 0, 1), n_trials=6)
    opt = optimizer_of(sampler, study)
    assert len(opt.trials) == 13  # the parameters of before stay those that all trials share
    assert all("new" in point for point in points(study)[6:12])


NUMBERS = st.one_of(
    st.builds(
        lambda low, n, step: FloatDistribution(low, round(low + n * step, 4), step=step),
        st.sampled_from([-10.2, 0.0, 1e3]),
        st.integers(1, 300),
        st.sampled_from([0.1, 0.25, 3.0]),
    ),
    st.builds(lambda low, n: FloatDistribution(low, low + n), st.floats(-1e6, 1e6), st.floats(1e-3, 1e6)),
    st.builds(lambda low, n: FloatDistribution(low, low * n, log=True), st.floats(1e-9, 1e3), st.floats(1.5, 1e6)),
    st.builds(
        lambda low, n, step: IntDistribution(low, low + n * step, step=step),
        st.integers(-100, 100),
        st.integers(1, 300),
        st.integers(1, 7),
    ),
    st.builds(lambda low, n: IntDistribution(low, low + n, log=True), st.integers(1, 50), st.integers(1, 10**6)),
)
CHOICES = st.lists(st.sampled_from([None, True, False, 2, 3.5, "a", ""]), min_size=2, max_size=6, unique_by=repr).map(
    CategoricalDistribution
)


@settings(max_examples=150, deadline=None)
@given(NUMBERS | CHOICES, st.integers(0, 2**32 - 1))
def test_what_optuna_draws_is_a_point_and_what_bounce_draws_is_a_value(distribution: Any, seed: int) -> None:
    mapped = Mapped.of({"p": distribution})
    study = optuna.create_study(sampler=RandomSampler(seed=seed))
    drawn = {"p": study.ask()._suggest("p", distribution)}
    point = mapped.point(drawn)
    assert point is not None
    back = mapped.params(mapped.space.decode(mapped.space.encode([point]))[0])["p"]
    if isinstance(distribution, FloatDistribution) and distribution.step is None:
        assert back == pytest.approx(drawn["p"], rel=1e-9, abs=1e-9 * (distribution.high - distribution.low))
    else:
        assert back == drawn["p"]
        assert type(back) is type(drawn["p"])
    (own,) = mapped.space.decode(mapped.space.sample(1, rng=np.random.default_rng(seed)))
    value = mapped.params(own)["p"]
    assert distribution._contains(distribution.to_internal_repr(value))
    assert mapped.point({"p": value}) == own


def test_two_values_are_binary_and_true_is_the_larger() -> None:
    spaces = [CategoricalDistribution([True, False]), CategoricalDistribution([False, True]), IntDistribution(3, 4)]
    mapped = Mapped.of({str(i): d for i, d in enumerate(spaces)})
    assert [parameter.type for parameter in mapped.space.parameters] == ["binary"] * 3
    assert mapped.params({"0": True, "1": True, "2": True}) == {"0": True, "1": True, "2": 4}


def test_ranges_that_bounce_cannot_represent_are_left_to_the_independent_sampler() -> None:
    wide = {"huge": IntDistribution(0, 10**15), "one": IntDistribution(3, 3), "x": FloatDistribution(0, 1)}
    study = optuna.create_study(sampler=BounceSampler(seed=0, warn_independent_sampling=False))
    study.optimize(lambda trial: suggested(trial, wide)["x"], n_trials=5)
    assert study.sampler.infer_relative_search_space(study, study.trials[0]).keys() == {"x"}


def test_a_small_space_may_be_used_up() -> None:
    space = {"a": CategoricalDistribution([None, "x"]), "b": IntDistribution(0, 2)}
    study = optuna.create_study(sampler=BounceSampler(seed=0, search_space=space))
    study.optimize(lambda trial: suggested(trial, space)["b"], n_trials=10)
    assert len({repr(point) for point in points(study)[:6]}) == 6
    assert all(ASK not in trial.system_attrs for trial in study.trials[6:])


def test_a_budget_that_is_spent_is_doubled() -> None:
    sampler = BounceSampler(seed=0, budget=5, search_space=MIXED)
    study = optuna.create_study(sampler=sampler)
    study.optimize(objective, n_trials=11)
    assert optimizer_of(sampler, study).budget == 20


# Mistakes


def test_several_objectives_are_refused() -> None:
    study = optuna.create_study(sampler=BounceSampler(), directions=["minimize", "minimize"])
    with pytest.raises(InvalidOption, match="one objective, but the study has 2"):
        study.optimize(lambda trial: (objective(trial), 0.0), n_trials=1)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"budget": 0}, "budget must be an integer of at least 1"),
        ({"seed": -1}, "seed must be"),
        ({"n_trials": 3}, "did you mean 'budget'"),
        ({"direction": "maximize"}, "unknown option 'direction'"),
        ({"batch_size": 2}, "unknown option 'batch_size'"),
        ({"method": "nonsense"}, "method"),
        ({"search_space": {"x": (0, 1)}}, "distributions by name"),
    ],
)
def test_mistakes_are_refused_at_once(given: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidOption, match=said):
        BounceSampler(**given)


def test_another_independent_sampler_may_be_given() -> None:
    class Constant(RandomSampler):  # type: ignore[misc]
        def sample_independent(self, study: Any, trial: Any, param_name: str, param_distribution: Any) -> Any:
            return 0.5

    constant: BaseSampler = Constant()
    study = optuna.create_study(sampler=BounceSampler(seed=0, independent_sampler=constant))
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=1)
    assert points(study) == [{"x": 0.5}]


def test_nothing_warns() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        study = optuna.create_study(sampler=BounceSampler(seed=0))
        study.optimize(objective, n_trials=3)
    assert len(study.trials) == 3


def test_choices_may_be_of_any_type() -> None:
    choices = [(1, 2), ("x", (3,)), None, frozenset({1}), 2.5]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Optuna can keep such choices in memory only, and says so
        study = optuna.create_study(sampler=BounceSampler(seed=0))
        study.optimize(lambda trial: choices.index(trial.suggest_categorical("c", choices)), n_trials=5)
    assert {trial.params["c"] for trial in study.trials} == set(choices)
