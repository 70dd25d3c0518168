from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import bounce.acquire.local_search
from bounce import Space
from bounce.acquire.candidates import Seen
from bounce.acquire.improvement import Acquisition
from bounce.acquire.local_search import LONG, SMALL, Moves, _Search, first_of_each, local_search
from bounce.acquire.neighbourhood import Neighbourhood, neighbours
from bounce.gp.kernels import Kernel
from bounce.gp.points import Points
from bounce.gp.posterior import GP
from bounce.method import Method
from bounce.spaces.parameters import Codes
from spaces import binary, mixed, rows, seen, spaces
from test_maximise import model, nothing, region_of


def unseen_neighbours(z: Codes, region: Neighbourhood, seen: Seen) -> Codes:
    """Return every unseen neighbour of one point in the region, made one by one."""
    found = []
    for _, column, code in zip(*neighbours(region, z[None]), strict=True):
        point = z.copy()
        point[column] = code
        if region.distance(point[None])[0] <= region.changes and seen.fresh(point[None])[0]:
            found.append(point)
    return np.array(found).reshape(len(found), len(z))


@pytest.mark.slow
@given(
    space=spaces(most=7),
    n=st.integers(1, 40),
    pending=st.integers(0, 2),
    radius=st.integers(1, 4),
    seed=st.integers(0, 20),
    small=st.sampled_from([0, SMALL]),
)
@settings(max_examples=80, deadline=None)
def test_a_step_goes_to_the_best_unseen_neighbour(
    *, space: Space, n: int, pending: int, radius: int, seed: int, small: int
) -> None:
    assume(len(space.combinatorial))
    gp, y = model(space, n=n, seed=seed)
    normals = np.random.default_rng(0).normal(size=(pending, 64))
    acquisition = Acquisition.of(gp, y, Points(rows(space, pending, 99)), normals)
    centre = gp.points.z[int(y.argmin())]
    region = region_of(space, centre, radius)
    z = np.concatenate([centre[None], centre[None]])
    z[1, space.reals] = 0.5
    blocked = unseen_neighbours(z[0], region, seen(space))[::3]
    known = seen(space, blocked)
    values = acquisition(z)
    search, here = _Search(acquisition, z, values), np.arange(2)
    moves = Moves.inside(region, search.z, here, rng=np.random.default_rng(0))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bounce.acquire.local_search, "SMALL", small)
        search.bound(moves, here)
    moved = search.step(moves, here, known)
    for i in range(2):
        around = unseen_neighbours(z[i], region, known)
        best = acquisition(around).max(initial=-np.inf) if len(around) else -np.inf
        if best > values[i] + 1e-9:
            assert i in moved
            np.testing.assert_allclose(search.values[i], best, rtol=1e-7, atol=1e-9)
            np.testing.assert_allclose(acquisition(search.z[i : i + 1])[0], best, rtol=1e-7, atol=1e-9)
        elif best < values[i] - 1e-9:
            assert i not in moved
            np.testing.assert_array_equal(search.z[i], z[i])


def test_a_search_ends_where_no_unseen_neighbour_is_better() -> None:
    space = mixed(12)
    gp, y = model(space, n=60)
    acquisition = Acquisition.of(gp, y, nothing(space), np.empty((0, 1)))
    region = region_of(space, gp.points.z[int(y.argmin())], 6)
    known = seen(space, gp.points.z)
    starts = np.tile(region.centre, (6, 1))
    starts[:, space.combinatorial[:3]] = rows(space, 6, 5)[:, space.combinatorial[:3]]
    values = acquisition(starts)
    z, reached = local_search(acquisition, region, (starts, values), known, rng=np.random.default_rng(0))
    assert reached.max() > values.max()
    top = int(reached.argmax())
    assert acquisition(unseen_neighbours(z[top], region, known)).max() <= reached[top] + 1e-9
    np.testing.assert_array_equal(z[:, space.reals], starts[:, space.reals])


def test_in_the_paper_all_searches_go_on_to_their_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search ends where no unseen neighbour is better, or where another one already is and continues."""
    space = binary(40)
    gp, y = model(space, n=60)
    acquisition = Acquisition.of(gp, y, nothing(space), np.empty((0, 1)))
    known = seen(space, gp.points.z)
    starts = rows(space, 20, 5)
    inside, visited = Moves.inside, dict[int, set[bytes]]()

    def watched(region: Neighbourhood, z: Codes, here: NDArray[np.intp], *rules: Any, **options: Any) -> Moves:
        for row in here.tolist():
            visited.setdefault(row, set()).add(z[row].tobytes())
        return inside(region, z, here, *rules, **options)

    monkeypatch.setattr(Moves, "inside", watched)

    def ended(method: Method) -> int:
        region = region_of(space, gp.points.z[int(y.argmin())], 40, method=method)
        visited.clear()
        z, values = local_search(
            acquisition, region, (starts, acquisition(starts)), known, rng=np.random.default_rng(0)
        )
        count = 0
        for row, point in enumerate(z):
            best = acquisition(unseen_neighbours(point, region, known)).max() <= values[row] + 1e-9
            count += best or any(point.tobytes() in visited[other] for other in visited if other != row)
        return count

    assert ended(Method.paper()) == 20
    assert ended(Method()) < 20


@pytest.mark.parametrize("pending", [0, 10])
def test_few_moves_are_looked_at(monkeypatch: pytest.MonkeyPatch, pending: int) -> None:
    monkeypatch.setattr(bounce.acquire.local_search, "SMALL", 0)
    space = mixed(40)
    gp, y = model(space, n=150)
    normals = np.random.default_rng(0).normal(size=(pending, 64))
    acquisition = Acquisition.of(gp, y, Points(rows(space, pending, 99)), normals)
    centre = gp.points.z[int(y.argmin())]
    search, here = _Search(acquisition, centre[None], acquisition(centre[None])), np.arange(1)
    moves = Moves.inside(region_of(space, centre, 20), search.z, here, rng=np.random.default_rng(0))
    search.bound(moves, here)
    search.step(moves, here, seen(space))
    assert 0 < np.count_nonzero(moves.exact) < len(moves.row) / 3


def test_one_of_several_rows_on_a_point_goes_on() -> None:
    z = np.array([[0.0, 1.0], [1.0, 1.0], [0.0, 1.0], [1.0, 1.0], [0.0, 0.0]])
    assert first_of_each(z, np.array([0, 2, 3, 4])).tolist() == [0, 3, 4]
    assert first_of_each(z, np.empty(0, dtype=np.intp)).tolist() == []


@given(spaces(most=7), st.integers(1, 40), st.integers(1, 6), st.integers(0, 20))
@settings(max_examples=40, deadline=None)
def test_leaps_end_at_unseen_points_of_the_region_that_no_neighbour_beats(
    space: Space, n: int, radius: int, seed: int
) -> None:
    assume(len(space.combinatorial))
    gp, y = model(space, n=n, seed=seed)
    acquisition = Acquisition.of(gp, y, nothing(space), np.empty((0, 1)))
    region = region_of(space, gp.points.z[int(y.argmin())], radius)
    known = seen(space, gp.points.z)
    start = region.centre[None]
    values = acquisition(start)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bounce.acquire.local_search, "LONG", 0)
        z, reached = local_search(acquisition, region, (start, values), known, rng=np.random.default_rng(0))
    np.testing.assert_allclose(acquisition(z), reached, rtol=1e-7, atol=1e-9)
    assert reached[0] >= values[0]
    assert region.distance(z)[0] <= region.changes
    assert (z == start).all() or known.fresh(z)[0]
    around = unseen_neighbours(z[0], region, known)
    assert not len(around) or acquisition(around).max() <= reached[0] + 1e-9
    np.testing.assert_array_equal(z[:, space.reals], start[:, space.reals])


def smooth() -> tuple[Space, Acquisition, Neighbourhood]:
    """A model of many bits that sees far, so that many moves look good at once."""
    space = binary(300)
    gp, y = model(space, n=100)
    gp = GP.at(Kernel(space, replace(gp.kernel.hyper, combinatorial_lengthscales=np.array([15.0]))), gp.points)
    acquisition = Acquisition.of(gp, y, nothing(space), np.empty((0, 1)))
    return space, acquisition, region_of(space, gp.points.z[int(y.argmin())], 150)


def test_a_leap_does_not_end_where_a_point_was_seen() -> None:
    space, acquisition, region = smooth()
    start, here = region.centre[None], np.arange(1)

    def leapt(known: Seen) -> Codes:
        search = _Search(acquisition, start, acquisition(start))
        moves = Moves.inside(region, search.z, here, rng=np.random.default_rng(0))
        search.bound(moves, here)
        assert len(search.leap(moves, here, region, known)) == 1
        return search.z

    first = leapt(seen(space))
    assert np.count_nonzero(first != start) > 1
    assert space.keys(leapt(seen(space, first))) != space.keys(first)


def test_a_long_search_leaps_and_gets_as_high(monkeypatch: pytest.MonkeyPatch) -> None:
    space, acquisition, region = smooth()
    scans, inside = [], Moves.inside

    def counted(*args: Any, **options: Any) -> Moves:
        scans.append(1)
        return inside(*args, **options)

    def high() -> tuple[float, int]:
        scans.clear()
        start = region.centre[None]
        known = seen(space, acquisition.gp.points.z)
        _, values = local_search(acquisition, region, (start, acquisition(start)), known, rng=np.random.default_rng(0))
        return float(values[0]), len(scans)

    monkeypatch.setattr(Moves, "inside", counted)
    with_leaps, few = high()
    monkeypatch.setattr(bounce.acquire.local_search, "LONG", 10_000)
    one_by_one, many = high()
    assert many > 3 * LONG
    assert few < many / 2
    assert with_leaps > one_by_one - 0.1
