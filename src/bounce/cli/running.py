"""Running: the command that runs a spec, on this machine or on a cluster, until its budget is spent."""

from __future__ import annotations

import shlex
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bounce.cli.best import print_result
from bounce.cli.target import Change, SpecPath, StudyPath, described_study, place, say_unused_starts

if TYPE_CHECKING:
    from concurrent.futures import Executor
    from pathlib import Path

    from bounce.cli.display import Display
    from bounce.running.evaluation import Evaluator
    from bounce.spec.spec import Spec
    from bounce.study.study import Study

PATIENCE = 10.0  # seconds in which a scheduler has to answer


def run(
    spec: SpecPath,
    study: StudyPath = None,
    workers: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="N", help="Run this many evaluations at a time, instead of the number in the spec."
        ),
    ] = None,
    batch_size: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Ask for this many trials at a time, instead of the number in the spec."),
    ] = None,
    max_failures: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="End the run if N evaluations in a row fail with the same error and nothing has succeeded yet. Once "
            "something has, ten do so, or N if that is more. The default is the number in the spec, or 3.",
        ),
    ] = None,
    stop_when: Annotated[
        str | None,
        typer.Option(
            metavar="CONDITION",
            help="End the run before its budget is spent if this holds, instead of the condition in the spec: 'no "
            "improvement expected above X', 'no improvement in N evaluations', 'value below X' or 'value above X', or "
            "several of them joined by 'or'.",
        ),
    ] = None,
    method: Annotated[
        str | None, typer.Option(metavar="NAME", help="Use this method for a new study: default, paper or 0.1.")
    ] = None,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="First evaluate all failed trials again, at no further cost.")
    ] = False,
    change: Change = False,
    dask: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Evaluate on a Dask cluster, such as tcp://host:8786.")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print only the result, no progress and no warnings.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print a JSON object for each trial, and a final one with the result.")
    ] = False,
) -> None:
    """Run the study described by a spec.

    The run ends when the budget is spent, or when the condition of --stop-when holds. Run the same command again to
    resume it. After the first Ctrl-C, the run waits for running evaluations. A second one stops it at once. Nothing
    that was stored is lost.
    """
    from bounce.optimizer.stopping import StopWhen
    from bounce.running.recorder import ALIKE
    from bounce.spec.document import load

    described = load(spec)
    path = place(described, study)
    if stop_when is not None:  # before a budget is extended or a trial retried
        StopWhen.of(stop_when, described.settings.get("direction", "minimize"), limited=bool(described.space.limits))
    evaluator = _evaluator(described, path, dask=dask is not None)
    options = {} if method is None else {"method": method}
    connected = nullcontext() if dask is None else cluster(dask)
    with connected as executor, described_study(described, path, options, change=change, quiet=quiet) as opened:
        if not quiet:
            say_unused_starts(described, opened)
        if retry_failed:
            opened.retry(reason="run --retry-failed")
        with _reported(opened, as_json=as_json), _shown(opened, described.name, quiet=quiet, as_json=as_json) as show:
            opened.run(
                evaluator,
                executor=executor,
                workers=workers or described.workers,
                batch_size=batch_size,
                timeout=described.timeout,
                max_failures=max_failures or described.max_failures or ALIKE,
                stop_when=stop_when or described.stop_when,
                callbacks=[show],
            )
        _finish(opened, as_json=as_json)


def _evaluator(described: Spec, study: Path, *, dask: bool) -> Evaluator:
    """Return what evaluates the trials of a spec; refuse a spec that cannot be run."""
    from bounce.errors import InvalidSpec

    evaluator = described.evaluator(study)
    if evaluator is None:
        raise InvalidSpec(
            f"{described.path} has no objective and no command: add one, or use bounce ask and bounce tell"
        )
    if dask and described.timeout is not None and not evaluator.own_process:
        raise InvalidSpec(
            f"{described.path}: on a Dask cluster only a command can have a timeout, not an objective: remove it"
        )
    return evaluator


@contextmanager
def _shown(opened: Study, name: str, *, quiet: bool, as_json: bool) -> Iterator[Display]:
    """Show a run while it lasts."""
    from bounce.cli.display import Warnings, display, standard_output

    with (
        _terminable(),
        standard_output() as out,
        display(opened, name, out, quiet=quiet, as_json=as_json) as shown,
        Warnings(quiet=quiet),
    ):
        yield shown


@contextmanager
def _reported(opened: Study, *, as_json: bool) -> Iterator[None]:
    """Print the result so far if a run is interrupted, its objective is broken or a machine is at fault."""
    from bounce.errors import EvaluationFailed, ExecutorFailed, MachineFailed

    try:
        yield
    except (KeyboardInterrupt, SystemExit, EvaluationFailed, ExecutorFailed, MachineFailed) as end:
        if isinstance(end, KeyboardInterrupt | SystemExit):
            again = shlex.join(["bounce", *sys.argv[1:]])
            stored = f"{opened.status.done} values are stored in {opened.path}"
            print(f"bounce: {stored}; to resume: {again}", file=sys.stderr)
        if as_json:
            print_result(opened, as_json=True)
        raise


def _finish(opened: Study, *, as_json: bool) -> None:
    """Print the result of a run that has spent its budget, or was stopped."""
    from bounce.errors import EvaluationFailed

    if opened.best is None and opened.trials:
        if as_json:
            print_result(opened, as_json=True)
        first = next((trial.error for trial in opened.trials if trial.state == "failed"), None)
        raise EvaluationFailed(f"all evaluations failed; the first error was: {first}")
    now = opened.status
    if opened.stopped is not None and not as_json:
        print(f"stopped after {now.done + now.failed} of {now.planned} evaluations: {opened.stopped}")
    elif now.planned < now.budget and not as_json:
        print(f"all {now.planned} points of the space have been tried")
    print_result(opened, as_json=as_json)


@contextmanager
def _terminable() -> Iterator[None]:
    """End what the run has started when a signal, such as one from a batch system, ends this process."""
    numbers = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    before = {number: signal.getsignal(number) for number in numbers}

    def end(number: int, _: object) -> None:
        raise SystemExit(128 + number)

    for number, handler in before.items():
        if handler is signal.SIG_DFL:  # not if it is ignored, as with nohup
            signal.signal(number, end)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def cluster(address: str) -> Iterator[Executor]:
    """Connect to a Dask scheduler."""
    from bounce.errors import InvalidInput

    try:
        from distributed import Client
    except ImportError:
        raise InvalidInput("a Dask cluster needs distributed: pip install 'bounce-bo[dask]'") from None
    try:
        client: Any = Client(address, timeout=PATIENCE)
    except (OSError, ValueError, TimeoutError) as error:
        raise InvalidInput(f"no Dask scheduler answers at {address!r}: {error}") from None
    with client:
        yield client.get_executor(pure=False)
