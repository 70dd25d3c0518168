"""Study: a persistent run. An optimizer that commits every step to a file before it returns (`keeper`)."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager, suppress
from copy import copy
from dataclasses import replace
from functools import partial
from typing import Any, Literal, Unpack

from bounce.errors import BounceError, InvalidOption, StudyLocked
from bounce.optimizer.bounce import Bounce
from bounce.optimizer.ledger import Tell, Trials
from bounce.optimizer.options import RunOptions, shows_options, whole
from bounce.optimizer.stopping import StopWhen
from bounce.running.command import seconds as checked_seconds
from bounce.running.evaluation import Evaluator, Function, Objective, Outcome
from bounce.running.executors import checked_executor, executor_for
from bounce.running.recorder import ALIKE
from bounce.running.run import Plan, Run, checked_callbacks
from bounce.spaces.change import Change
from bounce.spaces.space import Space
from bounce.study.agreement import first_optimizer, larger_budget
from bounce.study.history import Entry
from bounce.study.keeper import Keeper
from bounce.study.place import is_free, named
from bounce.study.view import View
from bounce.text import as_path
from bounce.trial import Result, Trial

logger = logging.getLogger("bounce")


class Study(View):
    """A run that lasts: an optimizer that commits every step to a file before it returns.

    >>> study = Study.open("svm.db", space=space, budget=200, seed=0)  # creates the study, or resumes it
    >>> study.run(objective, workers=8, batch_size=8)
    >>> study.best.point
    """

    def __init__(self, keeper: Keeper) -> None:
        self._keeper = keeper
        self._run: Run | None = None
        self.stopped: str | None = None
        """Why the last run of this object ended before its budget was spent; None if it did not."""

    @classmethod
    @shows_options({})
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
        Without a path the study is kept in memory only.
        """
        file = None if path is None else named(path)
        given: dict[str, Any] = dict(options) if budget is None else {"budget": budget, **options}
        first = None
        if file is None or is_free(file):
            first = first_optimizer(file, space, given)  # refuses bad options before a file is made
        study = cls(Keeper(file, first, space))
        try:
            if not study._keeper.exists:
                study._keeper.create(first or first_optimizer(file, space, given))
            if file is not None and (budget := larger_budget(study._keeper, space, given)) is not None:
                study.extend(budget)
        except BaseException:
            study.close()
            raise
        return study

    def check_options(self, **given: Any) -> None:
        """Refuse options that opening this study with them would refuse."""
        larger_budget(self._keeper, None, given)

    # Ask and tell

    def ask(self, n: int | None = None) -> list[Trial]:
        """Return up to n new trials (`batch_size` by default); they are stored before this returns."""
        with self._keeper.changing() as optimizer:
            trials = optimizer.ask(n)
            self._keeper.save(optimizer)
        return trials

    def tell(
        self,
        trials: Trials,
        values: Any,
        *,
        seconds: float | None = None,
        point: Mapping[str, Any] | Sequence[Mapping[str, Any] | None] | None = None,
        note: str | None = None,
        sem: float | Sequence[float | None] | None = None,
        constraints: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None,
    ) -> None:
        """Store the value of a trial, or the values of several; all are stored or none.

        `sem` is the standard error of the value, in the same units, or one per trial: 0 for an exact value, None if it
        is unknown. `point` is the point that was really used, or one per trial, if it is not the one that was asked
        for. `constraints` has what was measured beside the value, a number for each outcome of the space.
        """
        with self._keeper.changing() as optimizer:
            before = {trial.id: trial for trial in optimizer.pending}
            more: dict[str, Any] = {"seconds": seconds, "point": point, "note": note, "sem": sem}
            ids = optimizer.tell(trials, values, **more, constraints=constraints)
            self._keeper.save(optimizer, _deviations(optimizer, before, ids))

    def fail(self, trials: Trials, error: str | None = None, *, seconds: float | None = None) -> None:
        """Mark trials as failed: they cost budget, have no value and are not proposed again."""
        with self._keeper.changing() as optimizer:
            optimizer.fail(trials, error, seconds=seconds)
            self._keeper.save(optimizer)

    def settle(self, outcomes: Iterable[Tell]) -> None:
        """Store what became of pending trials; all are stored or none."""
        with self._keeper.changing() as optimizer:
            before = {trial.id: trial for trial in optimizer.pending}
            ids = optimizer.settle(outcomes)
            self._keeper.save(optimizer, _deviations(optimizer, before, ids))

    # What people know

    def add(
        self,
        points: Iterable[Mapping[str, Any]],
        values: Iterable[Any],
        *,
        notes: Sequence[Mapping[str, str]] | None = None,
        sems: float | Sequence[float | None] | None = None,
        constraints: Sequence[Mapping[str, Any]] | None = None,
        reason: str | None = None,
    ) -> list[Trial]:
        """Store results that nobody asked for: past data, experiments made by hand. They cost no budget.

        All are stored or none. Points may repeat. The model learns from them, and the search begins around the best.
        `sems` are the standard errors of the values, as `sem` in `tell`, and `constraints` the measured outcomes.
        """
        with self._keeper.changing() as optimizer:
            trials = optimizer.add(points, values, notes=notes, sems=sems, constraints=constraints)
            said = {"trials": [trials[0].id, trials[-1].id]} if trials else None
            self._keeper.save(optimizer, [Entry.now("add", after=said, reason=reason)] if trials else [])
        return trials

    def begin(self, known: Iterable[Sequence[Any]], start: Mapping[str, Any] | Iterable[Mapping[str, Any]]) -> None:
        """Add known results, pairs of a point and its value, and enqueue points to start from; all or nothing.

        Where the space has outcomes, a third member has what was measured beside the value.
        """
        if isinstance(known, Mapping):
            raise InvalidOption(
                f"known must be a list of pairs of a point and its value, not {known!r}", option="known"
            )
        pairs = list(known)
        size = 3 if self.space.limits else 2
        for pair in pairs:
            if not isinstance(pair, Sequence) or isinstance(pair, str) or len(pair) != size:
                what = (
                    "pairs of a point and its value" if size == 2 else "triples of a point, its value and its outcomes"
                )
                raise InvalidOption(f"known must be {what}, not {pair!r}", option="known")
        points = [start] if isinstance(start, Mapping) else list(start)
        with self._keeper.changing() as optimizer:
            optimizer.check_starts(points)  # before anything is added
            if pairs:
                outcomes = [pair[2] for pair in pairs] if size == 3 else None
                optimizer.add([pair[0] for pair in pairs], [pair[1] for pair in pairs], constraints=outcomes)
            if points:
                optimizer.enqueue(points)
            if pairs or points:
                self._keeper.save(optimizer, [Entry.now("begin", after={"known": len(pairs), "start": len(points)})])

    def enqueue(
        self,
        points: Mapping[str, Any] | Iterable[Mapping[str, Any]],
        *,
        notes: Sequence[Mapping[str, str]] | None = None,
        reason: str | None = None,
    ) -> list[Trial]:
        """Have points asked for first, in order; what a point leaves out is taken from the best one known, or drawn."""
        with self._keeper.changing() as optimizer:
            trials = optimizer.enqueue(points, notes=notes)
            entries = [Entry.now("enqueue", t.id, after={"point": t.point}, reason=reason) for t in trials]
            self._keeper.save(optimizer, entries)
        return trials

    def correct(
        self,
        trial: Trial | int,
        value: Any = None,
        *,
        point: Mapping[str, Any] | None = None,
        sem: float | Literal["unknown"] | None = None,
        constraints: Mapping[str, Any] | None = None,
        reason: str | None = None,
    ) -> None:
        """Replace the value, its standard error, outcomes or the point of a trial; the history keeps what was before.

        What is not given stays. `sem="unknown"` takes a standard error back.
        """
        right: dict[str, Any] = {"point": point, "sem": sem, "constraints": constraints}
        self._edit("correct", reason, lambda optimizer: [optimizer.correct(trial, value, **right)])

    def retry(self, trials: Trials | None = None, *, reason: str | None = None) -> list[Trial]:
        """Make failed trials pending again, all of them by default, or trials that are to be measured again.

        Their results are taken back; the history keeps them. Return the trials.
        """
        return self._edit("retry", reason, lambda optimizer: optimizer.retry(trials))

    def withdraw(self, trials: Trials, *, reason: str | None = None) -> list[Trial]:
        """Give trials back, their budget too; their points may be proposed again. Return the trials.

        Pending and queued trials are cancelled. Of others, added ones too, the results are taken back; the history
        keeps them.
        """
        return self._edit("withdraw", reason, lambda optimizer: optimizer.withdraw(trials))

    def note(self, trial: Trial | int, text: str, *, name: str = "note") -> None:
        """Write free text beside a trial, in place of the text that is there under this name."""
        self._edit("note", None, lambda optimizer: [optimizer.note(trial, text, name=name)])

    def _edit(self, action: str, reason: str | None, change: Callable[[Bounce], list[int]]) -> list[Trial]:
        """Change trials, and keep in the history what was there before."""
        with self._keeper.changing() as optimizer:
            before = {trial.id: trial for trial in optimizer.trials}
            ids = change(optimizer)
            after = [optimizer.trial(i) for i in ids]
            changed = [trial for trial in after if trial != before[trial.id]]
            self._keeper.save(optimizer, [Entry.edit(action, before[t.id], t, reason=reason) for t in changed])
        return after

    def change(
        self, space: Space, defaults: Mapping[str, Any] | None = None, *, reason: str | None = None
    ) -> list[Trial]:
        """Continue in another space; return the trials that no longer fit, which leave the model (`Bounce.change`)."""
        with self._keeper.changing() as optimizer:
            before, former = optimizer.space.to_dict(), optimizer.space
            outside = optimizer.change(space, defaults)
            self._keeper.given = space
            plain = Change(former, space, dict(defaults or {})).defaults
            said = space.to_dict() | {"defaults": plain, "outside": [trial.id for trial in outside]}
            entry = Entry.now("change", before=before, after=said, reason=reason)
            self._keeper.save(optimizer, [entry], space=True)
        return outside

    def record(self, trial: Trial, outcome: Outcome, /) -> Trial:
        """Store the outcome of an evaluation, which has ended with it; return the finished trial."""
        with self._keeper.changing() as optimizer:
            if outcome.value is None:
                optimizer.fail(trial.id, outcome.error, seconds=outcome.seconds)
            else:
                given = outcome.constraints or None
                optimizer.tell(trial.id, outcome.value, seconds=outcome.seconds, constraints=given)
            optimizer.count_attempts(trial.id, trial.attempts)
            self._keeper.save(optimizer)
        return self._keeper.optimizer.trial(trial.id)

    def begin_attempt(self, trial: Trial, /) -> None:
        """Store that an evaluation begins in this process, which might die of it."""
        self._count_attempts(trial.id, trial.attempts + 1)

    def end_attempt(self, trial: Trial, /) -> None:
        """Store that an evaluation has ended, and that this process is alive."""
        self._count_attempts(trial.id, trial.attempts)

    def _count_attempts(self, trial: int, attempts: int) -> None:
        if self.path is not None and self._keeper.optimizer.trial(trial).attempts != attempts:
            with self._keeper.changing() as optimizer:
                optimizer.count_attempts(trial, attempts)
                self._keeper.save(optimizer)

    def extend(self, budget: int) -> None:
        """Set a new total budget; a run that has ended continues from what it knows."""
        with self._keeper.changing() as optimizer:
            before = optimizer.budget
            optimizer.extend(budget)
            entry = Entry.now("extend", before={"budget": before}, after={"budget": optimizer.budget})
            self._keeper.save(optimizer, [entry])

    def run(
        self,
        objective: Objective | Evaluator,
        *,
        executor: Executor | None = None,
        workers: int | None = None,
        batch_size: int | None = None,
        timeout: float | None = None,
        max_failures: int = ALIKE,
        logs: str | os.PathLike[str] | None = None,
        callbacks: Iterable[Callable[[Trial], None]] = (),
        stop_when: str | None = None,
        progress: bool = False,
    ) -> Result:
        """Evaluate until the budget is spent: first the pending trials, then new ones.

        The run ends earlier if `stop` is called, or if `stop_when` holds, a sentence such as "no improvement expected
        above 0.01", "no improvement in 50 evaluations" or "value below 0.1"; several are joined by "or". It then waits
        for running evaluations and returns the result so far. `stopped` says why.

        With `progress`, the run shows how far it is: in a panel on a terminal, in a table in a notebook, and elsewhere
        in a line on standard error now and then.

        At most `workers` evaluations run at a time, and `batch_size` trials (the study's by default) are asked for
        whenever that many workers are free. The default is one worker, which is this process. More workers are
        processes that Bounce starts, or those of the `executor`, of which by default as many are used as a batch has
        trials. `timeout` limits the seconds of each evaluation. What an evaluation raises is cut in the study, and kept
        in full in files of the folder `logs`, if one is given.

        An evaluation that raises, or returns anything but a finite number, fails its trial, and the run continues.
        Where the space has outcomes, it returns `(value, {"strength": 31.2})`, with a number for each of them. If the
        first `max_failures` evaluations of the run all fail with the same error and the study has no value yet, the run
        ends. These failures do not count: the next run evaluates their trials again. Ten failures of any kind without a
        success end a run too, and ten in a row with the same error at any time; or `max_failures`, if that is more. A
        fault of the machine, such as a missing program, fails no trial and ends the run. The first Ctrl-C waits for
        running evaluations, a second one stops at once. An exception that ends the run has the result so far as its
        attribute `result`.
        """
        evaluator = _evaluator(objective, logs)
        batch_size = self.options["batch_size"] if batch_size is None else whole("batch_size", batch_size, 1)
        workers = (1 if executor is None else batch_size) if workers is None else whole("workers", workers, 1)
        until = None
        if stop_when is not None:
            limited = bool(self.space.limits)
            until = partial(self.reached, StopWhen.of(stop_when, self.options["direction"], limited=limited))
        outcomes = tuple(limit.name for limit in self.space.limits)
        most = whole("max_failures", max_failures, 1)
        plan = Plan(workers, batch_size, most, checked_callbacks(callbacks), until, outcomes)
        timeout = checked_seconds(timeout)
        if timeout is not None:
            evaluator = evaluator.within(timeout)
            if executor is not None and not evaluator.own_process:
                raise InvalidOption(
                    "a timeout needs worker processes that Bounce starts itself, or a command: leave the executor out",
                    option="timeout",
                )
        if not isinstance(progress, bool):
            raise InvalidOption(f"progress must be True or False, not {progress!r}", option="progress")
        used = executor_for(evaluator, workers, timeout) if executor is None else checked_executor(executor)
        try:
            self._evaluate(evaluator, used, plan, progress=progress)
        finally:
            if executor is None:
                used.shutdown()
        return self.result

    @contextmanager
    def _shown(self, plan: Plan, *, progress: bool) -> Iterator[Plan]:
        """Show a run while it lasts, if that is wanted."""
        if not progress:
            yield plan
            return
        from bounce.live.display import shown  # rich is slow to import

        with shown(self, "bounce" if self.path is None else self.path.stem) as display:
            yield replace(plan, callbacks=[display, *plan.callbacks])

    def _evaluate(self, evaluator: Evaluator, executor: Executor, plan: Plan, *, progress: bool) -> None:
        """Run under the lock; an exception that ends the run gets the result so far."""
        try:
            with self._keeper.occupied():
                self.stopped = None
                with self._shown(plan, progress=progress) as plan:
                    self._run = run = Run(self, evaluator, executor, plan)
                    run.run()
                    self.stopped = run.stopped
                if run.stopped is not None:
                    logger.info("the run ended before its budget was spent: %s", run.stopped)
        except StudyLocked:
            raise
        except BaseException as error:
            with suppress(BounceError):  # the file can no longer be read
                error.result = self.result  # type: ignore[attr-defined]
            error.add_note("bounce: the result so far is the attribute 'result' of this exception")
            if self.path is not None:
                error.add_note(f"bounce: everything is stored in {self.path}; run again to resume")
            raise
        finally:
            self._run = None

    def stop(self, reason: str = "stop was called") -> None:
        """End this object's run in order, from a callback, the objective or another thread.

        No further evaluation begins. The run waits for those in flight, records them and returns its result. The next
        run continues from there. Nothing happens if this object is not running the study, even if another object or
        another process is: that process ends its run after the signal of Ctrl-C.
        """
        run = self._run
        if run is not None:
            run.stop(reason)

    @property
    def in_flight(self) -> int:
        """How many evaluations of this object's run are running now."""
        return 0 if self._run is None else self._run.in_flight

    def close(self) -> None:
        """Close the file."""
        self._keeper.close()

    def __enter__(self) -> Study:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _deviations(optimizer: Bounce, before: Mapping[int, Trial], ids: Iterable[int]) -> list[Entry]:
    """Return what the history keeps of trials whose points were not used as asked."""
    after = [optimizer.trial(i) for i in ids]
    return [Entry.edit("tell", before[trial.id], trial) for trial in after if trial.point != before[trial.id].point]


def _evaluator(objective: Objective | Evaluator, logs: str | os.PathLike[str] | None) -> Evaluator:
    if isinstance(objective, Evaluator):
        if logs is not None:
            raise InvalidOption("logs is for a Python function: an evaluator has its own", option="logs")
        return copy(objective)  # an evaluator that was stopped stays stopped, so each run has its own
    if not callable(objective):
        raise InvalidOption(f"objective must be a function of a point, not {objective!r}", option="objective")
    folder = None if logs is None else as_path(logs)
    if logs is not None and folder is None:
        raise InvalidOption(f"logs must be the name of a folder, such as 'logs', not {logs!r}", option="logs")
    if folder is not None and folder.exists() and not folder.is_dir():
        raise InvalidOption(f"logs must be a folder, and {str(folder)!r} is a file", option="logs")
    return Function(objective, None if folder is None else folder.absolute())
