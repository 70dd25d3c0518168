"""Executors: where the evaluations of a run happen if the caller gives no executor."""

from __future__ import annotations

import pickle
import pickletools
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from typing import Any, ParamSpec, TypeVar

from bounce.errors import InvalidOption, MachineFailed
from bounce.running.evaluation import Evaluator, Function, said
from bounce.running.pool import Pool, main_is_importable

P = ParamSpec("P")
T = TypeVar("T")


class Inline(Executor):
    """The calling process as an executor."""

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Call a function now; the caller gets what it raises, except for a fault of the machine."""
        future: Future[T] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except MachineFailed as error:
            future.set_exception(error)
        return future


def executor_for(evaluator: Evaluator, workers: int, timeout: float | None) -> Executor:
    """Return the executor of a run to which none was given."""
    if evaluator.own_process:  # a thread waits for each process it starts
        return ThreadPoolExecutor(workers, thread_name_prefix="bounce-command")
    if workers == 1 and timeout is None:
        return Inline()
    _check_sendable(evaluator, timeout)
    return Pool(workers, timeout)


def checked_executor(executor: Any) -> Executor:
    """Return the executor that a user gave; refuse what evaluations cannot be submitted to."""
    if isinstance(executor, type) or not callable(getattr(executor, "submit", None)):
        raise InvalidOption(
            f"executor must have submit, as the executors of concurrent.futures have, such as ThreadPoolExecutor(4), "
            f"not {executor!r}",
            option="executor",
        )
    return executor  # type: ignore[no-any-return]


def _check_sendable(evaluator: Evaluator, timeout: float | None) -> None:
    """Refuse an objective that cannot be sent to a worker process, with the real cause and the way out."""
    threads = "" if timeout is not None else ", or use executor=ThreadPoolExecutor(n)"
    needs = "a timeout needs worker processes, but " if timeout is not None else ""
    objective = evaluator.objective if isinstance(evaluator, Function) else None
    pickled, problem = b"", None
    try:
        pickled = pickle.dumps(evaluator)
    except Exception as error:
        problem = said(error)
    in_main = getattr(objective, "__module__", None) == "__main__" or _refers_to_main(pickled)
    if in_main and not main_is_importable():
        raise InvalidOption(
            f"{needs}the objective is defined in a notebook, an interactive session or standard input, which worker "
            f"processes cannot import: save it in a file such as objective.py and import it from there{threads}"
        )
    if problem is not None:
        raise InvalidOption(
            f"{needs}the objective cannot be sent to {'one' if needs else 'a worker process'} ({problem}): define it "
            f"with `def` at the top level of a module{threads}"
        )


def _refers_to_main(pickled: bytes) -> bool:
    """Return whether a pickle needs something from `__main__`, directly or through a partial function."""
    return bool(pickled) and any(argument == "__main__" for _, argument, _ in pickletools.genops(pickled))
