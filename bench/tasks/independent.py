"""Independent suites: problems that nobody of this project wrote, as minimisation problems.

`Pbo` is one of the 25 pseudo-Boolean problems of IOHprofiler (Doerr et al., Benchmarking discrete optimization
heuristics with IOHprofiler, 2020). `MixInt` is one of the 24 functions of COCO's suite bbob-mixint (Tušar, Brockhoff
and Hansen, Mixed-integer benchmark problems for single- and bi-objective optimization, 2019).
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

from bounce import Binary, Integer, Real, Space
from tasks.task import Point, Task, require

PBO = (
    *("onemax", "leadingones", "linear"),
    *("onemax-dummy1", "onemax-dummy2", "onemax-neutrality", "onemax-epistasis"),
    *("onemax-ruggedness1", "onemax-ruggedness2", "onemax-ruggedness3"),
    *("leadingones-dummy1", "leadingones-dummy2", "leadingones-neutrality", "leadingones-epistasis"),
    *("leadingones-ruggedness1", "leadingones-ruggedness2", "leadingones-ruggedness3"),
    *("labs", "ising-ring", "ising-torus", "ising-triangular", "mis", "nqueens", "trap", "nk"),
)
MIXINT = (
    *("sphere", "ellipsoid", "rastrigin", "bueche-rastrigin", "linear-slope"),
    *("attractive-sector", "step-ellipsoid", "rosenbrock", "rosenbrock-rotated"),
    *("ellipsoid-rotated", "discus", "bent-cigar", "sharp-ridge", "different-powers"),
    *("rastrigin-rotated", "weierstrass", "schaffers", "schaffers-ill", "griewank-rosenbrock"),
    *("schwefel", "gallagher101", "gallagher21", "katsuura", "lunacek"),
)
BITS = 64  # a square, which N-Queens and the Ising models on grids need
VARIABLES = 40
INSTANCE = 2  # of Pbo: bits flipped by a random mask, values scaled and shifted; instance 1 is the plain function


class Pbo(Task):
    """A pseudo-Boolean problem by its number, from 1 to 25. The suite maximises, so the sign is flipped."""

    def __init__(self, number: int, instance: int = INSTANCE, bits: int = BITS) -> None:
        require("ioh", "ioh", f"pbo-{PBO[number - 1]}")
        self.number, self.instance, self.bits = number, instance, bits

    @property
    def name(self) -> str:
        """The name of the function."""
        return f"pbo-{PBO[self.number - 1]}"

    @cached_property
    def space(self) -> Space:
        """Bits."""
        return Space([Binary(f"x{i}") for i in range(self.bits)])

    @cached_property
    def _function(self) -> Any:
        import ioh

        return ioh.get_problem(self.number, self.instance, self.bits, ioh.ProblemClass.PBO)

    def value(self, point: Point) -> float:
        """Return minus the function's value."""
        return -float(self._function([int(point[f"x{i}"]) for i in range(self.bits)]))


class MixInt(Task):
    """A function of bbob-mixint by its number, from 1 to 24: a fifth each of 2, 4, 8 and 16 integers and of reals."""

    def __init__(self, number: int, instance: int = 1, variables: int = VARIABLES) -> None:
        require("cocoex", "coco-experiment", f"mixint-{MIXINT[number - 1]}")
        self.number, self.instance, self.variables = number, instance, variables

    @property
    def name(self) -> str:
        """The name of the function."""
        return f"mixint-{MIXINT[self.number - 1]}"

    @cached_property
    def space(self) -> Space:
        """Integers with the suite's bounds, then reals."""
        lows, highs = self._function.lower_bounds, self._function.upper_bounds
        whole = self._function.number_of_integer_variables
        return Space(
            [
                Integer(f"x{i}", int(low), int(high)) if i < whole else Real(f"x{i}", float(low), float(high))
                for i, (low, high) in enumerate(zip(lows, highs, strict=True))
            ]
        )

    @cached_property
    def _suite(self) -> Any:
        import cocoex

        chosen = f"dimensions: {self.variables} function_indices: {self.number}"
        return cocoex.Suite("bbob-mixint", f"instances: {self.instance}", chosen)

    @cached_property
    def _function(self) -> Any:
        return self._suite.get_problem(0)

    def value(self, point: Point) -> float:
        """Return the function's value."""
        return float(self._function([float(point[f"x{i}"]) for i in range(self.variables)]))
