"""Help texts: arguments by their names only, and an example for each command. And what is wrong with given words."""

from __future__ import annotations

import sys
from typing import Any

import typer
from typer.core import TyperCommand

WrongWords: Any = typer.BadParameter.__base__
"""What is raised for an option or an argument that cannot be; typer has no name for it."""


def refuse(error: Any) -> None:
    """Print the usage, and what is wrong in one line with the value received; without any words, the help."""
    if type(error).__name__ == "NoArgsIsHelpError":
        error.show()
        return
    if error.ctx is not None:
        print(f"{error.ctx.get_usage()}\nTry '{error.ctx.command_path} --help' for help.\n", file=sys.stderr)
    said = error.format_message().removesuffix(".").partition(", unable to parse")[0]
    checks: list[Any] = getattr(error.__cause__, "errors", list)()  # of pydantic, whose messages lack the value
    for given in [repr(check["input"]) for check in checks[:1]]:
        said += "" if given in said else f", not {given}"
    print(f"bounce: {said}", file=sys.stderr)


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
