"""What people know, from the command line: results, starts, corrections, notes, a history, a space that changes."""

from __future__ import annotations

import csv
import io
import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bounce import Binary, Categorical, InvalidTell, Real, Space, Study
from bounce.spec.document import load
from terminal import PARAMETERS, Gate, Said, Terminal

PAST = "x,deep,kernel,value,page\n0.5,yes,rbf,3.5,12\n0.25,no,poly,2.5,\n"
FLASK = '\n[[parameters]]\nname = "flask"\ntype = "integer"\nlow = 1\nhigh = 9\n'


def by_hand(bounce: Terminal, **keys: Any) -> Path:
    return bounce.spec(command=None, **keys)


def write(bounce: Terminal, text: str | bytes, name: str = "t.csv") -> str:
    (bounce.folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    return name


def tell(bounce: Terminal, text: str, *options: str) -> Said:
    return bounce("tell", "a.db", write(bounce, text, "told.csv"), *options)


def states(bounce: Terminal) -> list[str]:
    return [trial["state"] for trial in bounce.trials("a.db")]


def actions(bounce: Terminal) -> list[str]:
    return [entry["action"] for entry in json.loads(bounce("history", "a.db", "--json").out)]


def exported(bounce: Terminal) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO((bounce.folder / "all.csv").read_text(encoding="utf-8"))))


def refused(said: Said) -> str:
    """Return the one sentence of a refusal."""
    assert said.code == 2, said
    assert said.out == ""
    assert said.err.startswith("bounce: ")
    assert said.err.count("\n") == 1
    return said.err


# Results that nobody asked for


def test_past_results_are_added_and_cost_nothing(bounce: Terminal) -> None:
    said = bounce("add", by_hand(bounce), write(bounce, PAST), "--reason", "notebook 7")
    assert said == Said(0, "2 added; 6 left to ask\n", "")
    trials = bounce.trials("a.db")
    assert [(t["point"], t["value"], t["state"], t["notes"]) for t in trials] == [
        ({"x": 0.5, "deep": True, "kernel": "rbf"}, 3.5, "added", {"page": "12"}),
        ({"x": 0.25, "deep": False, "kernel": "poly"}, 2.5, "added", {}),
    ]
    status = bounce("status", "a.db").out
    assert "done     0 of 6, 6 left to ask\n" in status
    assert "added    2 results that were not asked for\n" in status
    assert "time     unknown per ask" in status
    assert "best value 2.5 (trial 1" in bounce("best", "a.db").out
    assert bounce("history", "a.db").out.endswith(" add: trials 0 to 1 (notebook 7)\n")


def test_added_results_are_exported_and_added_elsewhere(bounce: Terminal) -> None:
    bounce("add", by_hand(bounce), write(bounce, PAST))
    bounce("ask", "a.toml")
    bounce("export", "a.db", "all.csv")
    assert "failed or open experiments" in refused(bounce("add", by_hand(bounce, name="b"), "all.csv"))
    said = bounce("add", "a.toml", "all.csv", "--skip-invalid", "--study", "c.db")
    assert said.out == "2 added, 1 skipped; 6 left to ask\n"
    assert [t["notes"] for t in bounce.trials("c.db")] == [{"page": "12"}, {}]
    assert bounce("add", "a.toml", "a.db", "--study", "d.db").out == "2 added; 6 left to ask\n"
    assert [t["notes"] for t in bounce.trials("d.db")] == [{"page": "12"}, {}]
    assert "is the study itself" in refused(bounce("add", "a.toml", "a.db"))
    assert "the study no.db does not exist" in refused(bounce("add", "a.toml", "no.db"))
    assert not (bounce.folder / "no.db").exists()


def test_results_of_another_space_are_refused_or_skipped(bounce: Terminal) -> None:
    space = Space([Real("x", 0, 2), Binary("deep"), Categorical("kernel", ["rbf", "poly"])])
    with Study.open("other.db", space=space, budget=3) as other:
        other.add([{"x": 1.5, "deep": True, "kernel": "rbf"}, {"x": 0.5, "deep": True, "kernel": "rbf"}], [1.0, 2.0])
    by_hand(bounce)
    said = refused(bounce("add", "a.toml", "other.db"))
    assert said == "bounce: other.db, trial 0: 'x' must lie between 0.0 and 1.0, not 1.5\n"
    assert bounce.trials("a.db") == []
    said = bounce("add", "a.toml", "other.db", "--skip-invalid").out
    assert said == "1 added, 1 skipped; 6 left to ask\n"


@pytest.mark.parametrize(
    ("row", "wrong"),
    [
        ("1.5,yes,rbf,1,", "'x' must lie between 0.0 and 1.0, not 1.5"),
        ("0.5,perhaps,rbf,1,", "'deep' must be true or false, not 'perhaps'"),
        ("0.5,yes,RBF,1,", "'kernel' must be one of rbf, poly, linear, not 'RBF'; did you mean 'rbf'?"),
        ("0.5,yes,,1,", "the row has no value for 'kernel'"),
        ("0.5,yes,rbf,failed,", "the row has no value: only results can be added, not failed or open experiments"),
        ("0.5,yes,rbf,nan,", "a value must be a finite number, not 'nan'"),
        ('"0,5",yes,rbf,1,', "'x' must be a number, not '0,5': write a decimal point, 0.5"),
        ('0.5,yes,rbf,"1,5",', "a value must be a finite number, not '1,5': write a decimal point, 1.5"),
    ],
)
def test_a_wrong_row_is_refused_or_skipped_with_its_reason(bounce: Terminal, row: str, wrong: str) -> None:
    bounce("add", by_hand(bounce), write(bounce, PAST))
    table = write(bounce, PAST + row + "\n")
    assert refused(bounce("add", "a.toml", table)) == f"bounce: t.csv, row 4: {wrong}\n"
    assert len(bounce.trials("a.db")) == 2
    said = bounce("add", "a.toml", table, "--skip-invalid", "--again")
    assert said == Said(0, "2 added, 1 skipped; 6 left to ask\n", f"skipped: t.csv, row 4: {wrong}\n")
    assert len(bounce.trials("a.db")) == 4


def test_a_table_that_has_grown_is_added_again(bounce: Terminal) -> None:
    bounce("add", by_hand(bounce), write(bounce, PAST))
    first, *_ = PAST.splitlines()[1:]
    said = bounce("add", "a.toml", write(bounce, PAST + "0.5,no,linear,4,\n" + first + "\n"))
    assert said.out == "2 added, 2 already in the study; 6 left to ask\n"
    assert said.err == (
        "bounce: the study has the results of row 2, row 3 already, with the same settings and value. "
        "If they were measured once more, use --again\n"
    )
    assert bounce("add", "a.toml", "t.csv").out == "0 added, 4 already in the study; 6 left to ask\n"
    assert len(bounce.trials("a.db")) == 4
    assert actions(bounce) == ["add", "add"]


def test_a_result_that_is_in_a_table_twice_is_added_twice_and_named(bounce: Terminal) -> None:
    first = PAST.splitlines()[1]
    said = bounce("add", by_hand(bounce), write(bounce, PAST + first + "\n"))
    assert said.out == "3 added; 6 left to ask\n"
    assert said.err == "bounce: added as measured once more, with the same settings and value: row 4 (as row 2)\n"


@pytest.mark.parametrize(
    ("table", "wrong"),
    [
        (PAST.replace("x,", "x [mol/l],"), "the column 'x [mol/l]' must be called 'x', the name of the parameter"),
        (PAST.replace("kernel", "Kernel"), "the column 'Kernel' must be called 'kernel', the name of the parameter"),
        (PAST.replace("value", "yield"), "the column 'value' is missing; the columns are x, deep, kernel, yield, page"),
        ("x,x,deep,kernel,value\n", "the column 'x' appears twice"),
        (PAST.encode("utf-16"), "the table must be UTF-8; save it as 'CSV UTF-8'"),
    ],
)
def test_tables_of_spreadsheets_that_cannot_be_read_are_explained(
    bounce: Terminal, table: str | bytes, wrong: str
) -> None:
    assert refused(bounce("add", by_hand(bounce), write(bounce, table))) == f"bounce: t.csv, row 1: {wrong}\n"
    assert not (bounce.folder / "a.db").exists()


def test_byte_order_marks_line_ends_and_empty_columns_of_spreadsheets_do_no_harm(bounce: Terminal) -> None:
    lines = [line + ",," for line in PAST.splitlines()]
    lines = [*lines[:2], lines[2] + ",,", ",,,,,,", lines[1]]  # a longer row, an empty one, a repeated one
    table = write(bounce, b"\xef\xbb\xbf" + "\r\n".join(lines).encode())
    assert bounce("add", by_hand(bounce), table).out == "3 added; 6 left to ask\n"


# Points to try first


def test_points_are_tried_first_in_their_order(bounce: Terminal) -> None:
    bounce("add", by_hand(bounce), write(bounce, PAST))
    table = write(bounce, "kernel,x,idea\nlinear,0.75,of a colleague\n,0.125,\n")
    assert bounce("enqueue", "a.toml", table, "--reason", "why not") == Said(0, "2 queued; 6 left to ask\n", "")
    assert states(bounce) == ["added", "added", "queued", "queued"]
    assert "pending  0, 2 queued\n" in bounce("status", "a.db").out
    assert tell(bounce, "id,value\n2,1\n").err.endswith(
        "row 2: trial 2 is queued and cannot be told: bounce ask gives it out first\n"
    )
    asked = list(csv.DictReader(io.StringIO(bounce("ask", "a.toml", "-n", "3", "--format", "csv").out)))
    assert [(row["id"], row["x"], row["deep"], row["kernel"]) for row in asked[:2]] == [
        ("2", "0.75", "false", "linear"),  # deep is that of the best result
        ("3", "0.125", "false", "poly"),
    ]
    assert asked[0]["idea"] == "of a colleague"
    assert actions(bounce) == ["add", "enqueue", "enqueue"]


def test_a_table_of_points_without_a_parameter_is_refused(bounce: Terminal) -> None:
    by_hand(bounce)
    said = refused(bounce("enqueue", "a.toml", write(bounce, "temperature\n20\n")))
    assert said.endswith("row 1: no column is a parameter (x, deep, kernel); the columns are temperature\n")
    assert "must be called 'x'" in refused(bounce("enqueue", "a.toml", write(bounce, "x (mol),deep\n0.5,yes\n")))
    assert "must lie between" in refused(bounce("enqueue", "a.toml", write(bounce, "x\n0.5\n1.5\n")))
    assert "no rows below the header" in refused(bounce("enqueue", "a.toml", write(bounce, "x,deep\n")))
    assert not (bounce.folder / "a.db").exists()


def test_starts_of_a_spec_are_tried_first(bounce: Terminal) -> None:
    by_hand(bounce, parameters=PARAMETERS + '\n[[start]]\nx = 0.5\n\n[[start]]\nx = 0.75\nkernel = "poly"\n')
    bounce("ask", "a.toml", "-n", "2")
    assert [trial["point"]["x"] for trial in bounce.trials("a.db")] == [0.5, 0.75]
    assert bounce("history", "a.db").out.endswith(" begin: 0 known results, 2 start points\n")


def test_starts_that_come_too_late_are_pointed_out(bounce: Terminal) -> None:
    bounce("ask", by_hand(bounce))
    by_hand(bounce, parameters=PARAMETERS + "\n[[start]]\nx = 0.5\n")
    said = bounce("ask", "a.toml")
    assert said.code == 0
    assert said.err.startswith("bounce: start points of a spec are used only when its study is created.")
    assert bounce("status", "a.toml").err == ""


def test_starts_are_not_lost_if_the_first_command_was_killed(bounce: Terminal) -> None:
    spec = load(by_hand(bounce))
    Study.open("a.db", space=spec.space, **spec.settings).close()  # what a process that is killed then leaves
    assert bounce.trials("a.db") == []
    by_hand(bounce, parameters=PARAMETERS + "\n[[start]]\nx = 0.5\n")
    bounce("ask", "a.toml")
    assert [trial["point"]["x"] for trial in bounce.trials("a.db")] == [0.5]


# Telling


def test_the_same_sheet_is_told_again_and_again(bounce: Terminal) -> None:
    by_hand(bounce)
    bounce("ask", "a.toml", "-n", "3")
    sheet = "id,value,colour\n0,1.5,red\n1,failed,\n2,,\n"
    assert tell(bounce, sheet).out == "2 stored; 1 pending, 3 left to ask\n"
    assert tell(bounce, sheet).out == "0 stored, 2 unchanged; 1 pending, 3 left to ask\n"
    grown = sheet.replace("2,,", "2,2.5,")
    assert tell(bounce, grown).out == "1 stored, 2 unchanged; 0 pending, 3 left to ask\n"
    said = refused(tell(bounce, grown.replace("0,1.5", "0,1.6")))
    assert "trial 0 is already done with the value 1.5. To correct it: bounce correct STUDY 0 VALUE" in said
    assert "trial 1 is already failed" in refused(tell(bounce, grown.replace("1,failed", "1,3")))
    assert bounce.trials("a.db")[0]["notes"] == {"colour": "red"}
    assert actions(bounce) == []


def test_settings_that_differ_are_refused_unless_they_were_really_used(bounce: Terminal) -> None:
    by_hand(bounce)
    bounce("ask", "a.toml", "-n", "2")
    asked = bounce.trials("a.db")
    sheet = "id,x,value\n0,0.3,1\n1,,2\n"
    said = refused(tell(bounce, sheet))
    assert f"row 2: trial 0 has other settings here: x is 0.3, not {asked[0]['point']['x']!r}." in said
    assert said.endswith("If these were really used, add --as-used\n")
    assert bounce.trials("a.db") == asked
    assert tell(bounce, sheet, "--as-used").out == "2 stored; 0 pending, 4 left to ask\n"
    trials = bounce.trials("a.db")
    assert trials[0]["point"] == asked[0]["point"] | {"x": 0.3}
    assert trials[1]["point"] == asked[1]["point"]
    assert actions(bounce) == ["tell"]
    assert bounce("history", "a.db").out.endswith(f" tell trial 0: x {asked[0]['point']['x']!r} -> 0.3\n")
    assert tell(bounce, sheet).out == "0 stored, 2 unchanged; 0 pending, 4 left to ask\n"
    assert "bounce correct STUDY 0 --set" in refused(tell(bounce, sheet.replace("0.3", "0.4"), "--as-used"))


@pytest.mark.parametrize("digits", [15, 10, 6])
def test_numbers_that_a_spreadsheet_has_rounded_are_those_that_were_asked_for(bounce: Terminal, digits: int) -> None:
    by_hand(bounce)
    bounce("ask", "a.toml", "-n", "6")
    asked = bounce.trials("a.db")
    rows = "".join(f"{t['id']},{t['point']['x']:.{digits}g},1\n" for t in asked)
    for options in ((), ("--as-used",)):
        assert tell(bounce, "id,x,value\n" + rows, *options).code == 0
        assert [t["point"] for t in bounce.trials("a.db")] == [t["point"] for t in asked]
    assert actions(bounce) == []


# Mistakes


def finished(bounce: Terminal) -> None:
    """Ask for four trials; 0 and 1 get values, 2 fails, 3 stays pending."""
    by_hand(bounce)
    bounce("ask", "a.toml", "-n", "4")
    assert tell(bounce, "id,value\n0,1.5\n1,2.5\n2,failed\n").code == 0


def test_a_value_is_corrected_and_the_history_has_the_one_before(bounce: Terminal) -> None:
    finished(bounce)
    said = bounce("correct", "a.db", "0", "-0.5", "--reason", "a typo")
    assert said == Said(0, "trial 0 is corrected; bounce history shows what was there before\n", "")
    assert bounce.trials("a.db")[0]["value"] == -0.5
    assert bounce("correct", "a.db", "0", "-0.5").out == "trial 0 said so already\n"
    assert bounce("history", "a.db").out.endswith(" correct trial 0: value 1.5 -> -0.5 (a typo)\n")
    (entry,) = json.loads(bounce("history", "a.db", "--json").out)
    assert entry | {"time": ""} == {
        "time": "",
        "action": "correct",
        "trial": 0,
        "before": {"value": 1.5},
        "after": {"value": -0.5},
        "reason": "a typo",
    }
    assert "best value -0.5" in bounce("best", "a.db").out


def test_settings_are_corrected(bounce: Terminal) -> None:
    finished(bounce)
    before = bounce.trials("a.db")[1]["point"]
    kernel = "poly" if before["kernel"] != "poly" else "rbf"
    assert bounce("correct", "a.db", "1", "--set", "x = 0.5", "--set", f"kernel={kernel}").code == 0
    trial = bounce.trials("a.db")[1]
    assert trial["point"] == before | {"x": 0.5, "kernel": kernel}
    assert trial["value"] == 2.5


def test_a_setting_whose_name_has_an_equals_sign_is_corrected_and_one_that_is_needed_is_named(bounce: Terminal) -> None:
    when = PARAMETERS.replace('name = "x"', 'name = "x=y"\nwhen = {deep = true}')
    by_hand(bounce, parameters=when)
    bounce("ask", "a.toml")
    shallow = {"deep": False, "kernel": "rbf"}
    assert bounce("add", "a.toml", write(bounce, "deep,kernel,x=y,value\nno,rbf,,1\n")).code == 0
    sentence = "bounce: with these settings 'x=y' exists too: add --set x=y=VALUE\n"
    assert refused(bounce("correct", "a.db", "1", "--set", "deep=yes")) == sentence
    assert "--set has 'deep' twice" in refused(bounce("correct", "a.db", "1", "--set", "deep=no", "--set", "deep=yes"))
    assert bounce.trials("a.db")[1]["point"] == shallow
    assert bounce("correct", "a.db", "1", "--set", "deep=yes", "--set", "x=y=0.25").code == 0
    assert bounce.trials("a.db")[1]["point"] == {"x=y": 0.25, "deep": True, "kernel": "rbf"}


@pytest.mark.parametrize(
    ("words", "wrong"),
    [
        (["9", "1"], "there is no trial 9: the ids are 0 to 3"),
        (["9", "--set", "x=0.5"], "there is no trial 9: the ids are 0 to 3"),
        (["0"], "trial 0: give the right value, standard error, outcomes or point"),
        (["0", "--set", "y=0.5"], "--set takes NAME=VALUE with the name of a parameter (x, deep, kernel), not 'y=0.5'"),
        (["0", "--set", "x"], "--set takes NAME=VALUE with the name of a parameter (x, deep, kernel), not 'x'"),
        (["0", "--set", "x=2"], "'x' must lie between 0.0 and 1.0, not 2.0"),
        (["0", "1,5"], "the corrected value must be a number, such as 0.82, not '1,5'"),
        (["0", "nan"], "a value must be a finite number, not nan"),
        (["2", "1"], "trial 2 is failed, not done or added"),
        (["3", "1"], "trial 3 is pending, not done or added"),
    ],
)
def test_a_wrong_correction_is_refused(bounce: Terminal, words: list[str], wrong: str) -> None:
    finished(bounce)
    before = bounce.trials("a.db")
    assert refused(bounce("correct", "a.db", *words)) == f"bounce: {wrong}\n"
    assert bounce.trials("a.db") == before
    assert bounce("history", "a.db").out == "nothing was changed by hand\n"


def test_failed_trials_are_retried(bounce: Terminal) -> None:
    finished(bounce)
    tell(bounce, "id,value\n3,failed\n")
    assert bounce("retry", "a.db", "3", "--reason", "power is back").out == "1 pending again\n"
    assert states(bounce) == ["done", "done", "failed", "pending"]
    assert bounce("retry", "a.db").out == "1 pending again\n"
    assert states(bounce) == ["done", "done", "pending", "pending"]
    assert bounce("retry", "a.db").out == "no trial has failed\n"
    assert refused(bounce("retry", "a.db", "2")) == "bounce: trial 2 is pending, not failed or done\n"
    assert tell(bounce, "id,value\n2,1\n3,2\n").out == "2 stored; 0 pending, 2 left to ask\n"
    assert actions(bounce) == ["retry", "retry"]


def test_pending_trials_are_given_back(bounce: Terminal) -> None:
    finished(bounce)
    assert bounce("withdraw", "a.db", "3", "--reason", "no time").out == "1 withdrawn; 0 pending, 3 left to ask\n"
    assert states(bounce) == ["done", "done", "failed", "withdrawn"]
    assert bounce("history", "a.db").out.endswith(' withdraw trial 3: state "pending" -> "withdrawn" (no time)\n')
    assert "trial 3 is withdrawn and cannot be told" in refused(tell(bounce, "id,value\n3,1\n"))
    assert tell(bounce, "id,value\n0,1.5\n3,\n").code == 0
    sentence = "bounce: trial 3 is withdrawn, not pending, queued, done, failed or added\n"
    assert refused(bounce("withdraw", "a.db", "3")) == sentence
    bounce("ask", "a.toml", "-n", "2")
    assert "named twice" in refused(bounce("withdraw", "a.db", "4", "4"))
    assert "there is no trial 9" in refused(bounce("withdraw", "a.db", "4", "9"))
    assert states(bounce)[4:] == ["pending", "pending"]


def test_results_are_taken_back_and_measured_again(bounce: Terminal) -> None:
    finished(bounce)
    assert bounce("withdraw", "a.db", "0", "2").out == "2 withdrawn; 1 pending, 4 left to ask\n"
    assert bounce("retry", "a.db", "1", "--reason", "contaminated").out == "1 pending again\n"
    assert states(bounce) == ["withdrawn", "pending", "withdrawn", "pending"]
    assert bounce("best", "a.db").out == "no values yet; 2 pending, 0 failed\n"
    assert "(contaminated)" in bounce("history", "a.db").out
    assert "trial 1 was retried after this value" in refused(tell(bounce, "id,value\n1,2.5\n"))
    assert tell(bounce, "id,value,note\n1,2.5,the same again\n").code == 0
    assert bounce("retry", "a.db", "1").code == 0
    entries = json.loads(bounce("history", "a.db", "--json").out)
    assert [entry["before"]["state"] for entry in entries] == ["done", "failed", "done", "done"]
    assert entries[0]["before"]["value"] is not None
    assert bounce("add", "a.toml", write(bounce, PAST)).code == 0
    assert bounce("withdraw", "a.db", "4", "5").out == "2 withdrawn; 2 pending, 4 left to ask\n"
    assert bounce("add", "a.toml", write(bounce, PAST)).out.startswith("2 added")
    assert bounce("check", "a.db").code == 0


def test_comments_that_are_written_into_a_sheet_later_are_kept(bounce: Terminal) -> None:
    finished(bounce)
    value = bounce.trials("a.db")[0]["value"]
    said = tell(bounce, f"id,value,comment\n0,{value},turned brown overnight\n")
    assert said.out == "0 stored, 1 with new notes; 1 pending, 2 left to ask\n"
    assert bounce.trials("a.db")[0]["notes"]["comment"] == "turned brown overnight"
    said = tell(bounce, f"id,value,comment\n0,{value},turned brown overnight\n")
    assert said.out == "0 stored, 1 unchanged; 1 pending, 2 left to ask\n"
    assert actions(bounce) == ["note"]


def test_notes_are_kept_and_exported(bounce: Terminal) -> None:
    finished(bounce)
    assert bounce("note", "a.db", "0", "grün, cloudy").out == "trial 0 has a note\n"
    assert "there is no trial 9" in refused(bounce("note", "a.db", "9", "x"))
    bounce("export", "a.db", "all.csv")
    rows = exported(bounce)
    assert [row["note"] for row in rows] == ["grün, cloudy", "", "", ""]
    assert bounce("history", "a.db").out.endswith(' note trial 0: note "grün, cloudy"\n')


def test_a_study_without_changes_has_an_empty_history(bounce: Terminal) -> None:
    finished(bounce)
    assert bounce("history", "a.db").out == "nothing was changed by hand\n"
    assert json.loads(bounce("history", "a.db", "--json").out) == []


def test_an_ask_says_what_it_reserves(bounce: Terminal) -> None:
    by_hand(bounce, budget=40)
    said = bounce("ask", "a.toml", "-n", "100", "--format", "csv")
    assert said.err.startswith("bounce: this reserves 40 of the 40 trials that are left.")
    assert said.out.count("\n") == 41
    assert bounce("withdraw", "a.db", *map(str, range(40))).out == "40 withdrawn; 0 pending, 40 left to ask\n"
    assert bounce("ask", "a.toml", "-n", "4", "--format", "csv").err == ""
    assert bounce("ask", "a.toml", "-n", "28", "--format", "csv").err.startswith("bounce: this reserves 28 of the 36")
    said = bounce("ask", "a.toml", "-n", "9", "--format", "csv")
    assert said.err == "bounce: only 8 of 9 trials are left\n"
    assert said.out.count("\n") == 9


# Runs


def test_a_run_retries_what_failed(bounce: Terminal) -> None:
    bounce.spec(command=["sh", "-c", 'test "$BOUNCE_TRIAL" = 0 || test -e repaired || exit 3; echo "$0"', "{x}"])
    assert bounce("run", "a.toml", "--quiet").code == 0
    assert states(bounce) == ["done"] + ["failed"] * 5
    (bounce.folder / "repaired").touch()
    assert bounce("run", "a.toml", "--quiet", "--retry-failed").code == 0
    assert states(bounce) == ["done"] * 6
    assert actions(bounce) == ["retry"] * 5


def test_nothing_is_changed_while_a_run_goes_on_but_everything_can_be_read(bounce: Terminal, tmp_path: Path) -> None:
    gate = Gate(tmp_path)
    try:
        bounce.spec(command=gate.command)
        with bounce.start("run", "a.toml", "--quiet") as process:
            gate.wait()
            for words in (
                ["add", "a.toml", write(bounce, PAST)],
                ["enqueue", "a.toml", write(bounce, "x\n0.5\n", "e.csv")],
                ["correct", "a.db", "0", "1"],
                ["withdraw", "a.db", "0"],
                ["note", "a.db", "0", "x"],
            ):
                said = bounce(*words)
                assert said.code == 3
                assert "is being run by process" in said.err
            for words in (["status"], ["trials"], ["history"], ["best"]):
                assert bounce(words[0], "a.db").code == 0
            gate.open()
            gate.let()
            process.communicate(timeout=60)
    finally:
        gate.close()
    assert states(bounce) == ["done"] * 6


# A space that changes


def test_a_refused_command_changes_nothing(bounce: Terminal) -> None:
    finished(bounce)
    before = bounce.trials("a.db")
    other = PARAMETERS.replace('"poly"', '"mlp"')
    by_hand(bounce, parameters=other, seed=7)
    assert "seed is" in refused(bounce("ask", "a.toml", "--change"))
    by_hand(bounce, parameters=other)
    wrong = write(bounce, "x,deep,kernel,value\n0.5,yes,mlp,1\n0.5,yes,poly,2\n")
    assert "'poly'" in refused(bounce("add", "a.toml", wrong, "--change"))
    wrong = write(bounce, "x,kernel\n0.5,mlp\n0.5,poly\n")
    assert "'poly'" in refused(bounce("enqueue", "a.toml", wrong, "--change"))
    assert "does not exist" in refused(bounce("add", "a.toml", "nothing.db", "--change"))
    bounce.spec(budget=40)
    assert "write 'value below" in refused(
        bounce("run", "a.toml", "--retry-failed", "--stop-when", "value above 3", "--quiet")
    )
    assert bounce.trials("a.db") == before
    assert actions(bounce) == []


def test_a_changed_spec_says_what_would_change_and_changes_it_when_told_to(bounce: Terminal) -> None:
    finished(bounce)
    before = bounce.trials("a.db")
    by_hand(bounce, parameters=PARAMETERS.replace('"linear"', '"linear", "mlp"').replace("1.0", "2.0"))
    for words in (["ask"], ["add", write(bounce, PAST)], ["enqueue", write(bounce, "x\n0.5\n", "e.csv")]):
        sentence = refused(bounce(words[0], "a.toml", *words[1:]))
        assert ": x ranges from 0.0 to 2.0 instead of 0.0 to 1.0; kernel gains 'mlp'. " in sentence
        assert "use bounce ask with --change: old results stay where they fit" in sentence
    assert bounce.trials("a.db") == before
    said = bounce("ask", "a.toml", "--change", "--pending")  # changes, and asks for nothing
    assert said.err == "bounce: changed: x ranges from 0.0 to 2.0 instead of 0.0 to 1.0; kernel gains 'mlp'\n"
    after = bounce.trials("a.db")
    assert [t["value"] for t in after] == [t["value"] for t in before]
    assert [t["point"] for t in after] == [t["point"] | {"x": pytest.approx(t["point"]["x"])} for t in before]
    assert bounce("ask", "a.toml").code == 0
    assert bounce("history", "a.db").out.endswith(
        " change: x ranges from 0.0 to 2.0 instead of 0.0 to 1.0; kernel gains 'mlp'\n"
    )


def test_trials_that_no_longer_fit_stay_in_every_table(bounce: Terminal) -> None:
    bounce("add", by_hand(bounce), write(bounce, PAST))
    bounce("enqueue", "a.toml", write(bounce, "x,kernel\n0.5,poly\n0.5,rbf\n", "e.csv"))
    bounce("ask", "a.toml")
    tell(bounce, "id,kernel,value\n2,poly,4\n")
    narrow = PARAMETERS.replace('"poly", ', "") + FLASK
    by_hand(bounce, parameters=narrow)
    assert "'flask' is new. Write its value in the trials so far" in refused(bounce("ask", "a.toml", "--change"))
    by_hand(bounce, parameters=narrow + "default = 3\n")
    said = bounce("ask", "a.toml", "--change")
    assert said.code == 0
    assert said.err == (
        "bounce: changed: flask is added; kernel loses 'poly'; 2 trials no longer fit and leave the model\n"
    )
    assert states(bounce) == ["added", "outside", "outside", "pending"]
    assert [t["point"].get("flask") for t in bounce.trials("a.db")] == [3, 3, 3, 3]
    table = bounce("trials", "a.db").out
    assert "flask" in table
    for form in ("csv", "json", "parquet"):
        assert bounce("export", "a.db", f"all.{form}").code == 0
    rows = exported(bounce)
    assert [row["flask"] for row in rows] == ["3", "3", "3", "3"]
    assert [row["kernel"] for row in rows] == ["rbf", "poly", "poly", "rbf"]
    assert "done     0 of 6, 4 left to ask\n" in bounce("status", "a.db").out
    assert "outside  2 trials that no longer fit the space\n" in bounce("status", "a.db").out
    assert tell(bounce, "id,kernel,value\n2,poly,4\n3,,5\n").out == "1 stored, 1 unchanged; 0 pending, 4 left to ask\n"
    assert "trial 2 is outside and cannot be told" in refused(tell(bounce, "id,value\n2,7\n"))
    assert bounce("history", "a.db").out.endswith("kernel loses 'poly'; 2 trials no longer fit\n")


def test_a_trial_is_the_same_after_a_correction_and_after_a_change() -> None:
    space = Space([Real("x", 0, 1), Binary("deep")])
    with Study.open(space=space, budget=6, seed=0) as study:
        one, two = study.ask(2)
        study.tell(one, 1.0, point=one.point | {"x": 0.5})
        study.note(one, "its point is the one that was asked for")
        study.correct(one, 2.0)
        study.change(Space([Real("x", 0, 3), Binary("deep"), Binary("new")]), {"new": False})
        study.tell(two, 3.0)
        assert [trial.value for trial in study.trials] == [2.0, 3.0]
        with pytest.raises(InvalidTell, match="belongs to another run"):
            study.note(replace(two, point=two.point | {"x": 0.123}), "another point")


def test_results_return_when_a_change_is_undone(tmp_path: Path) -> None:
    space = Space([Real("x", 0, 1), Binary("deep"), Binary("hot")])
    points = [{"x": x, "deep": False, "hot": hot} for x in (0.25, 0.75) for hot in (False, True)]
    with Study.open(tmp_path / "a.db", space=space, budget=6, seed=0) as study:
        study.add(points, [4.0, 3.0, 2.0, 1.0])
        study.enqueue(points[0] | {"x": 0.9})
        study.enqueue(points[0] | {"x": 0.95})
        study.fail(study.ask(1), "it broke")
        study.change(Space([Real("x", 0, 0.5), *space.parameters[1:]]))
        assert [trial.state for trial in study.trials] == ["added", "added", *["outside"] * 4]
        study.change(space)
        assert [trial.state for trial in study.trials] == [*["added"] * 4, "failed", "outside"]
        assert study.remaining == 5
        assert study.best == study.trials[3]
        study.change(Space(space.parameters[:2]), {"hot": False})
        study.change(Space([Real("x", 0, 2), space.parameters[1]]))  # what has another value of hot stays outside
        assert [trial.state for trial in study.trials][:4] == ["added", "outside", "added", "outside"]
        study.ask(2)
    with Study.open(tmp_path / "a.db") as study:
        assert len(study.pending) == 2


LAB = """
[[parameters]]
name = "t"
type = "integer"
low = 0
high = {high}

[[parameters]]
name = "k"
type = "categorical"
choices = ["a", "b"]
"""
SOLVENT = '\n[[parameters]]\nname = "solvent"\ntype = "categorical"\nchoices = ["water", "ethanol"]\n'


@pytest.mark.parametrize(
    ("meanwhile", "after"),
    [
        ("", ["added", "added", "added"]),
        ('\n[fixed]\nsolvent = "water"\n', ["added", "outside", "added"]),
        ('\n[fixed]\nsolvent = "ethanol"\n', ["outside", "added", "outside"]),
    ],
)
@pytest.mark.parametrize("together", [False, True])
def test_a_trial_outside_returns_without_a_parameter_that_was_removed_or_fixed_at_its_value(
    bounce: Terminal, meanwhile: str, after: list[str], together: bool
) -> None:
    def change(parameters: str) -> Said:
        by_hand(bounce, parameters=parameters, direction="maximize")
        said = bounce("ask", "a.toml", "--change", "--pending")
        assert said.code == 0, said.err
        return said

    change(LAB.format(high=120) + SOLVENT)
    bounce("add", "a.toml", write(bounce, "t,k,solvent,value\n10,a,water,1\n20,b,ethanol,2\n100,a,water,44\n"))
    assert change(LAB.format(high=85) + SOLVENT).err.endswith("; 1 trial no longer fits and leaves the model\n")
    assert bounce("status", "a.db").out.count("outside  1 trial that no longer fits the space\n") == 1
    if not together:
        change(LAB.format(high=85) + meanwhile)
        assert states(bounce)[2] == "outside"
    change(LAB.format(high=120) + meanwhile)
    assert states(bounce) == after
    best = {"added": 44.0, "outside": 2.0}[after[2]]
    assert json.loads(bounce("best", "a.db", "--json").out)["best"]["value"] == best
    change(LAB.format(high=119) + meanwhile)  # a value that contradicts a fixed one is remembered
    assert states(bounce) == after
    change(LAB.format(high=119) + SOLVENT.rstrip() + '\ndefault = "water"\n')
    assert states(bounce) == ["added"] * 3
    assert [trial["point"]["solvent"] for trial in bounce.trials("a.db")] == ["water", "ethanol", "water"]


def test_a_value_that_was_removed_is_not_the_one_that_is_fixed(tmp_path: Path) -> None:
    space = Space([Real("x", 0, 1), Categorical("kernel", ["rbf", "poly", "linear"])])
    with Study.open(tmp_path / "a.db", space=space, budget=6, seed=0) as study:
        study.add([{"x": 0.5, "kernel": "poly"}, {"x": 0.5, "kernel": "rbf"}], [1.0, 2.0])
        study.change(Space([space.parameters[0], Categorical("kernel", ["rbf", "linear"])]))
        study.change(Space([space.parameters[0]]), {"kernel": "rbf"})
        study.change(Space([Real("x", 0, 2)]))
        assert [trial.state for trial in study.trials] == ["outside", "added"]


def test_a_frame_has_the_columns_of_both_spaces() -> None:
    pytest.importorskip("pandas")
    with Study.open(space=Space([Real("x", 0, 1), Binary("deep")]), budget=6, seed=0) as study:
        study.add([{"x": 0.5, "deep": True}, {"x": 1.0, "deep": True}], [1.0, 2.0])
        study.change(Space([Real("x", 0, 0.5), Binary("new")]), {"new": False})
        frame = study.to_frame()
    assert list(frame.columns[:5]) == ["id", "x", "new", "deep", "value"]
    assert frame["state"].tolist() == ["added", "outside"]


def test_a_parameter_is_removed_or_fixed(bounce: Terminal) -> None:
    bounce("add", by_hand(bounce), write(bounce, PAST))
    without = PARAMETERS.replace('\n[[parameters]]\nname = "deep"\ntype = "binary"\n', "")
    by_hand(bounce, parameters=without + "\n[fixed]\ndeep = true\n")
    assert "deep is fixed at true. To continue" in refused(bounce("ask", "a.toml"))
    assert bounce("ask", "a.toml", "--change").code == 0
    assert states(bounce) == ["added", "outside", "pending"]
    assert bounce("trials", "a.db").code == 0
    assert bounce("export", "a.db", "all.csv").code == 0
    rows = exported(bounce)
    assert [row["deep"] for row in rows] == ["", "false", ""]


def test_a_name_in_fixed_that_the_study_never_had_is_refused(bounce: Terminal) -> None:
    without = PARAMETERS.replace('\n[[parameters]]\nname = "deep"\ntype = "binary"\n', "")

    def fix(text: str) -> Said:
        by_hand(bounce, parameters=f"{without}\n[fixed]\n{text}\n")
        return bounce("ask", "a.toml", "--change", "-n", "1")

    assert refused(fix("deep = true")).endswith(
        "a.toml, line 16: [fixed] has 'deep', which the study never had. Remove it from [fixed]\n"
    )
    assert not (bounce.folder / "a.db").exists()
    by_hand(bounce)
    bounce("ask", "a.toml")
    assert refused(fix("depe = true")).endswith("which the study never had; did you mean 'deep'?\n")
    assert refused(fix("deep = 'yes'")).endswith(
        "a.toml, line 16: [fixed]: 'deep' must be True or False (or 1 or 0), not 'yes'\n"
    )
    assert bounce("history", "a.db").out == "nothing was changed by hand\n"
    assert fix("deep = true").code == 0
    assert fix("deep = true").code == 0  # which it had once


def test_a_parameter_that_is_put_back_needs_a_value_only_for_the_trials_since(bounce: Terminal) -> None:
    without = PARAMETERS.replace('\n[[parameters]]\nname = "deep"\ntype = "binary"\n', "")
    back = without + '\n[[parameters]]\nname = "deep"\ntype = "binary"\n'
    bounce("add", by_hand(bounce), write(bounce, PAST))
    by_hand(bounce, parameters=without)
    bounce("ask", "a.toml", "--change", "-n", "1")
    by_hand(bounce, parameters=back)
    assert refused(bounce("ask", "a.toml", "--change")).endswith(
        "a.toml: 'deep' is back. Write its value in the trials since it was removed into its table, as default = ...: "
        "those before have their own\n"
    )
    by_hand(bounce, parameters=back + "default = false\n")
    assert bounce("ask", "a.toml", "--change", "--pending").code == 0
    assert [trial["point"]["deep"] for trial in bounce.trials("a.db")] == [True, False, False]


def test_an_outcome_that_is_added_later_can_be_added_to_old_trials(bounce: Terminal) -> None:
    by_hand(bounce)
    bounce("ask", "a.toml", "-n", "1")
    tell(bounce, "id,value\n0,1.5\n")
    said = refused(bounce("correct", "a.db", "0", "--outcome", "ph=4"))
    assert said == (
        "bounce: the study has no outcomes, so 'ph' cannot be corrected. The spec names them, as in "
        'outcomes = ["ph >= 3"]\n'
    )
    by_hand(bounce, outcomes=["ph >= 3"])
    assert bounce("ask", "a.toml", "--change", "--pending").code == 0
    assert refused(tell(bounce, "id,value,ph\n0,1.5,4\n")).endswith(
        "trial 0 is already done without ph. To add it: bounce correct STUDY 0 --outcome ph=4.0\n"
    )
    assert bounce("correct", "a.db", "0", "--outcome", "ph=4").code == 0
    assert tell(bounce, "id,value,ph\n0,1.5,4\n").out.startswith("0 stored, 1 unchanged")


def test_a_run_continues_in_a_changed_space(bounce: Terminal) -> None:
    bounce.spec()
    bounce("run", "a.toml", "--quiet")
    wider = PARAMETERS.replace("high = 1.0", "high = 2.0")
    bounce.spec(budget=8, parameters=wider)
    assert "use bounce run with --change" in refused(bounce("run", "a.toml"))
    assert bounce("run", "a.toml", "--change", "--quiet").code == 0
    assert states(bounce) == ["done"] * 8
    assert actions(bounce) == ["change", "extend"]


# Odd names and old files


def test_parameters_named_like_columns_keep_their_values(bounce: Terminal) -> None:
    odd = (
        '[[parameters]]\nname = "value"\ntype = "real"\nlow = 0\nhigh = 1\n'
        '[[parameters]]\nname = "stir rate"\ntype = "integer"\nlow = 0\nhigh = 900\n'
        '[[parameters]]\nname = "note"\ntype = "categorical"\nchoices = ["a", "b", ""]\n'
    )
    by_hand(bounce, parameters=odd)
    table = write(bounce, "point.value,stir rate,note,value\n0.5,300.0,,7\n")
    assert bounce("add", "a.toml", table).out == "1 added; 6 left to ask\n"
    assert bounce("correct", "a.db", "0", "--set", "stir rate=301", "--set", "value=0.25", "--set", "note=a").code == 0
    assert bounce.trials("a.db")[0]["point"] == {"value": 0.25, "stir rate": 301, "note": "a"}
    for named in ("point.value=0.75", "value=0.25"):  # as it is shown, and as the spec has it
        assert bounce("correct", "a.db", "0", "--set", named).out.startswith("trial 0 is corrected")
    assert 'value 0.5 -> 0.25, stir rate 300 -> 301, note "" -> "a"\n' in bounce("history", "a.db").out
    bounce("export", "a.db", "all.csv")
    assert bounce("add", "a.toml", "all.csv", "--again").out == "1 added; 6 left to ask\n"


def test_a_study_of_the_first_version_takes_what_people_know(bounce: Terminal) -> None:
    shutil.copy(Path(__file__).parent / "fixtures" / "study_v1.db", bounce.folder / "a.db")
    before = bounce.trials("a.db")
    assert bounce("history", "a.db").out == "nothing was changed by hand\n"
    done = next(trial for trial in before if trial["state"] == "done")
    assert bounce("correct", "a.db", str(done["id"]), "0.5").code == 0
    assert bounce("note", "a.db", str(done["id"]), "old").code == 0
    after = bounce.trials("a.db")
    assert len(after) == len(before)
    assert after[done["id"]]["value"] == 0.5
    assert actions(bounce) == ["correct", "note"]


def test_a_sheet_that_repeats_a_failure_does_not_undo_a_retry(bounce: Terminal) -> None:
    by_hand(bounce)
    bounce("ask", "a.toml", "-n", "2")
    sheet = "id,value,error\n0,0.5,\n1,failed,cracked\n"
    assert tell(bounce, sheet).code == 0
    assert bounce("retry", "a.db", "1").code == 0
    refused = tell(bounce, sheet)
    assert refused.code == 2
    assert "trial 1 was retried after this failure: leave its value empty until there is a result" in refused.err
    assert states(bounce)[1] == "pending"
    assert tell(bounce, "id,value,error\n0,0.5,\n1,failed,cracked again\n").code == 0
    assert states(bounce)[1] == "failed"


def test_a_table_with_a_mistake_makes_no_study(bounce: Terminal) -> None:
    by_hand(bounce)
    for command in ("add", "enqueue"):
        assert bounce(command, "a.toml", write(bounce, "kernel,x,value\nnonsense,0.5,\n")).code == 2
    assert not (bounce.folder / "a.db").exists()


def test_a_point_to_try_with_a_value_is_a_result(bounce: Terminal) -> None:
    by_hand(bounce)
    refused = bounce("enqueue", "a.toml", write(bounce, "x,value\n0.5,7\n"))
    assert refused.code == 2
    assert "row 2: a point to try has no value yet: bounce add takes results" in refused.err


def test_results_of_a_study_with_another_direction_are_refused(bounce: Terminal) -> None:
    bounce("run", bounce.spec("other", direction="maximize"), "--quiet")
    bounce("run", bounce.spec(), "--quiet")
    refused = bounce("add", "a.db", "other.db")
    assert refused.code == 2
    assert "other.db is a study to maximize, and this one to minimize" in refused.err


def test_columns_keep_the_order_of_the_spec_beside_partial_points(bounce: Terminal) -> None:
    by_hand(bounce)
    bounce("enqueue", "a.toml", write(bounce, "x\n0.5\n"))
    whole = [line for line in bounce("ask", "a.toml", "-n", "2", "--format", "csv").out.splitlines() if line]
    bounce("enqueue", "a.toml", write(bounce, "x\n0.25\n"))
    listed = bounce("trials", "a.db", "--format", "csv").out.splitlines()
    assert listed[0].startswith(whole[0].removesuffix(",value").split(",value")[0])


# Noise


def test_a_repeat_is_announced_and_shown_beside_its_trial(bounce: Terminal) -> None:
    by_hand(bounce, budget=40, seed=0)
    assert bounce("ask", "a.toml").code == 0
    with Study.open(bounce.folder / "a.db") as study:
        rng = np.random.default_rng(0)
        while len(study.trials) < 24 or study.pending:
            study.tell(study.pending or study.ask(), rng.standard_normal(len(study.pending)))
    said = bounce("ask", "a.toml", "-n", "4")
    again = bounce.trials("a.db")[24]
    assert again["repeats"] is not None
    assert f"trial 24 repeats trial {again['repeats']}: values look noisy" in said.err
    assert "repeats" not in bounce("ask", "a.toml", "--pending").out
    header, *rows = (line for line in bounce("trials", "a.db").out.splitlines() if line[:1] in "┃│")
    place = [cell.strip() for cell in header.split("┃")].index("repeats")
    assert {row.split("│")[place].strip() for row in rows} >= {"", str(again["repeats"])}


def test_standard_errors_are_told_added_corrected_and_exported(bounce: Terminal) -> None:
    past = "x,deep,kernel,value,sem,page\n0.5,yes,rbf,3.5,0.25,12\n0.25,no,poly,2.5,,\n"
    assert bounce("add", by_hand(bounce), write(bounce, past)).out == "2 added; 6 left to ask\n"
    bounce("ask", "a.toml", "-n", "3")
    assert tell(bounce, "id,value,sem\n2,1.5,0.5\n3,4.5,\n4,failed,\n").out.startswith("3 stored; 0 pending")
    assert [t["sem"] for t in bounce.trials("a.db")] == [0.25, None, 0.5, None, None]
    assert bounce.trials("a.db")[0]["notes"] == {"page": "12"}
    said = refused(tell(bounce, "id,value,sem\n2,1.5,0.75\n"))
    assert said.endswith("already done with the standard error 0.5. To correct it: bounce correct STUDY 2 --sem 0.75\n")
    assert bounce("correct", "a.db", "2", "--sem", "0.75", "--reason", "a typo").code == 0
    assert bounce("history", "a.db").out.endswith("correct trial 2: sem 0.5 -> 0.75 (a typo)\n")
    assert bounce("correct", "a.db", "2", "-1.5", "--sem", "unknown").code == 0
    assert [(t["value"], t["sem"]) for t in bounce.trials("a.db")][2] == (-1.5, None)
    assert bounce("correct", "a.db", "2", "--sem", "unknown").out == "trial 2 said so already\n"
    bounce("export", "a.db", "all.csv")
    assert [row["sem"] for row in exported(bounce)] == ["0.25", "", "", "", ""]
    assert " sem " in bounce("trials", "a.db").out
    by_hand(bounce, name="b")
    assert bounce("add", "b.toml", "a.db").code == 0  # with the errors of the other study
    assert [t["sem"] for t in bounce.trials("b.db")] == [0.25, None, None, None]


@pytest.mark.parametrize(
    ("sem", "wrong"),
    [
        ("much", "the corrected standard error must be a number, such as 0.1, or unknown, not 'much'"),
        ("-1", "a standard error must be a finite number that is not negative, not -1.0"),
        ("nan", "a standard error must be a finite number that is not negative, not nan"),
    ],
)
def test_a_wrong_standard_error_is_not_a_correction(bounce: Terminal, sem: str, wrong: str) -> None:
    finished(bounce)
    assert refused(bounce("correct", "a.db", "0", "--sem", sem)) == f"bounce: {wrong}\n"
    assert bounce.trials("a.db")[0]["sem"] is None


def test_one_value_says_nothing_of_its_uncertainty(bounce: Terminal) -> None:
    by_hand(bounce)
    bounce("ask", "a.toml", "-n", "2")
    tell(bounce, "id,value\n0,1.5\n")
    said = bounce("best", "a.db", "--by-model").out
    assert said.startswith("best mean 1.5, standard deviation unknown, as no two values differ (trial 0;")
    tell(bounce, "id,value\n1,2.5\n")
    assert "unknown" not in bounce("best", "a.db", "--by-model").out


def test_the_best_by_the_model_is_not_the_lucky_one(bounce: Terminal) -> None:
    assert bounce("ask", by_hand(bounce)).code == 0
    assert bounce("best", "a.db", "--by-model").out == "no values yet; 1 pending, 0 failed\n"
    empty = json.loads(bounce("best", "a.db", "--by-model", "--json").out)
    assert empty == {"best": None, "mean": None, "deviation": None, "study": "a.db"}
    good, lucky = (
        [f"0.5,yes,rbf,{v}" for v in (1.0, 1.1, 0.9, 0.95)],
        [f"0.1,no,poly,{v}" for v in (0.5, 1.6, 1.5, 1.7)],
    )
    others = [f"0.{i},{deep},linear,{3 + i / 9}" for i in (2, 5, 8) for deep in ("yes", "no")]
    bounce("add", "a.toml", write(bounce, "\n".join(["x,deep,kernel,value", *good, *lucky, *others])))
    assert "best value 0.5 (trial 5" in bounce("best", "a.db").out
    before = (bounce.folder / "a.db").read_bytes()
    said = bounce("best", "a.db", "--by-model").out
    found = json.loads(bounce("best", "a.db", "--by-model", "--json").out)
    assert (bounce.folder / "a.db").read_bytes() == before
    assert found["best"]["point"] == {"x": 0.5, "deep": True, "kernel": "rbf"}
    assert (found["best"]["id"], found["best"]["value"]) == (3, 0.9)
    assert 0.85 < found["mean"] < 1.15
    assert 0.05 < found["deviation"] < 0.4
    head, *rest = said.splitlines()
    numbers = f"best mean {found['mean']:.6g}, standard deviation {found['deviation']:.6g}"
    assert head == f"{numbers} (trial 3; its value is 0.9)"
    assert rest == ["    x = 0.5", "    deep = true", "    kernel = rbf", "study a.db"]


def test_a_spec_says_how_noisy_values_are(bounce: Terminal) -> None:
    spec = by_hand(bounce, parameters=PARAMETERS + "\n[options]\nnoise = 0.5\n")
    assert bounce("ask", spec).code == 0
    with Study.open("a.db") as study:
        assert study.options["noise"] == 0.5
    by_hand(bounce, parameters=PARAMETERS + "\n[options]\nnoise = 0\n")
    said = refused(bounce("ask", "a.toml"))
    assert "noise must be 'auto', 'none' or a positive number, the standard deviation of a value, not 0" in said
    by_hand(bounce, parameters=PARAMETERS, noise=0.5)
    assert "unknown key 'noise' here: it belongs in the table [options]" in refused(bounce("ask", "a.toml"))
