"""Write baxus.json: what the published code of BAxUS computes.

The tests only read the JSON. To make it again, get LeoIV/BAxUS at e18d012 and, in an environment of its own:

    pip install numpy torch==2.13.0 gpytorch==1.15.2 botorch==0.18.1
    python tests/golden/rivals/make_baxus.py PATH-TO-BAXUS

Nothing here imports the package. The published code was written for BoTorch 0.6 and older numpy; what it lacks today is
supplied here: `np.int`, its plotting library and its benchmarks, none of which the golden values depend on. Only the
embedding, the choice of splits and the failure tolerance are used, not its Gaussian process.
"""

from __future__ import annotations

import importlib
import json
import sys
import types
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import numpy as np

INPUT_DIMS = (2, 3, 5, 20, 50, 100, 500, 1000)


def published(path: Path) -> tuple[Any, Any]:
    """Import the class and the projections of the published code."""
    vars(np)["int"] = int
    package, benchmarks = types.ModuleType("baxus"), types.ModuleType("baxus.benchmarks")
    package.__path__, benchmarks.__path__ = [str(path / "baxus")], [str(path / "baxus/benchmarks")]
    benchmarks.Benchmark = object  # type: ignore[attr-defined]
    function = types.ModuleType("baxus.benchmarks.benchmark_function")
    function.Benchmark = object  # type: ignore[attr-defined]
    sys.modules |= {"seaborn": MagicMock(), "baxus": package, "baxus.benchmarks": benchmarks}
    sys.modules[function.__name__] = function
    importlib.import_module("botorch.models.gp_regression")
    package.EmbeddedTuRBO = importlib.import_module("baxus.embeddedturbo").EmbeddedTuRBO  # type: ignore[attr-defined]
    return importlib.import_module("baxus.baxus").BAxUS, importlib.import_module("baxus.util.projections").AxUS


def bare(method: Any, input_dim: int, budget: int) -> Any:
    """Return an optimizer of which only the schedule works."""
    one = object.__new__(method)
    one.behavior = importlib.import_module("baxus.util.behaviors").BaxusBehavior()
    one._input_dim, one._init_target_dim, one._dim_in_iterations = input_dim, 1, {}
    one._init_target_dim = one._adjust_init_target_dim()
    one._target_dim, one._trust_region_restarts, one._fds = one._init_target_dim, [], {}
    one.max_evals, one.n_init, one._length_min = budget, 0, 0.5**7
    return one


def main() -> None:
    """Write the file."""
    method, axus = published(Path(sys.argv[1]))
    stages = []
    for input_dim in INPUT_DIMS:
        for budget in (100, 1000):
            one = bare(method, input_dim, budget)
            np.random.seed(0)  # noqa: NPY002
            projector = axus(input_dim, one._init_target_dim)
            rows = []
            while True:
                sizes = (projector.S != 0).sum(axis=1).tolist()
                rows.append({"sizes": sizes, "tolerance": int(one.failtol)})
                one.lengthscales = np.linspace(1.0, 2.0, one._target_dim)  # the first bin is the shortest
                split = one._choose_splitting_dim(projector)
                if not split:
                    break
                projector.increase_target_dimensionality(split)
                one._target_dim = projector.S.shape[0]
            stages.append({"input_dim": input_dim, "budget": budget, "first": one._init_target_dim, "stages": rows})
    Path(__file__).with_name("baxus.json").write_text(json.dumps({"numpy": np.__version__, "schedules": stages}) + "\n")


if __name__ == "__main__":
    main()
