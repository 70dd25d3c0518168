"""The command `bounce`: reads arguments and prints results, without logic of its own.

Exit codes: 0 success; 1 the run ended with an error, such as an objective that fails at every point; 2 bad input;
3 another process is running the study; 130 interrupted by Ctrl-C; 143 and 129 ended by SIGTERM and SIGHUP. An error is
one message on standard error, without a traceback.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from io import TextIOWrapper
from typing import Annotated, NoReturn

import typer

from bounce.cli import audit, damage, knowledge, paper, pictures, problems, running, studies
from bounce.cli.help import Command, WrongWords, refuse

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
    """Optimize expensive functions of many inputs of any type.

    A spec is a TOML file that describes a study. `bounce init` writes an example, and `bounce run` runs it. If you run
    the experiments yourself, use `bounce ask` and `bounce tell`.
    """


for _command, _example in (
    (studies.init, "bounce init svm.toml"),
    (running.run, "bounce run svm.toml --workers 4"),
    (studies.ask, "bounce ask lab.toml -n 8 --format csv > todo.csv"),
    (studies.tell, "bounce tell lab.toml todo.csv"),
    (knowledge.add, "bounce add lab.toml last-year.csv --skip-invalid"),
    (knowledge.enqueue, "bounce enqueue lab.toml ideas.csv"),
    (knowledge.correct, "bounce correct lab.db 7 0.82 --reason 'a typo'"),
    (knowledge.retry, "bounce retry lab.db 3 4"),
    (knowledge.withdraw, "bounce withdraw lab.db 12 13"),
    (knowledge.note, "bounce note lab.db 7 'stirred by hand'"),
    (knowledge.history, "bounce history lab.db"),
    (studies.trials, "bounce trials svm.db --format csv"),
    (studies.best, "bounce best svm.db --json"),
    (studies.status, "bounce status svm.db"),
    (studies.export, "bounce export svm.db svm.csv"),
    (studies.plot, "bounce plot svm.db --out svm.png"),
    (pictures.importance, "bounce importance svm.db"),
    (pictures.report, "bounce report svm.toml --out svm.html"),
    (pictures.watch, "bounce watch svm.db --port 8421"),
    (damage.check, "bounce check svm.db"),
    (damage.repair, "bounce repair svm.db --out saved.db"),
    (problems.demo, "bounce demo --evals 100 --seed 1"),
    (problems.benchmark, "bounce benchmark labs50 --evals 200 --seeds 4 --jobs 2"),
    (audit.audit, "bounce audit bounce bodi-published --problem pest25 --jobs 2"),
):
    _negative = {"ignore_unknown_options": _command is knowledge.correct}  # its value may be negative
    app.command(cls=Command, epilog=f"Example: {_example}", context_settings=_negative)(_command)
app.add_typer(problems.data, name="data")
app.add_typer(paper.paper, name="paper")


def main() -> None:
    """Run the command; turn errors into messages and exit codes."""
    from bounce.errors import BounceError, DataError, InvalidInput, NothingToAsk, StudyLocked

    _open_streams()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # for names and paths that the terminal cannot show
    try:
        try:
            code = app(standalone_mode=False)
        finally:
            if sys.stdout is not None:
                sys.stdout.flush()
    except StudyLocked as error:
        _end(error, LOCKED)
    except (InvalidInput, NothingToAsk, DataError) as error:
        _end(error, BAD_INPUT)
    except BounceError as error:
        _end(error, FAILED)
    except BrokenPipeError:  # the reader, such as `head`, has closed the pipe
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        sys.exit(FAILED)
    except OSError as error:  # a file that the user named, or a failed write
        _end(error, FAILED if error.filename is None else BAD_INPUT)
    except WrongWords as error:
        refuse(error)
        sys.exit(BAD_INPUT)
    except typer.Abort:
        sys.exit(FAILED)
    if code == INTERRUPTED:  # typer turns Ctrl-C into this
        print("bounce: interrupted", file=sys.stderr)
    sys.exit(code or 0)


def _open_streams() -> None:
    """Open the null device for closed standard streams, so that no other file gets their numbers."""
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        if getattr(sys, name) is None:
            with suppress(OSError):
                os.fstat(number)
                continue
            os.open(os.devnull, os.O_RDWR)  # gets the lowest free number, which is this one
            setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))  # noqa: SIM115


def _end(error: Exception, code: int) -> NoReturn:
    from bounce.text import printable

    print("bounce: " + "\n".join(map(printable, str(error).splitlines())), file=sys.stderr)
    sys.exit(code or 0)
