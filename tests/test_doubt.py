from __future__ import annotations

import numpy as np
import pytest

from bounce import Bounce
from bounce.acquire import doubt
from bounce.acquire.doubt import doubted, since_progress
from bounce.gp.fit import cold, fit
from bounce.gp.kernels import Kernel
from bounce.gp.points import Points
from bounce.gp.posterior import GP
from bounce.gp.targets import standardized
from bounce.method import Method
from spaces import binary, rows


def test_a_doubting_point_keeps_what_matters_and_changes_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doubt, "TOLERANCES", (0.1,))
    space = binary(16)
    z = rows(space, 120)
    y = standardized(z[:, :4].sum(axis=1))
    gp = GP.at(Kernel(space, fit(space, Points(z), y, [cold(space)], Method())), Points(z))
    centre = np.zeros(16)
    point = doubted(gp, y, space, centre, rng=np.random.default_rng(1))
    assert point is not None
    assert (point[:4] == centre[:4]).all()
    assert np.count_nonzero(point[4:]) >= 3


@pytest.mark.parametrize(
    ("values", "since"),
    [
        ([], 0),
        ([np.nan, np.nan], 0),
        ([3.0], 0),
        ([3.0, 1.0, 2.0, np.nan], 2),
        ([3.0, 1.0, 2.0, 2.0, 0.999], 3),  # an improvement of less than 1 % is not progress
        ([1.0, 1.0, 1.0], 2),
        ([1e308, 1.5e308, -1.7e308, 1.7e308, 1e308], 2),
    ],
)
def test_progress_is_an_improvement_that_counts(values: list[float], since: int) -> None:
    assert since_progress(np.array(values)) == since


def stuck(every: int | None) -> Bounce:
    """Return a run on a plateau, after its end."""
    opt = Bounce(binary(30), 60, seed=0, method={"doubt": every})
    while not opt.done:
        (trial,) = opt.ask()
        opt.tell(trial, float(not all(trial.point[f"x{i}"] for i in range(6))))
    return opt


def test_a_run_without_progress_doubts_every_third_time_and_these_trials_do_not_move_the_region() -> None:
    opt = stuck(3)
    after = [t for t in opt.trials if t.id >= 15]
    doubting = [t for t in after if t.acquisition is None]
    assert len(after) / 4 <= len(doubting) <= len(after) / 2
    assert opt.best is not None
    for trial in doubting:
        following = [t for t in opt.trials if t.id == trial.id + 1 and t.stage == trial.stage]
        assert all((t.radius, t.side) == (trial.radius, trial.side) for t in following)
    assert not [t for t in stuck(None).trials if t.id >= 15 and t.acquisition is None]


def test_progress_leaves_no_room_for_doubt() -> None:
    opt = Bounce(binary(30), 30, seed=0)
    while not opt.done:
        (trial,) = opt.ask()
        opt.tell(trial, float(-trial.id))
    assert [t.id for t in opt.trials if t.acquisition is None] == list(range(10))
