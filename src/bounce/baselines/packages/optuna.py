"""The samplers of Optuna: TPE and the Gaussian process, with their defaults.

Since version 5 the defaults of TPE are what Optuna recommends: multivariate for one objective. Optuna has no
ordinals, so ordered lists are passed as integers; binary variables are categories. Its samplers ignore failed trials.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from bounce.baselines.baseline import INITIAL, Baseline, code_of, codes_of, is_stepped, quiet, require, values_of
from bounce.spaces.kinds import Codes
from bounce.spaces.space import Space


class OptunaBaseline(Baseline):
    """A study of Optuna, asked and told. Parameters with conditions are suggested only when they are active."""

    name = "optuna"
    structures = ("conditions",)

    def __init__(self, space: Space, budget: int, seed: int, initial: int, sampler: Any) -> None:
        import optuna

        super().__init__(space, budget, seed, initial)
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self._distributions = {str(j): _distribution(p) for j, p in enumerate(space.parameters)}
        with quiet():
            self._study = optuna.create_study(sampler=sampler(seed=self.seed), direction="minimize")

    def _propose(self) -> tuple[Codes, Any]:
        if self.space.structure is not None:
            return self._branched()
        trial = self._study.ask(self._distributions)
        return codes_of(self.space, [trial.params[name] for name in self._distributions]), trial

    def _branched(self) -> tuple[Codes, Any]:
        """Return a point of a space with conditions: parents first, and no parameter that is inactive."""
        trial = self._study.ask()
        codes, open_ = self.space.structure.rest.copy(), list(range(len(self.space)))  # type: ignore[union-attr]
        parents = {j: {name for name, _ in p.when or ()} for j, p in enumerate(self.space.parameters)}
        while open_:
            left = {self.space.parameters[j].name for j in open_}
            j = next(j for j in open_ if not parents[j] & left)
            open_.remove(j)
            if self.space.structure.active(codes[None])[0, j]:  # type: ignore[union-attr]
                value = trial._suggest(str(j), self._distributions[str(j)])
                codes[j] = code_of(self.space.parameters[j], value)
        return codes, trial

    def _given(self, row: Codes) -> Any:
        if self.space.structure is not None:
            values = values_of(self.space, row)
            self._study.enqueue_trial({str(j): value for j, value in enumerate(values) if value is not None})
            return self._branched()[1]
        values = values_of(self.space, row)
        self._study.enqueue_trial(dict(zip(self._distributions, values, strict=True)))
        return self._propose()[1]

    def _learn(self, row: Codes, token: Any, value: float) -> None:
        self._study.tell(token, value)

    def _learn_failure(self, row: Codes, token: Any, worst: float) -> None:
        from optuna.trial import TrialState

        self._study.tell(token, state=TrialState.FAIL)


def _distribution(parameter: Any) -> Any:
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    if is_stepped(parameter):
        return IntDistribution(*parameter.rungs, log=parameter.log)
    match parameter.type:
        case "real":
            return FloatDistribution(parameter.low, parameter.high, log=parameter.log)
        case "integer":
            return IntDistribution(parameter.low, parameter.high, log=parameter.log)
        case "ordinal":
            return IntDistribution(0, parameter.cardinality - 1)
        case _:
            return CategoricalDistribution(range(parameter.cardinality))


def tpe(space: Space, budget: int, seed: int, initial: int = INITIAL) -> Baseline:
    """Return Optuna's tree-structured Parzen estimator."""
    require("tpe", "optuna")
    from optuna.samplers import TPESampler

    grouped = partial(TPESampler, group=True)  # its way for spaces with conditions
    return OptunaBaseline(space, budget, seed, initial, TPESampler if space.structure is None else grouped)


def gp_sampler(space: Space, budget: int, seed: int, initial: int = INITIAL) -> Baseline:
    """Return Optuna's Gaussian process."""
    require("gp-sampler", "optuna", "torch")
    from optuna.samplers import GPSampler

    return OptunaBaseline(space, budget, seed, initial, GPSampler)
