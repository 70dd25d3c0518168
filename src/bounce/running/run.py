"""A run: trials go out to an executor, outcomes come back, until there is nothing left to do.

At most `workers` evaluations are out; `batch_size` trials are asked for whenever that many places are free. Equal
numbers give the synchronous batches of the paper, a batch size of 1 full asynchrony. What happens next depends on
nothing but the study and the order of the outcomes, so a run that was killed goes on as if it had not been.
"""

from __future__ import annotations

import logging
import pickle
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
from functools import partial
from typing import Any, ParamSpec, Protocol, TypeVar

from bounce.errors import EvaluationFailed, ExecutorFailed, InvalidOption, NothingToAsk
from bounce.running.evaluation import Evaluator, Outcome, evaluate, said
from bounce.running.pool import CallTooLong, Pool
from bounce.trial import Trial

logger = logging.getLogger("bounce")

FAILURES = 10  # without a success, before a run gives up
NOTICE = 0.5  # seconds: a signal that comes just before a wait is noticed only after it

P = ParamSpec("P")
T = TypeVar("T")


class Source(Protocol):
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
        """How many may still be asked for."""

    @property
    def best(self) -> Trial | None:
        """The best trial so far."""


class Inline(Executor):
    """The calling process as an executor."""

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Call a function now; what it raises goes straight to the caller."""
        future: Future[T] = Future()
        future.set_result(fn(*args, **kwargs))
        return future


class Interrupt:
    """Ctrl-C within a block: the first asks to stop, the second stops."""

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
        logger.warning("interrupted: waiting for the evaluations that are running; once more does not wait")


class Run:
    """One run of a study on an executor."""

    def __init__(
        self,
        source: Source,
        evaluator: Evaluator,
        executor: Executor,
        *,
        workers: int,
        batch_size: int,
        callbacks: Sequence[Callable[[Trial], None]],
    ) -> None:
        self._source, self._evaluator, self._executor = source, evaluator, executor
        self._workers, self._batch_size, self._callbacks = workers, batch_size, callbacks
        self._call: Callable[[Trial, bool], Outcome] = partial(evaluate, evaluator)
        if isinstance(executor, Inline):
            self._call = lambda trial, again: evaluator.evaluate(trial)
        self._queue: deque[Trial] = deque()
        self._out: dict[Future[Outcome], Trial] = {}
        self._again: set[int] = set()
        self._own: Pool | None = None
        self._works = False
        self._failures = 0
        self._first: Outcome | None = None
        self._exhausted = False

    @property
    def in_flight(self) -> int:
        """How many evaluations are out."""
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
        """Ask while there is room for a batch, and hand out while a worker is free."""
        while not interrupt.asked:
            while self._queue and len(self._out) < self._workers:
                self._submit(self._queue.popleft())
            room = max(self._workers, self._batch_size) - len(self._out) - len(self._queue)
            if room < self._batch_size or self._exhausted or self._source.remaining <= 0:
                return
            try:
                self._queue.extend(self._source.ask(self._batch_size))
            except NothingToAsk:
                self._exhausted = True

    def _submit(self, trial: Trial) -> None:
        try:
            future = self._executor.submit(self._call, trial, trial.id in self._again)
        except BrokenExecutor as error:
            self._replace(error)
            future = self._executor.submit(self._call, trial, trial.id in self._again)
        except Exception as error:
            if isinstance(self._executor, Inline):  # it is the evaluation that raised
                raise
            raise ExecutorFailed(f"the executor takes no more evaluations ({said(error)})") from error
        self._out[future] = trial

    def _receive(self, future: Future[Outcome]) -> None:
        """Take what came back: an outcome, or a fault of the machinery, after which a trial goes out once more.

        The second fault fails the trial, which may have caused both, but only where that is likely: not if the
        executor just cancelled it, or if nothing has come back from this executor yet.
        """
        trial = self._out.pop(future)
        try:
            outcome = future.result()
            self._works = True
        except ExecutorFailed:
            raise
        except CallTooLong as error:
            outcome = Outcome(None, said(error), None)
        except CancelledError as error:
            raise ExecutorFailed(
                f"the executor cancelled trial {trial.id}: it was closed, or lost its cluster; when it is back, "
                "the same run goes on"
            ) from error
        except Exception as error:
            if trial.id not in self._again:
                logger.warning("trial %d goes out again: %s", trial.id, said(error))
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
            outcome = Outcome(None, said(error), None)
        self._finish(trial, outcome)

    def _replace(self, error: BrokenExecutor) -> None:
        """Go on in a pool of our own where the given one, of the same kind, is broken for good."""
        if not isinstance(self._executor, Pool):
            if not isinstance(self._executor, ProcessPoolExecutor):
                raise ExecutorFailed(f"the executor is broken ({said(error)})") from error
            logger.warning("the executor is broken (%s): the run goes on in a new pool", said(error))
            self._executor = self._own = Pool(self._workers)

    def _finish(self, trial: Trial, outcome: Outcome) -> None:
        finished = self._source.record(trial, outcome)
        if outcome.value is None:
            logger.warning("trial %d failed: %s", trial.id, outcome.error)
            self._failures, self._first = self._failures + 1, self._first or outcome
            if self._failures >= FAILURES and self._source.best is None:
                raise self._first.exception or EvaluationFailed(
                    f"the first {self._failures} evaluations all failed; the first said: {self._first.error}"
                )
        for callback in self._callbacks:
            callback(finished)


def executor_for(evaluator: Evaluator, workers: int, timeout: float | None) -> Executor:
    """Return what a run uses when it is given no executor."""
    if evaluator.own_process:  # threads that wait for the processes it starts
        return ThreadPoolExecutor(workers, thread_name_prefix="bounce-command")
    if workers == 1 and timeout is None:
        return Inline()
    try:
        pickle.dumps(evaluator)
    except Exception as error:
        raise InvalidOption(
            f"the objective cannot be sent to worker processes ({said(error)}): define it at the top of a module, "
            "or use executor=ThreadPoolExecutor(n)"
        ) from None
    return Pool(workers, timeout)


def checked_callbacks(callbacks: Any) -> list[Callable[[Trial], None]]:
    """Return callbacks as a list of functions, or say what was given instead."""
    listed: list[Any] = list(callbacks) if isinstance(callbacks, Iterable) else [None]
    if not all(map(callable, listed)):
        raise InvalidOption(f"callbacks must be a list of functions of a trial, not {callbacks!r}")
    return listed
