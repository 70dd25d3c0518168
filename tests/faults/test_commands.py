"""The commands for damaged studies."""

from __future__ import annotations

import sqlite3

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
    assert saved.out == f"saved.db is written with {len(trials) - 1} values; lost: trials 2\n"
    assert [trial["value"] for trial in bounce.trials("saved.db")] == [t["value"] for t in trials if t["id"] != 2]
    assert bounce("repair", "a.db", "--out", "saved.db").code == 2
