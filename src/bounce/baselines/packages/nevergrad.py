"""NGOpt of Nevergrad: the portfolio that its authors recommend when nothing is known about a problem.

Categories are deterministic choices. The default draws a new category every time the value is read; NGOpt takes that
for noise and chooses methods that learn almost nothing here.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bounce.baselines.baseline import INITIAL, Baseline, codes_of, is_stepped, quiet, require, values_of
from bounce.spaces.kinds import Codes
from bounce.spaces.space import Space


class Nevergrad(Baseline):
    """An optimizer of Nevergrad, asked and told; it sees reals on linear scales as one array."""

    name = "nevergrad"

    def __init__(self, space: Space, budget: int, seed: int, initial: int = INITIAL) -> None:
        require("nevergrad", "nevergrad")
        super().__init__(space, budget, seed, initial)
        with quiet(self.seed):
            import nevergrad as ng

            numbers = [j for j, p in enumerate(space.parameters) if p.type == "real" and not is_stepped(p)]
            plain = [j for j in numbers if not space.parameters[j].log]
            self._plain = np.array(plain, dtype=np.intp)
            self._others = [j for j in range(len(space)) if j not in set(plain)]
            parameters: list[Any] = [space.parameters[j] for j in plain]
            kinds: dict[str, Any] = {str(j): _kind(space.parameters[j]) for j in self._others}
            if plain:
                low, high = (np.array([getattr(p, side) for p in parameters]) for side in ("low", "high"))
                kinds["reals"] = ng.p.Array(init=(low + high) / 2, lower=low, upper=high)
            parametrization = ng.p.Dict(**kinds)
            parametrization.random_state.seed(self.seed)
            self._optimizer = ng.optimizers.NGOpt(parametrization, budget=self.budget, num_workers=1)

    def _propose(self) -> tuple[Codes, Any]:
        candidate = self._optimizer.ask()
        known = candidate.value  # computed again on every access
        values: list[Any] = [0] * len(self.space)
        for j, real in zip(self._plain, known.get("reals", ()), strict=True):
            values[j] = float(real)
        for j in self._others:
            values[j] = known[str(j)]
        return codes_of(self.space, values), candidate

    def _given(self, row: Codes) -> Any:
        values = values_of(self.space, row)
        known: dict[str, Any] = {str(j): values[j] for j in self._others}
        if len(self._plain):
            known["reals"] = np.array([values[j] for j in self._plain])
        return self._optimizer.parametrization.spawn_child(new_value=known)

    def _learn(self, row: Codes, token: Any, value: float) -> None:
        self._optimizer.tell(token, value)


def _kind(parameter: Any) -> Any:
    import nevergrad as ng

    if is_stepped(parameter):
        low, high = parameter.rungs
        scale = ng.p.Log if parameter.log else ng.p.Scalar
        return scale(lower=low, upper=high).set_integer_casting()
    match parameter.type:
        case "real":
            return ng.p.Log(lower=parameter.low, upper=parameter.high)
        case "integer":
            scale = ng.p.Log if parameter.log else ng.p.Scalar
            return scale(lower=parameter.low, upper=parameter.high).set_integer_casting()
        case "ordinal":
            return ng.p.TransitionChoice(range(parameter.cardinality))
        case _:
            return ng.p.Choice(range(parameter.cardinality), deterministic=True)
