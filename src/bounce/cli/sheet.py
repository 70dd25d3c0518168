"""Sheets: trials as a table, or as a few lines about the best one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from bounce.text import brief, printable, written
from bounce.trial import Scalar, Trial, column, outcomes_of, parameters_of

if TYPE_CHECKING:
    from bounce.spaces.outcomes import Limit

LONGEST = 80  # characters of an error
BORDER = 3  # columns that a border needs beside the cells
WIDEST_NAME = 0.4  # share of the width for the names of parameters, where each has a row


def shown(value: Any) -> str:
    """Return a value for people: numbers with six digits, true, false or null, text in one line."""
    return printable(written(value)) if isinstance(value, list | dict) else _shown(value)


@lru_cache(maxsize=4096, typed=True)
def _shown(value: Scalar) -> str:
    return f"{value:.6g}" if isinstance(value, float) else printable(written(value))


def show(trials: Sequence[Trial], console: Console, *, to_fill: bool = False) -> None:
    """Print one table with a row for each trial; if that is too wide, tables with a column for each trial."""
    for columns, room in _tables(trials, console.width, to_fill=to_fill):
        if _width(columns) <= console.width and cell_len(max(columns[0], key=cell_len)) <= (room or console.width):
            console.file.write(_plain(columns, console))
        else:
            console.print(_table(columns, room))  # which folds what is too wide


def _tables(trials: Sequence[Trial], width: int, *, to_fill: bool) -> Iterator[tuple[list[list[str]], int | None]]:
    """Yield the columns of each table, and how wide the first one may be."""
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
        names = outcomes_of(trials)
        columns[-1:-1] = [
            [printable(name), *(shown(t.outcomes[name]) if name in t.outcomes else "" for t in trials)]
            for name in names
        ]
        if names:
            kept = {True: "yes", False: "no", None: ""}
            columns.insert(-1, ["feasible", *(kept[trial.feasible] for trial in trials)])
        if any(trial.sem is not None for trial in trials):
            columns.insert(-1, ["sem", *("" if trial.sem is None else shown(trial.sem) for trial in trials)])
        if any(trial.repeats is not None for trial in trials):
            columns.insert(-1, ["repeats", *("" if t.repeats is None else str(t.repeats) for t in trials)])
        if any(trial.error for trial in trials):
            columns.append(["error", *(printable(brief(trial.error or ""))[:LONGEST] for trial in trials)])
    if _width(columns) <= width:
        yield columns, None
        return
    head, *rest = map(list, zip(*columns, strict=True))
    room = max(10, round(WIDEST_NAME * width))
    first = min(room, max(map(cell_len, head))) + BORDER + 1
    block, wide = list[list[str]](), first
    for cells in rest:
        own = _width([cells]) - 1
        if block and wide + own > width:
            yield [head, *block], room
            block, wide = [], first
        block.append(cells)
        wide += own
    yield [head, *block], room


def _width(columns: Sequence[Sequence[str]]) -> int:
    return sum(max(map(cell_len, cells)) + BORDER for cells in columns) + 1


def _plain(columns: Sequence[Sequence[str]], console: Console) -> str:
    """Return a table that fits, as rich would draw it, in a hundredth of the time."""
    widths = [max(map(cell_len, cells)) for cells in columns]
    frame = box.HEAVY_HEAD.substitute(console.options)
    padded = [
        [f" {cell}{' ' * (wide - cell_len(cell))} " for cell in cells]
        for cells, wide in zip(columns, widths, strict=True)
    ]
    on, off = ("\x1b[1m", "\x1b[0m") if console.is_terminal and console.color_system else ("", "")
    head, *body = zip(*padded, strict=True)
    outer = [wide + 2 for wide in widths]
    lines = [
        frame.get_top(outer),
        frame.head_left + frame.head_vertical.join(f"{on}{cell}{off}" for cell in head) + frame.head_right,
        frame.get_row(outer, "head"),
        *(frame.mid_left + frame.mid_vertical.join(row) + frame.mid_right for row in body),
        frame.get_bottom(outer),
    ]
    return "\n".join(lines) + "\n"


def _table(columns: Sequence[Sequence[str]], widest_first: int | None = None) -> Table:
    table = Table()
    for place, cells in enumerate(columns):
        table.add_column(Text(cells[0]), overflow="fold", max_width=None if place else widest_first)
    for row in zip(*(cells[1:] for cells in columns), strict=True):
        table.add_row(*map(Text, row))
    return table


def lines(best: Trial, limits: Sequence[Limit] = ()) -> Iterator[str]:
    """Yield a line for each parameter of a trial, with its exact value, and for each outcome, with its limit."""
    for name, value in best.point.items():
        yield f"    {printable(name)} = {printable(written(value))}"
    for limit in limits:
        if limit.name in best.outcomes:
            measured = best.outcomes[limit.name]
            broken = " (broken)" if limit.violation(measured) else ""
            yield f"  {printable(limit.text)}: {written(measured)}{broken}"
