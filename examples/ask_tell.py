"""Ask for batches of points and tell their values, for experiments that run elsewhere and may fail."""

from bounce import Bounce, Categorical, Real, Space

space = Space(
    [
        Categorical("solvent", ["water", "ethanol", "toluene", "acetone"]),
        Categorical("catalyst", ["Pd", "Pt", "Ni"]),
        Real("temperature", 20, 120),
        Real("hours", 0.5, 48, log=True),
    ]
)


def experiment(point):
    """Replace a real experiment; return None if the reaction boils over."""
    if point["solvent"] == "acetone" and point["temperature"] > 56:
        return None
    best = {"water": 20, "ethanol": 65, "toluene": 90, "acetone": 50}[point["solvent"]]
    return best - 0.01 * (point["temperature"] - 75) ** 2 + 5 * (point["catalyst"] == "Pd") - abs(point["hours"] - 6)


if __name__ == "__main__":
    optimizer = Bounce(space, budget=48, batch_size=8, seed=0, direction="maximize")
    while not optimizer.done:
        for trial in optimizer.ask():
            yield_percent = experiment(trial.point)
            if yield_percent is None:
                optimizer.fail(trial, "boiled over")
            else:
                optimizer.tell(trial, yield_percent)
        print(f"{len(optimizer.trials)} experiments, best yield {optimizer.best.value:.1f} %")
    print(optimizer.best.point)
