"""Study: the optimizer with a memory.

The file is the truth; the optimizer in memory is a copy that knows its revision. A change is made in the copy, written
in one transaction, and only then returned; if the write fails, the copy is thrown away. Without a path there is
no file, and the optimizer itself is the truth.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager, suppress
from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack, cast

from bounce.errors import BounceError, InvalidOption, InvalidState, InvalidStudy, StorageFailed, StudyLocked
from bounce.optimizer.bounce import Bounce
from bounce.optimizer.ledger import Outcome as Told
from bounce.optimizer.options import Options, RunOptions, shows_options, whole
from bounce.running.evaluation import Evaluator, Function, Objective, Outcome
from bounce.running.run import ALIKE, Plan, Run, checked_callbacks, executor_for
from bounce.spaces.space import Space
from bounce.study.lock import Lock
from bounce.study.status import Status
from bounce.study.storage import Storage
from bounce.trial import STATES, Result, Trial, is_single

if TYPE_CHECKING:
    import pandas as pd

LONGEST = 200  # characters of what is said about a damaged study
WAIT = 10.0  # seconds for which an ask or a tell waits for another one


class Study:
    """A run that lasts: an optimizer that commits every step to a file before it returns.

    >>> study = Study.open("svm.db", space=space, budget=200, seed=0)  # creates the study, or resumes it
    >>> study.run(objective, workers=8, batch_size=8)
    >>> study.best.point
    """

    def __init__(self, storage: Storage | None, optimizer: Bounce | None = None) -> None:
        self._storage = storage
        self._lock = None if storage is None else Lock(storage.path.with_name(storage.path.name + ".lock"))
        self._held = 0
        self._known: tuple[int, Bounce] | None = None if optimizer is None else (0, optimizer)
        self._run: Run | None = None

    @classmethod
    @shows_options
    def open(
        cls,
        path: str | os.PathLike[str] | None = None,
        *,
        space: Space | None = None,
        budget: int | None = None,
        **options: Unpack[RunOptions],
    ) -> Study:
        """Open the study in a file, or create it there with a space, a budget and the options of `Bounce`.

        The space and options must agree with the stored ones, except for a larger budget, which extends the run.
        Without a path the study lives in memory.
        """
        file = None if path is None else Path(path)
        given: dict[str, Any] = dict(options) if budget is None else {"budget": budget, **options}
        first = None
        if file is None or not file.exists() or file.stat().st_size == 0:
            first = _first(file, space, given)  # what is wrong with the options is said before a file is made
        if file is None:
            return cls(None, first)
        storage = Storage(file)
        study = cls(storage)
        try:
            if not storage.exists:
                study._create(storage, first or _first(file, space, given))
            study._agree(space, given)
        except BaseException:
            study.close()
            raise
        return study

    def _create(self, storage: Storage, first: Bounce) -> None:
        with self._locked():
            if not storage.exists:  # otherwise another process was faster
                storage.create(first.state_dict())
                self._known = storage.revision, first

    def _agree(self, space: Space | None, given: dict[str, Any]) -> None:
        """Compare what was given with what is stored."""
        optimizer = self._optimizer
        if space is not None and space != optimizer.space:
            raise InvalidOption(
                f"{self._name} is for another space: {optimizer.space.difference(space)}", option="space"
            )
        stored = optimizer.options
        asked = Options.of(stored | given, beside=("path", "space")).document()
        differing = [
            name for name in given if asked[name] != stored[name] and not (name == "seed" and given[name] is None)
        ]
        if differing == ["budget"] and asked["budget"] > stored["budget"]:
            self.extend(asked["budget"])
        elif differing:
            said = ", ".join(f"{name} is {stored[name]!r} there and {asked[name]!r} here" for name in differing)
            raise InvalidOption(
                f"{self._name} has other options: {said}; only the budget may change, and only grow",
                option=differing[0],
            )

    # What a user sees

    @property
    def path(self) -> Path | None:
        """The study's file; None for one in memory."""
        return None if self._storage is None else self._storage.path

    @property
    def space(self) -> Space:
        """The space of the study."""
        return self._optimizer.space

    @property
    def options(self) -> dict[str, Any]:
        """The options of the run, the seed included."""
        return self._optimizer.options

    @property
    def trials(self) -> list[Trial]:
        """All trials, by id."""
        return self._optimizer.trials

    @property
    def pending(self) -> list[Trial]:
        """The trials that have been asked for and not told, by id."""
        return self._optimizer.pending

    @property
    def best(self) -> Trial | None:
        """The trial with the best value, the earliest of several; None before the first value."""
        return self._optimizer.best

    @property
    def remaining(self) -> int:
        """How many trials may still be asked for."""
        return self._optimizer.remaining

    @property
    def done(self) -> bool:
        """Whether nothing can be asked for and nothing is pending."""
        return self._optimizer.done

    @property
    def in_flight(self) -> int:
        """How many evaluations this object's run has out at the moment."""
        return 0 if self._run is None else self._run.in_flight

    @property
    def result(self) -> Result:
        """What was found so far."""
        return Result(self.trials, self.best, self.options["seed"])

    def to_frame(self) -> pd.DataFrame:
        """Return the trials as a pandas table."""
        return self.result.to_frame()

    @property
    def status(self) -> Status:
        """Where the study stands."""
        optimizer = self._optimizer
        trials, stage = optimizer.trials, optimizer.stage
        counts = {state: sum(trial.state == state for trial in trials) for state in STATES}
        evaluated = [trial.seconds_eval for trial in trials if trial.seconds_eval is not None]
        return Status(
            path=self.path,
            budget=optimizer.budget,
            remaining=optimizer.remaining,
            best=optimizer.best,
            target_dim=len(stage.latent),
            dimensions=len(optimizer.space),
            radius=stage.region.radius,
            side=stage.region.side,
            restart=stage.restart,
            seconds_ask=sum(trial.seconds_ask for trial in trials) / len(trials) if trials else None,
            seconds_eval=sum(evaluated) / len(evaluated) if evaluated else None,
            runner=self._running(),
            **counts,
        )

    # What changes it

    def ask(self, n: int | None = None) -> list[Trial]:
        """Return up to n new trials (`batch_size` of them by default), which are stored by then."""
        with self._changing() as optimizer:
            trials = optimizer.ask(n)
            self._save(optimizer, trials, new=True)
        return trials

    def tell(self, trials: Trial | int | Sequence[Trial | int], values: Any, *, seconds: float | None = None) -> None:
        """Give the value of a trial, or the values of several; all are stored or none."""
        with self._changing() as optimizer:
            optimizer.tell(trials, values, seconds=seconds)
            self._save(optimizer, _several(trials))

    def fail(
        self,
        trials: Trial | int | Sequence[Trial | int],
        error: str | None = None,
        *,
        seconds: float | None = None,
    ) -> None:
        """Mark trials as failed: they cost budget, have no value and are never proposed again."""
        with self._changing() as optimizer:
            optimizer.fail(trials, error, seconds=seconds)
            self._save(optimizer, _several(trials))

    def settle(self, outcomes: Iterable[tuple[int, float | None, str | None]]) -> None:
        """Take ids with their values, or with None and an error; all are stored or none."""
        with self._changing() as optimizer:
            self._save(optimizer, optimizer.settle(Told(*outcome) for outcome in outcomes))

    def record(self, trial: Trial, outcome: Outcome, /) -> Trial:
        """Store what came of an evaluation."""
        if outcome.value is None:
            self.fail(trial.id, outcome.error, seconds=outcome.seconds)
        else:
            self.tell(trial.id, outcome.value, seconds=outcome.seconds)
        return self._optimizer.trial(trial.id)

    def extend(self, budget: int) -> None:
        """Set a new total budget; a run that has ended continues from what it knows."""
        with self._changing() as optimizer:
            optimizer.extend(budget)
            self._save(optimizer, [])

    def run(
        self,
        objective: Objective | Evaluator,
        *,
        executor: Executor | None = None,
        workers: int | None = None,
        batch_size: int | None = None,
        timeout: float | None = None,
        max_failures: int = ALIKE,
        callbacks: Iterable[Callable[[Trial], None]] = (),
    ) -> Result:
        """Evaluate until the budget is spent: first what was in flight when the last run ended, then new trials.

        At most `workers` evaluations run at a time, and `batch_size` trials (the study's by default) are asked for
        whenever that many workers are free. Without an executor, one worker is this process, the default, and more
        are processes of a pool; with one, there are by default as many workers as trials in a batch.

        An evaluation that raises, or returns anything but a finite number, fails its trial, and the run continues.
        Before the first success, `max_failures` failures with the same error end the run, and are not counted: their
        trials are evaluated again by the next run. Ten failures of any sort without a success end it too. The first
        Ctrl-C waits for running evaluations, a second one stops at once. An exception that ends the run carries the
        result so far as its attribute `result`.
        """
        evaluator = _evaluator(objective)
        batch_size = self.options["batch_size"] if batch_size is None else whole("batch_size", batch_size, 1)
        workers = (1 if executor is None else batch_size) if workers is None else whole("workers", workers, 1)
        plan = Plan(workers, batch_size, whole("max_failures", max_failures, 1), checked_callbacks(callbacks))
        if timeout is not None:
            timeout = _positive(timeout)
            evaluator = evaluator.within(timeout)
            if executor is not None and not evaluator.own_process:
                raise InvalidOption(
                    "a timeout needs worker processes that Bounce starts itself, or a command: leave the executor out",
                    option="timeout",
                )
        used = executor_for(evaluator, workers, timeout) if executor is None else executor
        try:
            self._evaluate(evaluator, used, plan)
        finally:
            if executor is None:
                used.shutdown()
        return self.result

    def _evaluate(self, evaluator: Evaluator, executor: Executor, plan: Plan) -> None:
        """Run under the lock; whatever ends the run carries the result so far."""
        try:
            with self._locked(running=True):
                self._run = Run(self, evaluator, executor, plan)
                self._run.run()
                if self._storage is not None:
                    self._storage.check_place()
        except StudyLocked:
            raise
        except BaseException as error:
            with suppress(BounceError):  # a file that cannot be read any more
                error.result = self.result  # type: ignore[attr-defined]
            error.add_note("bounce: the result so far is this exception's attribute 'result'")
            if self.path is not None:
                error.add_note(f"bounce: everything is stored in {self.path}; run again to resume")
            raise
        finally:
            self._run = None

    def close(self) -> None:
        """Close the file."""
        if self._storage is not None:
            self._storage.close()
        if self._lock is not None:
            self._lock.close()

    def __enter__(self) -> Study:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Study.open({None if self.path is None else str(self.path)!r})"

    # How it is kept

    @property
    def _name(self) -> str:
        return "the study" if self.path is None else f"the study {self.path}"

    @property
    def _optimizer(self) -> Bounce:
        """The optimizer as the file has it."""
        if self._known is not None and (self._storage is None or self._run is not None):
            return self._known[1]  # nobody else can have changed it
        assert self._storage is not None
        if self._known is None or self._known[0] != self._storage.revision:
            revision, state = self._storage.load()
            try:
                self._known = revision, Bounce.from_state_dict(state)
            except InvalidState as error:
                said = str(error)
                short = said if len(said) <= LONGEST else f"{said[:LONGEST]} ..."
                raise InvalidStudy(f"{self._name} cannot be used: {short}") from error
        return self._known[1]

    @contextmanager
    def _changing(self) -> Iterator[Bounce]:
        with self._locked():
            try:
                yield self._optimizer
            except BaseException:
                if self._storage is not None:
                    self._known = None  # it may be ahead of the file
                raise

    def _save(self, optimizer: Bounce, trials: Sequence[Trial | int], *, new: bool = False) -> None:
        if self._storage is None:
            return
        ids = [trial.id if isinstance(trial, Trial) else int(trial) for trial in trials]
        points = {trial.id: trial.point for trial in trials if isinstance(trial, Trial)} if new else {}
        self._known = self._storage.save(optimizer.changes(ids), points), optimizer

    @contextmanager
    def _locked(self, *, running: bool = False) -> Iterator[None]:
        """Hold the lock: for a moment, or for a run, which others are told about."""
        if running and self._run is not None:
            raise StudyLocked(f"{self._name} is already being run, by this very object")
        if self._held == 0:
            self._acquire()
        self._held += 1
        try:
            if running and self._storage is not None:
                self._storage.set_runner(f"process {os.getpid()} on {socket.gethostname()}")
            yield
        finally:
            if running and self._storage is not None:
                with suppress(StorageFailed):  # a runner that is gone harms nobody
                    self._storage.set_runner(None)
            self._held -= 1
            if self._held == 0 and self._lock is not None:
                self._lock.release()

    def _acquire(self) -> None:
        if self._storage is None or self._lock is None:
            return
        if not self._storage.writable:
            raise StorageFailed(f"{self._name} can only be read here: its file or folder cannot be written")
        if not self._lock.acquire():
            runner = self._storage.runner  # an ask or a tell is soon over, a run is not
            if runner is not None or not self._lock.acquire(WAIT):
                raise StudyLocked(
                    f"{self._name} is being run by {runner or 'another process'}: wait until it ends, or stop it; "
                    "everything can be read meanwhile"
                )
        try:
            if self._storage.exists:
                optimizer = self._optimizer  # as the file has it, for the time of the lock
                if not self._storage.current:
                    self._known = self._storage.migrate(optimizer.changes([])), optimizer
                if self._storage.runner is not None:
                    self._storage.set_runner(None)  # left by a run that was killed
        except BaseException:
            self._lock.release()
            raise

    def _running(self) -> str | None:
        """Return who holds the lock."""
        if self._storage is None or self._lock is None or self._held:
            return f"process {os.getpid()}" if self._run is not None else None
        if not self._storage.writable:
            return None
        with suppress(StorageFailed):  # a full disk, where nobody runs for long
            if not self._lock.acquire():
                return self._storage.runner
            self._lock.release()
        return None


def _first(file: Path | None, space: Space | None, given: dict[str, Any]) -> Bounce:
    """Return the optimizer of a new study."""
    if space is None:
        name = "a study in memory" if file is None else f"the study {file} does not exist yet; to create it, it"
        raise InvalidStudy(f"{name} needs a space and a budget")
    if "budget" not in given:
        raise InvalidOption("a new study needs a budget: the number of evaluations", option="budget")
    return Bounce(space, **given)


def _several(trials: Trial | int | Sequence[Trial | int]) -> Sequence[Trial | int]:
    return cast(Sequence[Trial | int], [trials] if is_single(trials) else trials)


def _evaluator(objective: Objective | Evaluator) -> Evaluator:
    if isinstance(objective, Evaluator):
        return copy(objective)  # one that was stopped stays stopped; this run has its own
    if not callable(objective):
        raise InvalidOption(f"objective must be a function of a point, not {objective!r}", option="objective")
    return Function(objective)


def _positive(timeout: object) -> float:
    if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not 0 < timeout < float("inf"):
        raise InvalidOption(f"timeout must be a positive number of seconds, not {timeout!r}", option="timeout")
    return float(timeout)
