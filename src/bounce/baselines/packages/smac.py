"""SMAC3: a random forest with expected improvement, through its facade for many variables and few evaluations.

It runs with the facade's defaults, for an objective without noise. It starts with a design of ten points per
variable, at most a quarter of the budget; the initial points are part of that design. A failed trial is told as crashed
with the worst cost seen, since its own cost of a crash is infinite.

Conditions are passed on, and constraints that forbid combinations of values of parameters with few of them, such as
`not (solvent == 'water' and catalyst == 'Pd')`: ConfigSpace has no others.
"""

from __future__ import annotations

import shutil
import weakref
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from bounce.baselines.baseline import INITIAL, Baseline, codes_of, is_stepped, quiet, require, value_of, values_of
from bounce.errors import InvalidSpace
from bounce.spaces.constraints import Constraint
from bounce.spaces.expressions import Expression
from bounce.spaces.kinds import Codes
from bounce.spaces.space import Space
from bounce.trial import Scalar


class Smac(Baseline):
    """A facade of SMAC3, asked and told."""

    name = "smac"
    structures = ("conditions", "constraints")

    def __init__(self, space: Space, budget: int, seed: int, initial: int = INITIAL) -> None:
        require("smac", "smac")
        from ConfigSpace import ConfigurationSpace
        from smac import HyperparameterOptimizationFacade, Scenario

        super().__init__(space, budget, seed, initial)
        self._places = {parameter.name: j for j, parameter in enumerate(space.parameters)}
        folder = mkdtemp(prefix="bounce-smac-")  # the facade always writes files
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        self._configurations = ConfigurationSpace(seed=self.seed)
        defaults = values_of(space, self._initial[0]) if space.structure else [None] * len(space)
        pairs = zip(space.parameters, defaults, strict=True)  # the default configuration must be allowed
        self._configurations.add([_hyperparameter(f"x{j}", p, default) for j, (p, default) in enumerate(pairs)])
        self._configurations.add(self._conditions())
        self._configurations.add([clause for c in space.constraints for clause in self._clauses(c)])
        with quiet(self.seed):
            scenario = Scenario(
                self._configurations,
                deterministic=True,
                n_trials=self.budget,
                seed=self.seed,
                output_directory=Path(folder),
            )
            own = max(0, int(min(10 * len(space), 0.25 * self.budget)) - initial)
            design = HyperparameterOptimizationFacade.get_initial_design(scenario, n_configs=own)
            self._facade = HyperparameterOptimizationFacade(
                scenario, _no_target, initial_design=design, overwrite=True, logging_level=False
            )

    def _check_structure(self, space: Space) -> None:
        super()._check_structure(space)
        for constraint in space.constraints:
            if _forbidden(space, constraint) is None:
                raise InvalidSpace(
                    f"Smac takes only constraints that forbid combinations of values, such as "
                    f"\"not (a == 'x' and b == 'y')\", not {str(constraint)!r}: choose 'bounce' or 'random'"
                )

    def _parameter(self, name: str) -> tuple[Any, Any]:
        """Return a parameter, and what ConfigSpace has for it."""
        j = self._places[name]
        return self.space.parameters[j], self._configurations[f"x{j}"]

    def _conditions(self) -> list[Any]:
        """Return the conditions of parameters, in the words of ConfigSpace."""
        from ConfigSpace import AndConjunction, InCondition

        found = []
        for own in self.space.parameters:
            parts = []
            for name, values in own.when or ():
                parent, there = self._parameter(name)
                wanted = [value_of(parent, parent.encode(value)) for value in values]
                parts.append(InCondition(self._parameter(own.name)[1], there, wanted))
            if parts:
                found.append(parts[0] if len(parts) == 1 else AndConjunction(*parts))
        return found

    def _clauses(self, constraint: Constraint) -> list[Any]:
        """Return what a constraint forbids, in the words of ConfigSpace."""
        from ConfigSpace import ForbiddenAndConjunction, ForbiddenInClause

        found = []
        for case in _forbidden(self.space, constraint) or []:
            parts = []
            for name, values in case.items():
                own, there = self._parameter(name)
                parts.append(ForbiddenInClause(there, [value_of(own, own.encode(value)) for value in values]))
            found.append(parts[0] if len(parts) == 1 else ForbiddenAndConjunction(*parts))
        return found

    def _propose(self) -> tuple[Codes, Any]:
        info = self._facade.ask()
        known = dict(info.config)
        return codes_of(self.space, [known.get(f"x{j}") for j in range(len(self.space))]), info

    def _given(self, row: Codes) -> Any:
        from ConfigSpace import Configuration
        from smac.runhistory import TrialInfo

        values = {f"x{j}": value for j, value in enumerate(values_of(self.space, row)) if value is not None}
        return TrialInfo(Configuration(self._configurations, values), seed=0)

    def _learn(self, row: Codes, token: Any, value: float) -> None:
        from smac.runhistory import TrialValue

        self._facade.tell(token, TrialValue(cost=value), save=False)

    def _learn_failure(self, row: Codes, token: Any, worst: float) -> None:
        from smac.runhistory import StatusType, TrialValue

        self._facade.tell(token, TrialValue(cost=worst, status=StatusType.CRASHED), save=False)


def _forbidden(space: Space, constraint: Constraint) -> list[dict[str, tuple[Scalar, ...]]] | None:
    """Return the combinations of values that a constraint forbids; None if it says something else."""
    domains = {p.name: [p.decode(code) for code in p.all_codes()] for p in space.parameters if p.cardinality}
    found = constraint.forbidden(domains) if isinstance(constraint, Expression) else None
    if found is None or not isinstance(constraint, Expression):
        return None
    conditional = {p.name for p in space.parameters if p.when and p.name in constraint.names}
    if not conditional <= domains.keys():
        return None
    return [{name: tuple(domains[name]) for name in conditional} | case for case in found]  # active in every case


def _no_target(config: Any, seed: int = 0) -> float:
    raise AssertionError("the objective is evaluated outside")


def _hyperparameter(name: str, parameter: Any, default: Any) -> Any:
    from ConfigSpace import CategoricalHyperparameter as Choice
    from ConfigSpace import OrdinalHyperparameter as Ordered
    from ConfigSpace import UniformFloatHyperparameter as Float
    from ConfigSpace import UniformIntegerHyperparameter as Int

    given = {} if default is None else {"default_value": default}
    if is_stepped(parameter):
        return Int(name, *parameter.rungs, log=parameter.log, **given)
    match parameter.type:
        case "real":
            return Float(name, parameter.low, parameter.high, log=parameter.log, **given)
        case "integer":
            return Int(name, parameter.low, parameter.high, log=parameter.log, **given)
        case "ordinal":
            return Ordered(name, list(range(parameter.cardinality)), **given)
        case _:
            return Choice(name, list(range(parameter.cardinality)), **given)
