from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bounce import Binary, Categorical, Integer, Ordinal, Space
from bounce.acquire import maximise
from bounce.acquire.candidates import Candidates, Seen
from bounce.acquire.improvement import Acquisition, log_ei
from bounce.acquire.local_search import CONTENDERS, contenders
from bounce.acquire.maximise import HOPELESS, NEXT_MOVES, STARTS, Effort, Proposal, Search, _beside, propose
from bounce.acquire.neighbourhood import Neighbourhood, ball_size, moved_reals, neighbours, sample
from bounce.gp.kernels import Hyper, Kernel
from bounce.gp.linalg import Array, solve
from bounce.gp.points import Points
from bounce.gp.posterior import GP
from bounce.gp.targets import standardized
from bounce.method import Method
from bounce.spaces.parameters import Codes, Kind
from spaces import binary, mixed, reals, rows, seen, spaces

PLAIN = Method(caution=1.0, doubt_best=False)
PAPER = Method.paper()
CAUTION = Method().caution


def model(space: Space, n: int = 12, seed: int = 0) -> tuple[GP, np.ndarray]:
    rng = np.random.default_rng(seed)
    z = space.sample(n, rng=rng)
    h = Hyper(
        combinatorial_lengthscales=np.array([2.0]),
        real_lengthscales=np.full(len(space.reals), 0.4),
        signal=1.0,
        noise=1e-3,
        rho=0.4,
    )
    return GP.at(Kernel(space, h), Points(z)), standardized(np.sin(z @ rng.normal(size=len(space)) * 3))


def region_of(space: Space, centre: Codes, changes: int, side: float = 0.2, method: Method = PLAIN) -> Neighbourhood:
    box = np.clip(np.stack([centre[space.reals] - side / 2, centre[space.reals] + side / 2]), 0, 1)
    return Neighbourhood(space, centre, min(changes, len(space.combinatorial)), box, method)


def nothing(space: Space) -> Points:
    return Points(np.empty((0, len(space))))


def proposed(gp: GP, y: Array, region: Neighbourhood, n: int) -> list[Proposal]:
    """Return n proposals where nothing is pending or seen."""
    search = Search(gp, y, region, seen(region.space))
    return propose(search, nothing(region.space), n, rng=np.random.default_rng(0))


def values_of(chosen: list[Proposal]) -> list[float]:
    """Return what proposals are worth; there is no doubt without evaluations that came to nothing."""
    values = [p.value for p in chosen if p.value is not None]
    assert len(values) == len(chosen)
    return values


def run(
    space: Space, changes: int, n: int = 1, *, pending: int = 0, seed: int = 0, blocked: Codes | None = None
) -> tuple[Neighbourhood, Seen, Codes, list[float], Acquisition]:
    """Return the region, what was seen before, the points proposed, their values, and the acquisition."""
    gp, y = model(space, seed=seed)
    region = region_of(space, gp.points.z[int(y.argmin())], changes)
    known = [gp.points.z, nothing(space).z if blocked is None else blocked]
    held = Points(rows(space, pending, 99))
    search = Search(gp, y, region, seen(space, *known))
    chosen = propose(search, held, n, rng=np.random.default_rng(seed))
    z = np.array([p.z for p in chosen]).reshape(len(chosen), len(space))
    acquisition = Acquisition.of(gp, y, held, np.zeros((pending, 64)))
    return region, seen(space, *known), z, values_of(chosen), acquisition


@pytest.mark.slow
@given(spaces(most=6), st.integers(1, 6), st.integers(1, 3), st.integers(0, 2), st.integers(0, 5))
@settings(max_examples=40, deadline=None)
def test_proposals_are_new_in_the_space_and_in_the_region(
    space: Space, radius: int, n: int, pending: int, seed: int
) -> None:
    region, seen, z, values, _ = run(space, radius, n, pending=pending, seed=seed)
    assert space.holds(z)
    assert seen.fresh(z).all()
    known = set(space.keys(model(space, seed=seed)[0].points.z))
    assert len(set(space.keys(z))) == len(z)
    assert np.isfinite(values).all()
    if space.size <= 3000:
        assert len(z) == min(n, int(space.size) - len(known))
        return
    assert len(z) == n
    drawn = sample(region, 2000, rng=np.random.default_rng(0))
    if len(set(space.keys(drawn)) - known) > 100:  # where the region holds little that is new, it may be left
        assert (region.distance(z) <= region.changes).all()
        low, high = region.box
        assert (z[:, space.reals] >= low - 1e-12).all()
        assert (z[:, space.reals] <= high + 1e-12).all()


def test_a_small_region_is_searched_completely() -> None:
    space = Space([*(Binary(f"b{i}") for i in range(8)), Categorical("c", ["a", "b", "c"]), Ordinal("o", [1, 2, 3])])
    region, seen, z, values, acquisition = run(space, 2)
    everything = space.grid()
    allowed = everything[(region.distance(everything) <= 2) & seen.fresh(everything)]
    assert values[0] == pytest.approx(acquisition(allowed).max(), abs=1e-9)
    assert region.distance(z)[0] <= 2


def test_local_search_finds_the_best_of_a_large_region() -> None:
    space = binary(14)
    hits = 0
    for seed in range(6):
        region, seen, _, values, acquisition = run(space, 14, seed=seed)
        everything = space.grid()
        best = acquisition(everything[seen.fresh(everything)]).max()
        assert values[0] <= best + 1e-9
        hits += values[0] > best - 1e-6
        assert region.changes == 14
    assert hits >= 5


def test_the_gradient_search_beats_many_samples_of_the_box() -> None:
    space = reals(6)
    for seed in range(4):
        region, _, z, values, acquisition = run(space, 0, seed=seed)
        low, high = region.box
        samples = low + np.random.default_rng(1).random((20_000, 6)) * (high - low)
        assert values[0] >= acquisition(samples).max() - 1e-9
        assert acquisition(z)[0] == pytest.approx(values[0])


def test_the_mixed_search_beats_many_samples_of_the_region() -> None:
    space = mixed(2)
    region, _, _, values, acquisition = run(space, 6, seed=1)
    rng = np.random.default_rng(1)
    samples = space.sample(60_000, rng=rng)
    low, high = region.box
    samples[:, space.reals] = low + rng.random((60_000, len(space.reals))) * (high - low)
    assert values[0] >= acquisition(samples).max() - 1e-9


def test_moved_reals_leave_all_other_bins_alone() -> None:
    space = mixed(2)
    centre = rows(space, 1)[0]
    region = region_of(space, centre, 3)
    z = moved_reals(region, 50, rng=np.random.default_rng(0))
    low, high = region.box
    assert (z[:, space.combinatorial] == centre[space.combinatorial]).all()
    assert ((z[:, space.reals] >= low) & (z[:, space.reals] <= high)).all()
    changed = z[:, space.reals] != centre[space.reals]
    assert changed.any(axis=1).all()
    assert not changed.all()


def test_what_lies_beside_a_chosen_point_differs_in_one_bin_and_stays_in_the_region() -> None:
    space = mixed(4)
    rng = np.random.default_rng(0)
    region = region_of(space, rows(space, 1)[0], 2)
    z = region.centre.copy()
    _, column, code = (moves[[0, -1]] for moves in neighbours(region, region.centre[None]))
    z[column] = code  # two bins differ, which is as far as the region goes
    near = _beside(region, z, rng=rng)
    assert (np.count_nonzero(near != z, axis=1) == 1).all()
    assert (region.distance(near) <= 2).all()
    back = {column[0], column[1]}
    assert {int(np.flatnonzero(row != z)[0]) for row in near} == back
    large = binary(1000)
    assert len(_beside(region_of(large, rows(large, 1)[0], 5), rows(large, 1)[0], rng=rng)) == NEXT_MOVES


@pytest.mark.parametrize("n", [1, 3])
def test_a_best_value_that_the_model_disbelieves_does_not_stop_the_search(n: int) -> None:
    space = mixed(2)
    z = space.sample(40, rng=np.random.default_rng(0))
    gp = GP.at(
        Kernel(
            space,
            Hyper(
                combinatorial_lengthscales=np.array([5.0]),
                real_lengthscales=np.full(len(space.reals), 5.0),
                signal=0.1,
                noise=0.1,
                rho=0.5,
            ),
        ),
        Points(z),
    )
    y = np.where(np.arange(40) == 7, -30.0, z[:, space.reals[0]])
    assert Acquisition.of(gp, y, nothing(space), np.empty((0, 1)))(z).max() < HOPELESS
    region = region_of(space, z[7], 2, 0.5, Method())
    chosen = proposed(gp, y, region, n)
    assert len(chosen) == n
    assert values_of(chosen)[0] > HOPELESS
    strict = proposed(gp, y, replace(region, method=Method(doubt_best=False)), n)
    assert values_of(strict)[0] < HOPELESS


def believed(space: Space, method: Method) -> tuple[float, float]:
    """Return what a proposal says it is worth, and what it is with standard deviations times `CAUTION`."""
    gp, y = model(space)
    region = region_of(space, gp.points.z[int(y.argmin())], len(space.combinatorial), method=method)
    chosen = proposed(gp, y, region, 1)
    mean, variance = gp.posterior(Points(chosen[0].z[None]), y)
    return values_of(chosen)[0], float(log_ei(mean, CAUTION * np.sqrt(variance), float(y.min()))[0])


def test_the_model_of_bits_is_taken_for_too_sure_of_itself() -> None:
    space = binary(9)
    value, cautious = believed(space, Method())
    assert value == pytest.approx(cautious, abs=1e-9)
    gp, y = model(space)
    mean, variance = gp.posterior(Points(space.grid()), y)
    assert value == pytest.approx(log_ei(mean, CAUTION * np.sqrt(variance), float(y.min())).max(), abs=1e-9)
    value, cautious = believed(space, Method(caution=1.0))
    assert value < cautious - 0.1


@pytest.mark.parametrize("space", [mixed(2), reals(3)], ids=["mixed", "reals"])
def test_the_model_of_reals_is_believed(space: Space) -> None:
    value, cautious = believed(space, Method())
    assert value < cautious - 0.1


def test_an_exhausted_region_grows_to_the_smallest_radius_that_holds_a_new_point() -> None:
    space = binary(12)
    gp, y = model(space)
    centre = gp.points.z[int(y.argmin())]
    everything = space.grid()
    distance = (everything != centre).sum(axis=1)
    blocked = everything[distance <= 3]
    region, _, z, _, _ = run(space, 1, n=3, blocked=blocked)
    assert (region.distance(z) == 4).all()


def test_an_exhausted_space_gives_what_is_left_and_then_nothing() -> None:
    space = Space([Binary("a"), Ordinal("o", [1, 2, 3]), Categorical("c", list("wxyz"))])
    grid = space.grid()
    _, _, z, _, _ = run(space, 3, n=30, blocked=grid[:-2])
    assert set(space.keys(z)) <= set(space.keys(grid[-2:]))
    _, _, none, _, _ = run(space, 3, n=30, blocked=grid)
    assert len(none) == 0


def test_the_last_values_of_a_wide_integer_are_found() -> None:
    space = Space([Integer("n", 1, 200)])
    grid = space.grid()
    _, _, z, _, _ = run(space, 0, n=5, blocked=grid[:-1])
    assert len(z) <= 1
    assert set(space.keys(z)) <= {space.keys(grid[-1:])[0]}


@given(spaces(most=5, discrete=True), st.integers(0, 5), st.integers(0, 9))
@settings(deadline=None)
def test_the_size_of_a_ball_is_counted_exactly(space: Space, radius: int, seed: int) -> None:
    if space.size > 4000:
        return
    centre = rows(space, 1, seed)[0]
    region = region_of(space, centre, radius)
    assert ball_size(region) == (region.distance(space.grid()) <= region.changes).sum()


@given(spaces(most=6), st.integers(0, 9))
@settings(deadline=None)
def test_neighbours_change_one_bin_as_its_kind_allows(space: Space, seed: int) -> None:
    z = rows(space, 3, seed)
    row, column, code = neighbours(region_of(space, z[0], 1), z)
    expected = 0
    for point, j in itertools.product(z, space.combinatorial):
        c, kind = space.cardinalities[j], space.kinds[j]
        steps = [sign * stride for stride in (1, 64) for sign in (-1, 1)]
        levels = sum(0 <= point[j] + step < c for step in steps)
        expected += {Kind.BINARY: 1, Kind.CATEGORICAL: c - 1, Kind.ORDINAL: levels}[kind]
    assert len(row) == expected
    assert len(set(zip(row.tolist(), column.tolist(), code.tolist(), strict=True))) == expected
    moved = z[row]
    moved[np.arange(len(row)), column] = code
    assert space.holds(moved)
    assert ((moved != z[row]).sum(axis=1) == 1).all()
    ordinal = np.array([space.kinds[j] is Kind.ORDINAL for j in column], dtype=bool)
    assert np.isin(np.abs(code - z[row, column])[ordinal], (1, 64)).all()


def test_a_long_ordinal_is_crossed_in_few_steps() -> None:
    space = Space([Ordinal("level", list(range(5000)))])
    region, z, steps = region_of(space, np.zeros(1), 1), np.zeros((1, 1)), 0
    while z[0, 0] != 4999:
        z[0, 0] = max(neighbours(region, z)[2])
        steps += 1
    assert steps == 1 + 14 + 7  # 4999 = 4096 + 14·64 + 7
    paper = replace(region, method=Method.paper())
    assert neighbours(paper, z)[2].tolist() == [4998.0]
    assert neighbours(paper, z - 1.0)[2].tolist() == [4997.0, 4999.0]


def joint_improvement(gp: GP, y: Array, z: Codes) -> float:
    """Return the improvement expected of the best of some points, by sampling their values together."""
    v = gp.whitened(gp.kernel(Points(z), gp.points))
    covariance = gp.kernel(Points(z), Points(z)) - v.T @ v + 1e-10 * np.eye(len(z))
    values = np.random.default_rng(0).multivariate_normal(gp.posterior(Points(z), y)[0], covariance, 50_000)
    return float(np.maximum(y.min() - values.min(axis=1), 0.0).mean())


def test_points_chosen_together_are_worth_more_than_the_best_single_ones() -> None:
    space = reals(2)
    gp, y = model(space, seed=3)
    region = Neighbourhood(space, gp.points.z[int(y.argmin())], 0, np.array([[0.0, 0.0], [1.0, 1.0]]))
    chosen = proposed(gp, y, region, 4)
    z = np.array([p.z for p in chosen])
    gaps = np.linalg.norm(z[:, None] - z[None], axis=2)[np.triu_indices(4, 1)]
    assert gaps.min() > 0.02
    assert values_of(chosen) == sorted(values_of(chosen), reverse=True)
    grid = np.stack(np.meshgrid(*[np.linspace(0, 1, 51)] * 2), axis=2).reshape(-1, 2)
    single = grid[np.argsort(-Acquisition.of(gp, y, nothing(space), np.empty((0, 1)))(grid))[:4]]
    assert joint_improvement(gp, y, z) > 1.1 * joint_improvement(gp, y, single)


@pytest.mark.parametrize("space", [binary(30), mixed(6), reals(4)], ids=["binary", "mixed", "real"])
@pytest.mark.parametrize("pending", [0, 3])
def test_the_best_candidates_are_found_without_looking_at_all(space: Space, pending: int) -> None:
    gp, y = model(space, n=40)
    rng = np.random.default_rng(1)
    normals = rng.normal(size=(pending + 1, 64))
    z = rows(space, 2000, 5)
    first = Acquisition.of(gp, y, Points(rows(space, pending, 99)), normals)
    candidates = Candidates(first, z, complete=False)
    bounds = candidates.values.copy()
    exact = first(z)
    if not pending:  # beside fixed points, whose values are sampled, the bound is one on average
        assert (bounds >= exact - 1e-9).all()
    order = candidates.best(first, 20)
    np.testing.assert_allclose(np.sort(exact[order[:20]]), np.sort(exact)[-20:], rtol=1e-9)
    assert np.count_nonzero(candidates.values != bounds) < len(z) / 2

    # One more point is fixed, and one candidate found elsewhere comes in.
    found = z[order[0]][None]
    candidates.add(first, found)
    second = Acquisition.of(gp, y, Points(np.concatenate([rows(space, pending, 99), found])), normals)
    exact = second(candidates.z)
    order = candidates.best(second, 5)
    np.testing.assert_allclose(np.sort(exact[order[:5]]), np.sort(exact)[-5:], rtol=1e-9)
    assert (candidates.z == found).all(axis=1).sum() == 2


def test_the_better_half_of_the_searches_goes_on() -> None:
    halved = region_of(binary(3), np.zeros(3), 1)
    values = np.array([5.0, 1.0, 9.0, 3.0, 7.0, 0.0, 8.0, 2.0, 6.0, 4.0, -1.0])
    assert list(contenders(halved, values, np.arange(11))) == [0, 2, 4, 6, 8, 9]
    assert list(contenders(halved, values, np.array([1, 3, 5, 7, 9]))) == [1, 3, 7, 9]  # no fewer than four
    assert list(contenders(halved, values, np.array([5, 10]))) == [5, 10]


def test_in_the_paper_every_search_goes_on() -> None:
    region = region_of(binary(3), np.zeros(3), 1, method=Method.paper())
    assert list(contenders(region, np.arange(20.0), np.arange(20))) == list(range(20))


@pytest.mark.parametrize(("method", "expected"), [(PLAIN, [20, 2**20 // (4 * 300 * 200), 4]), (PAPER, [20, 20, 20])])
def test_fewer_searches_are_begun_where_one_is_long_but_not_in_the_paper(method: Method, expected: list[int]) -> None:
    assert (STARTS, CONTENDERS) == (20, 4)
    starts = []
    for dims in (30, 300, 3000):
        space = Space([Categorical(f"c{i}", list("abcde")) for i in range(dims)])
        gp, y = model(space, n=200)
        region = region_of(space, gp.points.z[int(y.argmin())], 5, method=method)
        starts.append(Effort.first(Search(gp, y, region, seen(space))).starts)
    assert starts == expected


def test_in_the_paper_further_points_of_a_batch_are_searched_like_the_first() -> None:
    space = mixed(2)
    gp, y = model(space)
    for method, same in ((PLAIN, False), (PAPER, True)):
        search = Search(gp, y, region_of(space, gp.points.z[0], 2, method=method), seen(space))
        first = Effort.first(search)
        assert (first.next(search) == first) is same


@pytest.mark.parametrize("method", [PLAIN, PAPER], ids=["fast", "exact"])
def test_bins_that_change_are_drawn_with_replacement_but_not_in_the_paper(method: Method) -> None:
    space = Space([Categorical(f"c{i}", range(1000)) for i in range(60)])
    region = region_of(space, np.zeros(60), 5, method=method)
    changed = region.distance(sample(region, 4000, rng=np.random.default_rng(0)))
    assert changed.max() == 5
    # A random code is the old one in 1 of 1,000 draws; two draws of 5 from 60 meet in 1 of 6 samples.
    short = np.mean(changed < 5)
    assert short < 0.02 if method is PAPER else 0.1 < short < 0.25


def test_in_the_paper_no_candidate_moves_reals_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, space = list[int](), mixed(3)

    def noted(region: Neighbourhood, n: int, *, rng: np.random.Generator) -> Codes:
        asked.append(n)
        return moved_reals(region, n, rng=rng)

    monkeypatch.setattr("bounce.acquire.candidates.moved_reals", noted)
    gp, y = model(space)
    for method, expected in ((PAPER, []), (PLAIN, [512])):
        proposed(gp, y, region_of(space, gp.points.z[int(y.argmin())], 2, method=method), 1)
        assert asked == expected


@given(spaces(most=6), st.integers(1, 30), st.integers(0, 5), st.booleans())
@settings(max_examples=40, deadline=None)
def test_a_bound_is_never_below_the_value(space: Space, n: int, seed: int, repeated: bool) -> None:
    gp, y = model(space, n=n, seed=seed)
    if repeated:
        gp, y = GP.at(gp.kernel, Points(np.tile(gp.points.z[:1], (n, 1)))), np.zeros(n)
    acquisition = Acquisition.of(gp, y, nothing(space), np.empty((0, 1)))
    z = rows(space, 50, 7)
    assert (acquisition.bound(gp.kernel(Points(z), gp.points), acquisition.screen()) >= acquisition(z) - 1e-9).all()
    unseen = seen(space, gp.points.z).first_fresh(rows(space, 9, 8), 3)
    for fixed in (nothing(space), Points(rows(space, 9, 8)[unseen])):
        acquisition = Acquisition.of(gp, y, fixed, np.random.default_rng(0).normal(size=(3, 64)))
        cross = gp.kernel(Points(z), acquisition.gp.points)
        bound = acquisition.bound(cross, acquisition.screen(acquisition.gp.whitened(cross[::9])))
        assert (bound >= acquisition(z) - 1e-9).all()


def test_a_bound_is_close_where_the_best_observations_are() -> None:
    space = mixed(6)
    gp, y = model(space, n=40)
    acquisition = Acquisition.of(gp, y, nothing(space), np.empty((0, 1)))
    best = gp.points.z[np.argsort(y)[:5]]
    without = log_ei(
        gp.kernel(Points(best), gp.points) @ solve(gp.factor, y[:, None])[:, 0], np.sqrt(gp.kernel.prior), y.min()
    )
    bound, value = acquisition.bound(gp.kernel(Points(best), gp.points), acquisition.screen()), acquisition(best)
    assert (bound - value < 0.1 * (without - value)).all()


def test_gradients_with_the_kernel_of_fixed_bins_are_those_without() -> None:
    space = mixed(6)
    gp, y = model(space, n=40)
    acquisition = Acquisition.of(gp, y, nothing(space), np.empty((0, 1)))
    z = rows(space, 5, 3)
    kernel = gp.kernel
    for handed, own in zip(
        acquisition.with_gradient(z, kernel.combinatorial(kernel.metric(Points(z), gp.points))),
        acquisition.with_gradient(z),
        strict=True,
    ):
        np.testing.assert_array_equal(handed, own)


def test_neighbours_of_a_chosen_point_are_candidates_for_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    around: list[Codes] = []
    added: list[Codes] = []
    beside, add = maximise._beside, Candidates.add

    def noted(region: Neighbourhood, z: Codes, *rules: Any, rng: np.random.Generator) -> Codes:
        around.append(z)
        return beside(region, z, *rules, rng=rng)

    def taken(candidates: Candidates, acquisition: Acquisition, z: Codes) -> None:
        added.append(z)
        add(candidates, acquisition, z)

    monkeypatch.setattr(maximise, "_beside", noted)
    monkeypatch.setattr(Candidates, "add", taken)
    _, _, z, _, _ = run(binary(40), 6, 3)
    np.testing.assert_array_equal(around, z[:2])
    for chosen, more in zip(z, added, strict=False):
        assert np.count_nonzero(np.count_nonzero(more != chosen, axis=1) == 1) >= 6
