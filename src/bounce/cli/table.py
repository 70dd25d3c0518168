"""Table: rows on the terminal or in a file, whole in both."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def show_table(head: Sequence[str], rows: Iterable[Sequence[str]], *, title: str | None = None) -> None:
    """Print a table: cells are wrapped to the width of a terminal, and as wide as they need to be elsewhere."""
    from rich.console import Console
    from rich.table import Table

    table = Table(title=title)
    for name in head:
        table.add_column(name, overflow="fold")
    for cells in rows:
        table.add_row(*cells)
    console = Console()
    if not console.is_terminal:
        console = Console(
            width=max(1, console.measure(table, options=console.options.update(max_width=10_000)).maximum)
        )
    console.print(table)
