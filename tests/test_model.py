from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from bounce import Binary, Bounce, Space
from bounce.acquire.maximise import Proposal, Search, propose
from bounce.gp.fit import fit_and_value
from bounce.gp.kernels import Hyper, Metric
from bounce.gp.linalg import Array
from bounce.gp.points import Points
from bounce.gp.targets import standardized
from bounce.method import Method
from bounce.optimizer import model
from bounce.optimizer.data import Data
from bounce.spaces.parameters import Codes
from runs import drive, facts, ones, sphere, through_json
from spaces import binary, mixed, reals


@pytest.mark.slow
@pytest.mark.parametrize("space", [binary(12), mixed(3), reals(3)], ids=["binary", "mixed", "real"])
def test_of_many_observations_the_nearest_count(space: Space, monkeypatch: pytest.MonkeyPatch) -> None:
    """The model holds few enough points, a fit fewer and in the same units, and a restored run the same ones."""
    method = Method(nearest=12, nearest_fit=8, bend=False)
    sizes = []
    fitted: list[tuple[Codes, Array]] = []

    def watched_fit(
        latent: Space, points: Points, y: Array, starts: Sequence[Hyper], method: Method, **noise: Any
    ) -> tuple[Hyper, float]:
        fitted.append((points.z, y))
        return fit_and_value(latent, points, y, starts, method, **noise)

    def watched(search: Search, pending: Points, n: int, *, rng: np.random.Generator) -> list[Proposal]:
        gp = search.gp
        sizes.append(len(gp.points))
        if fitted:  # this ask has fitted: its targets are those of the model, which are shifted by a mean
            z, targets = fitted.pop()
            assert len(z) <= (8 if len(gp.kernel.space.reals) else 12)
            rows = [int(np.flatnonzero((gp.points.z == row).all(axis=1))[0]) for row in z]
            np.testing.assert_allclose(np.diff(search.y[rows]), np.diff(targets), atol=1e-9)
        return propose(search, pending, n, rng=rng)

    monkeypatch.setattr("bounce.optimizer.model.fit_and_value", watched_fit)
    monkeypatch.setattr("bounce.optimizer.model.propose", watched)

    def run(*, restore: bool) -> Bounce:
        opt = Bounce(space, 42, seed=3, batch_size=3, initial_dims=len(space), method=method)
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
    data = Data(space, Points(z), values, done, np.arange(90), np.full(90, np.nan))
    found = data.nearest(np.flatnonzero(~since), 30)
    assert len(found) == 30
    assert best in found
    assert list(found) == sorted(found)
    square = Metric(space)(Points(z[:80]), Points(z[best : best + 1]))[:, 0]
    square += np.square(z[:80, space.reals] - z[best, space.reals]).sum(axis=1)
    others = np.setdiff1d(np.arange(80), found)
    assert square[found].max() <= square[others].min()


@pytest.mark.slow
def test_after_the_region_opens_again_the_model_knows_all_data(monkeypatch: pytest.MonkeyPatch) -> None:
    known: dict[str, list[int]] = {"default": [], "paper": []}
    for method, sizes in known.items():

        def watched(
            search: Search, pending: Points, n: int, *, rng: np.random.Generator, sizes: list[int] = sizes
        ) -> list[Proposal]:
            sizes.append(len(search.gp.points))
            return propose(search, pending, n, rng=rng)

        monkeypatch.setattr("bounce.optimizer.model.propose", watched)
        drive(Bounce(reals(2), 80, seed=0, trust_region="baxus", budget_to_input=20, method=method), lambda p: 1.0)
    assert known["default"] == list(range(5, 80))
    assert known["paper"].count(5) >= 2
    assert max(known["paper"]) < 60


# What the paper's method is


@dataclass
class Watched:
    """What the model of a run did: its fits and its searches."""

    fits: list[Hyper] = field(default_factory=list)
    searches: list[Search] = field(default_factory=list)


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> Watched:
    seen = Watched()

    def watched_fit(
        latent: Space, points: Points, y: Array, starts: Sequence[Hyper], method: Method, **noise: Any
    ) -> tuple[Hyper, float]:
        hyper, value = fit_and_value(latent, points, y, starts, method, **noise)
        seen.fits.append(hyper)
        return hyper, value

    def watched_propose(search: Search, pending: Points, n: int, *, rng: np.random.Generator) -> list[Proposal]:
        seen.searches.append(search)
        return propose(search, pending, n, rng=rng)

    monkeypatch.setattr("bounce.optimizer.model.fit_and_value", watched_fit)
    monkeypatch.setattr("bounce.optimizer.model.propose", watched_propose)
    return seen


METHODS = {"paper": Method.paper(), "default": Method(bend=False)}  # one fit of the targets as they are, if one is due
KINDS = pytest.mark.parametrize("space", [binary(12), mixed(2), reals(3)], ids=["binary", "mixed", "real"])


@KINDS
def test_in_the_paper_the_mean_is_zero_and_values_are_only_standardised(space: Space, watched: Watched) -> None:
    opt = Bounce(space, 12, seed=0, method="paper")
    while not opt.done:
        for trial in opt.ask():
            opt.tell(trial, 1e6 if trial.id == 3 else ones(trial.point))
        values = np.array([t.value for t in opt.trials if t.value is not None])[:-1]
        if watched.searches:  # those of the last ask, before its value was told
            np.testing.assert_array_equal(watched.searches[-1].y, standardized(values))
    assert len(watched.searches) == 7


@KINDS
def test_by_default_the_mean_is_that_of_highest_likelihood(space: Space, watched: Watched) -> None:
    drive(Bounce(space, 12, seed=0))
    for search in watched.searches:
        assert search.gp.mean(search.y) == pytest.approx(0.0, abs=1e-9)
    assert max(abs(search.y.mean()) for search in watched.searches) > 0.01


@pytest.mark.slow
@KINDS
def test_in_the_paper_every_ask_with_new_data_fits(space: Space, watched: Watched) -> None:
    counts = {}
    for name, method in METHODS.items():
        watched.fits.clear()
        opt = Bounce(space, 40, seed=0, method=method, initial_points=24)
        opt.tell(trials := opt.ask(24), [ones(t.point) for t in trials])
        for _ in range(6):
            first, _ = *opt.ask(), *opt.ask()  # the second has nothing new to learn from
            opt.tell(first, ones(first.point))
        counts[name] = len(watched.fits)
    assert counts["paper"] == 6
    assert counts["default"] < 6


@KINDS
def test_in_the_paper_failed_trials_are_not_in_the_model(space: Space, watched: Watched) -> None:
    sizes = {}
    for method in ("paper", "default"):
        watched.searches.clear()
        opt = Bounce(space, 14, seed=0, method=method, initial_points=5)
        while not opt.done:
            trial = opt.ask()[0]
            opt.fail(trial) if trial.id % 3 == 1 else opt.tell(trial, ones(trial.point))
        sizes[method] = [len(search.gp.points) for search in watched.searches]
    assert sizes["default"] == list(range(5, 14))
    assert sizes["paper"] == [sum(i % 3 != 1 for i in range(n)) for n in range(5, 14)]


@pytest.mark.parametrize(("space", "few"), [(binary(20), 512), (reals(2), 256)], ids=["binary", "real"])
def test_in_the_paper_all_observations_are_in_the_model_and_in_its_fit(
    space: Space, few: int, watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    fitted: list[int] = []

    def counted(
        latent: Space, points: Points, y: Array, starts: Sequence[Hyper], method: Method, **noise: Any
    ) -> tuple[Hyper, float]:
        fitted.append(len(points))
        return starts[0], 0.0

    monkeypatch.setattr("bounce.optimizer.model.fit_and_value", counted)
    for method in METHODS.values():
        opt = Bounce(space, 540, seed=0, method=method, initial_points=530)
        opt.tell(trials := opt.ask(530), [ones(t.point) for t in trials])
        opt.ask()
    assert fitted == [530, few]
    assert [len(search.gp.points) for search in watched.searches] == [530, 512]


@KINDS
def test_the_region_lies_around_the_best_value_even_if_nobody_asked_for_it(space: Space, watched: Watched) -> None:
    opt = Bounce(space, 20, seed=0)
    points = space.decode(space.sample(8, rng=np.random.default_rng(0)))
    opt.add(points, [5.0, 4.0, 0.5, 3.0, 2.0, 6.0, 7.0, 8.0])
    for value in (1.0, 0.2, 9.0):  # the second is better than all that was added
        best = opt.best
        (trial,) = opt.ask()
        centre = opt.stage.embedding.up(watched.searches[-1].region.centre[None])
        assert best is not None
        assert space.decode(centre) == [best.point]
        opt.tell(trial, value)


@pytest.mark.slow
def test_in_the_paper_the_box_has_no_cap(watched: Watched) -> None:
    space, capped = mixed(2), {}
    for method in ("paper", "default"):
        watched.searches.clear()
        opt = Bounce(space, 20, seed=0, method=method)
        capped[method] = 0
        while not opt.done:
            trial = opt.ask()[0]
            if watched.searches:
                search, stage = watched.searches[-1], opt.stage
                centre = search.region.centre[search.region.space.reals]
                free = stage.region.box(centre, search.gp.kernel.hyper.real_lengthscales, cap=None)
                capped[method] += not np.array_equal(search.region.box, free)
            opt.tell(trial, ones(trial.point))
    assert capped["paper"] == 0
    assert capped["default"] > 0


@pytest.mark.parametrize(("method", "least"), [("paper", 1e-4), ("default", 1e-6)])
def test_the_noise_of_a_run_stays_above_its_floor(method: str, least: float, watched: Watched) -> None:
    space = Space([Binary("b"), *reals(2).parameters])
    drive(Bounce(space, 20, seed=0, method=method), sphere)
    noise = [hyper.noise for hyper in watched.fits]
    assert least * (1 - 1e-12) <= min(noise) < 2 * least


@pytest.mark.parametrize(("n", "tied"), [(6, True), (60, False)], ids=["no embedding", "embedded"])
def test_few_reals_are_tied_but_not_the_bins_of_many(n: int, tied: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    methods: list[Method] = []

    def fitted(*given: Any, **others: Any) -> tuple[Hyper, float]:
        methods.append(given[4])
        return fit_and_value(*given, **others)

    monkeypatch.setattr(model, "fit_and_value", fitted)
    opt = Bounce(reals(n), 100, seed=0)
    for _ in range(12):
        (trial,) = opt.ask()
        opt.tell(trial, sphere(trial.point))
    assert methods
    assert opt.stage.embedding.is_input == tied
    assert {method.real_lengthscales == "tied" for method in methods} == {tied}
