"""Claims about how good the answers are.

Seeds are fixed and every threshold lies about halfway between what random search reaches and what the optimizer
does, so that only a change that spoils the search fails here. Measurements over more seeds: docs/ablations.md.
"""

from __future__ import annotations

from collections.abc import Callable
from statistics import mean

import pytest

from bounce import Binary, Bounce, Categorical, Integer, Space, benchmarks
from bounce.benchmarks.hartmann import Hartmann6
from bounce.trial import Scalar

pytestmark = pytest.mark.slow

Point = dict[str, Scalar]


def mean_best(
    space: Space, objective: Callable[[Point], float], budget: int, seeds: range, batch_size: int = 1
) -> float:
    """Return the mean of the best values of one run per seed."""
    found = []
    for seed in seeds:
        optimizer = Bounce(space, budget, seed=seed, batch_size=batch_size)
        while not optimizer.done:
            trials = optimizer.ask()
            optimizer.tell(trials, [objective(trial.point) for trial in trials])
        found.append(min(trial.value for trial in optimizer.trials if trial.value is not None))
    return mean(found)


def test_binary_sequences_are_better_than_chance() -> None:
    problem = benchmarks.load("labs50", randomized=True)
    assert mean_best(problem.space, problem, 100, range(2)) < -2.7  # about −3.4; random search −2.0


def test_categories_are_better_than_chance() -> None:
    problem = benchmarks.load("pest25", randomized=True)
    assert mean_best(problem.space, problem, 100, range(2)) < 14.0  # about 12.3; random search 16.2


def test_bits_and_reals_are_found_together() -> None:
    problem = benchmarks.load("ackley53", randomized=True)
    assert mean_best(problem.space, problem, 110, range(2)) < 1.3  # about 0.3; random search 2.2


def test_six_of_sixty_reals_are_found() -> None:
    problem = benchmarks.Padded(Hartmann6(), 60)
    assert mean_best(problem.space, problem, 80, range(2)) < -2.1  # about −3.0; random search −1.4


def test_batches_of_ten_beat_single_points_after_as_many_asks() -> None:
    problem = benchmarks.load("labs50", randomized=True)
    single = mean_best(problem.space, problem, 20, range(2))
    assert mean_best(problem.space, problem, 200, range(2), batch_size=10) < single - 0.5


def test_a_huge_penalty_does_not_hide_small_differences() -> None:
    def wrong_bits(point: Point) -> float:
        bits = [bool(point[f"x{i}"]) for i in range(30)]
        wrong = sum(bit != (i % 3 == 0) for i, bit in enumerate(bits))
        return wrong + 1e15 * (bits[0] and bits[1])

    space = Space([Binary(f"x{i}") for i in range(30)])
    assert mean_best(space, wrong_bits, 80, range(3)) < 3.0  # random search gets 7 wrong


def test_integers_and_categories_are_learned_apart() -> None:
    def wrong(point: Point) -> float:
        levels = sum(3 * (float(str(point[f"n{i}"])) / 7 - i / 9) ** 2 for i in range(10))
        return levels + sum(point[f"c{i}"] != "abcd"[i % 4] for i in range(8))

    numbers = [Integer(f"n{i}", 0, 7) for i in range(10)]
    space = Space([*numbers, *(Categorical(f"c{i}", list("abcd")) for i in range(8))])
    assert mean_best(space, wrong, 80, range(3)) < 0.7  # 0.05; with one lengthscale for both 1.3 to 3.1


def test_categories_without_effect_do_not_hide_bits() -> None:
    def wrong(point: Point) -> float:
        return sum((1 + i % 3) * (point[f"b{i}"] != (i % 4 == 0)) for i in range(20))

    bits = [Binary(f"b{i}") for i in range(20)]
    space = Space([*bits, *(Categorical(f"c{i}", list("abcd")) for i in range(10))])
    assert mean_best(space, wrong, 50, range(3)) < 1.5  # 0; with one lengthscale for both 6 to 9
