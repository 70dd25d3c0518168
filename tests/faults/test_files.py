"""What a machine, another program or a person does to the file of a study."""

from __future__ import annotations

import json
import os
import random
import shutil
import sqlite3
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import faults
from bounce import BounceError, InvalidStudy, NothingToAsk, Real, Space, Study, StudyLocked
from bounce.study.lock import Lock
from bounce.study.repair import check, repair
from bounce.study.salvage import Lost
from objectives import mixed, value
from test_kill import dying_at, in_a_child, killed

FIXTURES = Path(__file__).parent.parent / "fixtures"
NEWEST: dict[str, object] = {"repeats": None}  # fields of a trial that format 5 did not have
LATER: dict[str, object] = {"outcomes": {}, "feasible": None} | NEWEST  # ... and format 4
OPTIONS: dict[str, Any] = {"budget": 12, "seed": 0, "initial_points": 4}


def made(path: Path, **options: Any) -> list[Any]:
    """Make a study that is done, and return its trials."""
    with Study.open(path, space=mixed(), **OPTIONS | options) as study:
        study.run(value)
        return study.trials


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_the_file_alone_holds_every_value_that_was_told(tmp_path: Path) -> None:
    with Study.open(tmp_path / "a.db", space=mixed(), **OPTIONS) as study:
        for i in range(6):
            (trial,) = study.ask()
            study.tell(trial, float(i))
            shutil.copyfile(tmp_path / "a.db", tmp_path / "b.db")
            with Study.open(tmp_path / "b.db") as copy:
                assert copy.trials == study.trials
        assert not [path.name for path in tmp_path.iterdir() if path.name.startswith("a.db-")]


def test_reading_what_a_killed_process_left_changes_no_byte_and_undoes_the_half_change(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    trials = made(path)
    faults.hot_journal(path)
    before = files(tmp_path)
    assert "a.db-journal" in before
    assert not check(path)
    with Study.open(path) as study:
        assert study.trials == trials
        assert files(tmp_path) == before
        study.extend(14)
        assert study.trials == trials
        assert not (tmp_path / "a.db-journal").exists()


def test_a_half_written_file_without_its_journal_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    made(path)
    faults.hot_journal(path)
    (tmp_path / "a.db-journal").unlink()
    with pytest.raises(InvalidStudy, match="is damaged"):
        Study.open(path)
    assert check(path)


def test_a_reader_that_is_open_survives_the_death_of_a_writer(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    trials = made(path)
    with Study.open(path) as reader:
        assert reader.trials == trials
        faults.hot_journal(path)
        assert reader.status.done == 12
        with Study.open(path) as other:
            other.extend(13)
        assert reader.status.budget == 13


@pytest.mark.parametrize("suffix", ["-journal", "-wal"])
def test_a_journal_of_another_study_is_refused_with_what_to_do(tmp_path: Path, suffix: str) -> None:
    path, other = tmp_path / "a.db", tmp_path / "other.db"
    trials = made(path)
    made(other, seed=1)
    if suffix == "-journal":
        faults.hot_journal(other)
    else:
        connection = sqlite3.connect(other, isolation_level=None)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("UPDATE study SET tells = 0")
    shutil.copyfile(f"{other}{suffix}", f"{path}{suffix}")
    if suffix == "-wal":
        connection.close()
    before = files(tmp_path)
    said = rf"a\.db{suffix} beside .*a\.db does not belong to it: .* move a\.db{suffix} to another folder and try again"
    with pytest.raises(InvalidStudy, match=said):
        Study.open(path)
    with pytest.raises(InvalidStudy, match=said):
        Study.open(path, budget=20)
    assert files(tmp_path) == before
    (tmp_path / f"a.db{suffix}").unlink()
    with Study.open(path) as study:
        assert study.trials == trials


def test_a_backup_over_a_killed_run_is_not_mixed_with_it(tmp_path: Path) -> None:
    path, backup = tmp_path / "a.db", tmp_path / "backup.db"
    made(path)
    with Study.open(path) as study:
        study.extend(16)
        shutil.copyfile(path, backup)
        study.run(value)
    faults.hot_journal(path)
    shutil.copyfile(backup, path)
    with pytest.raises(InvalidStudy, match="does not belong to it"):
        Study.open(path)
    assert path.read_bytes() == backup.read_bytes()


def test_a_log_that_an_earlier_release_left_is_read_and_taken_over(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    shutil.copy(FIXTURES / "study_v2.db", path)
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("UPDATE trials SET error = 'in the log' WHERE id = 12")
    connection.execute("UPDATE study SET revision = revision + 1")
    for suffix in ("", "-wal"):
        shutil.copyfile(f"{path}{suffix}", tmp_path / f"b.db{suffix}")
    connection.close()
    before = files(tmp_path)
    with Study.open(tmp_path / "b.db") as study:
        assert study.trials[12].error == "in the log"
        assert files(tmp_path) == before
        study.extend(50)
        assert not (tmp_path / "b.db-wal").exists()
    with Study.open(tmp_path / "b.db") as study:
        assert study.trials[12].error == "in the log"
        assert study.status.budget == 50


def test_a_study_of_the_second_release_continues_as_that_release_would(tmp_path: Path) -> None:
    """Bit for bit where the fixture was made. Reals may differ in their last digits on other processors."""
    path = Path(shutil.copy(FIXTURES / "study_v2.db", tmp_path / "a.db"))
    expected = json.loads((FIXTURES / "study_v2.json").read_text())
    with Study.open(path) as study:
        assert [vars(trial) for trial in study.trials] == [
            t | {"attempts": 0, "sem": None} | LATER for t in expected["trials"]
        ]
        assert len(study.history) == expected["history"]
        assert path.read_bytes() == (FIXTURES / "study_v2.db").read_bytes()
        for trial in study.pending:
            study.tell(trial, 1.0 + trial.id / 100, seconds=0.25)
        for _ in expected["next"]:
            (trial,) = study.ask()
            study.tell(trial, 1.0 + trial.id / 100, seconds=0.25)
        assert len(study.history) == expected["history"]
    connection = sqlite3.connect(path)
    codes = np.array([json.loads(text) for (text,) in connection.execute("SELECT codes FROM trials ORDER BY id")])
    connection.close()
    np.testing.assert_allclose(codes[-len(expected["next"]) :], expected["next"], atol=1e-6)
    assert not check(path)


def test_a_study_of_the_third_format_continues_as_its_code_would(tmp_path: Path) -> None:
    """Bit for bit where the fixture was made. Reals may differ in their last digits on other processors."""
    path = Path(shutil.copy(FIXTURES / "study_v3.db", tmp_path / "a.db"))
    expected = json.loads((FIXTURES / "study_v3.json").read_text())
    with Study.open(path) as study:
        assert [vars(trial) for trial in study.trials] == [t | {"sem": None} | LATER for t in expected["trials"]]
        assert study.options["noise"] == "auto"
        assert len(study.history) == expected["history"]
        assert not check(path)
        assert path.read_bytes() == (FIXTURES / "study_v3.db").read_bytes()
        for trial in study.pending:
            study.tell(trial, 1.0 + trial.id / 100, seconds=0.25)
        for _ in expected["next"]:
            (trial,) = study.ask()
            study.tell(trial, 1.0 + trial.id / 100, seconds=0.25)
        study.correct(trial, sem=0.25)
    connection = sqlite3.connect(path)
    codes = np.array([json.loads(text) for (text,) in connection.execute("SELECT codes FROM trials ORDER BY id")])
    assert connection.execute("PRAGMA user_version").fetchone() == (6,)
    (after,) = connection.execute("SELECT uuid FROM study").fetchone()
    connection.close()
    np.testing.assert_allclose(codes[-len(expected["next"]) :], expected["next"], atol=1e-6)
    connection = sqlite3.connect(FIXTURES / "study_v3.db")
    assert connection.execute("SELECT uuid FROM study").fetchone() == (after,)  # it is still the same study
    connection.close()
    assert not check(path)
    with Study.open(path) as study:
        assert study.trials[trial.id].sem == 0.25


def test_a_study_of_the_fourth_format_continues_as_its_code_would(tmp_path: Path) -> None:
    """Bit for bit where the fixture was made. Reals may differ in their last digits on other processors."""
    path = Path(shutil.copy(FIXTURES / "study_v4.db", tmp_path / "a.db"))
    expected = json.loads((FIXTURES / "study_v4.json").read_text())
    with Study.open(path) as study:
        assert [vars(trial) for trial in study.trials] == [t | LATER for t in expected["trials"]]
        assert len(study.history) == expected["history"]
        assert not check(path)
        assert path.read_bytes() == (FIXTURES / "study_v4.db").read_bytes()
        for trial in study.pending:
            study.tell(trial, 1.0 + trial.id / 100, seconds=0.25)
        for _ in expected["next"]:
            (trial,) = study.ask()
            study.tell(trial, 1.0 + trial.id / 100, seconds=0.25)
    connection = sqlite3.connect(path)
    codes = np.array([json.loads(text) for (text,) in connection.execute("SELECT codes FROM trials ORDER BY id")])
    assert connection.execute("PRAGMA user_version").fetchone() == (6,)
    connection.close()
    np.testing.assert_allclose(codes[-len(expected["next"]) :], expected["next"], atol=1e-6)
    assert not check(path)


def test_a_study_of_the_fifth_format_repeats_no_points_as_its_code_would_not(tmp_path: Path) -> None:
    """Its values are nothing but noise. Reals may differ in their last digits on other processors."""
    path = Path(shutil.copy(FIXTURES / "study_v5.db", tmp_path / "a.db"))
    expected = json.loads((FIXTURES / "study_v5.json").read_text())
    with Study.open(path) as study:
        assert [vars(trial) for trial in study.trials] == [t | NEWEST for t in expected["trials"]]
        assert len(study.history) == expected["history"]
        assert path.read_bytes() == (FIXTURES / "study_v5.db").read_bytes()
        for _ in expected["next"]:
            (trial,) = study.ask()
            strength = {"strength": 2.0 * trial.point["depth"]}
            study.tell(trial, np.random.default_rng(trial.id).normal(), constraints=strength, seconds=0.25)
        assert all(trial.repeats is None for trial in study.trials)
    connection = sqlite3.connect(path)
    codes = np.array([json.loads(text) for (text,) in connection.execute("SELECT codes FROM trials ORDER BY id")])
    connection.close()
    np.testing.assert_allclose(codes[-len(expected["next"]) :], expected["next"], atol=1e-6)
    assert not check(path)


def test_damage_to_a_study_of_the_third_format_is_noticed_and_repaired(tmp_path: Path) -> None:
    path, out = Path(shutil.copy(FIXTURES / "study_v3.db", tmp_path / "a.db")), tmp_path / "saved.db"
    damage(path, "UPDATE trials SET value = value + 1 WHERE id = 1")
    with pytest.raises(InvalidStudy, match="row 1 of its table trials is not what was written"):
        Study.open(path)
    done = repair(path, out)
    assert (done.exact, done.lost.ids) == (False, [1])
    expected = json.loads((FIXTURES / "study_v3.json").read_text())["trials"]
    with Study.open(out) as study:
        assert [vars(t) for t in study.trials if t.id != 1] == [
            t | {"sem": None} | LATER for t in expected if t["id"] != 1
        ]
        study.tell(study.pending[0], 1.0, sem=0.5)
    assert not check(out)


def test_a_kill_while_a_file_is_upgraded_loses_nothing(tmp_path: Path) -> None:
    """At any boundary of a transaction, the file is of the third format or of this one, and whole."""
    event, status = 0, 1
    while status != 0:
        path = Path(shutil.copy(FIXTURES / "study_v3.db", tmp_path / f"{event}.db"))

        def told(path: Path = path) -> None:
            with Study.open(path) as study:
                if study.pending:
                    study.tell(study.pending[0], 0.5, sem=0.25)

        def dying(told: Callable[[], None] = told, event: int = event) -> None:
            with dying_at(event):
                told()

        _, status = os.waitpid(in_a_child(dying), 0)
        assert status == 0 or killed(status)
        assert not check(path)
        told()
        assert not check(path)
        with Study.open(path) as study:
            assert [t.sem for t in study.trials if t.sem is not None] == [0.25]
            assert not study.pending
        event += 1
    assert event > 5


@pytest.mark.slow
def test_no_flipped_bit_changes_a_study_unseen(tmp_path: Path) -> None:
    path, flipped = tmp_path / "a.db", tmp_path / "b.db"
    made(path)
    with Study.open(path) as study:
        study.correct(3, 7.0, reason="a typo")
        trials, history = study.trials, study.history
    data, rng = path.read_bytes(), random.Random(0)
    found = Counter[bool]()
    for _ in range(400):
        bits = bytearray(data)
        place = rng.randrange(8 * len(bits))
        bits[place // 8] ^= 1 << (place % 8)
        flipped.write_bytes(bits)
        try:
            with Study.open(flipped) as study:
                assert (study.trials, study.history) == (trials, history), f"bit {place}"
                found[True] += 1
        except BounceError:
            found[False] += 1
            assert check(flipped)
    assert min(found.values()) > 40  # unused bytes of pages, and the others


def test_a_readable_point_that_is_not_that_of_its_codes_is_found_in_old_files_too(tmp_path: Path) -> None:
    path = Path(shutil.copy(FIXTURES / "study_v1.db", tmp_path / "a.db"))
    assert not check(path)
    connection = sqlite3.connect(path)
    connection.execute("UPDATE trials SET point = json_set(point, '$.depth', 1 + json_extract(point, '$.depth') % 9)")
    connection.commit()
    connection.close()
    assert "the point of trial 0 is not the one of its codes" in check(path)


# repair


def damage(path: Path, statement: str) -> None:
    connection = sqlite3.connect(path)
    connection.execute(statement)
    connection.commit()
    connection.close()


def kept(study: Study) -> list[Any]:
    return [(t.id, t.state, t.value, t.sem, t.point, t.notes) for t in study.trials]


def in_every_state(path: Path) -> list[Any]:
    """Make a study with trials in every state, and return them."""
    with Study.open(path, space=mixed(), **OPTIONS | {"budget": 30}) as study:
        for _ in range(6):
            (trial,) = study.ask()
            study.tell(trial, value(trial.point), sem=trial.id / 8 if trial.id % 2 else None)
        study.fail(study.ask(), "burnt")
        study.withdraw(study.ask())
        study.enqueue({"depth": 2})
        asked = study.ask(2)
        study.enqueue({"depth": 3})
        study.add([asked[0].point | {"x": 0.5}], [0.75], sems=[0.0])
        study.note(2, "stirred")
        narrow = Space([p if p.name != "x" else Real("x", -0.9, 1.0) for p in study.space.parameters])
        study.change(narrow)
        return kept(study)


@pytest.mark.parametrize("head", [False, True])
def test_a_repair_saves_what_is_intact_with_its_ids_and_states(tmp_path: Path, head: bool) -> None:
    path, out = tmp_path / "a.db", tmp_path / "saved.db"
    before = in_every_state(path)
    with Study.open(path) as study:
        remaining, entries = study.remaining, study.history
    damage(path, "UPDATE trials SET value = value + 1 WHERE id = 1")
    if head:
        damage(path, "UPDATE study SET rng = '{}'")
    files_before = files(tmp_path)
    done = repair(path, out)
    assert (done.exact, done.saved, done.lost.ids) == (False, len(before) - 1, [1])
    assert {name: content for name, content in files(tmp_path).items() if name in files_before} == files_before
    with Study.open(out) as study:
        assert [fact for fact in kept(study) if fact[0] != 1] == [fact for fact in before if fact[0] != 1]
        assert kept(study)[1] == (1, "outside", None, None, {}, {"note": "lost: its row in the file was damaged"})
        assert study.history[:-1] == entries
        assert study.remaining == remaining + 1  # nobody knows what the lost one has cost
        study.run(value)
        assert study.done
    assert not check(out)


def test_a_repair_of_a_study_with_a_damaged_history_continues_it_exactly(tmp_path: Path) -> None:
    path, out, whole = tmp_path / "a.db", tmp_path / "saved.db", tmp_path / "whole.db"
    made(path)
    with Study.open(path) as study:
        study.extend(16)
    shutil.copyfile(path, whole)
    connection = sqlite3.connect(path)
    connection.execute("UPDATE history SET reason = 'forged'")
    connection.commit()
    connection.close()
    with pytest.raises(InvalidStudy, match="row 1 of its table history is not what was written"):
        Study.open(path)
    assert repair(path, out).exact
    with Study.open(out) as saved, Study.open(whole) as study:
        saved.run(value)
        study.run(value)
        assert [(t.id, t.point, t.value) for t in saved.trials] == [(t.id, t.point, t.value) for t in study.trials]


NEWEST_GONE = {
    "deleted": lambda path: damage(path, "DELETE FROM trials WHERE id >= 9"),
    "table": lambda path: damage(path, "DROP TABLE trials"),
    "page": lambda path: zero_the_newest_page(path),
}


def zero_the_newest_page(path: Path) -> None:
    """Set the right-most page of the trials to zero."""
    connection = sqlite3.connect(path)
    (size,), (root,) = (
        connection.execute(query).fetchone()
        for query in ("PRAGMA page_size", "SELECT rootpage FROM sqlite_master WHERE name = 'trials'")
    )
    connection.close()
    pages = bytearray(path.read_bytes())
    start = (root - 1) * size
    assert pages[start] == 5  # an inner page, which names the right-most one
    last = int.from_bytes(pages[start + 8 : start + 12], "big")
    pages[(last - 1) * size : last * size] = bytes(size)
    path.write_bytes(pages)


@pytest.mark.parametrize("harm", NEWEST_GONE)
def test_a_repair_lists_the_newest_trials_that_are_lost_and_gives_their_ids_to_nobody(
    tmp_path: Path, harm: str
) -> None:
    path, out = tmp_path / "a.db", tmp_path / "saved.db"
    trials = made(path, budget=20)
    with Study.open(path) as study:  # a correction and a note are no trials
        study.correct(2, 7.0)
        study.note(3, "stirred")
        study.extend(24)
        trials = study.trials
    NEWEST_GONE[harm](path)
    assert check(path)
    done = repair(path, out)
    n = done.saved
    assert n < 20
    assert (done.exact, done.again, done.lost) == (False, False, Lost(list(range(n, 20)), certain=False))
    with Study.open(out) as study:
        assert study.trials[:n] == trials[:n]
        assert [t.state for t in study.trials[n:]] == ["outside"] * (20 - n)
        assert study.remaining == 24 - n
        assert [t.id for t in study.ask()] == [20]
    assert not check(out)


def test_a_repair_counts_no_correction_no_retry_and_no_trial_outside_as_lost(tmp_path: Path) -> None:
    path, out = tmp_path / "a.db", tmp_path / "saved.db"
    in_every_state(path)
    with Study.open(path) as study:
        study.correct(2, 7.0)
        study.retry()
        study.change(Space([p if p.name != "x" else Real("x", 0.0, 1.0) for p in study.space.parameters]))
        study.tell(study.ask(2), [0.5, 0.25])  # the queued one and a new one
        assert {t.state for t in study.trials} >= {"done", "added", "pending", "outside"}
        newest = study.trials[-1].id
    damage(path, f"DELETE FROM trials WHERE id = {newest}")
    assert repair(path, out).lost == Lost([newest], certain=False)
    damage(out, f"DELETE FROM trials WHERE id = {newest - 1}")
    assert repair(out, tmp_path / "again.db").lost == Lost([newest - 1], certain=False)


@pytest.mark.parametrize(("version", "lost"), [(1, [11, 12]), (2, [16, 17, 18]), (5, [26, 27, 28])])
def test_the_newest_trials_of_earlier_formats_are_missed_too(tmp_path: Path, version: int, lost: list[int]) -> None:
    path = Path(shutil.copy(FIXTURES / f"study_v{version}.db", tmp_path / "a.db"))
    assert repair(path, tmp_path / "whole.db").lost == Lost([], certain=True)
    damage(path, "DELETE FROM trials WHERE id >= (SELECT max(id) - 2 FROM trials)")  # in the first, the last is pending
    assert repair(path, tmp_path / "saved.db").lost == Lost(lost, certain=False)


@pytest.mark.parametrize(("tells", "most"), [(2**40, 40), ("'many'", 0)])
def test_a_damaged_counter_of_an_earlier_format_does_not_make_trials_without_end(
    tmp_path: Path, tells: object, most: int
) -> None:
    path, out = Path(shutil.copy(FIXTURES / "study_v1.db", tmp_path / "a.db")), tmp_path / "saved.db"
    damage(path, f"UPDATE study SET tells = {tells}")
    done = repair(path, out)
    assert (done.saved, len(done.lost.ids)) == (14, most)
    assert not check(out)


def test_a_repair_notices_that_a_trial_without_a_result_is_lost(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with Study.open(path, space=mixed(), **OPTIONS) as study:
        study.ask(3)
    damage(path, "DELETE FROM trials WHERE id > 0")
    done = repair(path, tmp_path / "saved.db")
    assert (done.exact, done.lost) == (False, Lost([1], certain=False))  # nothing shows that there was a third one


def test_without_the_row_of_the_study_only_the_history_shows_newer_trials(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    made(path)
    with Study.open(path) as study:
        study.note(10, "stirred")
    damage(path, "DELETE FROM trials WHERE id >= 9")
    damage(path, "UPDATE study SET rng = '{}'")
    done = repair(path, tmp_path / "saved.db")
    assert (done.again, done.lost) == (True, Lost([9, 10], certain=False))


def test_a_damaged_row_of_the_study_does_not_hide_that_all_trials_are_there(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    made(path)
    damage(path, "UPDATE study SET rng = '{}'")
    done = repair(path, tmp_path / "saved.db")
    assert (done.again, done.lost, done.lost_history) == (True, Lost([], certain=True), Lost([], certain=True))


@pytest.mark.parametrize(
    ("statement", "lost"),
    [
        ("UPDATE history SET reason = 'forged' WHERE id = 2", Lost([2], certain=True)),
        ("DELETE FROM history WHERE id = 2", Lost([2], certain=False)),
        ("DELETE FROM history WHERE id = 3", Lost([3], certain=False)),
        ("DROP TABLE history", Lost([1], certain=False)),
    ],
)
def test_a_repair_lists_what_is_lost_of_the_history(tmp_path: Path, statement: str, lost: Lost) -> None:
    path, out = tmp_path / "a.db", tmp_path / "saved.db"
    made(path)
    with Study.open(path) as study:
        for i in range(3):
            study.note(i, "stirred")
        trials, entries = study.trials, study.history
    damage(path, statement)
    done = repair(path, out)
    assert (done.exact, done.lost, done.lost_history) == (True, Lost([], certain=True), lost)
    with Study.open(out) as study:
        assert study.trials == trials
        kept_entries = [] if "DROP" in statement else [e for i, e in enumerate(entries, 1) if i not in lost.ids]
        assert study.history[:-1] == kept_entries
        assert study.history[-1].after == {"from": str(path), "lost": [], "lost_history": lost.ids}


def test_a_repair_overwrites_nothing_and_says_what_cannot_be_repaired(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    made(path)
    with pytest.raises(BounceError, match=r"a\.db already exists: choose another name"):
        repair(path, path)
    connection = sqlite3.connect(path)
    connection.execute("UPDATE study SET space = 'gone'")
    connection.commit()
    connection.close()
    with pytest.raises(InvalidStudy, match="cannot be repaired: its parameters or its options are lost"):
        repair(path, tmp_path / "b.db")
    assert not (tmp_path / "b.db").exists()


def test_a_repair_refuses_the_file_of_a_newer_release_as_opening_does(tmp_path: Path) -> None:
    path, out = tmp_path / "a.db", tmp_path / "saved.db"
    made(path)
    damage(path, "PRAGMA user_version = 99")
    with pytest.raises(InvalidStudy) as opened:
        Study.open(path)
    with pytest.raises(InvalidStudy) as repaired:
        repair(path, out)
    assert str(repaired.value) == str(opened.value)
    assert "has format 99, and this release reads formats up to 6: use a newer release" in str(repaired.value)
    assert not out.exists()


# creation


def race(path: Path, _: int) -> None:
    with Study.open(path, space=mixed(), budget=60, seed=0) as study:
        study.ask()


@pytest.mark.slow
def test_processes_that_create_one_study_at_the_same_time_share_it(tmp_path: Path) -> None:
    for attempt in range(3):
        together(race, tmp_path / f"{attempt}.db", 6)
        with Study.open(tmp_path / f"{attempt}.db") as study:
            assert [trial.id for trial in study.pending] == list(range(6))


def test_a_journal_without_its_study_is_not_thrown_away(tmp_path: Path) -> None:
    made(tmp_path / "a.db")
    faults.hot_journal(tmp_path / "a.db")
    (tmp_path / "a.db").rename(tmp_path / "elsewhere.db")
    before = (tmp_path / "a.db-journal").read_bytes()
    with pytest.raises(InvalidStudy, match=r"a\.db-journal beside .* does not belong to it"):
        Study.open(tmp_path / "a.db", space=mixed(), budget=3)
    assert (tmp_path / "a.db-journal").read_bytes() == before


def test_an_empty_file_of_the_user_becomes_a_study(tmp_path: Path) -> None:
    (tmp_path / "a.db").touch()
    made(tmp_path / "a.db")
    assert not check(tmp_path / "a.db")


# other programs


HOSTILE = {
    "trigger": "CREATE TRIGGER t AFTER UPDATE ON trials BEGIN UPDATE trials SET value = -999 WHERE id = NEW.id; END",
    "view": "CREATE VIEW v AS SELECT * FROM trials",
    "index": "CREATE INDEX i ON trials (value)",
    "table": "CREATE TABLE extra (a)",
    "column": "ALTER TABLE trials ADD COLUMN extra",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_schema_that_is_not_exactly_ours_is_refused(tmp_path: Path, name: str) -> None:
    path = tmp_path / "a.db"
    made(path)
    connection = sqlite3.connect(path)
    connection.execute(HOSTILE[name])
    connection.close()
    with pytest.raises(InvalidStudy, match=r"was changed by another program: see .* in its schema"):
        Study.open(path)


def test_a_trigger_that_appears_while_a_study_is_open_stores_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with Study.open(path, space=mixed(), **OPTIONS) as study:
        (trial,) = study.ask()
        connection = sqlite3.connect(path)
        connection.execute(HOSTILE["trigger"])
        with pytest.raises(InvalidStudy, match="changed by another program"):
            study.tell(trial, 0.5)
        connection.execute("DROP TRIGGER t")
        connection.close()
        study.tell(trial, 0.5)
        assert study.trials[0].value == 0.5


@pytest.mark.slow
def test_a_huge_cell_is_a_sentence_not_a_full_memory(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    made(path)
    connection = sqlite3.connect(path)
    connection.execute("UPDATE trials SET error = zeroblob(80000000) WHERE id = 1")
    connection.commit()
    connection.close()
    with pytest.raises(InvalidStudy, match="damaged"):
        Study.open(path)


# several processes


def test_of_two_writers_without_a_lock_the_second_is_told_and_overwrites_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Lock, "acquire", lambda *_, **__: True)
    monkeypatch.setattr(Lock, "release", lambda *_: None)
    path = tmp_path / "a.db"
    with Study.open(path, space=mixed(), **OPTIONS) as one, Study.open(path) as two:
        (trial,) = one.ask()
        with two._keeper.changing() as late:  # read before the other one writes
            one.tell(trial, 0.25)
            late.tell(trial.id, 0.75)
            with pytest.raises(StudyLocked, match=r"another process changed the study .*a\.db at the same time"):
                two._keeper.save(late)
            two._keeper._known = None
        assert two.trials[0].value == 0.25
        (other,) = two.ask()
        two.tell(other, 0.5)
        assert [t.value for t in one.trials] == [0.25, 0.5]
    assert not check(path)


def busy(path: Path, i: int) -> None:
    with Study.open(path) as study, suppress(NothingToAsk):
        while True:
            (trial,) = study.ask()
            study.tell(trial, float(trial.id), note=str(i))


def together(work: Callable[[Path, int], object], path: Path, n: int) -> None:
    """Do work on a file in several processes that begin at the same time."""
    gate, go = os.pipe()

    def begin(i: int) -> None:
        os.close(go)
        os.read(gate, 1)  # until the other end is closed
        work(path, i)

    pids = [in_a_child(lambda i=i: begin(i)) for i in range(n)]  # type: ignore[misc]
    os.close(go)
    for pid in pids:
        assert os.waitpid(pid, 0)[1] == 0
    os.close(gate)


@pytest.mark.slow
def test_processes_that_ask_without_pause_get_their_turns(tmp_path: Path) -> None:
    path, n = tmp_path / "a.db", 6
    Study.open(path, space=mixed(), budget=180, seed=0, initial_points=180).close()
    together(busy, path, n)
    with Study.open(path) as study:
        assert study.status.done == 180
        turns = Counter(trial.notes["note"] for trial in study.trials)
    assert len(turns) == n
    assert min(turns.values()) >= 8  # 30 is an equal share


def test_a_repair_without_any_digest_does_not_say_that_nothing_is_lost(tmp_path: Path) -> None:
    path, out = tmp_path / "a.db", tmp_path / "saved.db"
    made(path, budget=8)
    damage(path, "UPDATE study SET trials_digest = 0, history_digest = 0")
    damage(path, "DELETE FROM trials")
    done = repair(path, out)
    assert (done.saved, done.exact, done.lost.certain, done.lost_history.certain) == (0, False, False, False)


@pytest.mark.parametrize("column", ["rng", "head"])
def test_a_position_that_cannot_be_read_begins_the_search_again(tmp_path: Path, column: str) -> None:
    path, out = tmp_path / "a.db", tmp_path / "saved.db"
    trials = made(path, budget=12)
    damage(path, f"UPDATE study SET {column} = substr({column}, 1, length({column}) - 1)")
    done = repair(path, out)
    assert (done.saved, done.again, done.lost.ids) == (len(trials), True, [])
    assert not check(out)


def test_a_damaged_id_does_not_fill_the_memory(tmp_path: Path) -> None:
    path, out = tmp_path / "a.db", tmp_path / "saved.db"
    trials = made(path, budget=8)
    damage(path, f"UPDATE trials SET id = {2**40} WHERE id = {len(trials) - 1}")
    done = repair(path, out)
    assert done.saved == len(trials) - 1
    assert len(trials) - 1 in done.lost.ids
    assert len(done.lost.ids) < 10_000


def test_a_study_that_does_not_exist_is_neither_checked_nor_created(tmp_path: Path) -> None:
    path = tmp_path / "none.db"
    assert check(path) == [f"the study {path} does not exist"]
    with pytest.raises(InvalidStudy, match="does not exist"):
        repair(path, tmp_path / "out.db")
    assert not list(tmp_path.iterdir())
