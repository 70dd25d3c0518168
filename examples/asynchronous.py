"""Keep four workers busy: ask for a new point whenever an evaluation finishes."""

import time
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait

from bounce import Binary, Bounce, Space

space = Space([Binary(f"x{i}") for i in range(30)])


def objective(point):
    """Return a value; some points take longer than others."""
    ones = sum(point.values())
    time.sleep(0.001 * ones)
    return abs(ones - 11) + 0.1 * point["x0"]


if __name__ == "__main__":
    optimizer = Bounce(space, budget=60, seed=0)
    running = {}
    with ThreadPoolExecutor(4) as pool:
        while not optimizer.done:
            while len(running) < 4 and optimizer.remaining:
                (trial,) = optimizer.ask(1)
                running[pool.submit(objective, trial.point)] = trial
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                optimizer.tell(running.pop(future), future.result())
    print("best value", optimizer.best.value, "after", len(optimizer.trials), "evaluations")
