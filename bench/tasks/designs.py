"""Designs: parts of machines with discrete sizes, at least cost or weight, from their published formulas.

A violated constraint adds a penalty in proportion to its relative violation, large enough that the best point is
feasible. Lengths are in inches, as published.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from bounce import Integer, Ordinal, Real, Space
from tasks.task import Point, Task

PENALTY = 20.0  # times the best known value, for a violation of 100 %
WIRES = (
    *(0.009, 0.0095, 0.0104, 0.0118, 0.0128, 0.0132, 0.014, 0.015, 0.0162, 0.0173, 0.018, 0.02, 0.023, 0.025),
    *(0.028, 0.032, 0.035, 0.041, 0.047, 0.054, 0.063, 0.072, 0.08, 0.092, 0.105, 0.12, 0.135, 0.148),
    *(0.162, 0.177, 0.192, 0.207, 0.225, 0.244, 0.263, 0.283, 0.307, 0.331, 0.362, 0.394, 0.4375, 0.5),
)

Ratios = Iterable[float]  # each must be at most 1


@dataclass(frozen=True, eq=False)
class Design(Task):
    """A cost to minimise under constraints."""

    title: str
    parameters: Space
    formula: Callable[[Point], tuple[float, Ratios]]
    best: float
    """The best known value; it sets the scale of the penalty."""

    @property
    def name(self) -> str:
        """What is designed."""
        return self.title

    @property
    def space(self) -> Space:
        """The sizes to choose."""
        return self.parameters

    def value(self, point: Point) -> float:
        """Return the cost plus the penalty."""
        cost, ratios = self.formula(point)
        return cost + PENALTY * self.best * sum(max(0.0, ratio - 1.0) for ratio in ratios)


def vessel_formula(point: Point) -> tuple[float, Ratios]:
    """Return the cost of a pressure vessel (Sandgren 1990); the thicknesses are multiples of 1/16."""
    shell, head, r, l = point["shell"] / 16, point["head"] / 16, point["radius"], point["length"]
    cost = 0.6224 * shell * r * l + 1.7781 * head * r**2 + 3.1661 * shell**2 * l + 19.84 * shell**2 * r
    volume = math.pi * r**2 * l + 4 / 3 * math.pi * r**3
    return cost, (0.0193 * r / shell, 0.00954 * r / head, 2.0 - volume / 1_296_000, l / 240)


def reducer_formula(point: Point) -> tuple[float, Ratios]:
    """Return the weight of a speed reducer (Golinski 1970)."""
    width, module, teeth = point["width"], point["module"], point["teeth"]
    l1, l2, d1, d2 = point["length1"], point["length2"], point["shaft1"], point["shaft2"]
    weight = (
        0.7854 * width * module**2 * (3.3333 * teeth**2 + 14.9334 * teeth - 43.0934)
        - 1.508 * width * (d1**2 + d2**2)
        + 7.4777 * (d1**3 + d2**3)
        + 0.7854 * (l1 * d1**2 + l2 * d2**2)
    )
    return weight, (
        27 / (width * module**2 * teeth),
        397.5 / (width * module**2 * teeth**2),
        1.93 * l1**3 / (module * teeth * d1**4),
        1.93 * l2**3 / (module * teeth * d2**4),
        math.hypot(745 * l1 / (module * teeth), math.sqrt(16.9e6)) / (110 * d1**3),
        math.hypot(745 * l2 / (module * teeth), math.sqrt(157.5e6)) / (85 * d2**3),
        module * teeth / 40,
        5 * module / width,
        width / (12 * module),
        (1.5 * d1 + 1.9) / l1,
        (1.1 * d2 + 1.9) / l2,
    )


def beam_formula(point: Point) -> tuple[float, Ratios]:
    """Return the cost of a welded beam (Ragsdell and Phillips 1976); weld and thickness in multiples of 1/32."""
    h, l, t, b = point["weld"] / 32, point["length"], point["height"], point["thickness"] / 32
    load, span, young, shear = 6000.0, 14.0, 30e6, 12e6
    direct = load / (math.sqrt(2) * h * l)
    moment = load * (span + l / 2)
    arm = math.sqrt(l**2 / 4 + ((h + t) / 2) ** 2)
    polar = 2 * math.sqrt(2) * h * l * (l**2 / 12 + ((h + t) / 2) ** 2)
    bending = moment * arm / polar
    stress = math.sqrt(direct**2 + direct * bending * l / arm + bending**2)
    buckling = 4.013 * young * math.sqrt(t**2 * b**6 / 36) / span**2
    buckling *= 1 - t / (2 * span) * math.sqrt(young / (4 * shear))
    cost = 1.10471 * h**2 * l + 0.04811 * t * b * (14 + l)
    return cost, (
        stress / 13_600,
        6 * load * span / (b * t**2) / 30_000,
        h / b,
        (0.10471 * h**2 + 0.04811 * t * b * (14 + l)) / 5,
        0.125 / h,
        4 * load * span**3 / (young * t**3 * b) / 0.25,
        load / buckling,
    )


def spring_formula(point: Point) -> tuple[float, Ratios]:
    """Return the volume of a coil spring (Sandgren 1990). The seventh published constraint is an identity."""
    wire, coil, turns = point["wire"], point["coil"], point["turns"]
    index = coil / wire
    factor = (4 * index - 1) / (4 * index - 4) + 0.615 / index
    stiffness = 11.5e6 * wire**4 / (8 * turns * coil**3)
    return math.pi**2 * coil * wire**2 * (turns + 2) / 4, (
        8 * factor * 1000 * coil / (math.pi * wire**3) / 189_000,
        (1000 / stiffness + 1.05 * (turns + 2) * wire) / 14,
        0.2 / wire,
        coil / 3,
        3 / index,
        300 / stiffness / 6,
        1.25 * stiffness / 700,
    )


def gears_formula(point: Point) -> tuple[float, Ratios]:
    """Return the error of a gear train's ratio (Sandgren 1990) in decades, at least −13."""
    error = (1 / 6.931 - point["a"] * point["b"] / (point["c"] * point["d"])) ** 2
    return math.log10(error + 1e-13), ()


def vessel() -> Design:
    """Return the pressure vessel."""
    sizes = Space(
        [Integer("shell", 1, 99), Integer("head", 1, 99), Real("radius", 10.0, 200.0), Real("length", 10.0, 200.0)]
    )
    return Design("design-vessel", sizes, vessel_formula, 6059.714)


def reducer() -> Design:
    """Return the speed reducer."""
    sizes = Space(
        [
            *(Real("width", 2.6, 3.6), Real("module", 0.7, 0.8), Integer("teeth", 17, 28)),
            *(Real("length1", 7.3, 8.3), Real("length2", 7.3, 8.3)),
            *(Real("shaft1", 2.9, 3.9), Real("shaft2", 5.0, 5.5)),
        ]
    )
    return Design("design-reducer", sizes, reducer_formula, 2994.47)


def beam() -> Design:
    """Return the welded beam."""
    sizes = Space(
        [Integer("weld", 4, 64), Real("length", 0.1, 10.0), Real("height", 0.1, 10.0), Integer("thickness", 4, 64)]
    )
    return Design("design-beam", sizes, beam_formula, 1.7249)


def spring() -> Design:
    """Return the coil spring."""
    sizes = Space([Ordinal("wire", WIRES), Real("coil", 0.6, 3.0), Integer("turns", 1, 70)])
    return Design("design-spring", sizes, spring_formula, 2.6586)


def gears() -> Design:
    """Return the gear train."""
    return Design("design-gears", Space([Integer(name, 12, 60) for name in "abcd"]), gears_formula, 1.0)
