"""The command that runs a spec, here or on a cluster, until its budget is spent."""

from __future__ import annotations

import logging
import shlex
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bounce.cli.studies import SpecPath, StudyPath, place, print_result

if TYPE_CHECKING:
    from concurrent.futures import Executor


def run(
    spec: SpecPath,
    study: StudyPath = None,
    workers: Annotated[int | None, typer.Option(min=1, help="Evaluations at a time, instead of the spec's.")] = None,
    batch_size: Annotated[
        int | None, typer.Option(min=1, help="Trials per ask in this run, instead of the spec's.")
    ] = None,
    max_failures: Annotated[
        int | None, typer.Option(min=1, help="End the run when this many first evaluations fail in the same way.")
    ] = None,
    dask: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Evaluate on a Dask cluster, such as tcp://host:8786.")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print the result only.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON object per trial, and one at the end.")] = False,
) -> None:
    """Run a spec until its budget is spent; run again, it goes on where it was."""
    from bounce.cli.display import Warnings, display, standard_output
    from bounce.errors import EvaluationFailed, InvalidSpec
    from bounce.running.run import ALIKE
    from bounce.spec.spec import load
    from bounce.study.study import Study

    described = load(spec)
    path = place(described, study)
    evaluator = described.evaluator(path)
    if evaluator is None:
        raise InvalidSpec(f"{spec} has neither objective nor command: add one, or use bounce ask and bounce tell")
    if dask is not None and described.objective is not None and described.timeout is not None:
        raise InvalidSpec(f"{spec}: a timeout cannot be kept on a Dask cluster, except for a command: remove it")
    with _executor(dask) as executor, Study.open(path, space=described.space, **described.settings) as opened:
        try:
            with (
                _terminable(),
                standard_output() as out,
                display(opened, described.name, out, quiet=quiet, as_json=as_json) as shown,
                nullcontext() if quiet else Warnings(logging.WARNING),
            ):
                opened.run(
                    evaluator,
                    executor=executor,
                    workers=workers or described.workers,
                    batch_size=batch_size,
                    timeout=described.timeout,
                    max_failures=max_failures or described.max_failures or ALIKE,
                    callbacks=[shown],
                )
        except (KeyboardInterrupt, SystemExit):
            again = shlex.join(["bounce", *sys.argv[1:]])
            print(f"bounce: {opened.status.done} values are stored in {path}; to resume: {again}", file=sys.stderr)
            if as_json:
                print_result(opened, as_json=True)
            raise
        if opened.best is None and opened.trials:
            raise EvaluationFailed(f"all evaluations failed; the first error was: {opened.trials[0].error}")
        now = opened.status
        if now.planned < now.budget and not as_json:
            print(f"all {now.planned} points of the space have been tried")
        print_result(opened, as_json=as_json)


@contextmanager
def _terminable() -> Iterator[None]:
    """Let a signal that asks this process to end, as a batch system sends it, end what the run has started too."""
    numbers = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    before = {number: signal.getsignal(number) for number in numbers}

    def end(number: int, _: object) -> None:
        raise SystemExit(128 + number)

    for number, handler in before.items():
        if handler is signal.SIG_DFL:  # nohup ignores SIGHUP, and so do we then
            signal.signal(number, end)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _executor(dask: str | None) -> Iterator[Executor | None]:
    """Connect to a Dask scheduler, if there is to be one."""
    if dask is None:
        with nullcontext():
            yield None
        return
    from bounce.errors import InvalidInput

    try:
        from distributed import Client
    except ImportError:
        raise InvalidInput("a Dask cluster needs distributed: pip install 'bounce-bo[dask]'") from None
    try:
        client: Any = Client(dask, timeout=10)
    except (OSError, ValueError, TimeoutError) as error:
        raise InvalidInput(f"there is no Dask scheduler at {dask!r}: {error}") from None
    with client:
        yield client.get_executor(pure=False)
