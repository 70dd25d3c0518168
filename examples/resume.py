"""Save a run as JSON at any time and resume it: the continuation is the same, bit for bit."""

import json
import tempfile
from pathlib import Path

from bounce import Binary, Bounce, Real, Space

space = Space([*(Binary(f"x{i}") for i in range(10)), Real("t", 0, 1)])


def objective(point):
    """Return a value to minimise."""
    return sum(point[f"x{i}"] for i in range(10)) + (point["t"] - 0.4) ** 2


def run(optimizer, until):
    """Evaluate until the optimizer has this many trials, and return their points."""
    while len(optimizer.trials) < until:
        for trial in optimizer.ask():
            optimizer.tell(trial, objective(trial.point))
    return [trial.point for trial in optimizer.trials]


if __name__ == "__main__":
    uninterrupted = run(Bounce(space, budget=40, seed=0), 40)

    first = Bounce(space, budget=40, seed=0)
    run(first, 17)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "run.json")
        file.write_text(json.dumps(first.state_dict()))
        second = Bounce.from_state_dict(json.loads(file.read_text()))
    print("the same points:", run(second, 40) == uninterrupted)
