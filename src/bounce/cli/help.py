"""Help texts: arguments by their names only, and an example for each command."""

from __future__ import annotations

from typing import Any

from typer.core import TyperCommand


class Command(TyperCommand):
    """A command whose help shows an argument as `SPEC`, without its Python type."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the sections of arguments and options."""
        records: dict[str, list[tuple[str, str]]] = {"argument": [], "option": []}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None:
                kind: str = parameter.param_type_name
                name = parameter.metavar if kind == "argument" and parameter.metavar else record[0]
                records[kind].append((name, record[1]))
        for title, found in zip(("Arguments", "Options"), records.values(), strict=True):
            if found:
                with formatter.section(title):
                    formatter.write_dl(found)
