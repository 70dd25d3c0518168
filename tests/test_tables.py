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

from bounce import Bounce, InvalidInput, Result
from bounce.spec.tables import form, to_csv, to_json, to_parquet
from bounce.trial import FACTS, Trial
from spaces import mixed

PENDING = [Trial(i, {"x": i / 3, "kind": "a,b"}) for i in range(4)]

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


def test_a_parameter_or_a_note_named_sem_does_not_hide_the_standard_error(tmp_path: Path) -> None:
    trial = Trial(0, {"sem": 3.0}, 1.0, "done", sem=0.5, notes={"sem": "a note of an earlier release"})
    header, row = read_back(to_csv([trial]))
    cells = dict(zip(header, row, strict=True))
    assert (cells["point.sem"], cells["value"], cells["sem"]) == ("3.0", "1.0", "0.5")
    frame = Result([trial], trial, 0).to_frame()
    assert (frame["point.sem"][0], frame["value"][0], frame["sem"][0]) == (3.0, 1.0, 0.5)
    parquet = pytest.importorskip("pyarrow.parquet")
    for sem in (0.5, None):
        to_parquet([replace(trial, sem=sem)], tmp_path / "run.parquet")
        table = parquet.read_table(tmp_path / "run.parquet")
        assert (table["sem"].to_pylist(), str(table.schema.field("sem").type)) == ([sem], "double")
