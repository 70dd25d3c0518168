from __future__ import annotations

import csv
import io
import json
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bounce import Bounce, InvalidInput, InvalidTell, Result
from bounce.spec.tables import Told, form, results, to_csv, to_json, to_parquet
from bounce.trial import FACTS, Trial
from spaces import mixed

PENDING = [Trial(i, {"x": i / 3, "kind": "a,b"}) for i in range(4)]
TRIALS = [*PENDING, Trial(4, {"x": 0.1, "kind": "c"}, value=2.5, state="done")]

texts = st.text(st.characters(codec="utf-8"), max_size=6)
awkward = st.sampled_from(
    [
        "id",
        "value",
        " value ",
        "state",
        "error",
        "stage",
        "point.id",
        "point.",
        "=1+1",
        "-x",
        "@a",
        ",",
        '"',
        "\n",
        "\r",
        "a b",
        "0,5",
    ]
)
names = st.one_of(texts, awkward).filter(bool)
scalars = st.one_of(
    texts, awkward, st.booleans(), st.none(), st.integers(), st.floats(allow_nan=False, allow_infinity=False)
)


@st.composite
def tables(draw: st.DrawFn) -> list[Trial]:
    columns = draw(st.lists(names, min_size=1, max_size=5, unique=True))
    n = draw(st.integers(1, 4))
    return [Trial(i, {name: draw(scalars) for name in columns}) for i in range(n)]


def read_back(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text, newline=""), strict=True))


def refused(table: str | bytes | Path) -> str:
    with pytest.raises(InvalidTell) as caught:
        results(table, TRIALS, name="lab.csv")
    return str(caught.value)


# out


@given(tables())
def test_names_and_values_survive_csv(trials: list[Trial]) -> None:
    header, *rows = read_back(to_csv(trials))
    names = list(trials[0].point)
    assert header[0] == "id"
    assert header[1 + len(names) :] == list(FACTS)
    assert len({column.strip() if column.strip() in ("id", *FACTS) else column for column in header}) == len(header)
    for column, name in zip(header[1:], names, strict=False):
        assert column in (name, f"point.{name}")
    for row, trial in zip(rows, trials, strict=True):
        assert row[0] == str(trial.id)
        for cell, value in zip(row[1:], trial.point.values(), strict=False):
            assert cell == value if isinstance(value, str) else json.loads(cell) == value


@given(tables(), st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=4, max_size=4))
def test_a_form_that_is_filled_in_is_read_as_it_is(trials: list[Trial], values: list[float]) -> None:
    empty = form(trials)
    assert read_back(empty)[0][-1] == "value"
    rows = read_back(empty)
    for row, value in zip(rows[1:], values, strict=False):
        assert row[-1] == ""
        row[-1] = repr(value)
    text = io.StringIO(newline="")
    csv.writer(text).writerows(rows)  # as a spreadsheet would save it, with CRLF
    told = results(text.getvalue(), trials)
    assert told == [Told(trial.id, value, None) for trial, value in zip(trials, values, strict=False)]
    with pytest.raises(InvalidTell, match="no row has a value yet"):
        results(empty, trials)
    with pytest.raises(InvalidTell, match="no row has a value yet"):
        results(to_csv(trials), trials)


def test_names_of_facts_are_told_apart_from_parameters() -> None:
    point: dict[str, Any] = {"value": 1, "point.value": 2, "point": 3, " id ": 4, "x": 5}
    assert form([Trial(0, point)]) == 'id,point.value,point.point.value,point,"point. id ",x,value\n0,1,2,3,4,5,\n'


def test_a_frame_and_csv_have_the_same_columns() -> None:
    pytest.importorskip("pandas")
    point: dict[str, Any] = {"value": 1, "id": 2, "point.x": 3, "x": 4, "Stage": 5, "radius": 6}
    trials = [Trial(0, point, 0.5, "done"), Trial(1, dict.fromkeys(point, 9), None, "failed", "no")]
    frame = Result(trials, trials[0], seed=0).to_frame()
    header, *rows = read_back(to_csv(trials))
    assert list(frame.columns) == header
    assert header[:7] == ["id", "point.value", "point.id", "point.point.x", "x", "point.Stage", "point.radius"]
    assert [str(x) for x in frame.iloc[0, :7]] == rows[0][:7] == ["0", "1", "2", "3", "4", "5", "6"]
    assert frame["value"][0] == 0.5


def test_csv_says_what_is_known() -> None:
    trials = [
        Trial(0, {"x": 0.1, "on": True}, 2.0, "done"),
        Trial(1, {"x": 1e-7, "on": False}, None, "failed", "a\nb"),
    ]
    assert to_csv(trials, ["value", "state", "error"]) == (
        'id,x,on,value,state,error\n0,0.1,true,2.0,done,\n1,1e-07,false,,failed,"a\nb"\n'
    )
    assert to_csv([]) == f"id,{','.join(FACTS)}\n"


def trials_of_a_run() -> list[Trial]:
    optimizer = Bounce(mixed(2), budget=12, seed=0)
    for trial in optimizer.ask(7):
        if trial.id == 3:
            optimizer.fail(trial, "it 'broke', é")
        elif trial.id != 5:
            optimizer.tell(trial, float(trial.id), seconds=0.5)
    return optimizer.trials


def test_json_holds_every_fact() -> None:
    trials = trials_of_a_run()
    document = json.loads(to_json(trials))
    assert document == [asdict(trial) for trial in trials]
    assert [Trial(**row) for row in document] == trials
    assert {"id", "point", "value", "state"} <= document[0].keys()
    assert to_json(trials).isascii()
    assert len(to_json(trials).splitlines()) == len(trials) + 2
    assert json.loads(to_json([])) == []


def test_parquet_holds_every_fact(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    trials = trials_of_a_run()
    to_parquet(trials, tmp_path / "run.parquet")
    table = parquet.read_table(tmp_path / "run.parquet")
    assert table.column_names == ["id", *trials[0].point, *FACTS]
    for name in trials[0].point:
        assert table[name].to_pylist() == [trial.point[name] for trial in trials]
    for fact in ("id", *FACTS):
        assert table[fact].to_pylist() == [getattr(trial, fact) for trial in trials]
    to_parquet([replace(trial, value=None, error=None, state="pending") for trial in trials], tmp_path / "p.parquet")
    assert str(parquet.read_table(tmp_path / "p.parquet").schema.field("value").type) == "double"
    to_parquet([], tmp_path / "empty.parquet")
    assert parquet.read_table(tmp_path / "empty.parquet").num_rows == 0


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        ([1, 2.5], [1.0, 2.5]),
        ([1, "1"], ["1", "1"]),
        ([True, 1], ["true", "1"]),
        ([2**60, 2], [str(2**60), "2"]),
        ([10**40, 0.5], [str(10**40), "0.5"]),
        ([None, "null"], [None, "null"]),
        ([None, None], ["null", "null"]),
    ],
)
def test_parquet_writes_columns_of_several_types(given: list[Any], stored: list[Any], tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    to_parquet([Trial(i, {"c": value}) for i, value in enumerate(given)], tmp_path / "c.parquet")
    assert parquet.read_table(tmp_path / "c.parquet")["c"].to_pylist() == stored


def test_parquet_says_why_it_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyarrow")
    with pytest.raises(InvalidInput, match="cannot be written"):
        to_parquet(PENDING, tmp_path / "nowhere" / "t.parquet")
    with pytest.raises(InvalidInput, match="cannot be written"):
        to_parquet([Trial(0, {"x": "\ud800"})], tmp_path / "t.parquet")
    assert not (tmp_path / "t.parquet").exists()
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(InvalidInput, match=r"pip install 'bounce-bo\[parquet\]'"):
        to_parquet(PENDING, tmp_path / "t.parquet")


# in


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
        ('id,x,value,kind,id2\n0,nonsense,4,"a,b\n""c""",9\n', [(0, 4.0, None)]),
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
    assert repr([tuple(row) for row in results(table, TRIALS)]) == repr(told)
    path = tmp_path / "lab.csv"
    path.write_bytes(table.encode() if isinstance(table, str) else table)
    assert results(path, TRIALS) == told


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
        ("id;value\n0;1\n", "lab.csv, row 1: the columns are separated by semicolons: save the table with commas"),
        ("id;x;value\n0;0,5;1,5\n", "lab.csv, row 1: the columns are separated by semicolons"),
        ("id\tvalue\n0\t1\n", "lab.csv, row 1: the columns are separated by tabs"),
        ("id,x\n0,1\n", "lab.csv, row 1: the column 'value' is missing; the columns are id, x"),
        ("0,1\n", "lab.csv, row 1: the column 'id' is missing; the columns are 0, 1"),
        ("id,value,value\n0,1,2\n", "lab.csv, row 1: the column 'value' appears twice"),
        (
            "id,value\n0,1\n1,0,5\n",
            "lab.csv, row 3: the row has 3 fields, but the header has 2; numbers need a decimal point",
        ),
        ("id,x,value\n0,1\n", "lab.csv, row 2: the row has 2 fields, but the header has 3"),
        (
            'id,value\n0,"0,5"\n',
            "row 2: a value must be a finite number or 'failed', not '0,5': write a decimal point, 0.5",
        ),
        ("id,value\n0,1\n\n7,2\n", "lab.csv, row 4: trial 7 does not exist"),
        ('id,kind,value\n0,"a\nb\n",1\n7,,2\n', "lab.csv, row 5: trial 7 does not exist"),
        ("id,value\n0,1\n7,\n", "lab.csv, row 3: trial 7 does not exist"),
        ("id,value\n0,1\n1,2\n0,3\n", "lab.csv, row 4: trial 0 is already in row 2"),
        ("id,value\n0,1\n4,2\n", "lab.csv, row 3: trial 4 is already done and cannot be told again"),
        ("id,value\n0,1\n4,failed\n", "lab.csv, row 3: trial 4 is already done"),
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
        ("id,value,state\n0,,lost\n", "lab.csv, row 2: a state must be pending, done or failed, not 'lost'"),
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
        results("id,value\n9,1\n", TRIALS)
