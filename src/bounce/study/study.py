"""Study: the optimizer with a memory.

The file is the truth, the optimizer in memory a copy that knows its revision. A change is made in the copy,
written in one transaction, and only then returned; if the writing fails, the copy is thrown away.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager, suppress
from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from bounce.errors import BounceError, InvalidOption, InvalidState, InvalidStudy, StorageFailed, StudyLocked
from bounce.optimizer.bounce import Bounce
from bounce.optimizer.options import Options, whole
from bounce.running.evaluation import Evaluator, Function, Objective, Outcome
from bounce.running.run import Run, checked_callbacks, executor_for
from bounce.spaces.space import Space
from bounce.study.lock import Lock
from bounce.study.status import Status
from bounce.study.storage import Storage
from bounce.trial import Result, Trial, finite, is_single

if TYPE_CHECKING:
    import pandas as pd

LONGEST = 200  # characters of what is said of a damaged study
WAIT = 10.0  # seconds for which an ask or a tell waits for another one


class Study:
    """A run that lasts: an optimizer whose every step is in a file before anyone hears of it.

    >>> study = Study.open("svm.db", space=space, budget=200, seed=0)  # creates, or goes on with what is there
    >>> study.run(objective, workers=8, batch_size=8)
    >>> study.best.point
    """

    def __init__(self, storage: Storage, lock: Lock | None) -> None:
        self._storage, self._lock = storage, lock
        self._held = 0
        self._known: tuple[int, Bounce] | None = None
        self._run: Run | None = None

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str] | None = None,
        *,
        space: Space | None = None,
        budget: int | None = None,
        **options: Any,
    ) -> Study:
        """Open the study in a file, or create it there with a space, a budget and the options of `Bounce`.

        What is given must agree with what is stored, except for a larger budget, which extends the run. Without a
        path the study lives in memory.
        """
        file = None if path is None else Path(path)
        if file is not None and space is None and not file.exists():
            raise InvalidStudy(f"there is no study {file}: to create it, a space and a budget are needed")
        given = options if budget is None else {"budget": budget} | options
        first = None
        if space is not None and (file is None or not file.exists() or file.stat().st_size == 0):
            if budget is None:
                raise InvalidOption("a new study needs a budget, the number of evaluations")
            first = Bounce(space, **given)  # what is wrong with the options is said before a file is made
        storage = Storage(file)
        study = cls(storage, None if file is None else Lock(file.with_name(file.name + ".lock")))
        try:
            if not storage.exists:
                study._create(space, given, first)
            elif not storage.current and storage.writable:
                with study._locked():
                    storage.migrate()
            study._agree(space, given)
        except BaseException:
            study.close()
            raise
        return study

    def _create(self, space: Space | None, given: dict[str, Any], first: Bounce | None) -> None:
        if space is None:
            raise InvalidStudy(f"{self.path} holds no study yet: to create it, a space and a budget are needed")
        with self._locked():
            if not self._storage.exists:  # another process may have been faster
                self._storage.create((first or Bounce(space, **given)).state_dict())

    def _agree(self, space: Space | None, given: dict[str, Any]) -> None:
        """Compare what was given with what is stored."""
        optimizer = self._optimizer
        if space is not None and space != optimizer.space:
            raise InvalidOption(f"{self._name} is for another space: {optimizer.space.difference(space)}")
        stored = optimizer.options
        asked = vars(Options.of(stored | given))
        differing = [
            name for name in given if asked[name] != stored[name] and not (name == "seed" and given[name] is None)
        ]
        if differing == ["budget"] and asked["budget"] > stored["budget"]:
            self.extend(asked["budget"])
        elif differing:
            said = ", ".join(f"{name} is {stored[name]!r} there and {asked[name]!r} here" for name in differing)
            raise InvalidOption(f"{self._name} has other options: {said}; only the budget may change, and only grow")

    # What a user sees

    @property
    def path(self) -> Path | None:
        """The study's file; None for one in memory."""
        return self._storage.path

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
        trials, head = optimizer.trials, optimizer.changes([])["head"]
        region = head["region"]
        counts = {state: sum(t.state == state for t in trials) for state in ("done", "failed", "pending")}
        evaluated = [t.seconds_eval for t in trials if t.seconds_eval is not None]
        return Status(
            path=self.path,
            budget=optimizer.options["budget"],
            remaining=optimizer.remaining,
            best=optimizer.best,
            target_dim=region["n_comb"] + region["n_cont"],
            dimensions=len(optimizer.space),
            radius=region["comb"],
            side=region["cont"],
            restart=head["restart"],
            seconds_ask=sum(t.seconds_ask for t in trials) / len(trials) if trials else None,
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
            optimizer.tell(trials, values, seconds=None if seconds is None else finite(seconds))
            self._save(optimizer, _several(trials))

    def fail(
        self,
        trials: Trial | int | Sequence[Trial | int],
        error: str | None = None,
        *,
        seconds: float | None = None,
    ) -> None:
        """Say that trials have no value: they cost budget and are never proposed again."""
        with self._changing() as optimizer:
            optimizer.fail(trials, error, seconds=None if seconds is None else finite(seconds))
            self._save(optimizer, _several(trials))

    def settle(self, outcomes: Iterable[tuple[int, float | None, str | None]]) -> None:
        """Take ids with their values, or with None and an error; all are stored or none."""
        with self._changing() as optimizer:
            ids = []
            for i, value, error in outcomes:
                if value is None:
                    optimizer.fail(i, error)
                else:
                    optimizer.tell(i, value)
                ids.append(i)
            self._save(optimizer, ids)

    def record(self, trial: Trial, outcome: Outcome, /) -> Trial:
        """Store what came of an evaluation."""
        if outcome.value is None:
            self.fail(trial.id, outcome.error, seconds=outcome.seconds)
        else:
            self.tell(trial.id, outcome.value, seconds=outcome.seconds)
        return self._optimizer.trial(trial.id)

    def extend(self, budget: int) -> None:
        """Set a new total budget; the current space's share of it is computed again."""
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
        callbacks: Iterable[Callable[[Trial], None]] = (),
    ) -> Result:
        """Evaluate until the budget is spent: first what was in flight when the last run ended, then new trials.

        At most `workers` evaluations are out, and `batch_size` trials (the study's by default) are asked for
        whenever that many places are free. Without an executor, one worker is this process, the default, and more
        are processes of a pool; with one, there are as many workers as trials in a batch by default.

        An evaluation that raises or returns no finite number fails its trial and the run goes on; ten failures
        without a success end it. Ctrl-C waits for what is running, a second one does not. An exception that ends
        the run carries the result so far as its attribute `result`.
        """
        evaluator = _evaluator(objective)
        batch_size = self.options["batch_size"] if batch_size is None else whole("batch_size", batch_size, 1)
        default = 1 if executor is None else batch_size
        workers = default if workers is None else whole("workers", workers, 1)
        called = checked_callbacks(callbacks)
        if timeout is not None:
            timeout = _positive(timeout)
            evaluator = evaluator.within(timeout)
            if executor is not None and not evaluator.own_process:
                raise InvalidOption(
                    "a timeout needs a command, or workers that Bounce starts itself: leave the executor out"
                )
        used = executor_for(evaluator, workers, timeout) if executor is None else executor
        try:
            with self._locked(running=True):
                self._run = Run(self, evaluator, used, workers=workers, batch_size=batch_size, callbacks=called)
                self._run.run()
                self._storage.check_place()
        except StudyLocked:
            raise
        except BaseException as error:
            with suppress(BounceError):  # a file that cannot be read any more
                error.result = self.result  # type: ignore[attr-defined]
            error.add_note("bounce: the result so far is this exception's attribute 'result'")
            if self.path is not None:
                error.add_note(f"bounce: everything is stored in {self.path}; the same run goes on from there")
            raise
        finally:
            self._run = None
            if executor is None:
                used.shutdown()
        return self.result

    def close(self) -> None:
        """Close the file."""
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
        if self._run is not None and self._known is not None:  # nobody else can have changed it
            return self._known[1]
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
                self._known = None  # it may be ahead of the file
                raise

    def _save(self, optimizer: Bounce, trials: Sequence[Trial | int], *, new: bool = False) -> None:
        ids = [trial.id if isinstance(trial, Trial) else int(trial) for trial in trials]
        points = {trial.id: trial.point for trial in trials if isinstance(trial, Trial)} if new else {}
        self._known = self._storage.save(optimizer.changes(ids), points), optimizer

    @contextmanager
    def _locked(self, *, running: bool = False) -> Iterator[None]:
        """Hold the lock: for a moment, or for a run, which others then hear of."""
        if running and self._run is not None:
            raise StudyLocked(f"{self._name} is being run already, by this very object")
        if self._held == 0:
            self._acquire()
        self._held += 1
        try:
            if running:
                self._storage.set_runner(f"process {os.getpid()} on {socket.gethostname()}")
            yield
        finally:
            if running:
                with suppress(StorageFailed):  # a runner that is not there any more harms nobody
                    self._storage.set_runner(None)
            self._held -= 1
            if self._held == 0 and self._lock is not None:
                self._lock.release()

    def _acquire(self) -> None:
        if not self._storage.writable:
            raise StorageFailed(f"{self._name} can only be read here: its file or folder cannot be written")
        if self._lock is None:
            return
        if not self._lock.acquire():
            runner = self._storage.runner  # an ask or a tell is soon over, a run is not
            if runner is not None or not self._lock.acquire(WAIT):
                raise StudyLocked(
                    f"{self._name} is being run by {runner or 'another process'}: wait for its end, or stop it; "
                    "everything can be read meanwhile"
                )
        try:
            if self._storage.exists:
                if self._storage.runner is not None:
                    self._storage.set_runner(None)  # left by a run that was killed
                _ = self._optimizer  # as the file has it, for the time of the lock
        except BaseException:
            self._lock.release()
            raise

    def _running(self) -> str | None:
        """Say who holds the lock."""
        if self._lock is None or self._held:
            return f"process {os.getpid()}" if self._run is not None else None
        if not self._storage.writable:
            return None
        with suppress(StorageFailed):  # a full disk, where nobody runs for long
            if not self._lock.acquire():
                return self._storage.runner
            self._lock.release()
        return None


def _several(trials: Trial | int | Sequence[Trial | int]) -> Sequence[Trial | int]:
    return cast(Sequence[Trial | int], [trials] if is_single(trials) else trials)


def _evaluator(objective: Objective | Evaluator) -> Evaluator:
    if isinstance(objective, Evaluator):
        return copy(objective)  # one that was stopped stays so; this run's is its own
    if not callable(objective):
        raise InvalidOption(f"objective must be a function of a point, not {objective!r}")
    return Function(objective)


def _positive(timeout: object) -> float:
    if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not 0 < timeout < float("inf"):
        raise InvalidOption(f"timeout must be a number of seconds, not {timeout!r}")
    return float(timeout)
