from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from bounce import Bounce, Space
from bounce.acquire.maximise import Proposal, Search, propose
from bounce.gp.fit import fit
from bounce.gp.kernels import Hyper, Metric
from bounce.gp.linalg import Array
from bounce.method import Method
from bounce.optimizer.model import Data
from bounce.spaces.parameters import Codes
from runs import drive, facts, ones, through_json
from spaces import binary, mixed, reals


@pytest.mark.parametrize("space", [binary(12), mixed(3), reals(3)], ids=["binary", "mixed", "real"])
def test_of_many_observations_the_nearest_count(space: Space, monkeypatch: pytest.MonkeyPatch) -> None:
    """The model holds few enough points, a fit fewer and in the same units, and a restored run the same ones."""
    method = Method(nearest=12, nearest_fit=8)
    sizes = []
    fitted: list[tuple[Codes, Array]] = []

    def watched_fit(latent: Space, z: Codes, y: Array, starts: Sequence[Hyper], method: Method) -> Hyper:
        fitted.append((z, y))
        return fit(latent, z, y, starts, method)

    def watched(search: Search, pending: Codes, n: int, *, rng: np.random.Generator) -> list[Proposal]:
        gp = search.gp
        sizes.append(len(gp.z))
        if fitted:  # this ask has fitted: its targets are those of the model, which are shifted by a mean
            z, targets = fitted.pop()
            assert len(z) <= (8 if len(gp.kernel.space.reals) else 12)
            rows = [int(np.flatnonzero((gp.z == row).all(axis=1))[0]) for row in z]
            np.testing.assert_allclose(np.diff(search.y[rows]), np.diff(targets), atol=1e-9)
        return propose(search, pending, n, rng=rng)

    monkeypatch.setattr("bounce.optimizer.model.fit", watched_fit)
    monkeypatch.setattr("bounce.optimizer.model.propose", watched)

    def run(*, restore: bool) -> Bounce:
        opt = Bounce(space, 60, seed=3, batch_size=3, initial_dims=len(space), method=method)
        while not opt.done:
            if restore:
                opt = through_json(opt)
            trials = opt.ask()
            for trial in reversed(trials):
                opt.tell(trial, ones(trial.point))
        return opt

    opt = run(restore=False)
    assert max(sizes) == 12
    assert facts(run(restore=True).trials) == facts(opt.trials)


def test_the_nearest_are_those_with_the_smallest_distance_to_the_best() -> None:
    rng = np.random.default_rng(0)
    space = mixed(4)
    z, values = space.sample(90, rng=rng), rng.normal(size=90)
    done, since = rng.random(90) < 0.9, np.arange(90) >= 80
    values[[85, 7]] = -9.0, -10.0
    done[7] = False  # a failed trial is not the best one
    best = int(np.argmin(np.where(done & ~since, values, np.inf)))
    data = Data(space, z, values, done, np.arange(90))
    found = data.nearest(np.flatnonzero(~since), 30)
    assert len(found) == 30
    assert best in found
    assert list(found) == sorted(found)
    square = Metric(space)(z[:80], z[best : best + 1])[:, 0]
    square += np.square(z[:80, space.reals] - z[best, space.reals]).sum(axis=1)
    others = np.setdiff1d(np.arange(80), found)
    assert square[found].max() <= square[others].min()


def test_after_the_region_opens_again_the_model_knows_all_data(monkeypatch: pytest.MonkeyPatch) -> None:
    known: dict[str, list[int]] = {"default": [], "paper": []}
    for method, sizes in known.items():

        def watched(
            search: Search, pending: Codes, n: int, *, rng: np.random.Generator, sizes: list[int] = sizes
        ) -> list[Proposal]:
            sizes.append(len(search.gp.z))
            return propose(search, pending, n, rng=rng)

        monkeypatch.setattr("bounce.optimizer.model.propose", watched)
        drive(Bounce(reals(2), 80, seed=0, trust_region="baxus", budget_to_input=20, method=method), lambda p: 1.0)
    assert known["default"] == list(range(5, 80))
    assert known["paper"].count(5) >= 2
    assert max(known["paper"]) < 60
