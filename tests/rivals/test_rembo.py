"""What is REMBO's own; what it shares with HeSBO is in test_hesbo.py, for both."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bounce import Real, Space
from bounce.baselines.rivals.rembo import Rembo, gaussian_map


def run(optimizer: Rembo, n: int) -> list[Any]:
    for _ in range(n):
        (trial,) = optimizer.ask()
        point: dict[str, Any] = dict(trial.point)
        optimizer.tell(trial, (point["x0"] - 0.4) ** 2 + (point["x1"] - 0.4) ** 2)
    return optimizer.trials


def test_a_gaussian_map_has_unit_normal_entries_and_the_published_box() -> None:
    embedding = gaussian_map(4000, 9, rng=np.random.default_rng(0))
    assert embedding.half == 3.0
    assert embedding.matrix.std() == pytest.approx(1.0, abs=0.02)
    assert embedding.matrix.mean() == pytest.approx(0.0, abs=0.02)


def test_most_images_far_from_the_centre_are_clipped_and_near_it_none() -> None:
    embedding = gaussian_map(200, 4, rng=np.random.default_rng(0))
    z = embedding.latin(100, rng=np.random.default_rng(1))
    assert (np.abs(embedding.up(z)) == 1.0).mean() > 0.5
    np.testing.assert_allclose(embedding.up(0.01 * z), 0.01 * z @ embedding.matrix.T)


def test_several_embeddings_take_turns_and_share_no_data() -> None:
    class Four(Rembo):
        embeddings = 4
        design = 2

    space = Space([Real(f"x{i}", -1.0, 1.0) for i in range(20)])
    optimizer = Four(space, 60, 0, dims=2)
    rows = space.encode([trial.point for trial in run(optimizer, 29)])
    turns = [optimizer._latent[key][0] for key in space.keys(rows[5:])]
    assert turns == [i % 4 for i in range(24)]
    assert [len(optimizer._own(i, rows)[1]) for i in range(4)] == [6] * 4
