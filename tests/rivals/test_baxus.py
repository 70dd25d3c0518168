"""BAxUS: its embeddings, splits and failure tolerances are those of the published code (golden values)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bounce import Real, Space
from bounce.baselines.rivals import baxus, thompson
from bounce.baselines.rivals.baxus import Baxus, Embedding, first_bins, starts, tolerance
from bounce.baselines.rivals.thompson import NOISE, SIGNAL, loss
from bounce.baselines.rivals.turbo import Region

GOLDEN: dict[str, Any] = json.loads((Path(__file__).parents[1] / "golden/rivals/baxus.json").read_text())


def space(d: int) -> Space:
    return Space([Real(f"x{i}", 0.0, 1.0) for i in range(d)])


@pytest.mark.parametrize("golden", GOLDEN["schedules"], ids=lambda case: f"{case['input_dim']}, {case['budget']}")
def test_bins_and_tolerances_are_those_of_the_published_code(golden: dict[str, Any]) -> None:
    rng = np.random.default_rng(0)
    input_dim, first = golden["input_dim"], first_bins(golden["input_dim"])
    assert first == golden["first"]
    embedding: Embedding | None = Embedding.random(input_dim, first, rng=rng)
    for stage in golden["stages"]:
        assert embedding is not None
        assert sorted(np.bincount(embedding.bins)) == sorted(stage["sizes"])
        assert tolerance(embedding.d, input_dim, first, golden["budget"]) == stage["tolerance"]
        embedding = embedding.split(np.linspace(1.0, 2.0, embedding.d), rng=rng)
    assert embedding is None


@pytest.mark.parametrize("input_dim", [2, 7, 50, 333])
def test_a_split_keeps_every_point_where_it_was(input_dim: int) -> None:
    rng = np.random.default_rng(1)
    embedding: Embedding | None = Embedding.random(input_dim, first_bins(input_dim), rng=rng)
    assert embedding is not None
    z = rng.uniform(-1.0, 1.0, (5, embedding.d))
    x = embedding.up(z)
    np.testing.assert_allclose(embedding.down(x), z)
    while embedding is not None:
        np.testing.assert_allclose(embedding.up(embedding.down(x)), x)
        embedding = embedding.split(rng.random(embedding.d), rng=rng)


def test_the_input_space_has_the_identity_as_its_embedding() -> None:
    embedding = Embedding.random(4, 4, rng=np.random.default_rng(0))
    x = np.random.default_rng(1).random((3, 4))
    np.testing.assert_allclose(embedding.down(x), 2.0 * x - 1.0)


def test_bins_that_are_single_leave_their_share_to_the_others() -> None:
    embedding = Embedding(np.array([0, 1, *[2] * 20]), np.ones(22))
    split = embedding.split(np.ones(3), rng=np.random.default_rng(0))
    assert split is not None
    assert split.d == 2 + 12  # 4·3 bins for the only one that can be split
    assert (split.bins[:2] == [0, 1]).all()


def test_signs_are_drawn_and_each_point_of_the_first_design_lies_in_the_subspace() -> None:
    optimizer = Baxus(space(60), 50, 0)
    embedding = optimizer._embedding
    assert set(embedding.signs) == {-1.0, 1.0}
    x = optimizer.space.encode([trial.point for trial in optimizer.ask(5)])
    np.testing.assert_allclose(embedding.up(embedding.down(x)), x, atol=1e-12)


def test_a_collapse_splits_and_keeps_the_data_and_one_in_the_input_space_starts_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(baxus, "SAMPLES", 2)
    monkeypatch.setattr(baxus, "STARTS", 1)
    monkeypatch.setattr(thompson, "STEPS", 1)
    optimizer = Baxus(space(5), 400, 0)
    dims: dict[int, int] = {}
    while optimizer.remaining and 1 not in optimizer._regions:
        trial = optimizer.ask()[0]
        optimizer.tell(trial, 1.0)  # no value is ever better
        dims.setdefault(optimizer._embedding.d, trial.id)
    # 7 halvings per stage, with the tolerances of 1, 4 and 5 bins; the first 5 points are the design
    allowed = [tolerance(d, 5, 1, 395) for d in (1, 4, 5)]
    assert dims == {1: 0, 4: 5 + 7 * allowed[0], 5: 5 + 7 * (allowed[0] + allowed[1])}
    assert trial.id == 5 + 7 * sum(allowed)
    assert {number for number, _ in optimizer._sources[:-1]} == {0}
    assert optimizer._regions == {1: Region()}


def test_points_lie_in_the_region_in_latent_coordinates() -> None:
    optimizer = Baxus(space(30), 40, 0, 8)
    trials = optimizer.ask(8)
    optimizer.tell(trials, [float(i) for i in range(8)])
    optimizer._regions[0] = Region(0.01)
    at = optimizer._embedding.down(optimizer.space.encode([trials[0].point]))
    for trial in optimizer.ask(3):
        half = 0.01 * optimizer._models[0][1].weights
        z = optimizer._embedding.down(optimizer.space.encode([trial.point]))
        assert (np.abs(z - at) <= half + 1e-12).all()


def test_a_fit_starts_from_the_best_parameters_drawn() -> None:
    rng = np.random.default_rng(0)
    z = rng.uniform(-1.0, 1.0, (20, 3))
    t = np.sin(2.0 * z[:, 0])
    found = starts(z, t / t.std(), rng=rng)
    lost = [loss(z, t / t.std(), np.log([*[start[0]] * 3, *start[1:]]))[0] for start in found]
    assert len(found) == 5
    assert lost == sorted(lost)
    assert all(SIGNAL[0] <= start[1] <= SIGNAL[1] and NOISE[0] <= start[2] <= NOISE[1] for start in found)
