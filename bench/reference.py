"""Reference: the authors' implementation, measured from outside in its own Python and from its own folder.

Nothing of it is kept here. The driver below is written to a temporary file; it gives the implementation a problem
that records when it is called. The times between the calls are those of its asks.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING

from bounce.errors import InvalidInput

if TYPE_CHECKING:
    from grid import Case

DRIVER = """
import json, os, resource, sys, tempfile, time

path, case, asks, minute = sys.argv[1], json.loads(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
sys.path.insert(0, path)
os.chdir(path)
import gin, torch
from bounce.benchmarks import Benchmark
from bounce.bounce import Bounce
from bounce.util.benchmark import Parameter, ParameterType

torch.set_num_threads(1)
torch.manual_seed(0)
KINDS = {
    "binary": dict(type=ParameterType.BINARY, lower_bound=0, upper_bound=1),
    "categorical": dict(type=ParameterType.CATEGORICAL, lower_bound=0, upper_bound=4),
    "real": dict(type=ParameterType.CONTINUOUS, lower_bound=0.0, upper_bound=1.0),
}
TURNS = ("binary", "categorical", "binary", "real", "real")
NOTE = "reals in place of ordinals" if case["kind"] == "mixed" else ""


def answer(times, note):
    mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"times": times[1:] or times, "note": note, "mib": mib}), flush=True)
    os._exit(0)


if case["kind"] == "ordinal":
    answer([], "it has no ordinal variables")


@gin.configurable
class Watched(Benchmark):
    def __init__(self):
        kinds = [TURNS[j % 5] if case["kind"] == "mixed" else case["kind"] for j in range(case["dims"])]
        parameters = [Parameter(name=f"x{j}", **KINDS[kind]) for j, kind in enumerate(kinds)]
        super().__init__(parameters=parameters, noise_std=None)
        self.weights = torch.randn(self.representation_dim, dtype=torch.float64)
        self.seen, self.last, self.times = 0, None, []

    def __call__(self, x):
        x = x.reshape(-1, self.representation_dim)
        now = time.perf_counter()
        if self.seen >= case["observed"]:
            self.times.append(now - self.last)
            if len(self.times) > asks:
                answer(self.times, NOTE)
            if self.times[-1] > minute:
                answer(self.times, "stopped: an ask takes over a minute")
        self.seen += len(x)
        y = x.to(torch.float64) @ self.weights
        self.last = time.perf_counter()
        return torch.sin(y) + 0.1 * y


budget = case["observed"] + 1000 * case["batch"]
gin.parse_config_files_and_bindings(
    ["configs/default.gin"],
    [
        "Bounce.benchmark=@Watched()",
        f"Bounce.number_initial_points={case['observed']}",
        f"Bounce.initial_target_dimensionality={case['dims']}",
        f"Bounce.maximum_number_evaluations={budget}",
        f"Bounce.maximum_number_evaluations_until_input_dim={budget // 2}",
        f"Bounce.batch_size={case['batch']}",
        "Bounce.device='cpu'",
        f"Bounce.results_dir='{tempfile.mkdtemp()}'",
    ],
)
bounce = Bounce()
bounce.run()
answer(bounce.benchmark.times, "stopped: it ended by itself")
"""


def check(path: Path | None, python: Path | None = None) -> None:
    """Refuse a folder that is not a checkout of the implementation, and a Python that does not exist."""
    if path is None:
        raise InvalidInput("the method reference needs --reference CHECKOUT")
    if python is not None and shutil.which(python) is None:
        raise InvalidInput(f"--reference-python must be a Python that has its packages, not {str(python)!r}")
    if not (path / "bounce").is_dir():
        raise InvalidInput(f"--reference must be a checkout with a folder bounce in it, not {str(path)!r}")


def command(
    case: Case, path: Path, python: Path, environment: dict[str, str], *, asks: int = 3, minute: float = 60.0
) -> tuple[list[str], dict[str, str]]:
    """Return the words and the environment with which a case is measured in the reference's own Python."""
    driver = Path(mkdtemp(prefix="bounce-reference-")) / "driver.py"
    driver.write_text(DRIVER, encoding="utf-8")
    clean = {name: value for name, value in environment.items() if name != "PYTHONPATH"}
    words = [str(python), str(driver), str(path.resolve()), json.dumps(asdict(case)), str(asks), str(minute)]
    return words, clean
