from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bounce import Binary, Bounce, Integer, Real, Space
from bounce.acquire.improvement import Acquisition
from bounce.acquire.maximise import Proposal, Search, propose
from bounce.errors import InvalidState
from bounce.gp.points import Points
from bounce.method import Method
from bounce.optimizer import model
from runs import GROWING, drive, facts, ones, through_json
from spaces import binary, mixed, reals


@pytest.mark.slow
@pytest.mark.parametrize("method", ["default", GROWING], ids=["default", "growing"])
@pytest.mark.parametrize("space", [mixed(2), binary(25), reals(6)], ids=["mixed", "binary", "real"])
def test_the_same_seed_gives_the_same_run_and_another_seed_another(space: Space, method: Any) -> None:
    one, other = (drive(Bounce(space, 30, seed=7, batch_size=3, method=method)) for _ in range(2))
    assert facts(one) == facts(other)
    another = Bounce(space, 30, seed=8, batch_size=3, method=method).ask()
    assert [t.point for t in another] != [t.point for t in one[:3]]


def test_a_drawn_seed_is_recorded_and_makes_the_same_run() -> None:
    opt = Bounce(binary(10), 12)
    again = Bounce(binary(10), 12, seed=opt.options["seed"])
    assert facts(drive(opt)) == facts(drive(again))
    assert Bounce(binary(10), 12).options["seed"] != Bounce(binary(10), 12).options["seed"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("space", "options"),
    [
        (mixed(2), {}),
        (mixed(2), {"method": GROWING}),
        (binary(25), {}),
        (reals(2), {"trust_region": "baxus", "budget_to_input": 15}),
        (reals(2), {"trust_region": "baxus", "budget_to_input": 15, "method": "paper"}),
        (Space([Integer("n", 1, 70), Binary("b")]), {"direction": "maximize"}),
    ],
    ids=["mixed", "mixed, growing", "binary", "reopening", "restarting", "small"],
)
def test_a_run_continues_bit_for_bit_from_a_state_taken_at_any_moment(space: Space, options: dict[str, Any]) -> None:
    def run(*, restore: bool) -> list[Any]:
        rng = np.random.default_rng(3)
        opt = Bounce(space, 60, seed=11, **options)
        while not opt.done:
            if restore:
                opt = through_json(opt)
            pending = [t for t in opt.trials if t.state == "pending"]
            if opt.remaining and (not pending or rng.random() < 0.6):
                opt.ask(int(rng.integers(1, 4)))
            else:
                trial = pending[rng.integers(len(pending))]
                opt.fail(trial) if rng.random() < 0.1 else opt.tell(trial, math.sin(ones(trial.point)))
        return facts(opt.trials)

    assert run(restore=True) == run(restore=False)


def test_a_restored_run_knows_everything_a_user_sees() -> None:
    opt = Bounce(mixed(2), 30, seed=0, batch_size=3)
    trials = opt.ask()
    opt.tell(trials[0], 2.0)
    opt.fail(trials[1], "no")
    again = through_json(opt)
    assert again.trials == opt.trials
    assert (again.best, again.remaining, again.done, again.options) == (
        opt.best,
        opt.remaining,
        opt.done,
        opt.options,
    )
    again.tell(trials[2], 1.0)  # trials of before are still known


def test_an_ask_that_raises_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    opt, twin = (Bounce(binary(30), 40, seed=0) for _ in range(2))
    for o in (opt, twin):
        o.tell(o.ask(11), [float(i) for i in range(11)])
    state = json.dumps(opt.state_dict())
    with monkeypatch.context() as patch:
        patch.setattr("bounce.optimizer.model.propose", lambda *a, rng, **k: [rng.random(), 1 / 0])
        with pytest.raises(ZeroDivisionError):
            opt.ask()
        patch.setattr("bounce.optimizer.model.propose", lambda *a, rng, **k: exec("raise KeyboardInterrupt"))
        with pytest.raises(KeyboardInterrupt):
            opt.ask()
    assert json.dumps(opt.state_dict()) == state
    assert [t.point for t in opt.ask()] == [t.point for t in twin.ask()]


def test_a_damaged_state_is_refused() -> None:
    opt = Bounce(mixed(2), 30, seed=0, batch_size=4, method=GROWING)
    for _ in range(3):
        opt.tell(opt.ask(), [1.0, 2.0, 3.0, 4.0])
    opt.ask()
    good = json.loads(json.dumps(opt.state_dict()))
    Bounce.from_state_dict(good)
    for change, said in STATE_DAMAGES:
        bad = json.loads(json.dumps(good))
        change(bad)
        with pytest.raises(InvalidState, match=said):
            Bounce.from_state_dict(bad)
    for key in good:
        with pytest.raises(InvalidState):
            Bounce.from_state_dict({k: v for k, v in good.items() if k != key})
    for key in good["head"]:
        bad = json.loads(json.dumps(good))
        del bad["head"][key]
        with pytest.raises(InvalidState, match="damaged"):
            Bounce.from_state_dict(bad)
    for key in good["trials"][0]:
        bad = json.loads(json.dumps(good))
        del bad["trials"][3][key]
        with pytest.raises(InvalidState, match="damaged"):
            Bounce.from_state_dict(bad)
    others: list[Any] = [None, [], "state", 3, {"format": "other"}]
    for other in others:
        with pytest.raises(InvalidState, match="not a state of Bounce"):
            Bounce.from_state_dict(other)


def _set(path: str, value: Any) -> Callable[[dict[str, Any]], None]:
    def change(document: Any) -> None:
        *steps, last = [int(s) if s.isdigit() else s for s in path.split("/")]
        for step in steps:
            document = document[step]
        document[last] = value

    return change


STATE_DAMAGES = [
    (_set("version", 99), "version 99; this release reads versions 1 to 8"),
    (_set("space", {"parameters": []}), "damaged"),
    (_set("options/budget", -3), "damaged"),
    (_set("options/budget", 2), "more trials than its budget"),
    (_set("options/color", "red"), "damaged"),
    (_set("rng", {}), "damaged"),
    (_set("rng/state/state", "x"), "damaged"),
    (_set("tells", 7), "tells"),
    (_set("head/stage/region/radius", "long"), "not fit"),
    (_set("head/stage/region/n_combinatorial", 77), "not fit"),
    (_set("head/stage/region/extra", 1), "damaged"),
    (_set("head/stage/number", 1.5), "not fit"),
    (_set("head/stage/embedding/members/0", []), "damaged|does not fit"),
    (_set("head/fit/hyper/real_lengthscales", [1.0] * 99), "not fit"),
    (_set("head/fit/hyper/signal", math.nan), "not fit"),
    (_set("head/fit/hyper/combinatorial_lengthscales", [0.0]), "lengthscales are damaged"),
    (_set("head/fit/hyper/combinatorial_lengthscales", [1.0] * 99), "not fit"),
    (_set("head/fit/hyper/combinatorial_lengthscales", ["1.0"]), "damaged"),
    (_set("head/fit/hyper/combinatorial_lengthscales", "1.0"), "damaged"),
    (_set("head/fit/hyper/real_lengthscales", 1.0), "damaged"),
    (_set("head/fit/hyper/noise", 0.0), "not fit"),
    (_set("head/fit/hyper/rho", 2.0), "not fit"),
    (_set("head/fit/tells", 99), "tells"),
    (_set("head/fit/beliefs", [1.0]), "damaged"),
    (_set("options/method", "longest"), "damaged|method"),
    (_set("head/stage/restart", -1), "not fit"),
    (_set("tells", 12.5), "tells"),
    (_set("tells", -1), "tells"),
    (_set("trials/1/codes", [0.0]), "trial 1 of the state is damaged"),
    (_set("trials/1/codes/0", 7.0), "trial 1 of the state is damaged"),
    (_set("trials/1/id", 5), "trial 1 of the state is damaged"),
    (_set("trials/1/value", None), "trial 1 of the state is damaged"),
    (_set("trials/1/value", "1"), "trial 1 of the state is damaged"),
    (_set("trials/1/sem", -0.1), "trial 1 of the state is damaged"),
    (_set("trials/1/sem", math.nan), "trial 1 of the state is damaged"),
    (_set("trials/1/sem", "0.1"), "trial 1 of the state is damaged"),
    (_set("trials/12/sem", 0.1), "trial 12 of the state is damaged"),  # which is pending
    (_set("options/noise", 0), "noise must be"),
    (_set("trials/1/state", "lost"), "trial 1 of the state is damaged"),
    (_set("trials/1/told", None), "trial 1 of the state is damaged"),
    (_set("trials/1/told", 0), "tells"),
    (_set("trials/1/asked_codes", [0.0]), "trial 1 of the state is damaged"),
    (_set("trials/1/was", "done"), "trial 1 of the state is damaged"),
    (_set("trials/1/notes", {"lamp": 3}), "trial 1 of the state is damaged"),
    (_set("trials/1/notes", None), "trial 1 of the state is damaged"),
    (_set("trials/1/batch", 3), "trial 1 of the state is damaged"),
    (_set("trials/1", 3), "damaged"),
    (_set("trials", None), "damaged"),
]


def test_a_state_for_another_space_is_refused() -> None:
    state = Bounce(binary(4), 10, seed=0).state_dict()
    Bounce.from_state_dict(state, space=binary(4))
    with pytest.raises(InvalidState, match="another space: it has 4 parameters, the given space has 5"):
        Bounce.from_state_dict(state, space=binary(5))
    other = Space([Binary("x0"), *(Real(f"x{i}", 0, 1) for i in range(1, 4))])
    with pytest.raises(InvalidState, match=r"it has Binary\(name='x1'\) where the given space has Real"):
        Bounce.from_state_dict(state, space=other)


# Format version 1

VERSION_1: dict[str, Any] = json.loads((Path(__file__).parent / "fixtures" / "state_v1.json").read_text())["cases"]
PLAIN = {"base": "0.1", "targets": "raw", "lengthscales": "shared", "caution": 1.0, "doubt_best": False}


@pytest.mark.slow
@pytest.mark.parametrize("name", VERSION_1)
def test_a_state_of_version_1_continues_as_its_release_did(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next points are those that the release with this format proposed after the same values, or just as good.

    They are equal bit for bit on the processor where the fixture was made. On others, rounding decides between points
    of equal worth: then the recorded ones must be worth as much to this release, which goes on with them.
    """
    optimizer = Bounce.from_state_dict(VERSION_1[name]["state"])
    expected: list[np.ndarray] = []
    worth: list[tuple[float, float]] = []

    def as_recorded(search: Search, pending: Points, n: int, *, rng: np.random.Generator) -> list[Proposal]:
        found = propose(search, pending, n, rng=rng)
        z, inside = search.seen.embedding.down(expected[-1][-len(found) :])
        assert inside.all()
        if not len(pending):
            own = Acquisition.of(search.gp, search.y / search.caution, pending, np.empty((0, 1)))
            values = own(np.stack([found[0].z, z[0]]))
            worth.append((float(values[0]), float(values[1])))
        return [replace(proposal, z=row) for proposal, row in zip(found, z, strict=True)]

    monkeypatch.setattr(model, "propose", as_recorded)
    for event in VERSION_1[name]["events"]:
        if "ask" in event:
            expected.append(np.array(event["codes"]))
            trials = optimizer.ask(event["ask"])
            codes = np.array([optimizer.state_dict()["trials"][trial.id]["codes"] for trial in trials])
            np.testing.assert_allclose(codes, expected[-1], atol=1e-6)
        else:
            optimizer.tell(event["tell"], event["value"])
    assert len(expected) == 11
    assert len(worth) >= 3
    for ours, recorded in worth:
        assert abs(recorded - ours) < 1e-3


@pytest.mark.parametrize("name", VERSION_1)
def test_a_state_of_version_1_becomes_one_of_this_version(name: str) -> None:
    old = VERSION_1[name]["state"]
    optimizer = Bounce.from_state_dict(old)
    assert optimizer.options["method"] == Method.of("0.1" if old["options"]["robust"] else PLAIN).document()
    assert [(t.stage, t.radius, t.side) for t in optimizer.trials] == [
        (t["space"], t["length_comb"], t["length_cont"]) for t in old["trials"]
    ]
    assert [t.state for t in optimizer.trials] == [t["state"] for t in old["trials"]]
    assert [t.id for t in optimizer.pending] == [17]
    again = through_json(optimizer)
    assert again.state_dict() == optimizer.state_dict()
    assert again.state_dict()["version"] == 8
    assert facts(again.ask(2)) == facts(optimizer.ask(2))


@pytest.mark.slow
def test_a_run_of_many_reals_of_version_5_continues_as_that_version_would() -> None:
    """To 1e-3: reals may differ in their last digits on other processors."""
    document = json.loads((Path(__file__).parent / "fixtures" / "state_v5.json").read_text())
    former = Bounce.from_state_dict(document["state"])
    assert former.options["method"] == {
        "limit_unit": "median",
        "limit_changes": "radius",
        "auditions": None,
        "climbs": "one",
        "capped": "mixed",
        "repeats": None,
    }
    for expected in document["next"]:
        (trial,) = former.ask()
        np.testing.assert_allclose(list(trial.point.values()), expected, atol=1e-3)
        away = [x - 0.2 * i for i, x in enumerate(list(trial.point.values())[:5])]
        former.tell(trial, -math.exp(-3.0 * sum(x**2 for x in away)))
    state = Bounce.from_state_dict(document["state"]).state_dict()
    today = Bounce.from_state_dict(state | {"options": state["options"] | {"method": "default"}})
    (trial,) = today.ask()
    trial = today.ask()[0] if trial.acquisition is None else trial  # not a doubting point
    assert not np.allclose(list(trial.point.values()), document["next"][0], atol=1e-2)


def test_a_damaged_state_of_version_1_is_refused() -> None:
    good = VERSION_1["mixed"]["state"]
    for key in good:
        with pytest.raises(InvalidState):
            Bounce.from_state_dict({k: v for k, v in good.items() if k != key})
    for key in good["head"]:
        bad = json.loads(json.dumps(good))
        del bad["head"][key]
        with pytest.raises(InvalidState, match="damaged"):
            Bounce.from_state_dict(bad)


def test_the_hyperparameters_of_another_kernel_are_fitted_again() -> None:
    """Version 1 began with one number for all combinatorial lengthscales, and another for ordinals."""
    state = json.loads(json.dumps(VERSION_1["mixed"]["state"]))
    state["head"]["hyper"] |= {"comb": 900.0, "ordinal": 0.01}
    restored = Bounce.from_state_dict(state)
    assert restored.state_dict()["head"]["fit"] is None
    restored.ask()
    assert len(restored.state_dict()["head"]["fit"]["hyper"]["combinatorial_lengthscales"]) == 3


def test_a_copy_continues_alike_and_on_its_own() -> None:
    opt = Bounce(mixed(2), 12, seed=1, batch_size=2)
    drive(opt)
    opt.extend(20)
    before = opt.state_dict()
    copy = opt.copy()
    (trial, *_) = copy.ask()
    copy.tell(trial, 1.0)
    assert opt.state_dict() == before
    (same, *_) = opt.ask()
    assert same.point == trial.point
    assert opt.pending[0].id == trial.id
