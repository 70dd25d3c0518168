"""A run: trials go out to an executor, outcomes come back, until nothing is left to evaluate.

At most `workers` evaluations run at a time; `batch_size` trials are asked for whenever that many workers are free.
Equal numbers give the synchronous batches of the paper, a batch size of 1 full asynchrony. The next step depends only
on the source and on the order of the outcomes, so a run that was killed continues as if it had not been.

The first failures of a run are held back while they have the same error and nothing has succeeded: their trials stay
pending. If the objective is broken, the run ends and has cost no budget.
"""

from __future__ import annotations

import logging
import pickle
import pickletools
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import (
    BrokenExecutor,
    CancelledError,
    Executor,
    Future,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
    wait,
)
from dataclasses import dataclass
from functools import partial
from typing import Any, ParamSpec, Protocol, TypeVar

from bounce.errors import EvaluationFailed, ExecutorFailed, InvalidOption, NothingToAsk
from bounce.running.evaluation import Evaluator, Function, Outcome, evaluate, said
from bounce.running.pool import CallTooLong, Pool, main_is_importable
from bounce.text import brief
from bounce.trial import Trial

logger = logging.getLogger("bounce")

ALIKE = 3  # first failures with the same error, before anything succeeds, that end a run
FAILURES = 10  # failures of any kind, before anything succeeds, that end a run
NOTICE = 0.5  # seconds: a signal that arrives just before a wait is handled after it

P = ParamSpec("P")
T = TypeVar("T")


class Asker(Protocol):
    """Where trials come from and outcomes go."""

    def ask(self, n: int | None = None) -> list[Trial]:
        """Return new trials."""

    def record(self, trial: Trial, outcome: Outcome, /) -> Trial:
        """Keep an outcome and return the finished trial."""

    @property
    def pending(self) -> list[Trial]:
        """The trials that have no outcome yet."""

    @property
    def remaining(self) -> int:
        """How many trials may still be asked for."""

    @property
    def best(self) -> Trial | None:
        """The best trial so far."""


@dataclass(frozen=True)
class Plan:
    """How a run evaluates."""

    workers: int = 1
    batch_size: int = 1
    max_failures: int = ALIKE
    callbacks: Sequence[Callable[[Trial], None]] = ()


class Inline(Executor):
    """The calling process as an executor."""

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Call a function now; the caller gets what it raises."""
        future: Future[T] = Future()
        future.set_result(fn(*args, **kwargs))
        return future


class Interrupt:
    """Ctrl-C within a block: the first one asks the run to stop, the second one stops it at once."""

    def __init__(self) -> None:
        self.asked = False

    def __enter__(self) -> Interrupt:
        self._before: Any = None
        main = threading.current_thread() is threading.main_thread()
        if main and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            self._before = signal.signal(signal.SIGINT, self._handle)
        return self

    def __exit__(self, *_: object) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)

    def _handle(self, *_: object) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True
        logger.warning("interrupted: waiting for running evaluations to finish; press Ctrl-C again to stop at once")


class Run:
    """One run of a study on an executor."""

    def __init__(self, source: Asker, evaluator: Evaluator, executor: Executor, plan: Plan) -> None:
        self._source, self._evaluator, self._executor, self._plan = source, evaluator, executor, plan
        self._inline = isinstance(executor, Inline)
        self._queue: deque[Trial] = deque()
        self._out: dict[Future[Outcome], Trial] = {}
        self._again: set[int] = set()
        self._own: Pool | None = None
        self._works = False
        self._held: list[tuple[Trial, Outcome]] = []
        self._failures = 0
        self._first: Outcome | None = None
        self._first_id: int | None = None
        self._exhausted = False

    @property
    def in_flight(self) -> int:
        """How many evaluations are running."""
        return len(self._out)

    def run(self) -> None:
        """Evaluate what is pending, then ask and evaluate until nothing is left."""
        with Interrupt() as interrupt:
            try:
                self._queue.extend(self._source.pending)
                self._supply(interrupt)
                while self._out:
                    done, _ = wait(self._out, timeout=NOTICE, return_when="FIRST_COMPLETED")
                    for future in sorted(done, key=lambda future: self._out[future].id):
                        self._receive(future)
                        self._supply(interrupt)
                if interrupt.asked:
                    raise KeyboardInterrupt
                self._release()
            except BaseException:
                self._evaluator.stop()
                if isinstance(self._executor, Pool):
                    self._executor.kill()
                for future in self._out:
                    future.cancel()
                raise
            finally:
                if self._own is not None:
                    self._own.shutdown()

    def _supply(self, interrupt: Interrupt) -> None:
        """Ask while there is room for a batch, and submit while a worker is free."""
        while not interrupt.asked:
            while self._queue and len(self._out) < self._plan.workers:
                self._submit(self._queue.popleft())
            room = max(self._plan.workers, self._plan.batch_size) - len(self._out) - len(self._queue)
            if room < self._plan.batch_size or self._exhausted or self._source.remaining <= 0:
                return
            try:
                self._queue.extend(self._source.ask(self._plan.batch_size))
            except NothingToAsk:
                self._exhausted = True

    def _submit(self, trial: Trial) -> None:
        call: Callable[..., Outcome] = partial(evaluate, self._evaluator)
        arguments: tuple[Any, ...] = (trial, trial.id in self._again)
        if self._inline:  # an exception that ends this process ends the run
            call, arguments = self._evaluator.evaluate, (trial,)
        try:
            future = self._executor.submit(call, *arguments)
        except BrokenExecutor as error:
            self._replace(error)
            future = self._executor.submit(call, *arguments)
        except Exception as error:
            if self._inline:  # the evaluation raised it
                raise
            raise ExecutorFailed(f"the executor takes no more evaluations ({said(error)})") from error
        self._out[future] = trial

    def _receive(self, future: Future[Outcome]) -> None:
        """Take an outcome, or a fault of the executor, after which the trial is evaluated again.

        A second fault fails the trial, which may have caused both. It ends the run instead if the executor cancelled
        the trial, or if this executor has not returned anything yet.
        """
        trial = self._out.pop(future)
        try:
            outcome = future.result()
            self._works = True
        except ExecutorFailed:
            raise
        except CallTooLong as error:
            outcome = Outcome.failed(said(error))
        except CancelledError as error:
            raise ExecutorFailed(
                f"the executor cancelled trial {trial.id}: it was closed, or lost its cluster; "
                "run again to resume when it is back"
            ) from error
        except Exception as error:
            if trial.id not in self._again:
                logger.warning("trial %d is evaluated again: %s", trial.id, said(error))
                self._again.add(trial.id)
                self._queue = deque(sorted((trial, *self._queue), key=lambda trial: trial.id))
                if isinstance(error, BrokenExecutor):
                    self._replace(error)
                return
            if not self._works and not isinstance(error, BrokenExecutor):
                raise ExecutorFailed(
                    f"the executor could not evaluate trial {trial.id}, nor any other ({said(error)}): can its "
                    "workers import bounce and the objective?"
                ) from error
            outcome = Outcome.failed(said(error))
        self._finish(trial, outcome)

    def _replace(self, error: BrokenExecutor) -> None:
        """Continue in a pool of our own if the given executor, a process pool too, is broken for good."""
        if not isinstance(self._executor, Pool):
            if not isinstance(self._executor, ProcessPoolExecutor):
                raise ExecutorFailed(f"the executor is broken ({said(error)})") from error
            logger.warning("the executor is broken (%s): the run continues in a new pool", said(error))
            self._executor = self._own = Pool(self._plan.workers)

    def _finish(self, trial: Trial, outcome: Outcome) -> None:
        """Record an outcome; before the first success, hold back the first failures if they have the same error."""
        if outcome.value is None:
            self._report(trial, outcome)
            first = self._failures == 0 and self._source.best is None
            if first and all(outcome.error == held.error for _, held in self._held):
                self._held.append((trial, outcome))
                if len(self._held) >= self._plan.max_failures:
                    raise self._broken()
                return
        self._release()
        self._record(trial, outcome)

    def _release(self) -> None:
        """Record what was held back: the objective works at other points, or fails in several ways."""
        held, self._held = self._held, []
        for trial, outcome in held:
            self._record(trial, outcome)

    def _record(self, trial: Trial, outcome: Outcome) -> None:
        finished = self._source.record(trial, outcome)
        if outcome.value is None:
            self._failures += 1
            if self._failures >= FAILURES and self._source.best is None:
                assert self._first is not None
                raise EvaluationFailed(
                    f"the first {self._failures} evaluations of this run all failed; the first error was: "
                    f"{self._first.error}",
                    trial=self._first_id,
                ) from self._first.exception
        for callback in self._plan.callbacks:
            callback(finished)

    def _report(self, trial: Trial, outcome: Outcome) -> None:
        """Show a failure: the first in full, with its traceback, the others in one line."""
        error = outcome.error or "no reason is known"
        if self._first is not None:
            logger.warning("trial %d failed: %s", trial.id, brief(error))
            return
        self._first, self._first_id = outcome, trial.id
        detail = error if outcome.traceback is None else f"{brief(error)}\n{outcome.traceback.rstrip()}"
        logger.warning("trial %d failed: %s", trial.id, detail, extra={"in_full": True})

    def _broken(self) -> EvaluationFailed:
        trial, first = self._held[0]
        n = len(self._held)
        what = "first evaluation of this run failed" if n == 1 else f"first {n} evaluations of this run failed alike"
        message = (
            f"the {what} ({first.error}), so the run ended. This does not count against the budget: correct the "
            f"objective and run again. If such failures are expected, set max_failures to more than {n}"
        )
        failure = EvaluationFailed(message, trial=trial.id)
        failure.__cause__ = first.exception
        return failure


def executor_for(evaluator: Evaluator, workers: int, timeout: float | None) -> Executor:
    """Return the executor of a run to which none was given."""
    if evaluator.own_process:  # a thread waits for each process it starts
        return ThreadPoolExecutor(workers, thread_name_prefix="bounce-command")
    if workers == 1 and timeout is None:
        return Inline()
    _check_sendable(evaluator, timeout)
    return Pool(workers, timeout)


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


def checked_callbacks(callbacks: Any) -> list[Callable[[Trial], None]]:
    """Return callbacks as a list of functions; refuse anything else."""
    listed: list[Any] = list(callbacks) if isinstance(callbacks, Iterable) else [None]
    if not all(map(callable, listed)):
        raise InvalidOption(f"callbacks must be a list of functions of a trial, not {callbacks!r}", option="callbacks")
    return listed
