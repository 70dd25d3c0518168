from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from queue import Queue

import pytest
from distributed import Client, LocalCluster

from bounce import BounceError, Result, Study, Trial
from bounce.running.imported import Imported
from referee import PATIENCE, refereed, value
from spaces import binary

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("dask")]

TESTS = Path(__file__).parent


@contextmanager
def beside(play: Callable[[], None]) -> Iterator[None]:
    """Do something in a thread beside a block, and wait for its end."""
    errors: list[BaseException] = []

    def guarded() -> None:
        try:
            play()
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=guarded)
    thread.start()
    try:
        yield
    finally:
        thread.join()
        assert not errors, errors


def assert_whole(result: Result, budget: int) -> None:
    """Assert that every trial is there once and has the value of its point."""
    assert [trial.id for trial in result.trials] == list(range(budget))
    assert [trial.state for trial in result.trials] == ["done"] * budget
    assert [trial.value for trial in result.trials] == [value(trial.point) for trial in result.trials]


def test_a_killed_worker_and_a_late_one_cost_no_trial(tmp_path: Path) -> None:
    budget, batch = 15, 3
    finished: list[int] = []
    late: list[int] = []
    cluster = LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0")
    with cluster, Client(cluster) as client, refereed(tmp_path) as referee:

        def play() -> None:
            victim, other = referee.begun(), referee.begun()
            os.kill(victim.pid, signal.SIGKILL)
            other.go()
            for _ in range(2 * batch - 1):  # the victim's point again, and the rest of two batches
                referee.begun().go()
            together = [referee.begun() for _ in range(batch)]
            assert len({evaluation.pid for evaluation in together}) == 3
            assert {evaluation.pid for evaluation in together} >= set(late)
            for evaluation in together:
                evaluation.go()
            for _ in range(budget - 3 * batch):
                referee.begun().go()

        def count(trial: Trial) -> None:
            finished.append(trial.id)
            if len(finished) == 2 * batch:  # nothing is out: the next batch finds three workers
                cluster.scale(3)
                client.wait_for_workers(3, timeout=PATIENCE)
                names = {about["name"]: at for at, about in client.scheduler_info()["workers"].items()}
                late.extend(client.run(os.getpid, workers=[names[2]]).values())

        with beside(play), Study.open(tmp_path / "s.db", space=binary(12), budget=budget, seed=0) as study:
            result = study.run(
                referee.objective,
                executor=client.get_executor(),
                workers=batch,
                batch_size=batch,
                callbacks=[count],
            )

    assert_whole(result, budget)
    assert sorted(finished) == list(range(budget))
    assert len(late) == 1
    points = [evaluation.point for evaluation in referee.log]
    assert [point for point in points if points.count(point) > 1] == [points[0]] * 2  # only the victim's
    with Study.open(tmp_path / "s.db") as study:
        assert study.trials == result.trials


@contextmanager
def scheduler_and_worker(
    folder: Path, paths: Sequence[Path] = (TESTS,)
) -> Iterator[tuple[Client, subprocess.Popen[bytes]]]:
    """Start a scheduler and workers with two threads, as processes of their own, that import from these folders."""
    address = folder / "scheduler.json"
    common = ["--dashboard-address", ":0", "--scheduler-file", str(address)]
    kinds = [(["scheduler", "--host", "127.0.0.1", "--port", "0"], paths[0])]
    kinds += [(["worker", "--no-nanny", "--nthreads", "2", "--local-directory", str(folder)], path) for path in paths]
    processes = [
        subprocess.Popen(
            [sys.executable, "-m", "dask", *arguments, *common],
            env=os.environ | {"PYTHONPATH": str(path)},
            stderr=subprocess.DEVNULL,
        )
        for arguments, path in kinds
    ]
    try:
        with Client(scheduler_file=str(address), timeout=3) as client:
            client.wait_for_workers(len(paths), timeout=PATIENCE)
            yield client, processes[0]
    finally:
        for process in processes:
            process.kill()
            process.wait()


def test_a_lost_scheduler_ends_the_run_and_the_study_can_be_resumed(tmp_path: Path) -> None:
    budget = 12
    finished: Queue[Trial] = Queue()
    with scheduler_and_worker(tmp_path) as (client, scheduler), refereed(tmp_path) as referee:

        def play() -> None:
            for _ in range(4):
                referee.begun().go()
            for _ in range(4):
                finished.get(timeout=PATIENCE)
            referee.begun()
            referee.begun()
            scheduler.kill()

        with beside(play), Study.open(tmp_path / "s.db", space=binary(12), budget=budget, seed=0) as study:
            with pytest.raises(
                BounceError, match=r"^the executor cancelled trial \d: it was closed, or lost its cluster"
            ) as caught:
                study.run(referee.objective, executor=client.get_executor(), workers=3, callbacks=[finished.put])
            assert any("run again to resume" in note for note in caught.value.__notes__)

    with Study.open(tmp_path / "s.db") as study:
        before = study.trials
        assert [trial.state for trial in before] == ["done"] * 4 + ["pending"] * 3
        assert_whole(study.run(value), budget)
        assert [trial.point for trial in study.trials[: len(before)]] == [trial.point for trial in before]


def test_workers_that_cannot_import_the_objective_end_the_run_and_fail_no_trial(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "only_here.py").write_text("def objective(point):\n    return 0.0\n")
    monkeypatch.syspath_prepend(tmp_path)
    from only_here import objective  # type: ignore[import-not-found]

    with (
        scheduler_and_worker(tmp_path) as (client, _),
        Study.open(space=binary(12), budget=12, seed=0) as study,
    ):
        with pytest.raises(BounceError, match="can its workers import bounce and the objective"):
            study.run(objective, executor=client.get_executor(), workers=2)
        assert [trial.state for trial in study.trials] == ["pending"] * 2


@pytest.mark.parametrize("kind", ["function", "name"])
def test_one_worker_that_cannot_import_the_objective_costs_no_trial(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "modules"
    folder.mkdir()
    here = f"on_two_of_three_{kind}"
    (folder / f"{here}.py").write_text("def objective(point):\n    return 0.0\n")
    monkeypatch.syspath_prepend(folder)
    found = Imported(f"{here}:objective", tmp_path)  # a folder in which no worker finds it
    objective = found.function() if kind == "function" else found
    with (
        scheduler_and_worker(tmp_path, [folder, TESTS, folder]) as (client, _),
        Study.open(space=binary(12), budget=12, seed=0) as study,
    ):
        study.run(objective, executor=client.get_executor(), workers=3)
        assert [trial.state for trial in study.trials] == ["done"] * 12


def test_the_command_runs_a_spec_on_a_scheduler(tmp_path: Path) -> None:
    spec = tmp_path / "s.toml"
    spec.write_text(
        'budget = 5\nseed = 0\nworkers = 2\ncommand = ["sh", "-c", "echo $PPID; echo $0", "{x}"]\n'
        '[[parameters]]\nname = "x"\ntype = "real"\nlow = 0.0\nhigh = 1.0\n'
    )
    with scheduler_and_worker(tmp_path) as (client, _):
        address = str(client.scheduler_info()["address"])
        workers = set(client.run(os.getpid).values())
        done = subprocess.run(
            [sys.executable, "-m", "bounce", "run", str(spec), "--dask", address], capture_output=True, text=True
        )
    assert done.returncode == 0, done.stderr
    with Study.open(tmp_path / "s.db") as study:
        assert [trial.value for trial in study.trials] == [trial.point["x"] for trial in study.trials]
        assert len(study.trials) == 5
    parents = {int(log.read_text().split()[0]) for log in (tmp_path / "s.trials").glob("*.out")}
    assert parents == workers  # it was the worker that ran the commands, not the process of the run
