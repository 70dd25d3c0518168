"""Help texts: arguments by their names only, and an example for each command."""

from __future__ import annotations

from typing import Any

from typer.core import TyperCommand


class Command(TyperCommand):
    """A command whose help shows an argument as `SPEC`, without its Python type."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the words of the usage line: `SPEC`, `[VALUE]`, `ID...` or `[ID]...`."""
        words = ["[OPTIONS]"]
        for parameter in self.get_params(ctx):
            if parameter.param_type_name == "argument":
                name = _name(parameter)
                words.append((name if parameter.required else f"[{name}]") + ("..." if parameter.nargs == -1 else ""))
        return words

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the sections of arguments and options."""
        records: dict[str, list[tuple[str, str]]] = {"argument": [], "option": []}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None:
                kind: str = parameter.param_type_name
                records[kind].append((_name(parameter) if kind == "argument" else record[0], record[1]))
        for title, found in zip(("Arguments", "Options"), records.values(), strict=True):
            if found:
                with formatter.section(title):
                    formatter.write_dl(found)


def _name(argument: Any) -> str:
    """Return the name of an argument in capitals."""
    name: str = argument.metavar or argument.name.upper()
    return name
