"""Study: the optimizer with a memory."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bounce
import objectives
from bounce import (
    Binary,
    Bounce,
    InvalidOption,
    InvalidStudy,
    InvalidTell,
    Method,
    NothingToAsk,
    Real,
    Space,
    StorageFailed,
    Study,
    StudyLocked,
    Trial,
)
from bounce.optimizer import documents
from bounce.optimizer.ledger import Tell
from bounce.spec.tables import to_csv
from bounce.study import rows, schema, storage
from bounce.study.repair import check
from bounce.study.storage import Storage
from objectives import mixed, value

OPTIONS: dict[str, Any] = {"budget": 30, "seed": 3, "initial_points": 4}


def facts(trials: list[Trial]) -> list[tuple[Any, ...]]:
    """What must be the same in two runs: everything but the time it took."""
    names = [name for name in vars(trials[0]) if not name.startswith("seconds")] if trials else []
    return [tuple(str(getattr(trial, name)) for name in names) for trial in trials]


def test_an_objective_that_changes_the_folder_does_not_lose_the_study(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)

    def wanders(point: dict[str, Any]) -> float:
        os.chdir(tmp_path / "elsewhere")
        return 1.0

    with Study.open("a.db", space=mixed(), budget=4, seed=0) as study:
        study.run(wanders)
        assert study.path == Path("a.db")
        assert [trial.state for trial in study.trials] == ["done"] * 4
    assert not list((tmp_path / "elsewhere").iterdir())


@pytest.mark.slow
def test_a_study_makes_the_run_that_the_optimizer_makes(tmp_path: Path) -> None:
    optimizer = Bounce(mixed(), **OPTIONS)
    with Study.open(tmp_path / "a.db", space=mixed(), **OPTIONS) as study:
        while not optimizer.done:
            ((a,), (b,)) = optimizer.ask(), study.ask()
            assert a.point == b.point
            optimizer.tell(a, value(a.point))
            study.tell(b, value(b.point))
        assert facts(study.trials) == facts(optimizer.trials)
        assert study.best == study.trials[optimizer.best.id]  # type: ignore[union-attr]
        assert study.done
        assert study.remaining == 0


@pytest.mark.slow
def test_opening_again_resumes_bit_for_bit(tmp_path: Path) -> None:
    optimizer = Bounce(mixed(), **OPTIONS)
    while not optimizer.done:
        for trial in optimizer.ask():
            optimizer.tell(trial, value(trial.point))
    path = tmp_path / "a.db"
    done = False
    while not done:
        with Study.open(path, space=mixed(), **OPTIONS) as study:
            study.ask()
        with Study.open(path) as study:
            (trial,) = study.pending
            study.tell(trial, value(trial.point), seconds=1.5)
            done = study.done
    with Study.open(path) as study:
        assert facts(study.trials) == facts(optimizer.trials)
        assert {trial.seconds_eval for trial in study.trials} == {1.5}


def test_everything_told_is_there_after_reopening(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with Study.open(path, space=mixed(), budget=9, batch_size=3, seed=0) as study:
        a, b, c = study.ask()
        study.tell([a, b], [0.1, -0.0])
        study.fail(c, "it broke: \N{SNOWMAN}\n'quoted'")
        (d,) = study.ask(1)
    with Study.open(path) as study:
        assert [(t.state, t.value, t.error) for t in study.trials] == [
            ("done", 0.1, None),
            ("done", 0.0, None),
            ("failed", None, "it broke: \N{SNOWMAN}\n'quoted'"),
            ("pending", None, None),
        ]
        assert study.pending == [study.trials[3]]
        assert study.pending[0].point == d.point
        assert study.space == mixed()
        assert study.options["batch_size"] == 3
        assert len(study.to_frame()) == 4


def test_other_options_than_the_stored_ones_are_refused_with_the_difference(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    Study.open(path, space=mixed(), **OPTIONS).close()
    with pytest.raises(InvalidOption, match="has other options: new_bins is 2, not 3, seed is 3, not 4"):
        Study.open(path, space=mixed(), budget=30, new_bins=3, seed=4)
    with pytest.raises(InvalidOption, match=r"Binary\(name='b5'\).* parameters, the given|it has 11 parameters"):
        Study.open(path, space=Space(mixed().parameters[:-1]), **OPTIONS)
    with pytest.raises(InvalidOption, match=r"budget is 30, not 29\. Only the budget can change, and only grow"):
        Study.open(path, space=mixed(), budget=29)
    with pytest.raises(InvalidOption, match="unknown option 'bins'"):
        Study.open(path, bins=3)  # type: ignore[call-arg]
    with pytest.raises(InvalidOption, match='low_sequency is false, not true, method is "default", not "paper"'):
        Study.open(path, low_sequency=True, method="paper")
    Study.open(path, seed=None).close()  # nothing said of the seed
    Study.open(path, direction="minimize").close()


@pytest.mark.slow
def test_a_larger_budget_extends_the_run_as_the_optimizer_would(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    optimizer = Bounce(mixed(), **(OPTIONS | {"budget": 10}))
    for i in range(20):
        if i == 10:
            optimizer.extend(20)
        (trial,) = optimizer.ask()
        optimizer.tell(trial, value(trial.point))
    with Study.open(path, space=mixed(), **(OPTIONS | {"budget": 10})) as study:
        study.run(value)
        with pytest.raises(NothingToAsk, match="budget"):
            study.ask()
    with Study.open(path, space=mixed(), **(OPTIONS | {"budget": 20})) as study:
        assert study.options["budget"] == 20
        study.run(value)
        assert facts(study.trials) == facts(optimizer.trials)
        study.extend(21)
    with Study.open(path) as study:
        assert study.remaining == 1


def test_a_new_study_says_what_it_needs_and_makes_no_file(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with pytest.raises(InvalidStudy, match=r"a\.db does not exist; to create it, give a space and a budget"):
        Study.open(path)
    with pytest.raises(InvalidOption, match="a new study needs a budget"):
        Study.open(path, space=mixed())
    with pytest.raises(InvalidOption, match="budget must be an integer"):
        Study.open(path, space=mixed(), budget=0)
    with pytest.raises(InvalidOption, match="unknown option 'bins'"):
        Study.open(path, space=mixed(), budget=3, bins=3)  # type: ignore[call-arg]
    with pytest.raises(InvalidStudy, match=r"the folder .*none for the study a\.db does not exist"):
        Study.open(tmp_path / "none" / "a.db", space=mixed(), budget=3)
    with pytest.raises(InvalidStudy, match="is a folder"):
        Study.open(tmp_path, space=mixed(), budget=3)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "content", [b"hello, this is no database at all, " * 40, b"SQLite format 3\x00" + b"\x00" * 4000, b"{}"]
)
def test_a_foreign_file_is_refused_and_not_touched(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.db"
    path.write_bytes(content)
    for more in ({}, {"space": mixed(), "budget": 3}):
        with pytest.raises(InvalidStudy, match=r"a\.db is not a study"):
            Study.open(path, **more)  # type: ignore[arg-type]
    assert path.read_bytes() == content


def test_a_foreign_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE notes (text)")
    connection.close()
    with pytest.raises(InvalidStudy, match="is a database, but not a study"):
        Study.open(path, space=mixed(), budget=3)


def test_a_newer_study_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    Study.open(path, space=mixed(), budget=3).close()
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(
        InvalidStudy, match=r"has format 99, and this release reads formats up to 6: use a newer release"
    ):
        Study.open(path)


def test_an_older_study_is_migrated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.db"
    with Study.open(path, space=mixed(), budget=5, seed=0) as study:
        study.tell(study.ask(), [1.5])
    monkeypatch.setattr(schema, "MIGRATIONS", (*schema.MIGRATIONS, "ALTER TABLE trials ADD COLUMN note TEXT"))
    with Study.open(path) as study:
        assert study.best.value == 1.5  # type: ignore[union-attr]
        assert version(path) == len(schema.MIGRATIONS) - 1
        study.ask()
    with Study.open(path) as study:
        assert len(study.trials) == 2
    connection = sqlite3.connect(path)
    assert connection.execute("SELECT note FROM trials").fetchall() == [(None,), (None,)]
    connection.close()
    assert version(path) == len(schema.MIGRATIONS)


# studies of the first release


OLD = Path(__file__).parent / "fixtures" / "study_v1.db"
NEXT = json.loads(OLD.with_suffix(".json").read_text())


def version(path: Path) -> int:
    connection = sqlite3.connect(path)
    (found,) = connection.execute("PRAGMA user_version").fetchone()
    connection.close()
    return int(found)


def copied(folder: Path) -> Path:
    return Path(shutil.copy(OLD, folder / "old.db"))


def codes(path: Path) -> list[list[float]]:
    connection = sqlite3.connect(path)
    rows = connection.execute("SELECT codes FROM trials ORDER BY id").fetchall()
    connection.close()
    return [json.loads(row[0]) for row in rows]


def test_reading_a_study_of_the_first_release_changes_no_byte(tmp_path: Path) -> None:
    path = copied(tmp_path)
    with Study.open(path) as study:
        status = study.status
        assert (status.done, status.failed, status.pending, status.remaining) == (12, 1, 1, 26)
        trials = study.trials
        assert [trial.value for trial in trials[:13]] == NEXT["values"][:13]
        assert [trial.target_dim for trial in trials] == NEXT["target_dims"][:14]
        assert trials[8].error == "RuntimeError: it broke"
        assert all(trial.radius > 0 and 0 < trial.side <= 1 for trial in trials)
        assert study.options["method"] == "0.1"
        assert to_csv(trials).count("\n") == 15
        assert len(study.to_frame()) == 14
        assert study.best == trials[7]
    assert path.read_bytes() == OLD.read_bytes()
    assert version(path) == 1


def test_a_read_only_study_of_the_first_release_can_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = copied(tmp_path)
    only_reading(monkeypatch)
    with Study.open(path) as study:
        assert study.status.done == 12
        assert len(study.trials) == 14
        with pytest.raises(StorageFailed, match="can only be read here"):
            study.ask()
    assert path.read_bytes() == OLD.read_bytes()


def test_a_study_of_the_first_release_continues_as_that_release_would(tmp_path: Path) -> None:
    """Bit for bit where the fixture was made. Reals may differ in their last digits on other processors."""
    path = copied(tmp_path)
    with Study.open(path) as study:
        study.tell(study.pending, NEXT["values"][13:14], seconds=0.25)
        assert version(path) == 6
        for value in NEXT["values"][14:]:
            study.tell(study.ask(), [value], seconds=0.25)
    with Study.open(path) as study:
        assert [trial.value for trial in study.trials] == NEXT["values"]
        assert [trial.target_dim for trial in study.trials] == NEXT["target_dims"]
    np.testing.assert_allclose(codes(path)[14:], NEXT["next"], atol=1e-6)


@pytest.mark.parametrize("robust", [True, False])
def test_the_option_robust_of_the_first_release_becomes_a_method(tmp_path: Path, robust: bool) -> None:
    path = copied(tmp_path)
    connection = sqlite3.connect(path)
    connection.execute("UPDATE study SET options = json_set(options, '$.robust', json(?))", (json.dumps(robust),))
    connection.commit()
    connection.close()
    plain = {"base": "0.1", "targets": "raw", "caution": 1.0, "doubt_best": False, "lengthscales": "shared"}
    method = Method.of("0.1" if robust else plain).document()
    with Study.open(path) as study:
        assert study.options["method"] == method
        study.ask()
    with Study.open(path) as study:
        assert study.options["method"] == method


def test_the_tables_have_a_column_for_every_field_of_a_record(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    Study.open(path, space=mixed(), budget=3).close()
    connection = sqlite3.connect(path)
    trials = [row[1] for row in connection.execute("PRAGMA table_info(trials)")]
    study = [row[1] for row in connection.execute("PRAGMA table_info(study)")]
    connection.close()
    assert sorted(trials) == sorted([*documents.RECORD, "point", "asked", "finished", "digest"])
    assert sorted(trials) == sorted([*rows.COLUMNS, "digest"])
    assert set(storage.JSON) < set(documents.RECORD)
    document = Bounce(mixed(), budget=3).state_dict()
    kept = ["uuid", "revision", "created", "runner", "trials_digest", "history_digest"]
    assert sorted(rows.HEAD) == sorted([*kept, *(document.keys() - {"trials"})])
    assert sorted(study) == sorted(["one", "digest", *rows.HEAD])


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_a_truncated_study_is_refused(tmp_path: Path, share: float) -> None:
    path = tmp_path / "a.db"
    with Study.open(path, space=mixed(), budget=40, seed=0, initial_points=40) as study:
        study.run(value)
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    with pytest.raises(InvalidStudy, match=r"a\.db is (not a study|damaged)"):
        Study.open(path)


@pytest.fixture(scope="module")
def small_study(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("whole") / "a.db"
    with Study.open(path, space=Space([Binary("a"), Real("x", 0, 1)]), budget=8, seed=0) as study:
        study.run(lambda point: point["x"])
    return path.read_bytes()


@given(place=st.floats(0, 1, exclude_max=True), byte=st.integers(0, 255))
@settings(max_examples=60, deadline=None)
def test_a_damaged_byte_gives_an_error_of_ours_or_a_study_that_can_be_read(
    tmp_path_factory: pytest.TempPathFactory, small_study: bytes, place: float, byte: int
) -> None:
    path = tmp_path_factory.mktemp("damage") / "a.db"
    content = bytearray(small_study)
    content[int(place * len(content))] = byte
    path.write_bytes(content)
    try:
        with Study.open(path) as study:
            assert len(study.trials) <= 8
            _ = study.status
    except bounce.BounceError:
        pass


def test_a_value_that_is_not_a_number_leaves_the_study_as_it_was(tmp_path: Path) -> None:
    with Study.open(tmp_path / "a.db", space=mixed(), budget=5, batch_size=2, seed=0) as study:
        trials = study.ask()
        with pytest.raises(InvalidTell, match="finite"):
            study.tell(trials, [1.0, float("nan")])
        with pytest.raises(InvalidTell, match="no trial 7"):
            study.settle([Tell(0, 1.0), Tell(7, 1.0)])
        assert [t.state for t in study.trials] == ["pending", "pending"]
        study.settle([Tell(1, 0.5), Tell(0, None, "burnt")])
        assert [(t.value, t.error) for t in study.trials] == [(None, "burnt"), (0.5, None)]


@pytest.mark.slow
def test_a_full_disk_loses_nothing_that_was_stored(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with Study.open(path, space=mixed(), **OPTIONS) as study:
        study.tell(study.ask(), [0.5])
        kept = study._keeper.storage
        assert isinstance(kept, Storage)
        assert kept._writer is not None
        pages = kept._writer.execute("PRAGMA page_count").fetchone()[0]
        kept._writer.execute(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(StorageFailed, match="database or disk is full") as info:
            study.run(value)
        assert info.value.result.trials[0].value == 0.5
        stored = facts(study.trials)
        kept._writer.execute("PRAGMA max_page_count = 100000")
    with Study.open(path) as study:
        assert facts(study.trials) == stored
        study.run(value)
        assert study.done
    with Study.open(None, space=mixed(), **OPTIONS) as whole:
        whole.tell(whole.ask(), [0.5])
        whole.run(value)
        with Study.open(path) as study:
            assert facts(study.trials) == facts(whole.trials)


def only_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every file and folder one that cannot be written to, for root too."""
    access = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK and access(path, mode))


def test_a_study_in_a_folder_without_leave_to_write_can_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.db"
    with Study.open(path, space=mixed(), **OPTIONS) as study:
        study.tell(study.ask(), [0.5])
    only_reading(monkeypatch)
    with Study.open(path) as study:
        assert study.best.value == 0.5  # type: ignore[union-attr]
        assert study.status.done == 1
        with pytest.raises(StorageFailed, match="can only be read here"):
            study.ask()
    with pytest.raises(InvalidStudy, match="its folder cannot be written to"):
        Study.open(tmp_path / "new.db", space=mixed(), budget=4)


def test_a_second_runner_is_refused_while_readers_see_the_run(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    seen: list[list[str]] = []

    def objective(point: dict[str, Any]) -> float:
        if not seen:
            other = Study.open(path)
            seen.append([t.state for t in other.trials])
            assert f"process {os.getpid()}" in str(other.status.runner)
            for change in (
                lambda: other.run(value),
                other.ask,
                lambda: other.tell(0, 1.0),
                lambda: other.extend(99),
            ):
                with pytest.raises(
                    StudyLocked, match=rf"is being run by process {os.getpid()} on .*Reading is possible"
                ):
                    change()
            with pytest.raises(StudyLocked):
                Study.open(path, budget=99)
            other.close()
        return value(point)

    with Study.open(path, space=mixed(), budget=6, seed=0) as study:
        study.run(objective)
        assert seen == [["pending"]]
        assert study.status.runner is None
        with Study.open(path) as other:  # afterwards, each may change it in turn
            study.extend(8)
            (a,) = other.ask()
            (b,) = study.ask()
            assert (a.id, b.id) == (6, 7)


def test_a_run_inside_a_run_is_refused() -> None:
    with Study.open(space=mixed(), budget=4, seed=0) as study:
        with pytest.raises(StudyLocked, match="is already being run by this object"):
            study.run(value, callbacks=[lambda trial: (study.run(value), None)[1]])
        study.run(value)
        assert study.done


def test_a_study_that_is_being_run_is_not_closed(tmp_path: Path) -> None:
    with Study.open(tmp_path / "a.db", space=mixed(), budget=6, seed=0) as study:
        with pytest.raises(StudyLocked, match="end the run with stop"):
            study.run(value, callbacks=[lambda trial: study.close()])
        assert len(study.run(value).trials) == 6


@pytest.mark.parametrize("stored", [True, False])
def test_the_threads_of_a_process_take_turns(tmp_path: Path, stored: bool) -> None:
    path = tmp_path / "a.db" if stored else None
    with Study.open(path, space=mixed(), budget=60, seed=0) as study:
        trials = study.ask(48)

        def tell(mine: list[Trial]) -> None:
            for trial in mine:
                study.note(trial, "seen")
                study.tell(trial, float(trial.id))
                assert study.best is not None

        with ThreadPoolExecutor(4) as executor:
            list(executor.map(tell, [trials[start::4] for start in range(4)]))
        kept = study.trials
        assert [(trial.state, trial.value) for trial in kept] == [("done", float(i)) for i in range(48)]
    if path is not None:
        assert check(path) == []
        with Study.open(path) as study:
            assert study.trials == kept
            with ThreadPoolExecutor(2) as executor:

                def noted(point: dict[str, Any]) -> float:
                    study.note(0, "while it runs")
                    return value(point)

                study.run(noted, executor=executor, workers=2)
            assert len(study.trials) == 60


def test_a_callback_may_extend_the_run() -> None:
    with Study.open(space=mixed(), budget=4, seed=0) as study:
        study.run(value, callbacks=[lambda trial: study.extend(6) if trial.id == 3 else None])
        assert len(study.trials) == 6


@pytest.mark.slow
def test_a_lock_dies_with_its_holder(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    script = (
        "import os, signal, sys; sys.path.insert(0, sys.argv[2])\n"
        "from objectives import mixed; from bounce import Study\n"
        "def objective(point): os.kill(os.getpid(), signal.SIGKILL)\n"
        "Study.open(sys.argv[1], space=mixed(), budget=6, seed=0).run(objective)\n"
    )
    done = subprocess.run([sys.executable, "-c", script, str(path), str(Path(__file__).parent)], check=False)
    assert done.returncode == -9
    with Study.open(path) as study:
        assert study.status.runner is None
        assert [t.id for t in study.pending] == [0]
        study.run(value)
        assert study.done


def test_status_says_where_a_study_stands(tmp_path: Path) -> None:
    with Study.open(tmp_path / "a.db", space=mixed(), budget=10, batch_size=3, seed=0) as study:
        empty = study.status
        assert (empty.best, empty.seconds_ask, empty.seconds_eval) == (None, None, None)
        trials = study.ask()
        study.tell(trials[0], 2.0, seconds=3.0)
        study.fail(trials[1], seconds=1.0)
        status = study.status
        assert (status.done, status.failed, status.pending, status.remaining, status.budget) == (1, 1, 1, 7, 10)
        assert status.best == study.trials[0]
        assert status.seconds_eval == 2.0
        assert (status.target_dim, status.dimensions) == (study.trials[0].target_dim, 11)
        assert status.radius == study.trials[0].radius


def test_two_objects_may_ask_and_tell_in_turn(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with Study.open(path, space=mixed(), **OPTIONS) as a, Study.open(path) as b:
        for i in range(12):
            (trial,) = (a, b)[i % 2].ask()
            (b, a)[i % 2].tell(trial.id, value(trial.point))
        with Study.open(space=mixed(), **OPTIONS) as alone:
            for _ in range(12):
                (trial,) = alone.ask()
                alone.tell(trial, value(trial.point))
            assert facts(a.trials) == facts(alone.trials) == facts(b.trials)


@pytest.mark.slow
def test_minimize_with_a_path_resumes_where_it_was_interrupted(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    calls = []

    def once(point: dict[str, Any]) -> float:
        calls.append(point)
        if len(calls) == 7:
            for _ in range(2):  # Ctrl-C, and again to stop at once
                os.kill(os.getpid(), signal.SIGINT)
        return value(point)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt) as info:
            bounce.minimize(once, mixed(), path=path, **OPTIONS)
    finally:
        signal.signal(signal.SIGINT, before)
    assert len([t for t in info.value.result.trials if t.state == "done"]) == 6  # type: ignore[attr-defined]
    assert any(str(path) in note for note in info.value.__notes__)
    result = bounce.minimize(once, mixed(), path=path, **OPTIONS)
    assert facts(result.trials) == facts(bounce.minimize(value, mixed(), **OPTIONS).trials)
    assert calls[6] == calls[7]
    assert len(calls) == 31


@pytest.mark.slow
def test_a_study_can_be_used_from_a_thread(tmp_path: Path) -> None:
    with Study.open(tmp_path / "a.db", space=mixed(), **OPTIONS) as study, ThreadPoolExecutor(1) as threads:
        threads.submit(study.run, value).result()
        assert study.done


def test_names_and_values_of_any_kind_come_back(tmp_path: Path) -> None:
    from bounce import Categorical, Ordinal

    space = Space(
        [
            Categorical("a 'quoted'; DROP TABLE trials; --", ["é\n", '"', "", None, 1, 1.5, True]),
            Ordinal("\N{SNOWMAN}", [1.25, 2.5, 1e300]),
        ]
    )
    path = tmp_path / "a 'b' ü?#%.db"
    with Study.open(path, space=space, budget=12, seed=0) as study:
        asked = study.ask(12)
        study.tell(asked, [float(i) for i in range(12)])
    with Study.open(path, space=space) as study:
        assert [t.point for t in study.trials] == [t.point for t in asked]


def test_the_repr_opens_the_study_again(tmp_path: Path) -> None:
    study = Study.open(tmp_path / "a.db", space=mixed(), budget=3)
    assert eval(repr(study), {"Study": Study}).space == mixed()
    assert repr(Study.open(space=mixed(), budget=3)).startswith("Study.open(None)  # budget 3: ")


def test_the_file_says_what_it_is(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with Study.open(path, space=mixed(), budget=4, seed=0) as study:
        study.run(objectives.half_fails)
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA application_id").fetchone()[0].to_bytes(4, "big") == b"BNCE"
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("delete",)
    rows = connection.execute("SELECT json_extract(point, '$.depth'), state, finished >= asked FROM trials").fetchall()
    assert [(row[0], row[1], row[2]) for row in rows] == [
        (t.point["depth"], t.state, 1) for t in Study.open(path).trials
    ]
    connection.close()


def test_a_file_that_is_removed_or_replaced_during_a_run_ends_it(tmp_path: Path) -> None:
    path = tmp_path / "a.db"

    def remove(trial: Trial) -> None:
        if trial.id == 3:
            path.unlink()

    with Study.open(path, space=mixed(), **OPTIONS) as study:
        with pytest.raises(StorageFailed, match="was removed or replaced while it was in use") as info:
            study.run(value, callbacks=[remove])
        assert len([t for t in info.value.result.trials if t.state == "done"]) == 4

    def replace(trial: Trial) -> None:
        if trial.id == 5:
            path.write_bytes(b"")
            other = tmp_path / "b.db"
            other.write_bytes(b"")
            other.replace(path)

    path.unlink(missing_ok=True)
    with (
        Study.open(path, space=mixed(), budget=6, seed=0) as study,
        pytest.raises(StorageFailed, match="removed or replaced"),
    ):
        study.run(value, callbacks=[replace])  # at the very end


def test_a_closed_study_says_so(tmp_path: Path) -> None:
    study = Study.open(tmp_path / "a.db", space=mixed(), budget=3)
    study.close()
    with pytest.raises(StorageFailed, match=r"a\.db is closed: open it again"):
        study.ask()


DAMAGES = [
    ("UPDATE study SET version = 99", "the state has version 99"),
    ("UPDATE study SET head = '{}'", "damaged"),
    ("UPDATE study SET head = '" + "[" * 100_000 + "'", "damaged"),
    ("UPDATE trials SET value = 'abc'", "trial 0 of the state is damaged"),
    ("UPDATE trials SET value = x'00'", "damaged"),
    ("DELETE FROM trials WHERE id = 1", "damaged"),
    ("DELETE FROM study", "a row is missing"),
]


def sealed(connection: sqlite3.Connection) -> None:
    """Give all rows the digests of what is in them."""
    for table in ("trials", "history"):
        ids = [i for (i,) in connection.execute(f"SELECT id FROM {table}")]
        connection.execute(f"UPDATE study SET {table}_digest = ?", (rows.renew(connection, table, ids)[1],))
    if connection.execute("SELECT count(*) FROM study").fetchone() == (1,):
        rows.renew_head(connection)


@pytest.mark.parametrize("seal", [False, True])
@pytest.mark.parametrize(("change", "said"), DAMAGES)
def test_damage_inside_is_told_with_the_file_and_in_short(tmp_path: Path, change: str, said: str, seal: bool) -> None:
    path = tmp_path / "a.db"
    with Study.open(path, space=mixed(), budget=4, seed=0) as study:
        study.run(value)
    connection = sqlite3.connect(path)
    connection.execute(change)
    if seal and "x'00'" not in change:  # no digest has bytes in it
        sealed(connection)
    connection.commit()
    connection.close()
    with pytest.raises(InvalidStudy, match=r"a\.db") as info:
        Study.open(path)
    assert (said if seal else "damaged") in str(info.value)
    assert len(str(info.value)) < 400
