"""Tables that people fill in: results, past data, points to try."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bounce import Binary, Bounce, Categorical, Integer, InvalidPoint, InvalidTell, Ordinal, Real, Space
from bounce.optimizer.ledger import Tell
from bounce.spaces.mixtures import Mixture
from bounce.spaces.parameters import Parameter
from bounce.spaces.subsets import Subset
from bounce.spec.cells import parsed
from bounce.spec.reading import Table
from bounce.spec.tables import form, to_csv
from bounce.trial import Scalar, State, Trial
from test_tables import read_back, tables

SPACE = Space([Real("x", 0, 2), Categorical("kind", ["a,b", "c", "d"])])
PENDING = [Trial(i, {"x": i / 3, "kind": "a,b"}) for i in range(4)]
TRIALS = [*PENDING, Trial(4, {"x": 0.1, "kind": "c"}, value=2.5, state="done")]


MISTAKABLE: list[Scalar] = ["", " ", "1", 1, None, "null", True, "true"]


def refused(table: str | bytes | Path, trials: list[Trial] = TRIALS) -> str:
    with pytest.raises(InvalidTell) as caught:
        Table(table, SPACE, "lab.csv").results(trials)
    return str(caught.value)


# Results


@given(tables(), st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=4, max_size=4))
def test_a_form_that_is_filled_in_is_read_as_it_is(trials: list[Trial], values: list[float]) -> None:
    """Whatever parameters and choices are called, also where two choices are written alike."""
    space = space_of(trials)
    empty = form(trials)
    assert read_back(empty)[0][-1] == "value"
    rows = read_back(empty)
    for row, value in zip(rows[1:], values, strict=False):
        assert row[-1] == ""
        row[-1] = repr(value)
    text = io.StringIO(newline="")
    csv.writer(text).writerows(rows)  # as a spreadsheet would save it, with CRLF
    told = Table(text.getvalue(), space).results(trials)
    assert told.outcomes == [Tell(trial.id, value) for trial, value in zip(trials, values, strict=False)]
    assert told.unchanged == []
    for table in (empty, to_csv(trials)):
        with pytest.raises(InvalidTell, match="no row has a value yet"):
            Table(table, space).results(trials)


def space_of(trials: list[Trial]) -> Space:
    """A space of categories that holds the points of some trials, and choices that are easily mistaken."""
    return Space(
        [Categorical(name, distinct([*MISTAKABLE, *(t.point[name] for t in trials)])) for name in trials[0].point]
    )


def distinct(values: list[Scalar]) -> list[Scalar]:
    """Tell values apart as JSON does: true is not 1, but 1 is 1.0."""
    first: dict[Any, Scalar] = {}
    for value in values:
        first.setdefault((isinstance(value, bool), value), value)
    return list(first.values())


@pytest.mark.parametrize(
    ("table", "told"),
    [
        ("id,value\n0,1\n1,-2.5e-3\n", [(0, 1.0, None), (1, -2.5e-3, None)]),
        ("ID,Value\n0,1\n", [(0, 1.0, None)]),
        ("Id,VALUE,State,ERROR\n0,failed,Failed,no yield\n", [(0, None, "no yield")]),
        ("id,value\r\n2,1\r\n\r\n", [(2, 1.0, None)]),
        (b"\xef\xbb\xbfid,value\n2,1", [(2, 1.0, None)]),
        ("\ufeffid,value\n2,1", [(2, 1.0, None)]),
        (' id , value \n"1", 3 \n', [(1, 3.0, None)]),
        ('id,x,value,kind,id2\n3,1.0,4,"a,b",9\n', [(3, 4.0, None)]),
        ('id,x,value,lab\n0,,4,"a,b\n""c"""\n', [(0, 4.0, None)]),
        ("value,id\n4,3\n,,\n", [(3, 4.0, None)]),
        ("value,id\n4,3\n,\n5,0\n", [(3, 4.0, None), (0, 5.0, None)]),
        ("id,value\n0,failed\n1,Failed\n2,3", [(0, None, None), (1, None, None), (2, 3.0, None)]),
        (
            "id,value,state\n0,,failed\n1,,FAILED\n2,failed,failed",
            [(0, None, None), (1, None, None), (2, None, None)],
        ),
        ("id,value,error\n0,failed,no yield\n1,2,", [(0, None, "no yield"), (1, 2.0, None)]),
        ("id,value,state,error\n0,1,pending,\n1,2,done,\n2,3,,", [(0, 1.0, None), (1, 2.0, None), (2, 3.0, None)]),
        ("id,value,state\n0,,pending\n1,,\n2,7,\n4,,\n", [(2, 7.0, None)]),
        ("id,value\n0,-0\n", [(0, 0.0, None)]),
    ],
)
def test_results_are_read(table: str | bytes, told: list[Any], tmp_path: Path) -> None:
    read = Table(table, SPACE).results(TRIALS)
    assert repr([(row.id, row.value, row.error) for row in read.outcomes]) == repr(told)
    assert {(row.point, row.seconds) for row in read.outcomes} == {(None, None)}
    assert read.unchanged == []
    path = tmp_path / "lab.csv"
    path.write_bytes(table.encode() if isinstance(table, str) else table)
    assert Table(path, SPACE).results(TRIALS) == read


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ("", "lab.csv: the table is empty; it needs the columns id and value"),
        ("\n\n", "lab.csv: the table is empty"),
        ("id,value\n", "lab.csv: the table has no rows below the header"),
        (
            "id,value\n0,\n1, \n",
            "lab.csv: no row has a value yet; write a number or 'failed' in the column value",
        ),
        ("id;wert\n0;1\n", "lab.csv, row 1: the column 'value' is missing; the columns are id, wert"),
        (
            "id;value\n0;1,5\n1;1.500\n",
            "lab.csv, row 3: '1,5' in row 2 has a decimal comma, and '1.500' in row 3 a point: write all numbers alike",
        ),
        (
            "id;value\n0;1.000,5\n",
            "row 2: a value must be a finite number or 'failed', not '1.000,5': write it without",
        ),
        ("id,x\n0,1\n", "lab.csv, row 1: the column 'value' is missing; the columns are id, x"),
        ("0,1\n", "lab.csv, row 1: the column 'id' is missing; the columns are 0, 1"),
        ("id,value,value\n0,1,2\n", "lab.csv, row 1: the column 'value' appears twice"),
        (
            "id,value\n0,1\n1,0,5\n",
            "lab.csv, row 3: the row has 3 fields, but the header has 2; where commas separate the columns, numbers",
        ),
        ("id,x,value\n0,1\n", "lab.csv, row 2: the row has 2 fields, but the header has 3"),
        ("id,x,value\n0\n", "lab.csv, row 2: the row has 1 field, but the header has 3"),
        (
            'id,value\n0,"0,5"\n',
            "row 2: a value must be a finite number or 'failed', not '0,5': write a decimal point, 0.5",
        ),
        ("id,value\n0,1\n\n7,2\n", "lab.csv, row 4: trial 7 does not exist"),
        ('id,lab,value\n0,"a\nb\n",1\n7,,2\n', "lab.csv, row 5: trial 7 does not exist"),
        ("id,value\n0,1\n7,\n", "lab.csv, row 3: trial 7 does not exist"),
        ("id,value\n0,1\n1,2\n0,3\n", "lab.csv, row 4: trial 0 is already in row 2"),
        (
            "id,value\n0,1\n4,2\n",
            "lab.csv, row 3: trial 4 is already done with the value 2.5. To correct it: bounce correct STUDY 4 VALUE",
        ),
        ("id,value\n0,1\n4,failed\n", "lab.csv, row 3: trial 4 is already done with the value 2.5."),
        *(
            (f"id,value\n{given},1\n", f"lab.csv, row 2: an id must be the number of a trial, not {given!r}")
            for given in ("-1", "1.0", "one", "", "٣", "1" * 5000)
        ),
        *(
            (
                f"id,value\n1,{given}\n",
                f"lab.csv, row 2: a value must be a finite number or 'failed', not {given!r}",
            )
            for given in ("nan", "inf", "-Infinity", "1e999", "ok", "1_000", "٣", "3 mg", "=1+1", "#N/A")
        ),
        ("id,value,state\n0,,done\n", "lab.csv, row 2: trial 0 is done, so it must have a value"),
        (
            "id,value,state\n0,,lost\n",
            "lab.csv, row 2: a state must be one of queued, pending, done, failed, "
            "added, withdrawn, outside, not 'lost'",
        ),
        ("id,value,state\n0,1,failed\n", "lab.csv, row 2: trial 0 cannot be failed with the value '1'"),
        ("id,value,state\n0,failed,done\n", "lab.csv, row 2: trial 0 cannot be done with the value 'failed'"),
        (
            "id,value,error\n0,,spilt\n",
            "lab.csv, row 2: trial 0 has an error but no value; if it failed, write 'failed' as its value",
        ),
        ('id,value\n0,"1\n', "lab.csv, row 2: this is not valid CSV"),
        ('id,value\n0,1\n1,"2"x\n', "lab.csv, row 3: this is not valid CSV"),
        (b"id,value\n0,1\n1,\xb5\n", "lab.csv, row 3: the table must be UTF-8; save it as 'CSV UTF-8'"),
        ("id,value\n0,1\n".encode("utf-16"), "lab.csv, row 1: the table must be UTF-8"),
    ],
)
def test_a_table_with_a_mistake_is_refused_whole(table: str | bytes, said: str) -> None:
    assert said in refused(table)


def test_a_file_is_named_in_its_errors(tmp_path: Path) -> None:
    path = tmp_path / "results.csv"
    assert refused(path).startswith(f"{path}: the file cannot be read: ")
    assert refused(tmp_path).startswith(f"{tmp_path}: the file cannot be read: ")
    path.write_text("id,value\n9,1\n")
    assert refused(path) == f"{path}, row 2: trial 9 does not exist"
    with pytest.raises(InvalidTell, match="the table, row 2"):
        Table("id,value\n9,1\n", SPACE).results(TRIALS)


def told(table: str, trials: list[Trial] = TRIALS, *, as_used: bool = False) -> list[Tell]:
    return Table(table, SPACE, "lab.csv").results(trials, as_used=as_used).outcomes


@pytest.mark.parametrize(
    ("cells", "said", "used"),
    [
        ("1.25,", "x is 1.25, not 1.0.", {"x": 1.25, "kind": "a,b"}),
        ("1.0001,", "x is 1.0001, not 1.0.", {"x": 1.0001, "kind": "a,b"}),
        (",d", "kind is d, not a,b.", {"x": 1.0, "kind": "d"}),
        ("0,c", "x is 0.0, not 1.0, kind is c, not a,b.", {"x": 0.0, "kind": "c"}),
    ],
)
def test_settings_that_differ_are_refused_with_both_values_or_taken_as_used(
    cells: str, said: str, used: dict[str, Any]
) -> None:
    table = f"id,x,kind,value\n2,,,7\n3,{cells},5\n"
    expected = f"lab.csv, row 3: trial 3 has other settings here: {said} If these were really used, add --as-used"
    assert refused(table) == expected
    assert told(table, as_used=True) == [Tell(2, 7.0), Tell(3, 5.0, point=used)]


def test_settings_as_they_were_asked_for_are_not_another_point() -> None:
    """Spreadsheets round the numbers of a form; six digits are as it was."""
    table = 'id,x,kind,value\n1,0.3333333333333333,"a,b",5\n2, 0.66666667 ,"a,b",6\n3,1, ,failed\n'
    expected = [Tell(1, 5.0), Tell(2, 6.0), Tell(3, None)]
    assert told(table) == told(table, as_used=True) == expected


def test_only_the_settings_that_differ_are_taken_as_used() -> None:
    table = "id,x,kind,value\n2,0.666667,d,6\n"
    assert told(table, as_used=True) == [Tell(2, 6.0, point={"x": 2 / 3, "kind": "d"})]


@pytest.mark.parametrize(
    ("cells", "said"),
    [
        ("2.5,", "row 2: 'x' must lie between 0.0 and 2.0, not 2.5"),
        ("warm,", "row 2: 'x' must be a number, not 'warm'"),
        (",e", "row 2: 'kind' must be one of a,b, c, d, not 'e'"),
    ],
)
@pytest.mark.parametrize("as_used", [False, True])
def test_settings_that_the_space_does_not_have_are_refused(cells: str, said: str, as_used: bool) -> None:
    with pytest.raises(InvalidTell) as caught:
        told(f"id,x,kind,value\n3,{cells},5\n", as_used=as_used)
    assert said in str(caught.value)


def test_a_row_without_a_value_may_have_any_settings() -> None:
    assert told("id,x,kind,value\n0,9,nothing,\n3,,,5\n") == [Tell(3, 5.0)]


FINISHED = [
    Trial(0, {"x": 0.5, "kind": "c"}, 2.5, "done"),
    Trial(1, {"x": 0.5, "kind": "d"}, None, "failed", "burnt"),
    Trial(2, {"x": 1.5, "kind": "c"}, -1.0, "added"),
    Trial(3, {"x": 1.0, "kind": "c"}),
]


def test_a_sheet_may_be_told_again_and_again() -> None:
    table = Table("id,x,kind,value,lamp\n0,0.5,c,2.50,red\n1,,,failed,\n2,,,-1,\n3,,,4,blue\n", SPACE)
    read = table.results(FINISHED)
    assert read.unchanged == [0, 1, 2]
    assert read.outcomes == [Tell(3, 4.0, notes={"lamp": "blue"})]
    again = table.results([*FINISHED[:3], Trial(3, {"x": 1.0, "kind": "c"}, 4.0, "done")])
    assert (again.outcomes, again.unchanged) == ([], [0, 1, 2, 3])


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("0,,,2.6", "trial 0 is already done with the value 2.5. To correct it: bounce correct STUDY 0 VALUE"),
        ("0,,,failed", "trial 0 is already done with the value 2.5. To correct it: bounce correct STUDY 0 VALUE"),
        ("1,,,3", "trial 1 is already failed. To give it a value: bounce retry STUDY 1, then tell it"),
        ("2,,,3", "trial 2 is already added with the value -1.0. To correct it: bounce correct STUDY 2 VALUE"),
        (
            "0,0.75,,2.5",
            "trial 0 has other settings here: x is 0.75, not 0.5. "
            "To correct it: bounce correct STUDY 0 --set NAME=VALUE",
        ),
    ],
)
@pytest.mark.parametrize("as_used", [False, True])
def test_a_finished_trial_is_not_changed_by_a_table(row: str, said: str, as_used: bool) -> None:
    with pytest.raises(InvalidTell) as caught:
        told(f"id,x,kind,value\n3,,,1\n{row}\n", FINISHED, as_used=as_used)
    assert f"lab.csv, row 3: {said}" in str(caught.value)


@pytest.mark.parametrize("state", ["queued", "withdrawn", "outside"])
def test_a_trial_that_was_not_asked_for_cannot_be_told(state: State) -> None:
    trials = [Trial(0, {"x": 0.5, "kind": "c"}, state=state)]
    hint = {
        "queued": ": bounce ask gives it out first",
        "withdrawn": ": empty its value, or add its result with bounce add",
        "outside": ": bounce add takes results like this one",
    }[state]
    assert refused("id,value\n0,1\n", trials) == f"lab.csv, row 2: trial 0 is {state} and cannot be told{hint}"


def test_a_sheet_from_before_a_change_of_the_space_can_be_told_again() -> None:
    trials = [Trial(0, {"x": 9.0, "old": True}, 1.5, "outside"), Trial(1, {"x": 0.5, "kind": "c"})]
    read = Table("id,x,old,value\n0,9,true,1.5\n1,0.5,,2\n", SPACE).results(trials)
    assert (read.outcomes, read.unchanged) == ([Tell(1, 2.0)], [0])
    assert "trial 0 is outside and cannot be told" in refused("id,value\n0,1.6\n", trials)


def test_further_columns_become_notes_and_are_exported_again() -> None:
    optimizer = Bounce(SPACE, 5, seed=0)
    optimizer.ask(2)
    table = "id,Lamp, operator ,value,,seconds_ask\n0,red,Ann,1,x,9\n1,,Bob,failed,,\n"
    outcomes = Table(table, SPACE).results(optimizer.trials).outcomes
    assert [outcome.notes for outcome in outcomes] == [{"Lamp": "red", "operator": "Ann"}, {"operator": "Bob"}]
    optimizer.settle(outcomes)
    header, *rows = read_back(to_csv(optimizer.trials))
    assert header[-2:] == ["Lamp", "operator"]
    assert [row[-2:] for row in rows] == [["red", "Ann"], ["", "Bob"]]
    again = Table(to_csv(optimizer.trials), SPACE).results(optimizer.trials)
    assert (again.outcomes, again.unchanged) == ([], [0, 1])


def test_notes_do_not_hide_other_columns() -> None:
    trial = Trial(0, {"x": 0.5, "kind": "c"}, 1.0, "done", notes={"x": "no", "Value": "no", "note": "a, b"})
    header, row = read_back(to_csv([trial], ["value"]))
    assert (header, row) == (["id", "x", "kind", "value", "note"], ["0", "0.5", "c", "1.0", "a, b"])


# Standard errors


def test_standard_errors_are_read_with_their_values() -> None:
    assert told("id,Value, SEM \n0,1,0.5\n1,2,\n2,failed,\n3,4,0\n") == [
        *(Tell(0, 1.0, sem=0.5), Tell(1, 2.0), Tell(2, None), Tell(3, 4.0, sem=0.0))
    ]
    past = Table("x,kind,value,sem\n1,c,2,0.25\n1,c,3,\n", SPACE).past()
    assert (past.values, past.sems, past.notes) == ([2.0, 3.0], [0.25, None], [{}, {}])
    assert Table("x,kind,value\n1,c,2\n", SPACE).past().sems == [None]


@pytest.mark.parametrize("cell", ["-0.1", "nan", "inf", "image_12.tif", '"0,5"'])
def test_a_wrong_standard_error_is_refused(cell: str) -> None:
    said = "the column sem has the standard errors of the values, finite numbers that are not negative, not "
    assert said in refused(f"id,value,sem\n0,1,{cell}\n")
    assert "If it is something else, give it another name" in past_refused(f"x,kind,value,sem\n1,c,2,{cell}\n")
    skipped = Table(f"x,kind,value,sem\n1,c,2,{cell}\n1,c,3,0.5\n", SPACE).past(skip_invalid=True)
    assert (skipped.values, skipped.sems, len(skipped.skipped)) == ([3.0], [0.5], 1)


def test_a_failed_trial_has_no_standard_error_in_a_table() -> None:
    said = "lab.csv, row 2: trial 0 failed, so it cannot have a standard error: empty its sem"
    assert refused("id,value,sem\n0,failed,0.5\n") == said


def test_a_standard_error_that_is_known_is_not_changed_by_a_table() -> None:
    trials = [Trial(0, {"x": 0.5, "kind": "c"}, 2.5, "done", sem=0.5), Trial(1, {"x": 1.5, "kind": "c"}, 1.0, "done")]
    for cell in ("0.5", "0.50", ""):
        assert Table(f"id,value,sem\n0,2.5,{cell}\n1,1,\n", SPACE).results(trials).unchanged == [0, 1]
    assert refused("id,value,sem\n0,2.5,0.6\n", trials) == (
        "lab.csv, row 2: trial 0 is already done with the standard error 0.5. "
        "To correct it: bounce correct STUDY 0 --sem 0.6"
    )
    assert "trial 1 is already done with no standard error. To correct it: bounce correct STUDY 1 --sem 0.0" in refused(
        "id,value,sem\n1,1,0\n", trials
    )
    outside = [Trial(0, {"x": 9.0, "old": True}, 1.5, "outside", sem=0.5)]
    assert Table("id,value,sem\n0,1.5,0.5\n", SPACE).results(outside).unchanged == [0]
    assert "trial 0 is outside and cannot be told" in refused("id,value,sem\n0,1.5,0.6\n", outside)


def test_exported_standard_errors_are_read_again() -> None:
    optimizer = Bounce(SPACE, 5, seed=0)
    optimizer.tell(optimizer.ask(3), [1.0, 2.0, 3.0], sem=[0.1, None, 0.0])
    table = Table(to_csv(optimizer.trials), SPACE)
    assert table.results(optimizer.trials).unchanged == [0, 1, 2]
    assert table.past().sems == [0.1, None, 0.0]


# Past results


def past_refused(table: str, space: Space = SPACE) -> str:
    with pytest.raises(InvalidTell) as caught:
        Table(table, space, "old.csv").past()
    return str(caught.value)


def test_past_results_are_read_with_their_notes() -> None:
    past = Table('Value,kind,x,id,day\n3,c,0.5,17,Monday\n-0.0,"a,b", 2 ,,\n3,c,0.5,17,\n', SPACE).past()
    assert past.points == [{"x": 0.5, "kind": "c"}, {"x": 2.0, "kind": "a,b"}, {"x": 0.5, "kind": "c"}]
    assert repr(past.values) == "[3.0, 0.0, 3.0]"
    assert past.notes == [{"day": "Monday"}, {}, {}]
    assert past.skipped == []


def test_the_exported_results_of_a_run_are_past_results_of_another() -> None:
    optimizer = Bounce(SPACE, 5, seed=0)
    optimizer.tell(trials := optimizer.ask(3), [1.0, 2.0, 3.0], note="ours")
    past = Table(to_csv(optimizer.trials), SPACE).past()
    assert past.points == [trial.point for trial in trials]
    assert past.values == [1.0, 2.0, 3.0]
    assert past.notes == [{"note": "ours"}] * 3


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ("", "old.csv: the table is empty; it needs the columns x and kind and value"),
        ("x,kind,value\n", "old.csv: the table has no rows below the header"),
        ("x,value\n1,2\n", "old.csv, row 1: the column 'kind' is missing; the columns are x, value"),
        ("x,kind\n1,c\n", "old.csv, row 1: the column 'value' is missing; the columns are x, kind"),
        ("X,kind,value\n1,c,2\n", "old.csv, row 1: the column 'X' must be called 'x', the name of the parameter"),
        ("x [mm],kind,value\n1,c,2\n", "old.csv, row 1: the column 'x [mm]' must be called 'x'"),
        (
            "x [mm];Kind;value\n1;c;2\n",
            "old.csv, row 1: the column 'x [mm]' must be called 'x', 'Kind' must be called 'kind': columns have the",
        ),
        ("x,kinds,value\n1,c,2\n", "old.csv, row 1: the column 'kind' is missing; if it is the column 'kinds', rename"),
    ],
)
def test_past_results_need_every_parameter_and_a_value(table: str, said: str) -> None:
    assert past_refused(table).startswith(said)


NO_VALUE = "the row has no value: only results can be added, not failed or open experiments"
WRONG = [
    ("2.5,c,1", "'x' must lie between 0.0 and 2.0, not 2.5"),
    ("-1,c,1", "'x' must lie between 0.0 and 2.0, not -1.0"),
    ("nan,c,1", "'x' must be a finite number, not nan"),
    ("cold,c,1", "'x' must be a number, not 'cold'"),
    ("1,e,1", "'kind' must be one of a,b, c, d, not 'e'"),
    (",c,1", "the row has no value for 'x'"),
    (",,1", "the row has no value for 'x', 'kind'"),
    ("1, ,1", "the row has no value for 'kind'"),
    ("1,c,", NO_VALUE),
    ("1,c,failed", NO_VALUE),
    ("1,c,inf", "a value must be a finite number, not 'inf'"),
    ('1,c,"0,5"', "a value must be a finite number, not '0,5': write a decimal point, 0.5"),
]


@pytest.mark.parametrize(("row", "said"), WRONG)
def test_past_results_with_a_mistake_are_refused_with_row_and_reason(row: str, said: str) -> None:
    assert past_refused(f"x,kind,value\n1,c,2\n\n{row}\n") == f"old.csv, row 4: {said}"


def test_invalid_past_results_are_skipped_and_counted() -> None:
    rows = "".join(f"{row}\n1,c,{i}\n" for i, (row, _) in enumerate(WRONG))
    past = Table(f"x,kind,value\n{rows}", SPACE, "old.csv").past(skip_invalid=True)
    assert past.values == [float(i) for i in range(len(WRONG))]
    assert past.points == [{"x": 1.0, "kind": "c"}] * len(WRONG)
    assert past.skipped == [f"old.csv, row {2 * i + 2}: {said}" for i, (_, said) in enumerate(WRONG)]
    nothing = Table("x,kind,value\n9,c,1\n", SPACE).past(skip_invalid=True)
    assert (nothing.points, len(nothing.skipped)) == ([], 1)


def test_a_table_that_cannot_be_read_is_not_skipped() -> None:
    with pytest.raises(InvalidTell, match="row 2: the row has 4 fields, but the header has 3; where commas separate"):
        Table("x,kind,value\n0,5,c,1\n", SPACE).past(skip_invalid=True)


@given(tables())
def test_any_choice_is_read_as_it_was_written(trials: list[Trial]) -> None:
    """Choices that are written alike cannot be told apart; then the first is meant."""
    space = space_of(trials)
    points = space.decode(space.encode([trial.point for trial in trials]))  # 1 and 1.0 are one choice
    done = [Trial(i, point, float(i), "done") for i, point in enumerate(points)]
    past = Table(to_csv(done, ["value"]), space).past()
    assert past.values == [trial.value for trial in done]
    read = [Trial(i, point, float(i), "done") for i, point in enumerate(past.points)]
    assert to_csv(read) == to_csv(done)


# Separators and decimals


@pytest.mark.parametrize("mark", [";", "\t"])
@pytest.mark.parametrize("comma", [",", "."])
def test_a_table_with_semicolons_or_tabs_may_have_decimal_commas(mark: str, comma: str) -> None:
    rows = [["lab", "x", "kind", "value", "sem"], ["1,5", "0.25", "c", "-1.5", "1.0e-2"], ["", "1", "a,b", "2", ".5"]]
    text = "\ufeff" + "".join(mark.join([row[0], *(x.replace(".", comma) for x in row[1:])]) + "\r\n" for row in rows)
    past = Table(text, SPACE).past()
    assert past.points == [
        {"x": 0.25, "kind": "c"},
        {"x": 1.0, "kind": "a,b"},
    ]  # a comma in a choice is no decimal mark
    assert (past.values, past.sems, past.notes) == ([-1.5, 2.0], [0.01, 0.5], [{"lab": "1,5"}, {}])


def test_what_was_asked_for_is_recognised_with_decimal_commas() -> None:
    trials = [Trial(0, {"x": 0.123456789, "kind": "c"})]
    assert Table("id;x;value\n0;0,123457;1,5\n", SPACE).results(trials).outcomes[0].value == 1.5
    with pytest.raises(InvalidTell, match=r"x is 0.2, not 0.123456789"):
        Table("id;x;value\n0;0,2;1,5\n", SPACE).results(trials)


def test_a_header_decides_what_separates_the_columns() -> None:
    space = Space([Real("x", 0, 2), Categorical("kind", ["c", "d"])])
    assert Table("x,kind,value,a;b;c;d;e\n1,c,2,3\n", space).past().notes == [{"a;b;c;d;e": "3"}]
    assert Table("value;x;kind;p [mbar, abs, wet, x]\n2;1;c;3\n", space).past().values == [2.0]


# Results that a study has


def test_results_that_a_study_has_are_told_from_new_ones() -> None:
    point = {"x": 0.5, "kind": "c"}
    trials = [
        Trial(0, point, 1.0, "added"),
        Trial(1, point, 2.0, "done"),
        Trial(2, point, None, "failed"),
    ]
    past = Table("x,kind,value,lab\n0.5,c,1,a\n0.5,c,1,b\n0.50,c,2.0,c\n0.5,d,1,d\n0.5,c,3,e\n", SPACE).past()
    new, known = past.split(trials, SPACE)
    assert [note["lab"] for note in known.notes] == ["a", "c"]
    assert [note["lab"] for note in new.notes] == ["b", "d", "e"]  # b once more, since the table has it twice
    assert past.repeated(SPACE) == [("row 3", "row 2")]


# Points to try


def test_points_to_try_may_be_partial() -> None:
    points, notes = Table('lab,x,kind\nA,0.5,c\nB,,"a,b"\nC,1, \nD,,\n', SPACE).points()
    assert points == [{"x": 0.5, "kind": "c"}, {"kind": "a,b"}, {"x": 1.0}, {}]
    assert notes == [{"lab": "A"}, {"lab": "B"}, {"lab": "C"}, {"lab": "D"}]
    assert Table("kind\nd\n", SPACE).points() == ([{"kind": "d"}], [{}])


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ("", "starts.csv: the table is empty"),
        ("\n", "starts.csv: the table is empty"),
        ("x,kind\n", "starts.csv: the table has no rows below the header"),
        ("X,kind\n1,c\n", "starts.csv, row 1: the column 'X' must be called 'x', the name of the parameter"),
        ("a,b\n1,c\n", "starts.csv, row 1: no column is a parameter (x, kind); the columns are a, b"),
        (
            "x,kinde\n1,c\n",
            "starts.csv, row 1: the column 'kinde' is no parameter; did you mean 'kind'? If it is a note",
        ),
        ("x,kind\n1,c\n3,c\n", "starts.csv, row 3: 'x' must lie between 0.0 and 2.0, not 3.0"),
        ("x,kind\n1,z\n", "starts.csv, row 2: 'kind' must be one of a,b, c, d, not 'z'"),
        ("x,x\n1,1\n", "starts.csv, row 1: the column 'x' appears twice"),
    ],
)
def test_points_to_try_with_a_mistake_are_refused(table: str, said: str) -> None:
    with pytest.raises(InvalidTell) as caught:
        Table(table, SPACE, "starts.csv").points()
    assert str(caught.value).startswith(said)


def test_a_subset_to_try_is_given_as_a_whole_or_left_open() -> None:
    space = Space([Real("x", 0, 2), Subset("s", ["a", "b", "c"]), Mixture("m", ["u", "v"])])
    points, _ = Table("x,s.a,s.b,s.c,m.u\n1,yes,no,no,1\n1,,,,\n", space).points()
    assert points == [{"x": 1.0, "s": ["a"], "m": {"u": 1.0, "v": 0.0}}, {"x": 1.0}]
    for table in ("x,s.a,s.b,s.c\n1,yes,no,\n", "x,s.a,s.b\n1,yes,no\n", "s.a,s.b\nno,no\n"):
        with pytest.raises(InvalidTell, match=r"row 2: 's' has cells for some members, but none for 's\.c': write"):
            Table(table, space, "starts.csv").points()


# Cells


@pytest.mark.parametrize(
    ("parameter", "cell", "value"),
    [
        *((Binary("b"), cell, True) for cell in ("true", "True", "TRUE", "yes", "1", "1.0")),
        *((Binary("b"), cell, False) for cell in ("false", "FALSE", "no", "No", "0", "0.0")),
        (Real("r", 0, 10), "5", 5.0),
        (Real("r", 0, 10), "1e-3", 0.001),
        (Real("r", 1e-3, 10, log=True), "0.25", 0.25),
        (Integer("i", 1, 9), "3", 3),
        (Integer("i", 1, 9), "3.0", 3),
        (Integer("i", 1, 9000), "1e3", 1000),
        (Integer("i", 1, 9000, log=True), "44.0", 44),
        (Ordinal("o", [0.1, 0.5, 2]), "0.5", 0.5),
        (Ordinal("o", [0.1, 0.5, 2]), ".50", 0.5),
        (Ordinal("o", [0.1, 0.5, 2]), "2.0", 2),
        (Ordinal("o", ["low", "high"]), "high", "high"),
        (Categorical("c", [1, 2, "3"]), "1", 1),
        (Categorical("c", [1, 2, "3"]), "2.0", 2),
        (Categorical("c", [1, 2, "3"]), "3", "3"),
        (Categorical("c", ["1", 1]), "1", "1"),
        (Categorical("c", [1, "1"]), "1", 1),
        (Categorical("c", ["", "x"]), "", ""),
        (Categorical("c", [True, False, None]), "false", False),
        (Categorical("c", [True, False, None]), "null", None),
        (Categorical("c", [True, "1"]), "1", "1"),
        *((Binary("b"), cell, True) for cell in ("WAHR", "Vrai", "VERDADERO", "VERO")),
        *((Binary("b"), cell, False) for cell in ("FALSCH", "FAUX", "FALSO", "falso")),
        (Categorical("c", [True, False, "auto"]), "WAHR", True),
        (Categorical("c", [True, False, "auto"]), "FALSE", False),
        (Categorical("c", [True, "WAHR"]), "WAHR", "WAHR"),
        (Ordinal("o", ["FALSO", "VERO"]), "VERO", "VERO"),
        (Categorical("c", [2**60, 2**60 + 1]), str(2**60 + 1), 2**60 + 1),
    ],
    ids=repr,
)
def test_a_cell_stands_for_the_value_of_its_parameter(parameter: Parameter, cell: str, value: Any) -> None:
    assert repr(parsed(parameter, cell)) == repr(value)


@pytest.mark.parametrize(
    ("parameter", "cell", "said"),
    [
        (Binary("b"), "2", "'b' must be true or false, not '2'"),
        (Binary("b"), "on", "'b' must be true or false, not 'on'"),
        (Binary("b"), "", "'b' must be true or false, not ''"),
        (Real("r", 0, 10), "11", "'r' must lie between 0.0 and 10.0, not 11.0"),
        (Real("r", 0, 10), "0,5", "'r' must be a number, not '0,5': write a decimal point, 0.5"),
        (Real("r", 0, 10), "true", "'r' must be a number, not 'true'"),
        (Real("r", 0, 10), "inf", "'r' must be a finite number, not inf"),
        (Integer("i", 1, 9), "2.5", "'i' must be "),
        (Integer("i", 1, 9), "10", "'i' must "),
        (Integer("i", 1, 9), "nan", "'i' must be "),
        (Integer("i", 1, 9000, log=True), "0", "'i' must "),
        (Ordinal("o", [0.1, 0.5, 2]), "0.3", "'o' must be one of 0.1, 0.5, 2, not '0.3'"),
        (Categorical("c", ["a", "b"]), "A", "'c' must be one of a, b, not 'A'"),
        (Categorical("c", ["a", "b"]), "", "'c' must be one of a, b, not ''"),
        (Categorical("c", [True, "wahr"]), "WAHR", "'c' must be one of true, wahr, not 'WAHR'"),
        (Categorical("c", [1, 0, None]), "WAHR", "'c' must be one of 1, 0, null, not 'WAHR'"),
        (Categorical("c", ["a", None]), "FALSCH", "'c' must be one of a, null, not 'FALSCH'"),
        (Categorical("c", [True, False]), "1", "'c' must be one of true, false, not '1'"),
    ],
    ids=repr,
)
def test_a_cell_that_the_parameter_does_not_take_is_refused(parameter: Parameter, cell: str, said: str) -> None:
    with pytest.raises(InvalidPoint) as caught:
        parsed(parameter, cell)
    assert str(caught.value).startswith(said)
    assert caught.value.parameter == parameter.name


def test_an_empty_cell_is_a_choice_if_the_parameter_has_it() -> None:
    space = Space([Categorical("c", ["", "x"]), Real("r", 0, 1)])
    assert Table("c,r,value\n,0.5,1\nx,0.5,2\n", space).past().points == [{"c": "", "r": 0.5}, {"c": "x", "r": 0.5}]
    assert Table("c,r\n,0.5\n", space).points() == ([{"c": "", "r": 0.5}], [{}])
    assert Table("r\n0.5\n", space).points() == ([{"r": 0.5}], [{}])
    trials = [Trial(0, {"c": "", "r": 0.5}), Trial(1, {"c": "x", "r": 0.5})]
    assert Table("id,c,value\n0,,1\n1,x,2\n", space).results(trials).outcomes == [Tell(0, 1.0), Tell(1, 2.0)]
    with pytest.raises(InvalidTell, match="c is , not x"):
        Table("id,c,value\n1,,2\n", space).results(trials)
