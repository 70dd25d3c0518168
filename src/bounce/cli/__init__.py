"""The command `bounce`: words in, words out, no logic.

Exit codes: 0 done; 1 the run ended with an error, such as ten evaluations that all failed; 2 bad input; 3 another
process is running the study; 130 interrupted by Ctrl-C; 143 and 129 ended by SIGTERM and SIGHUP. An error is one
sentence on standard error, without a traceback.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from io import TextIOWrapper
from typing import Annotated

import typer

from bounce.cli import problems, running, studies

FAILED, BAD_INPUT, LOCKED, INTERRUPTED = 1, 2, 3, 130

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode=None)


def _print_version(wanted: bool) -> None:
    if wanted:
        from bounce import __version__

        print(__version__)
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Optimize expensive functions of many variables of any type.

    A spec describes a study: `bounce init` writes an example, `bounce run` runs it. Without an objective, `bounce
    ask` and `bounce tell` are for experiments that people make.
    """


for _command in (
    *(studies.init, running.run, studies.ask, studies.tell, studies.trials, studies.best, studies.status),
    *(studies.export, studies.plot, problems.demo, problems.benchmark),
):
    app.command()(_command)
app.add_typer(problems.data, name="data")


def main() -> None:
    """Run the command, and turn errors into sentences and exit codes."""
    from bounce.errors import BounceError, DataError, InvalidInput, NothingToAsk, StudyLocked

    _open_streams()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a name or a path that the terminal cannot show
    try:
        try:
            app()
        finally:
            if sys.stdout is not None:
                sys.stdout.flush()
    except StudyLocked as error:
        _end(error, LOCKED)
    except (InvalidInput, NothingToAsk, DataError) as error:
        _end(error, BAD_INPUT)
    except BounceError as error:
        _end(error, FAILED)
    except BrokenPipeError:  # whoever read it, such as `head`, has read enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        sys.exit(FAILED)
    except OSError as error:  # a file that was named, or a write that went wrong
        _end(error, FAILED if error.filename is None else BAD_INPUT)
    except SystemExit as end:
        if end.code == INTERRUPTED:  # what typer makes of Ctrl-C
            print("bounce: interrupted", file=sys.stderr)
        raise


def _open_streams() -> None:
    """Give closed standard streams to nobody, so that no other file gets their numbers."""
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        if getattr(sys, name) is None:
            with suppress(OSError):
                os.fstat(number)
                continue
            os.open(os.devnull, os.O_RDWR)  # the lowest number that is free, which is this one
            setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))  # noqa: SIM115


def _end(error: Exception, code: int) -> None:
    print(f"bounce: {error}", file=sys.stderr)
    sys.exit(code)
