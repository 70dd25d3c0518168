from __future__ import annotations

import numpy as np
import pytest

from bounce.subspace.embedding import Embedding
from bounce.subspace.schedule import Schedule, split_factor, splits_needed
from spaces import binary


def test_the_papers_example_of_budgets() -> None:
    # d_init = 2, b = 3, k = 4, m_D = 1000 and no initial points.
    schedule = Schedule(input_dim=512, initial_dim=2, new_bins=3, budget_to_input=1000, initial_points=0)
    assert (schedule.b, schedule.k) == (3, 4)
    budgets = [schedule.budget(d) for d in (2, 8, 32, 128)]
    assert budgets == [3, 12, 47, 188]
    assert 1000 - sum(budgets) == 750  # what is left to d = 512
    assert schedule.budget(512) == 5120  # but the input space may use 10·D


# By hand: k = ceil(log_3(D/d_init)), the nearest b, k again; (m_D − 5)·b·d/(d_init·((b + 1)^(k + 1) − 1)).
@pytest.mark.parametrize(
    ("input_dim", "initial_dim", "m", "b", "k", "dims", "budgets"),
    [
        (25, 5, 100, 1, 3, [5, 10, 20, 25], [6, 13, 25, 250]),
        (50, 5, 100, 1, 4, [5, 10, 20, 40, 50], [3, 6, 12, 25, 500]),
        (60, 5, 100, 1, 4, [5, 10, 20, 40, 60], [3, 6, 12, 25, 600]),
        (125, 5, 250, 2, 3, [5, 15, 45, 125], [6, 18, 55, 1250]),
        (1000, 5, 500, 2, 5, [5, 15, 45, 135, 405, 1000], [1, 4, 12, 37, 110, 10000]),
        (1000, 2, 500, 2, 6, [2, 6, 18, 54, 162, 486, 1000], [1, 1, 4, 12, 37, 110, 10000]),
    ],
)
def test_schedules_computed_by_hand(
    *, input_dim: int, initial_dim: int, m: int, b: int, k: int, dims: list[int], budgets: list[int]
) -> None:
    schedule = Schedule(input_dim, initial_dim, new_bins=2, budget_to_input=m, initial_points=5)
    assert (schedule.b, schedule.k) == (b, k)
    assert [schedule.budget(d) for d in dims] == budgets
    embedding = Embedding.random(binary(input_dim), initial_dim, rng=np.random.default_rng(0))
    reached = [len(embedding.members)]
    while not embedding.is_input:
        embedding = embedding.split(schedule.b, rng=np.random.default_rng(0))
        reached.append(len(embedding.members))
    assert reached == dims


def test_the_split_factor_of_the_notes() -> None:
    assert (split_factor(1000, 2, 2), splits_needed(1000, 2, 2)) == (2, 6)
    assert (split_factor(50, 5, 2), splits_needed(50, 5, 1)) == (1, 4)


def test_a_small_problem_starts_in_its_input_space() -> None:
    schedule = Schedule(input_dim=3, initial_dim=3, new_bins=2, budget_to_input=50, initial_points=5)
    assert (schedule.k, schedule.budget(3)) == (0, 45)


def test_no_space_gets_less_than_one_evaluation() -> None:
    schedule = Schedule(input_dim=1000, initial_dim=2, new_bins=2, budget_to_input=3, initial_points=5)
    assert schedule.budget(2) == 1
