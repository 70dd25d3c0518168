"""Verdicts: claims of the paper with what was found, as text for people and as a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from textwrap import wrap
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bounce.paper.claims import Verdict


def as_table(found: Sequence[Verdict]) -> list[tuple[str, ...]]:
    """Return the rows of a table with its head; a claim is said once, before all the places where it was checked."""
    rows: list[tuple[str, ...]] = [("figure", "claim", "where", "verdict", "numbers"), ("---",) * 5]
    said = (0, "")
    for row in found:
        own = (row.figure, row.says)
        rows.append((str(row.figure), "" if own == said else row.says, row.where, row.verdict, row.numbers))
        said = own
    return rows


def as_text(found: Sequence[Verdict], titles: Mapping[int, str], width: int | None) -> list[str]:
    """Return lines for people: a figure, its claims, and under each the places with the verdict and the numbers.

    Numbers that do not fit in the width go to lines of their own.
    """
    lines: list[str] = []
    figure, says = 0, ""
    verdicts, places = (
        max(len(text) for text in texts) for texts in zip(*((v.verdict, v.where) for v in found), strict=True)
    )
    for row in found:
        if row.figure != figure:
            lines += [*([""] if lines else []), f"Figure {row.figure}: {titles[row.figure]}"]
        if (row.figure, row.says) != (figure, says):
            lines += wrap(row.says, (width or 10**6) - 2, initial_indent="  ", subsequent_indent="  ")
        figure, says = row.figure, row.says
        head = f"    {row.verdict:<{verdicts}}  {row.where:<{places}}  "
        if width is None or len(head) + len(row.numbers) <= width:
            lines.append(head + row.numbers)
        else:
            indent = " " * (6 + verdicts)
            lines += [
                head.rstrip(),
                *wrap(row.numbers, max(width, 60), initial_indent=indent, subsequent_indent=indent),
            ]
    return lines
