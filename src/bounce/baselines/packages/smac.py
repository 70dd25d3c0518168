"""SMAC3: a random forest with expected improvement, through its facade for many variables and few evaluations.

It runs with the facade's defaults, for an objective without noise. It starts with a design of ten points per
variable, at most a quarter of the budget; the initial points are part of that design. A failed trial is told as crashed
with the worst cost seen, since its own cost of a crash is infinite.
"""

from __future__ import annotations

import shutil
import weakref
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from bounce.baselines.baseline import INITIAL, Baseline, codes_of, is_stepped, quiet, require, values_of
from bounce.spaces.kinds import Codes
from bounce.spaces.space import Space


class Smac(Baseline):
    """A facade of SMAC3, asked and told."""

    name = "smac"

    def __init__(self, space: Space, budget: int, seed: int, initial: int = INITIAL) -> None:
        require("smac", "smac")
        from ConfigSpace import ConfigurationSpace
        from smac import HyperparameterOptimizationFacade, Scenario

        super().__init__(space, budget, seed, initial)
        folder = mkdtemp(prefix="bounce-smac-")  # the facade always writes files
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        self._configurations = ConfigurationSpace(seed=self.seed)
        self._configurations.add([_hyperparameter(f"x{j}", p) for j, p in enumerate(space.parameters)])
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

    def _propose(self) -> tuple[Codes, Any]:
        info = self._facade.ask()
        return codes_of(self.space, [info.config[f"x{j}"] for j in range(len(self.space))]), info

    def _given(self, row: Codes) -> Any:
        from ConfigSpace import Configuration
        from smac.runhistory import TrialInfo

        values = {f"x{j}": value for j, value in enumerate(values_of(self.space, row))}
        return TrialInfo(Configuration(self._configurations, values), seed=0)

    def _learn(self, row: Codes, token: Any, value: float) -> None:
        from smac.runhistory import TrialValue

        self._facade.tell(token, TrialValue(cost=value), save=False)

    def _learn_failure(self, row: Codes, token: Any, worst: float) -> None:
        from smac.runhistory import StatusType, TrialValue

        self._facade.tell(token, TrialValue(cost=worst, status=StatusType.CRASHED), save=False)


def _no_target(config: Any, seed: int = 0) -> float:
    raise AssertionError("the objective is evaluated outside")


def _hyperparameter(name: str, parameter: Any) -> Any:
    from ConfigSpace import CategoricalHyperparameter as Choice
    from ConfigSpace import OrdinalHyperparameter as Ordered
    from ConfigSpace import UniformFloatHyperparameter as Float
    from ConfigSpace import UniformIntegerHyperparameter as Int

    if is_stepped(parameter):
        return Int(name, *parameter.rungs, log=parameter.log)
    match parameter.type:
        case "real":
            return Float(name, parameter.low, parameter.high, log=parameter.log)
        case "integer":
            return Int(name, parameter.low, parameter.high, log=parameter.log)
        case "ordinal":
            return Ordered(name, list(range(parameter.cardinality)))
        case _:
            return Choice(name, list(range(parameter.cardinality)))
