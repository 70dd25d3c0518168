"""Minimise a function of mixed variables with one call."""

import bounce
from bounce import Binary, Categorical, Integer, Ordinal, Real, Space

space = Space(
    [
        Real("rate", 1e-4, 1e-1, log=True),
        Integer("layers", 1, 12),
        Ordinal("width", [32, 64, 128, 256]),
        Categorical("activation", ["relu", "tanh", "gelu"]),
        *(Binary(f"use_{i}") for i in range(20)),
    ]
)


def loss(point):
    """Replace a training run that takes an hour."""
    wanted = sum(point[f"use_{i}"] != (i % 3 == 0) for i in range(20))
    shape = abs(point["layers"] - 4) / 4 + (point["width"] != 128) + (point["activation"] != "gelu")
    return wanted / 20 + shape + abs(point["rate"] - 3e-3) * 50


if __name__ == "__main__":
    result = bounce.minimize(loss, space, budget=100, seed=0)
    print("best value", result.best.value)
    print("best point", result.best.point)
