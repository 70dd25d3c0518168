"""Sheets: trials as a table, or as a few lines about the best one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

from bounce.text import brief, printable, written
from bounce.trial import Scalar, Trial, column, parameters_of

LONGEST = 80  # characters of an error
BORDER = 3  # columns that a border needs beside the cells
WIDEST_NAME = 0.4  # share of the width for the names of parameters, where each has a row


def shown(value: Scalar) -> str:
    """Return a value for people: numbers with six digits, true, false or null, text in one line."""
    return f"{value:.6g}" if isinstance(value, float) else printable(written(value))


def sheet(trials: Sequence[Trial], width: int, *, to_fill: bool = False) -> Iterator[Table]:
    """Yield one table with a row for each trial; if that is too wide, tables with a column for each trial."""
    columns = [["id", *(str(trial.id) for trial in trials)]]
    columns += [
        [printable(column(name)), *(shown(trial.point.get(name, "")) for trial in trials)]
        for name in parameters_of(trials)
    ]
    if not to_fill:
        columns += [
            ["value", *("" if trial.value is None else shown(trial.value) for trial in trials)],
            ["state", *(trial.state for trial in trials)],
        ]
        if any(trial.error for trial in trials):
            columns.append(["error", *(printable(brief(trial.error or ""))[:LONGEST] for trial in trials)])
    if _width(columns) <= width:
        yield _table(columns)
        return
    head, *rest = map(list, zip(*columns, strict=True))
    room = max(10, round(WIDEST_NAME * width))
    wide = min(room, max(map(cell_len, head)))
    block: list[list[str]] = []
    for cells in rest:
        if block and wide + BORDER + 1 + _width([*block, cells]) > width:
            yield _table([head, *block], room)
            block = []
        block.append(cells)
    yield _table([head, *block], room)


def _width(columns: Sequence[Sequence[str]]) -> int:
    return sum(max(map(cell_len, cells)) + BORDER for cells in columns) + 1


def _table(columns: Sequence[Sequence[str]], widest_first: int | None = None) -> Table:
    table = Table()
    for place, cells in enumerate(columns):
        table.add_column(Text(cells[0]), overflow="fold", max_width=None if place else widest_first)
    for row in zip(*(cells[1:] for cells in columns), strict=True):
        table.add_row(*map(Text, row))
    return table


def lines(best: Trial) -> Iterator[str]:
    """Yield a line for each parameter of a trial, with its exact value."""
    for name, value in best.point.items():
        yield f"    {printable(name)} = {printable(written(value))}"
