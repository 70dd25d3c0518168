"""The command `bounce`: words in, words out, no logic.

Exit codes: 0 done; 1 the run ended with an error, such as ten evaluations that all failed; 2 bad input; 3 another
process is running the study; 130 interrupted. An error is one sentence on standard error, without a traceback.
"""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from bounce.cli import problems, studies

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
    *(studies.init, studies.run, studies.ask, studies.tell, studies.trials, studies.best, studies.status),
    *(studies.export, studies.plot, problems.demo, problems.benchmark),
):
    app.command()(_command)
app.add_typer(problems.data, name="data")


def main() -> None:
    """Run the command, and turn errors into sentences and exit codes."""
    from bounce.errors import BounceError, EvaluationFailed, ExecutorFailed, StorageFailed, StudyLocked

    try:
        app()
    except StudyLocked as error:
        _end(error, LOCKED)
    except (EvaluationFailed, ExecutorFailed, StorageFailed) as error:
        _end(error, FAILED)
    except (BounceError, OSError) as error:
        _end(error, BAD_INPUT)
    except SystemExit as end:
        if end.code == INTERRUPTED:  # what typer makes of Ctrl-C
            print("bounce: interrupted", file=sys.stderr)
        raise


def _end(error: Exception, code: int) -> None:
    print(f"bounce: {error}", file=sys.stderr)
    sys.exit(code)
