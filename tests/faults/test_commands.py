"""The commands for damaged studies."""

from __future__ import annotations

import sqlite3

import pytest

from terminal import Said, Terminal


def test_a_whole_study_is_said_to_be_whole(bounce: Terminal) -> None:
    bounce("run", bounce.spec(), "--quiet")
    before = (bounce.folder / "a.db").read_bytes()
    for target in ("a.db", bounce.spec()):
        said = bounce("check", target)
        assert (said.code, said.err) == (0, "")
        assert said.out.endswith("a.db is whole\n")
    assert (bounce.folder / "a.db").read_bytes() == before
    assert bounce("check", "b.db") == Said(2, "", "bounce: the study b.db does not exist\n")


def test_a_damaged_study_is_found_refused_and_repaired(bounce: Terminal) -> None:
    bounce("run", bounce.spec(), "--quiet")
    trials = bounce.trials("a.db")
    connection = sqlite3.connect(bounce.folder / "a.db")
    connection.execute("UPDATE trials SET value = 0.0 WHERE id = 2")
    connection.commit()
    connection.close()
    refused = bounce("best", "a.db")
    assert refused.code == 2
    assert "row 2 of its table trials is not what was written" in refused.err
    assert refused.err.endswith("To save what is intact: bounce repair a.db --out NEW.db\n")
    found = bounce("check", "a.db")
    assert found.code == 1
    assert "row 2 of its table trials is not what was written" in found.err
    saved = bounce("repair", "a.db", "--out", "saved.db")
    assert (saved.code, saved.err) == (0, "")
    assert saved.out == (
        f"saved.db is written with {len(trials) - 1} trials; lost: 2\n"
        "lost trials keep their ids and cost no budget, and the run continues without them\n"
    )
    after = bounce.trials("saved.db")
    assert [t["value"] for t in after] == [None if t["id"] == 2 else t["value"] for t in trials]
    assert after[2]["notes"] == {"note": "lost: its row in the file was damaged"}
    assert bounce("repair", "a.db", "--out", "saved.db").code == 2


LOSSES = {
    "DELETE FROM trials WHERE id IN (1, 4, 5)": (
        "saved.db is written with 3 trials; lost: 1, 4 to 5\n"
        "lost trials keep their ids and cost no budget, and the run continues without them\n"
        "newer trials that had no result yet may be lost too: their ids may be given out again\n"
    ),
    "DELETE FROM history": (
        "saved.db is written: all 6 trials are intact, and the run continues as before\n"
        "lost of the history: change 1, and perhaps newer ones\n"
    ),
    "UPDATE study SET rng = '{}'": (
        "saved.db is written with 6 trials\nthe search begins again with what is saved, since its position is lost\n"
    ),
    "UPDATE study SET trials_digest = 1, history_digest = 1": (
        "saved.db is written with 6 trials\nthe search begins again with what is saved, since its position is lost\n"
        "whether newer trials are lost too cannot be known: their ids may be given out again\n"
        "whether changes of the history are lost cannot be known\n"
    ),
}


@pytest.mark.parametrize("statement", LOSSES)
def test_a_repair_says_what_is_lost_and_what_follows(bounce: Terminal, statement: str) -> None:
    bounce("run", bounce.spec(), "--quiet")
    bounce("note", "a.db", "1", "stirred")
    connection = sqlite3.connect(bounce.folder / "a.db")
    connection.execute(statement)
    connection.commit()
    connection.close()
    assert bounce("repair", "a.db", "--out", "saved.db") == Said(0, LOSSES[statement], "")


def test_a_repair_of_a_whole_study_is_a_copy(bounce: Terminal) -> None:
    bounce("run", bounce.spec(), "--quiet")
    assert bounce("repair", "a.db", "--out", "b.db") == Said(0, "a.db is whole; b.db is a copy of it\n", "")
    assert bounce.trials("b.db") == bounce.trials("a.db")


def test_a_study_that_was_emptied_is_not_begun_again_in_silence(bounce: Terminal) -> None:
    bounce("run", bounce.spec(), "--quiet")
    (bounce.folder / "a.db").write_bytes(b"")
    for command in ("run", "ask"):
        refused = bounce(command, bounce.spec())
        assert refused.code == 2
        assert "a.db is empty, but it was a study: restore it from a backup" in refused.err


def test_looking_at_a_study_makes_no_files(bounce: Terminal) -> None:
    bounce("run", bounce.spec(), "--quiet")
    for name in ("a.db.lock", "a.db.queue"):
        (bounce.folder / name).unlink()
    for command in ("status", "best", "trials", "history", "check"):
        assert bounce(command, "a.db").code == 0
    assert sorted(path.name for path in bounce.folder.iterdir() if path.name.startswith("a.db")) == ["a.db"]
