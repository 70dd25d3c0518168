"""A sampler for Optuna that proposes what Bounce proposes.

It is stateless over the study: what it proposes is a function of the study's trials, of its options and of the number
of the trial. So a study resumes from any storage, and several processes may share one. What it keeps in memory are
caches: the optimizer at the latest events (`Fold`), and at a few moments before.
"""

from __future__ import annotations

import hashlib
import json
import logging
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypedDict, Unpack

import numpy as np
from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler, TPESampler
from optuna.study import Study, StudyDirection
from optuna.trial import FrozenTrial, TrialState

from bounce.errors import InvalidInput, InvalidOption
from bounce.integrations.optuna.distributions import Mapped, Point
from bounce.integrations.optuna.fold import Fold
from bounce.integrations.optuna.history import ASK, Asked, Event, Fact, Facts, ask_event, common, events, limits, ranges
from bounce.method import Method
from bounce.optimizer.options import Options, unknown_option, whole

logger = logging.getLogger(__name__)

BUDGET = 200  # trials that are planned for if nobody says how many there will be
MOMENTS = 8  # copies of the optimizer to go back to when the order of the latest events changes
TRIES = 8  # proposals that a trial may get until one differs from all running trials
NOT_HERE = ("budget", "seed", "direction", "batch_size")  # options that have an argument of their own, or none


class SamplerOptions(TypedDict, total=False):
    """The options of Bounce that a sampler takes beside its own arguments."""

    noise: str | float
    initial_points: int | None
    initial_dims: int | None
    new_bins: int
    budget_to_input: int | None
    low_sequency: bool
    trust_region: str
    method: Method | str | Mapping[str, Any]


class BounceSampler(BaseSampler):  # type: ignore[misc]
    """A sampler for a study with one objective and parameters of any type.

    `budget` is the number of trials that the search plans for. A study may have more: the budget is doubled whenever it
    is spent. Without one, the search plans for 200.

    `search_space` has the distributions by name, if they are known. Without it the sampler learns them from the
    complete trials: the first trial is then drawn at random. What the trials do not share is sampled by
    `independent_sampler`, by default Optuna's TPE, one parameter at a time.

    `constraints_func` takes a finished trial and returns values, of which those above 0 are violated. Since Optuna 5,
    `trial.set_constraint` does the same without it. The other options are those of `bounce.Bounce`.

    >>> study = optuna.create_study(sampler=BounceSampler(budget=200, seed=0))
    >>> study.optimize(objective, n_trials=200)
    """

    def __init__(
        self,
        *,
        budget: int | None = None,
        seed: int | None = None,
        search_space: Mapping[str, BaseDistribution] | None = None,
        independent_sampler: BaseSampler | None = None,
        constraints_func: Callable[[FrozenTrial], Sequence[float]] | None = None,
        warn_independent_sampling: bool = True,
        **options: Unpack[SamplerOptions],
    ) -> None:
        for name in options:
            if name in NOT_HERE or name not in Options.__dataclass_fields__:
                known = [n for n in Options.__dataclass_fields__ if n not in ("direction", "batch_size")]
                raise unknown_option(name, known)
        Options.of({"budget": BUDGET if budget is None else budget, "seed": seed, **options})  # checked here and now
        self._budget = BUDGET if budget is None else whole("budget", budget, 1)
        self._seed = None if seed is None else whole("seed", seed, 0)
        self._drawn = int(np.random.SeedSequence().generate_state(1)[0]) if seed is None else whole("seed", seed, 0)
        self._search_space = None if search_space is None else _checked(search_space)
        self._independent = independent_sampler
        self._constraints_func = constraints_func
        self._warn = warn_independent_sampling
        self._options: dict[str, Any] = dict(options)
        self._forget()

    def _forget(self) -> None:
        """Empty all caches."""
        self._lock = threading.RLock()
        self._facts = Facts()
        self._mapped: tuple[str, Mapped] | None = None
        self._fold: tuple[str, Fold] | None = None
        self._moments: deque[tuple[str, Fold]] = deque(maxlen=MOMENTS)

    def __getstate__(self) -> dict[str, Any]:
        caches = ("_lock", "_facts", "_mapped", "_fold", "_moments")
        return {name: value for name, value in self.__dict__.items() if name not in caches}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._forget()

    # What Optuna calls

    def reseed_rng(self) -> None:
        """Do nothing for our own proposals: they depend on the number of the trial, not on the worker."""
        if self._independent is not None:
            self._independent.reseed_rng()

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        """Return the parameters that Bounce proposes: those given, or those that all complete trials share."""
        _check_single(study)
        if self._search_space is not None:
            shared = self._search_space
        else:
            with self._lock:
                shared = common(self._facts.of(study.get_trials(deepcopy=False)))
        return {one.name: one.distribution for one in Mapped.of(shared).axes}

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Propose values for all parameters of the search space together."""
        _check_single(study)
        if not search_space:
            return {}
        with self._lock:
            facts = self._facts.of([t for t in study.get_trials(deepcopy=False) if t.number != trial.number])
            seed = self._seed_in(facts)
            mapped, key = self._mapping(search_space, limits(facts), study, seed)
            if not mapped.axes:
                return {}
            fold = self._at(events(facts, key, trial.number), key, mapped, study, seed)
            fold, point = _proposed(fold, trial, facts, key)
            finished = ranges(fact.trial.number for fact in facts if fact.trial.state.is_finished())
            for left in reversed(range(TRIES)):
                if point is None:  # every point of the space has been tried: repeat one
                    codes = mapped.space.sample(1, rng=np.random.default_rng([seed, trial.number]))
                    return mapped.params(mapped.space.decode(codes)[0])
                asked = Asked(key, seed, finished, tuple(point.values()))
                study._storage.set_trial_system_attr(trial._trial_id, ASK, asked.document())
                rivals = self._rivals(study, trial, asked) if left else []
                if not rivals:
                    break
                fold = fold.copy()
                for _ in range(1 if trial.number < min(rivals) else 2):  # if both yield, they part
                    point = fold.again(trial.number)
            assert point is not None
            return mapped.params(point)

    def _rivals(self, study: Study, trial: FrozenTrial, asked: Asked) -> list[int]:
        """Return the trials that other workers have proposed the same point for at the same moment.

        Everybody writes a proposal first and reads those of others then, so one of two sees the other.
        """
        others = [t for t in study.get_trials(deepcopy=False) if t.number != trial.number and not asked.saw(t.number)]
        mine = (asked.key, asked.point)
        facts = self._facts.of(others)
        return [f.trial.number for f in facts if f.asked is not None and (f.asked.key, f.asked.point) == mine]

    def sample_independent(
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        """Sample a parameter that the trials do not share, or of which Bounce knows nothing yet."""
        _check_single(study)
        if self._warn and self._search_space is None and _came_after_others(study, trial):
            self._warn = False
            logger.warning(
                "The parameter %r of trial %d is sampled independently, since not all complete trials have it with the "
                "same distribution. Further parameters like it are not reported. To suppress this warning, set "
                "warn_independent_sampling=False.",
                param_name,
                trial.number,
            )
        sampler = self._independent
        if sampler is None:
            text = repr((self._drawn, "independent", trial.number, param_name))
            own = int.from_bytes(hashlib.blake2b(text.encode(), digest_size=4).digest())
            sampler = TPESampler(seed=own)
        return sampler.sample_independent(study, trial, param_name, param_distribution)

    def before_trial(self, study: Study, trial: FrozenTrial) -> None:
        """Pass the call on to the independent sampler."""
        if self._independent is not None:
            self._independent.before_trial(study, trial)

    def after_trial(self, study: Study, trial: FrozenTrial, state: TrialState, values: Sequence[float] | None) -> None:
        """Store the values of the constraints, if there is a function of them."""
        if self._constraints_func is not None and state in (TrialState.COMPLETE, TrialState.PRUNED):
            given = tuple(float(value) for value in self._constraints_func(trial))
            if any(np.isnan(given)):
                raise InvalidInput(f"constraints_func must return numbers that are not NaN, not {given!r}")
            study._storage.set_trial_system_attr(trial._trial_id, "constraints", given)
        if self._independent is not None:
            self._independent.after_trial(study, trial, state, values)

    # How a proposal comes about

    def _seed_in(self, facts: Sequence[Fact]) -> int:
        """Return the seed: if none was given, the one that the study was begun with."""
        if self._seed is None:
            first = next((fact.asked for fact in facts if fact.asked is not None), None)
            if first is not None:
                return first.seed
        return self._drawn

    def _run_options(self, study: Study, seed: int) -> dict[str, Any]:
        direction = "minimize" if study.direction == StudyDirection.MINIMIZE else "maximize"
        return {"budget": self._budget, "seed": seed, "direction": direction, **self._options}

    def _mapping(
        self, search_space: Mapping[str, BaseDistribution], names: tuple[str, ...], study: Study, seed: int
    ) -> tuple[Mapped, str]:
        """Return the space for Bounce, and the digest of everything that a run depends on beside its trials."""
        text = repr(list(search_space.items())) + (f"\n{names!r}" if names else "")
        if self._mapped is None or self._mapped[0] != text:
            self._mapped = text, Mapped.of(search_space, names)
        options = json.dumps(Options.of(self._run_options(study, seed)).document(), sort_keys=True)
        return self._mapped[1], hashlib.blake2b(f"1\n{text}\n{options}".encode(), digest_size=8).hexdigest()

    def _at(self, wanted: list[Event], key: str, mapped: Mapped, study: Study, seed: int) -> Fold:
        """Return a fold that has taken these events: the cached one that is nearest, brought up to date."""
        digests = [event.digest for event in wanted]

        def serves(moment: tuple[str, Fold] | None) -> bool:
            return moment is not None and moment[0] == key and moment[1].taken == digests[: len(moment[1].taken)]

        if self._fold is None or not serves(self._fold):
            if self._fold is not None:
                self._moments.append(self._fold)
            serving = [moment for moment in self._moments if serves(moment)]
            if serving:
                self._fold = max(serving, key=lambda moment: len(moment[1].taken))
                self._moments.remove(self._fold)
            else:
                self._fold = key, Fold(mapped, self._run_options(study, seed))
        fold = self._fold[1]
        fold.follow(wanted)
        self._moments.append((key, fold.copy()))
        return fold


def _proposed(fold: Fold, trial: FrozenTrial, facts: Sequence[Fact], key: str) -> tuple[Fold, Point | None]:
    """Return the point of a trial, distinct from those of all running trials, and the fold that proposed it.

    What is known of running trials that the fold does not follow counts as pending: those of other samplers, and
    those that have not asked yet, which are going to ask what this fold would be asked.
    """
    running = [fact for fact in facts if fact.trial.state == TrialState.RUNNING]
    followed = [fact for fact in running if fact.asked is not None and fact.asked.key == key]
    points = {fact.trial.number: fold.mapped.point(fact.trial.params) for fact in running}
    names = [one.parameter.name for one in fold.mapped.axes]
    for fact in followed:
        assert fact.asked is not None
        points[fact.trial.number] = dict(zip(names, fact.asked.point, strict=True))
    others = [fact for fact in running if fact not in followed and points[fact.trial.number] is not None]
    newest = max((fact.trial.number for fact in facts if fact.trial.state.is_finished()), default=-1)
    blank = [
        fact
        for fact in running
        if fact.asked is None and not fact.trial.params and newest < fact.trial.number < trial.number
    ]
    if others or blank:
        fold = fold.copy()
    for fact in others:
        fold.hold(fact.trial.number, points[fact.trial.number] or {})
    for fact in blank:
        fold.ask(ask_event(fact.trial))
    point = fold.ask(ask_event(trial))
    taken = [one for one in points.values() if one is not None]
    for _ in range(TRIES):
        if point is None or point not in taken:
            break
        fold = fold.copy()
        point = fold.again(trial.number)
    return fold, point


def _check_single(study: Study) -> None:
    if len(study.directions) > 1:
        raise InvalidOption(
            f"BounceSampler optimizes one objective, but the study has {len(study.directions)}: optimize one of them "
            "and make the others constraints, or use a sampler for several objectives, such as TPESampler",
            option="direction",
        )


def _checked(search_space: Mapping[str, BaseDistribution]) -> dict[str, BaseDistribution]:
    """Return a search space; refuse what is not one."""
    right = isinstance(search_space, Mapping) and all(isinstance(d, BaseDistribution) for d in search_space.values())
    if not right:
        raise InvalidOption(
            f"search_space must be a dict of Optuna's distributions by name, not {search_space!r}",
            option="search_space",
        )
    return dict(search_space)


def _came_after_others(study: Study, trial: FrozenTrial) -> bool:
    """Return whether a trial with parameters was complete when this one began."""
    began = trial.datetime_start
    complete = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
    return any(t.params and t.datetime_complete and began and t.datetime_complete < began for t in complete)
