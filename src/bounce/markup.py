"""Markup: small tables as HTML, for notebooks. Every text is escaped, so a name is shown as it is.

A leaf: it needs nothing but the standard library.
"""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

MOST = 50  # rows of a point that are shown
LONGEST = 200  # characters of a cell that are shown
LEFT = "text-align: left"


def facts(
    title: str, rows: Mapping[str, str], point: Mapping[str, object] | None = None, *, share: float | None = None
) -> str:
    """Return a title, a bar for the share of work done, a table of names and texts, and the best point."""
    bar = "" if share is None else f'<progress value="{min(max(share, 0.0), 1.0):.4f}" max="1"></progress>'
    parts = [f"<strong>{_text(title)}</strong>", bar, _table(rows)]
    if point is not None:
        few = {name: value if isinstance(value, str) else repr(value) for name, value in list(point.items())[:MOST]}
        more = f"<p>and {len(point) - MOST} more</p>" if len(point) > MOST else ""
        parts += ["<p>the best point:</p>", _table(few), more]
    return "<div>" + "".join(parts) + "</div>"


def _table(rows: Mapping[str, str]) -> str:
    cells = (f'<tr><th style="{LEFT}">{_text(a)}</th><td style="{LEFT}">{_text(b)}</td></tr>' for a, b in rows.items())
    return "<table>" + "".join(cells) + "</table>"


def _text(text: str) -> str:
    return escape(text if len(text) <= LONGEST else text[:LONGEST] + "…")
