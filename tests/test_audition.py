from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bounce import Binary, Bounce, Categorical, Integer, Real, Space
from bounce.acquire import audition
from bounce.acquire.audition import LEAST, auditioned, decisive, turn
from bounce.acquire.candidates import Seen
from bounce.acquire.neighbourhood import Neighbourhood
from bounce.gp.fit import cold, fit
from bounce.gp.kernels import Kernel
from bounce.gp.linalg import Array
from bounce.gp.points import Points
from bounce.gp.posterior import GP
from bounce.gp.targets import standardized
from bounce.method import Method
from bounce.spaces.kinds import Codes
from bounce.subspace.embedding import Embedding
from runs import Point, facts, through_json
from spaces import binary

FAMILIES = ["a", "b", "c", "d"]


def choosing(**options: Any) -> Space:
    """Return a space with a choice among four families, two reals for each, and a category that hardly matters."""
    reals = [Real(f"{family}{k}", 0.0, 1.0) for family in FAMILIES for k in range(2)]
    return Space([Categorical("family", FAMILIES), Categorical("other", list("xyz")), *reals], **options)


def loss(point: Point) -> float:
    """Return a loss to which only the two reals of the family matter; the last family is the best one, if it is tuned.

    Untuned, the first one is.
    """
    k = FAMILIES.index(point["family"])
    away: float = sum((point[f"{point['family']}{i}"] - 0.3 - 0.1 * k) ** 2 for i in range(2))
    return 1.0 - 0.2 * k + (0.5 + 4.0 * k) * away


def model(space: Space, z: Codes, y: Array) -> tuple[GP, Array, Neighbourhood]:
    """Return a process fitted to values, its targets, and a region around the best one."""
    targets = standardized(y)
    gp = GP.at(Kernel(space, fit(space, Points(z), targets, [cold(space)], Method())), Points(z))
    return (
        gp,
        targets,
        Neighbourhood(
            space, z[int(y.argmin())], len(space.combinatorial), np.array([[0.0], [1.0]]) + np.zeros(len(space.reals))
        ),
    )


def latent(space: Space) -> tuple[Embedding, Space]:
    embedding = Embedding.random(space, len(space), rng=np.random.default_rng(0))
    return embedding, embedding.latent


def told(space: Space, n: int, *, decides: bool) -> tuple[Codes, Array, int]:
    """Return random points with values, and the bin of the choice; nothing but reals matters unless it decides."""
    embedding, inside = latent(space)
    z = inside.sample(n, rng=np.random.default_rng(3))
    points = space.decode(embedding.up(z))
    choice = int(embedding.bin_of[0])
    return z, np.array([loss(p) if decides else p["a0"] + p["b1"] for p in points]), choice


def test_a_choice_is_decisive_if_its_change_alone_makes_a_large_difference() -> None:
    space = choosing()
    z, y, choice = told(space, 60, decides=True)
    gp, _, region = model(latent(space)[1], z, y)
    assert decisive(gp, region) == choice
    z, y, _ = told(space, 60, decides=False)
    gp, _, region = model(latent(space)[1], z, y)
    assert decisive(gp, region) is None


@given(st.data())
def test_every_other_value_gets_turns_and_good_ones_get_more(data: st.DataObject) -> None:
    count = data.draw(st.integers(2, 8))
    own = data.draw(st.integers(0, count - 1))
    worth = np.array(data.draw(st.permutations(range(count))), dtype=float)
    codes, y = np.arange(count, dtype=float), worth
    none = np.empty(0)
    turns = [0] * count
    for _ in range(40 * count):
        value = turn(codes, y, none, own, count)
        turns[value] += 1
        codes, y = np.append(codes, value), np.append(y, worth[value] + 0.5)
    assert turns[own] == 0
    others = sorted(set(range(count)) - {own}, key=lambda value: worth[value])
    assert all(turns[better] >= turns[worse] for better, worse in pairwise(others))
    assert all(turns[value] > 0 for value in others)


def test_turns_that_are_pending_count() -> None:
    codes, y = np.array([0.0, 1.0, 2.0]), np.array([0.0, 1.0, 1.1])
    assert turn(codes, y, np.empty(0), 0, 3) == 1
    assert turn(codes, y, np.array([1.0]), 0, 3) == 2


@pytest.mark.parametrize("known", [0, LEAST - 1, 30])
def test_an_audition_has_another_value_and_is_unseen(known: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """However little is known about that value."""
    space = choosing()
    embedding, inside = latent(space)
    z, y, choice = told(space, 200, decides=True)
    best = z[int(y.argmin()), choice]
    code = (best + 1) % len(FAMILIES)
    mine = z[:, choice] == code
    kept = np.concatenate([np.flatnonzero(~mine)[:60], np.flatnonzero(mine)[:known]])
    z, y = z[kept], y[kept]
    gp, targets, region = model(inside, z, y)
    monkeypatch.setattr(audition, "turn", lambda *_: int(code))
    seen = Seen(embedding, set(embedding.inputs.keys(embedding.up(z))))
    for seed in range(8):
        point = auditioned(gp, targets, region, seen, Points(z[:0]), rng=np.random.default_rng(seed))
        assert point is not None
        assert point[choice] == code
        assert seen.fresh(point[None])[0]


def test_a_value_that_is_known_is_searched_by_what_matters_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """By a model of its own: with 20 poor points of the last family, auditions are near the optimum of its reals."""
    space = choosing()
    embedding, inside = latent(space)
    z, y, choice = told(space, 300, decides=True)
    code = next(row[choice] for row, p in zip(z, space.decode(embedding.up(z)), strict=True) if p["family"] == "d")
    last = np.flatnonzero(z[:, choice] == code)
    poor = last[np.argsort(y[last])][-20:]
    kept = np.concatenate([np.flatnonzero(z[:, choice] != code)[:60], poor])
    gp, targets, region = model(inside, z[kept], y[kept])
    assert region.centre[choice] != code
    monkeypatch.setattr(audition, "turn", lambda *_: int(code))
    seen, values = Seen(embedding, set()), []
    for seed in range(6):
        point = auditioned(gp, targets, region, seen, Points(z[:0]), rng=np.random.default_rng(seed))
        assert point is not None
        (decoded,) = space.decode(embedding.up(point[None]))
        assert decoded["family"] == "d"
        values.append(loss(decoded))
    assert np.mean(values) < np.median(y[last]) - 0.5  # that of a random point


def run(space: Space, n: int, objective: Any = loss, *, restore: bool = False, **options: Any) -> Bounce:
    opt = Bounce(space, n, seed=2, **options)
    while not opt.done:
        opt = through_json(opt) if restore else opt
        for trial in opt.ask():
            opt.tell(trial, objective(trial.point))
    return opt


@pytest.mark.slow
def test_a_run_keeps_the_values_of_a_decisive_choice_alive_and_auditions_do_not_move_the_region() -> None:
    opt = run(choosing(), 90)
    late = [t for t in opt.trials if t.id >= 45]
    best = min(late, key=lambda t: (t.value, t.id)).point["family"]
    others = [t for t in late if t.point["family"] != best]
    assert {t.point["family"] for t in others} == set(FAMILIES) - {best}
    assert len(late) / 5 <= len(others) <= len(late) / 2
    auditions = [t for t in others if t.acquisition is None]
    assert len(auditions) >= len(late) / 5
    for trial in auditions:
        following = [t for t in opt.trials if t.id == trial.id + 1 and t.stage == trial.stage]
        assert all((t.radius, t.side) == (trial.radius, trial.side) for t in following)


@pytest.mark.slow
def test_a_family_that_is_better_only_when_it_is_tuned_is_found() -> None:
    """The optimum is 0.4, that of the first family 1.0. Without auditions, runs end in another family."""
    ends = {every: [] for every in (3, None)}  # type: dict[int | None, list[float]]
    for every, values in ends.items():
        for seed in range(4):
            opt = Bounce(choosing(), 100, seed=seed, method={"auditions": every})
            while not opt.done:
                (trial,) = opt.ask()
                opt.tell(trial, loss(trial.point))
            assert opt.best is not None
            assert opt.best.value is not None
            values.append(opt.best.value)
    assert sum(ends[3]) < sum(ends[None]) - 0.2


@pytest.mark.slow
def test_a_run_with_auditions_resumes_bit_for_bit_and_in_batches() -> None:
    for batch in (1, 4):
        whole = run(choosing(), 48, batch_size=batch)
        assert facts(run(choosing(), 48, batch_size=batch, restore=True).trials) == facts(whole.trials)
        points = [json.dumps(t.point) for t in whole.trials if t.repeats is None]
        assert len(set(points)) == len(points)


@pytest.mark.slow
def test_where_no_choice_is_decisive_nothing_changes() -> None:
    def ones(point: Point) -> float:
        return float(sum(point.values()))

    many = Space([Categorical(f"c{i}", list("abcde")) for i in range(15)])

    def agreements(point: Point) -> float:
        return -float(sum(value == "c" for value in point.values()))

    for space, objective in ((binary(16), ones), (many, agreements)):
        plain = run(space, 36, objective, method={"auditions": None})
        assert facts(run(space, 36, objective).trials) == facts(plain.trials)


@pytest.mark.slow
def test_where_outcomes_have_limits_nothing_changes() -> None:
    def ended(every: int | None) -> list[Any]:
        opt = Bounce(choosing(outcomes=["load <= 0.9"]), 30, seed=2, method={"auditions": every})
        while not opt.done:
            (trial,) = opt.ask()
            opt.tell(trial, loss(trial.point), constraints={"load": trial.point["a0"]})
        return facts(opt.trials)

    assert ended(3) == ended(None)


@pytest.mark.slow
def test_auditions_respect_conditions_and_constraints() -> None:
    parameters = [
        Categorical("family", FAMILIES),
        *(Real(f"{family}{k}", 0.0, 1.0, when={"family": family}) for family in FAMILIES for k in range(2)),
        Integer("size", 1, 9),
        Binary("fast"),
    ]
    space = Space(parameters, constraints=["not (family == 'b' and fast)", "size <= 5 or family != 'd'"])
    opt = run(space, 72)
    assert opt.best is not None
    auditions = [t for t in opt.trials[20:] if t.acquisition is None]
    assert len({t.point["family"] for t in auditions} - {opt.best.point["family"]}) >= 2
    for trial in opt.trials:
        point = trial.point
        assert not (point["family"] == "b" and point["fast"])
        assert point["size"] <= 5 or point["family"] != "d"
        assert {name for name in point if name[0] in FAMILIES and len(name) == 2} == {
            f"{point['family']}{k}" for k in range(2)
        }


def test_a_run_of_version_6_continues_without_auditions() -> None:
    document = json.loads((Path(__file__).parent / "fixtures" / "state_v6.json").read_text())
    former = Bounce.from_state_dict(document["state"])
    assert former.options["method"] == {"auditions": None, "limit_unit": "median", "limit_changes": "radius"}
    for expected in document["next"]:
        (trial,) = former.ask()
        assert trial.point["family"] == expected["family"]
        assert trial.point["a0"] == pytest.approx(expected["a0"], abs=1e-3)
        former.tell(trial, loss(trial.point))
