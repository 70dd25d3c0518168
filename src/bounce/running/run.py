"""A run: trials go out to an executor, outcomes come back, until nothing is left to evaluate.

At most `workers` evaluations run at a time; `batch_size` trials are asked for whenever that many workers are free.
Equal numbers give the synchronous batches of the paper, a batch size of 1 full asynchrony. The next step depends only
on the source and on the order of the outcomes, so a run that was killed continues as if it had not been.
"""

from __future__ import annotations

import logging
import pickle
import time
from collections import Counter, deque
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
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from bounce.errors import BounceError, ExecutorFailed, InvalidOption, MachineFailed, NothingToAsk
from bounce.running.evaluation import Evaluator, Outcome, ended, evaluate, said
from bounce.running.executors import Inline
from bounce.running.interrupt import Interrupt
from bounce.running.pool import CallTooLong, Pool
from bounce.running.recorder import ALIKE, Recorder, Sink
from bounce.trial import Trial

logger = logging.getLogger("bounce")

TRIES = 3  # of a trial on a cluster, of which some machines cannot evaluate anything
OF_THE_MACHINE = (MachineFailed, ImportError, AttributeError, pickle.UnpicklingError, OSError)
LAST_TRIES = 10  # of a trial for which no other evaluation can be waited for
ASIDE = 0.5  # seconds for which a machine that may be broken is kept busy
DEATHS = 2  # evaluations of a trial in which the process of the run died, after which it is not tried again
DIED = (
    "the process of the run ended twice while this trial was evaluated. To evaluate it again, use bounce retry. With "
    "workers=2, such an evaluation ends only a worker process"
)
NOTICE = 0.5  # seconds: a signal that arrives just before a wait is handled after it


class Asker(Sink, Protocol):
    """Where trials come from and outcomes go."""

    def begin_attempt(self, trial: Trial, /) -> None:
        """Count an evaluation in this process among those that did not end, until it has ended."""

    def ask(self, n: int | None = None) -> list[Trial]:
        """Return new trials."""

    @property
    def pending(self) -> list[Trial]:
        """The trials that have no outcome yet."""

    @property
    def remaining(self) -> int:
        """How many trials may still be asked for."""


@dataclass(frozen=True)
class Plan:
    """How a run evaluates."""

    workers: int = 1
    batch_size: int = 1
    max_failures: int = ALIKE
    callbacks: Sequence[Callable[[Trial], None]] = ()
    until: Callable[[], str | None] | None = None
    """Says why the run should end before its budget is spent; None if it should go on."""
    outcomes: Sequence[str] = ()
    """What an evaluation must measure beside its value."""


class Run:
    """One run of a study on an executor."""

    def __init__(self, source: Asker, evaluator: Evaluator, executor: Executor, plan: Plan) -> None:
        self._source, self._evaluator, self._executor, self._plan = source, evaluator, executor, plan
        self._inline = isinstance(executor, Inline)
        self._queue: deque[Trial] = deque()
        self._out: dict[Future[Outcome], Trial] = {}
        self._submitted: Counter[int] = Counter()
        self._again: set[int] = set()
        self._faults: Counter[int] = Counter()
        self._aside: list[Future[None]] = []
        self._waiting: list[Trial] = []
        self._own: Pool | None = None
        self._works = False
        self._end: BounceError | None = None
        self._recorder = Recorder(source, plan.max_failures, plan.callbacks, plan.outcomes)
        self._exhausted = False
        self.stopped: str | None = None
        """Why the run ended, or is ending, before its budget was spent."""

    def stop(self, why: str) -> None:
        """Let the run end in order, from any thread: nothing more is submitted, and what is in flight is recorded."""
        if self.stopped is None:
            self.stopped = why

    @property
    def in_flight(self) -> int:
        """How many evaluations are running."""
        return len(self._out)

    def run(self) -> None:
        """Evaluate what is pending, then ask and evaluate until nothing is left."""
        with Interrupt() as interrupt:
            self._interrupt = interrupt
            try:
                self._take_up()
                self._supply()
                while self._out:
                    done, _ = wait(self._out, timeout=NOTICE, return_when="FIRST_COMPLETED")
                    for future in sorted(done, key=lambda future: self._out[future].id):
                        self._receive(future)
                        self._supply()
                if interrupt.asked:
                    raise KeyboardInterrupt
                if self._end is not None:
                    raise self._end
                if self.stopped is None and self._recorder.raised is None:
                    self._recorder.release()  # otherwise the next run evaluates what was held back again
                if self._recorder.raised is not None:
                    raise self._recorder.raised
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

    def _take_up(self) -> None:
        """Queue the pending trials; fail those in whose evaluation the process of a run has died repeatedly."""
        for trial in self._source.pending:
            if self._inline and trial.attempts >= DEATHS:
                self._recorder.finish(trial, Outcome.failed(DIED), hold=False)
            else:
                self._queue.append(trial)

    def _supply(self) -> None:
        """Ask while there is room for a batch, and submit while a worker is free, unless the run should end."""
        while not self._is_ending:
            while self._queue and len(self._out) < self._plan.workers and not self._is_ending:
                trial = self._queue.popleft()
                if self._is_pending(trial):
                    self._submit(trial)
            busy = len(self._out) + len(self._queue) + len(self._waiting)
            room = max(self._plan.workers, self._plan.batch_size) - busy
            if room < self._plan.batch_size or self._exhausted or self._source.remaining <= 0:
                return
            try:
                self._queue.extend(self._source.ask(self._plan.batch_size))
            except NothingToAsk:
                self._exhausted = True

    @property
    def _is_ending(self) -> bool:
        """Whether nothing more is to be submitted."""
        if self._interrupt.asked or self._end is not None or self._recorder.raised is not None:
            return True
        if self.stopped is None and self._plan.until is not None and (why := self._plan.until()) is not None:
            self.stop(why)
        return self.stopped is not None

    def _is_pending(self, trial: Trial) -> bool:
        """Return whether a trial still waits for its outcome: a callback may have given it back."""
        return any(pending.id == trial.id for pending in self._source.pending)

    def _submit(self, trial: Trial) -> None:
        call: Callable[..., Outcome] = partial(evaluate, self._evaluator)
        arguments: tuple[Any, ...] = (trial, self._submitted[trial.id])
        self._submitted[trial.id] += 1
        if self._inline:
            call, arguments = self._here, (trial,)
        self._set_aside(self._faults[trial.id] - TRIES + 1)
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

    def _set_aside(self, n: int) -> None:
        """Keep some machines busy for a moment, so that an executor which prefers a broken one chooses another.

        Their number differs from try to try, since the executor's choice depends on it.
        """
        if n > 0:
            wait(self._aside)
            self._aside = [self._executor.submit(time.sleep, ASIDE) for _ in range(n % self._plan.workers)]

    def _here(self, trial: Trial) -> Outcome:
        """Evaluate in this process; what the objective raises to end it is a failure, unless a signal raised it.

        The attempt is stored first, so that a trial that kills this process is known.
        """
        start = time.perf_counter()
        self._interrupt.arrived = False
        try:
            self._source.begin_attempt(trial)
            try:
                outcome = self._evaluator.evaluate(trial)
            except Exception:
                raise
            except BaseException as error:
                if self._interrupt.arrived:
                    raise
                outcome = ended(error, time.perf_counter() - start)
            if outcome.value is None and self._interrupt.asked:  # Ctrl-C reaches the programs of an objective too
                raise KeyboardInterrupt
        except BaseException:
            with suppress(BounceError):  # the file can no longer be written
                self._source.end_attempt(trial)
            raise
        return outcome

    def _receive(self, future: Future[Outcome]) -> None:
        """Take an outcome, or a fault, after which the trial is evaluated again.

        The run ends if the executor cancelled the trial.
        """
        trial = self._out.pop(future)
        try:
            outcome = future.result()
            self._works = True
            self._faults.clear()
        except ExecutorFailed:
            raise
        except CallTooLong as error:
            outcome = Outcome.failed(said(error))
        except CancelledError as error:
            raise ExecutorFailed(
                f"the executor cancelled trial {trial.id}: it was closed, or lost its cluster; "
                "run again to resume when it is back"
            ) from error
        except OF_THE_MACHINE as error:
            self._elsewhere(trial, error)
            return
        except Exception as error:
            if trial.id not in self._again:
                self._repeat(trial, error)
                return
            outcome = self._guilty(trial, error)
        self._requeue(*self._waiting)
        self._waiting.clear()
        if not self._is_pending(trial):
            logger.warning("trial %d is no longer pending, so its outcome is not stored", trial.id)
            return
        self._recorder.finish(trial, outcome)
        if self._recorder.series is not None:
            self._end_with(self._recorder.series)

    def _elsewhere(self, trial: Trial, error: Exception) -> None:
        """Try a trial again after a fault of a machine; end the run if that does not help.

        The machines of a cluster differ, and an idle one that is broken is often chosen again. So a trial that was
        tried a few times waits until another evaluation has returned. If none is running, it is tried more often,
        while other calls keep some machines busy (`_set_aside`). On one machine there is no other to try.
        """
        self._faults[trial.id] += 1
        alone = isinstance(self._executor, Inline | Pool | ThreadPoolExecutor | ProcessPoolExecutor)
        tries = TRIES if self._out else LAST_TRIES
        if not alone and (self._faults[trial.id] < tries or self._out):
            if self._submitted[trial.id] == 1:
                logger.warning("trial %d is evaluated again, no worker could do so: %s", trial.id, said(error))
            if self._faults[trial.id] < tries:
                self._requeue(trial)
            else:
                self._waiting.append(trial)
            return
        if isinstance(error, MachineFailed):
            reason = f"trial {trial.id} could not be evaluated ({error})"
        else:
            reason = (
                f"the executor could not evaluate trial {trial.id} ({said(error)}): can its workers import bounce and "
                "the objective?"
            )
        failure = MachineFailed(
            f"{reason}. This is a fault of the machine, not of the trial, which stays pending and costs nothing: "
            "correct it and run again to resume"
        )
        failure.__cause__ = error
        self._end_with(failure)

    def _end_with(self, failure: BounceError) -> None:
        """End the run with an error as soon as the running evaluations have returned: their values count."""
        if self._end is None:
            self._end = failure
            if self._out:
                logger.warning("%s\nwaiting for running evaluations to finish (%d)", failure, len(self._out))

    def _guilty(self, trial: Trial, error: Exception) -> Outcome:
        """Fail a trial after a second fault, which it may have caused; not if the executor has never worked."""
        if not self._works and not isinstance(error, BrokenExecutor):
            raise ExecutorFailed(
                f"the executor could not evaluate trial {trial.id}, nor any other ({said(error)}): can its "
                "workers import bounce and the objective?"
            ) from error
        return Outcome.failed(said(error))

    def _repeat(self, trial: Trial, error: Exception) -> None:
        """Evaluate a trial again after a fault, such as the death of its worker."""
        logger.warning("trial %d is evaluated again: %s", trial.id, said(error))
        self._again.add(trial.id)
        self._requeue(trial)
        if isinstance(error, BrokenExecutor):
            self._replace(error)

    def _requeue(self, *trials: Trial) -> None:
        self._queue = deque(sorted((*trials, *self._queue), key=lambda trial: trial.id))

    def _replace(self, error: BrokenExecutor) -> None:
        """Continue in a pool of our own if the given executor, a process pool too, is broken for good."""
        if not isinstance(self._executor, Pool):
            if not isinstance(self._executor, ProcessPoolExecutor):
                raise ExecutorFailed(f"the executor is broken ({said(error)})") from error
            logger.warning("the executor is broken (%s): the run continues in a new pool", said(error))
            self._executor = self._own = Pool(self._plan.workers)


def checked_callbacks(callbacks: Any) -> list[Callable[[Trial], None]]:
    """Return callbacks as a list of functions; refuse anything else."""
    listed: list[Any] = list(callbacks) if isinstance(callbacks, Iterable) else [None]
    if not all(map(callable, listed)):
        raise InvalidOption(f"callbacks must be a list of functions of a trial, not {callbacks!r}", option="callbacks")
    return listed
