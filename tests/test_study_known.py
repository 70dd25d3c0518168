"""What people know, in a file: results of their own, starts, corrections, a history, a space that changes."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bounce
from bounce import Binary, Categorical, InvalidOption, InvalidTell, Ordinal, Real, Space, Study
from test_kill import dying_at, in_a_child, killed

SPACE = Space([Real("a", 0, 1), Ordinal("o", list(range(5))), Categorical("c", list("xyz")), Binary("b"), Binary("d")])
WIDER = Space([*SPACE.parameters[:2], Categorical("c", list("wxyz")), *SPACE.parameters[3:], Binary("e")])


def value(point: dict[str, Any]) -> float:
    return float((point["a"] - 0.3) ** 2 + point["o"] + (point["c"] != "y") + point["b"])


def drawn(n: int, seed: int = 0) -> list[dict[str, Any]]:
    return SPACE.decode(SPACE.sample(n, rng=np.random.default_rng(seed)))


def facts(study: Study) -> list[tuple[Any, ...]]:
    return [(t.id, t.point, t.value, t.state, t.error, t.notes, t.stage, t.sem) for t in study.trials]


@pytest.mark.parametrize("path", [None, "a.db"])
def test_what_people_know_is_kept(path: str | None, tmp_path: Path) -> None:
    """The same calls, in memory and in a file that is opened again, give the same study."""
    with Study.open(path and tmp_path / path, space=SPACE, budget=12, seed=0) as study:
        notes = [{"lab": "one"}, {}, {}]
        study.add(drawn(3), [3.0, 1.0, 2.0], sems=[0.5, None, 0], notes=notes, reason="last year's")
        study.enqueue({"a": 0.5})
        trials = study.ask(3)
        study.tell(trials[0], 0.7, point=trials[0].point | {"a": 0.52}, note="a bit more", sem=0.125)
        study.fail(trials[1], "it boiled over")
        study.retry()
        study.correct(0, 2.5, sem=0.25, reason="a typo")
        study.withdraw(trials[2].id)
        study.note(1, "a good one")
        study.extend(15)
        kept, history = facts(study), study.history
    assert [entry.action for entry in history] == [
        *("add", "enqueue", "tell", "retry", "correct", "withdraw", "note", "extend")
    ]
    assert [fact[3] for fact in kept] == ["added", "added", "added", "done", "pending", "withdrawn"]
    assert kept[0][2] == 2.5
    assert kept[0][5] == {"lab": "one"}
    assert kept[3][1]["a"] == 0.52
    by_action = {entry.action: entry for entry in history}
    assert [fact[7] for fact in kept] == [0.25, None, 0.0, 0.125, None, None]
    assert by_action["correct"].before == {"value": 3.0, "sem": 0.5}
    assert by_action["correct"].after == {"value": 2.5, "sem": 0.25}
    assert by_action["correct"].reason == "a typo"
    assert by_action["tell"].before is not None
    assert by_action["tell"].before["point"]["a"] == 0.5
    assert by_action["retry"].before is not None
    assert by_action["retry"].before["error"] == "it boiled over"
    if path is not None:
        with Study.open(tmp_path / path) as again:
            assert facts(again) == kept
            assert again.history == history


def steps() -> list[tuple[Callable[[Study], bool], Callable[[Study], Any]]]:
    """A campaign, each step with what tells that it was made: so it can be taken up again after a kill."""

    def states(study: Study) -> list[str]:
        return [trial.state for trial in study.trials]

    def actions(study: Study) -> list[str]:
        return [entry.action for entry in study.history]

    def told(study: Study) -> None:
        study.tell(study.trials[5], 0.7, point=study.trials[5].point | {"a": 0.52}, note="more", sem=0.125)

    return [
        (lambda s: "add" in actions(s), lambda s: s.add(drawn(5), map(value, drawn(5)))),
        (lambda s: "enqueue" in actions(s), lambda s: s.enqueue({"a": 0.5})),
        (lambda s: len(s.trials) >= 8, lambda s: s.ask(3)),
        (lambda s: "tell" in actions(s), told),
        (lambda s: "correct" in actions(s), lambda s: s.correct(0, 2.5, sem=0.25)),
        (lambda s: "failed" in states(s) or "retry" in actions(s), lambda s: s.fail(6, "no power")),
        (lambda s: "retry" in actions(s), lambda s: s.retry()),
        (lambda s: s.trials[6].state == "done", lambda s: s.tell(6, 0.9, sem=0)),
        (lambda s: "withdraw" in actions(s), lambda s: s.withdraw(7)),
        (lambda s: "change" in actions(s), lambda s: s.change(WIDER, {"e": False})),
        (lambda s: len(s.trials) >= 11, lambda s: s.ask(3)),
        (lambda s: "note" in actions(s), lambda s: s.note(1, "a good one")),
    ]


def campaign(path: Path) -> list[tuple[Any, ...]]:
    given: dict[str, Any] = {} if path.exists() and path.stat().st_size else {"space": SPACE, "budget": 12, "seed": 0}
    with Study.open(path, **given) as study:
        for made, make in steps():
            if not made(study):
                make(study)
        return facts(study)


def test_a_kill_at_any_boundary_of_any_of_these_calls_changes_nothing(tmp_path: Path) -> None:
    straight = campaign(tmp_path / "whole.db")
    event, status = 0, 1
    while status != 0:
        path = tmp_path / f"{event}.db"

        def dying(path: Path = path, event: int = event) -> None:
            with dying_at(event):
                campaign(path)

        _, status = os.waitpid(in_a_child(dying), 0)
        assert status == 0 or killed(status)
        if not path.exists() or not _holds_a_study(path):
            path.unlink(missing_ok=True)
        assert campaign(path) == straight
        event += 1
    assert event > 3 * len(steps())


def _holds_a_study(path: Path) -> bool:
    try:
        Study.open(path).close()
    except bounce.InvalidStudy:
        return False
    return True


def test_all_rows_are_added_or_none(tmp_path: Path) -> None:
    with Study.open(tmp_path / "a.db", space=SPACE, budget=12, seed=0) as study:
        with pytest.raises(bounce.InvalidPoint, match="'o' must be one of"):
            study.add([*drawn(2), drawn(1)[0] | {"o": 9}], [1, 2, 3])
        assert study.trials == []
        assert study.history == []


def test_ten_thousand_past_results_are_taken(tmp_path: Path) -> None:
    points = drawn(10_000)
    started = time.process_time()
    with Study.open(tmp_path / "a.db", space=SPACE, budget=12, seed=0) as study:
        study.add(points, map(value, points))
        trials = study.ask(2)
    assert time.process_time() - started < 60  # seconds where it takes about three; a hang, not a measurement
    assert len({tuple(trial.point.items()) for trial in trials} - {tuple(p.items()) for p in points}) == 2


def test_minimize_takes_known_results_and_starts(tmp_path: Path) -> None:
    known = [(point, value(point)) for point in drawn(6)]
    start = [{"a": 0.25, "o": 0}, {"b": False}]
    seen: list[dict[str, Any]] = []

    def objective(point: dict[str, Any]) -> float:
        seen.append(point)
        return value(point)

    arguments: dict[str, Any] = {"known": known, "start": start, "seed": 0, "path": tmp_path / "a.db"}
    result = bounce.minimize(objective, SPACE, 8, **arguments)
    assert len(seen) == 8
    assert (seen[0]["a"], seen[0]["o"], seen[1]["b"]) == (0.25, 0, False)
    assert [trial.state for trial in result.trials] == ["added"] * 6 + ["done"] * 8
    again = bounce.minimize(objective, SPACE, 8, **arguments)
    assert len(seen) == 8
    assert again.trials == result.trials


def test_known_results_must_be_pairs() -> None:
    with pytest.raises(InvalidOption, match="known must be pairs of a point and its value, not"):
        bounce.minimize(value, SPACE, 8, known=drawn(2))  # type: ignore[arg-type]


def test_a_changed_space_is_stored_and_the_study_goes_on_in_it(tmp_path: Path) -> None:
    with Study.open(tmp_path / "a.db", space=SPACE, budget=20, seed=0) as study:
        study.run(value)
        study.extend(26)
        outside = study.change(Space([*SPACE.parameters[:2], Categorical("c", ["x", "z"]), *SPACE.parameters[3:]]))
        assert {trial.point["c"] for trial in outside} == {"y"}
    with Study.open(tmp_path / "a.db") as study:
        assert [t.id for t in study.trials if t.state == "outside"] == [t.id for t in outside]
        assert study.status.outside == len(outside)
        study.run(value)
        assert {trial.point["c"] for trial in study.trials[20:]} <= {"x", "z"}
        (entry,) = [entry for entry in study.history if entry.action == "change"]
        assert entry.before == SPACE.to_dict()


def test_a_trial_of_another_state_is_refused_with_its_state(tmp_path: Path) -> None:
    with Study.open(tmp_path / "a.db", space=SPACE, budget=20, seed=0) as study:
        study.ask()
        with pytest.raises(InvalidTell, match="trial 0 is pending, not failed"):
            study.retry(0)
        study.withdraw(0)
        with pytest.raises(InvalidTell, match="trial 0 is withdrawn, not pending, queued, done, failed or added"):
            study.withdraw(0)


def test_a_refused_start_adds_none_of_the_known_results_in_memory_either() -> None:
    with Study.open(None, space=SPACE, budget=12, seed=0) as study:
        with pytest.raises(bounce.InvalidPoint, match="point 0: no parameter is called 'z', only a, o"):
            study.begin([(drawn(1)[0], 1.0)], [{"z": 1}])
        assert study.trials == []
        assert study.history == []


def test_a_default_may_be_a_number_of_numpy(tmp_path: Path) -> None:
    with Study.open(tmp_path / "a.db", space=SPACE, budget=12, seed=0) as study:
        study.add(drawn(2), [1.0, 2.0])
        study.change(Space([*SPACE.parameters, Ordinal("n", [1, 2, 3])]), {"n": np.int64(2)})
    with Study.open(tmp_path / "a.db") as study:
        assert [trial.point["n"] for trial in study.trials] == [2, 2]


def test_known_results_that_come_too_late_are_pointed_out(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    bounce.minimize(value, SPACE, 3, seed=0, path=tmp_path / "a.db")
    result = bounce.minimize(value, SPACE, 4, seed=0, path=tmp_path / "a.db", known=[(drawn(1)[0], 1.0)])
    assert "use Study.add and Study.enqueue" in caplog.text
    assert {trial.state for trial in result.trials} == {"done"}


def test_the_optimizer_retries_all_failed_trials_by_default() -> None:
    optimizer = bounce.Bounce(SPACE, 6, seed=0)
    optimizer.fail(optimizer.ask(2), "no power")
    assert optimizer.retry() == [0, 1]
    assert [trial.id for trial in optimizer.pending] == [0, 1]


def test_the_same_space_is_no_change() -> None:
    optimizer = bounce.Bounce(SPACE, 6, seed=0)
    optimizer.tell(optimizer.ask(2), [1.0, 2.0])
    before = optimizer.state_dict()
    assert optimizer.change(SPACE) == []
    assert optimizer.state_dict() == before


def test_a_recommendation_changes_no_byte_and_needs_no_lock(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with Study.open(path, space=SPACE, budget=12, seed=0, noise=0.1) as study:
        assert study.recommend() is None
        study.add(drawn(6), map(value, drawn(6)), sems=0.1)
        optimizer = study._keeper.optimizer
        assert study.recommend() == optimizer.recommend()
    with Study.open(path) as study, study._keeper.occupied():
        running = path.read_bytes()
        with Study.open(path) as other:
            found = other.recommend()
        assert path.read_bytes() == running
    assert found is not None
    with Study.open(path) as study:
        before = path.read_bytes()
        assert study.recommend() == found
        assert path.read_bytes() == before
        assert study.options["noise"] == 0.1


def test_the_noise_of_a_study_is_stored_and_cannot_change(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    Study.open(path, space=SPACE, budget=12, seed=0, noise=0.5).close()
    Study.open(path, noise=0.5).close()
    with pytest.raises(InvalidOption, match=r'has other options: noise is 0\.5, not "auto"'):
        Study.open(path, noise="auto")


def test_a_single_start_needs_no_list_and_known_results_are_a_list_of_pairs() -> None:
    space = Space([Real("x", 0, 1)])
    result = bounce.minimize(lambda point: point["x"], space, 3, seed=0, start={"x": 0.25})
    assert result.trials[0].point == {"x": 0.25}
    with pytest.raises(
        InvalidOption, match=r"known must be a list of pairs of a point and its value, not \{'x': 0\.25\}"
    ):
        bounce.minimize(lambda point: point["x"], space, 3, known={"x": 0.25})
