"""Write rducb.json: what the published RDUCB computes for one forest: bounds, message passing and a fit.

The tests only read the JSON and need none of this. To make it again, in an environment of its own, with the folder
RDUCB/hdbo of a checkout of huawei-noah/HEBO (ee6112d):

    pip install "numpy<2" "scipy<1.12" GPy scikit-learn networkx disjoint-set matplotlib
    python tests/golden/rivals/make_rducb.py FOLDER

GPyOpt and the logging of the published code are replaced by empty stand-ins; of GPyOpt it uses no computation here.
"""

from __future__ import annotations

import itertools
import json
import sys
import types
from pathlib import Path
from typing import Any

import GPy  # type: ignore[import-not-found]
import networkx  # type: ignore[import-untyped]
import numpy as np

sys.path.insert(0, sys.argv[1])
np.float = float  # type: ignore[attr-defined]  # noqa: NPY001 (an old name that the published code uses)
cliques = networkx.chordal_graph_cliques
networkx.chordal_graph_cliques = lambda graph: set(cliques(graph))  # as networkx 2 had it
networkx.to_numpy_matrix, networkx.from_numpy_matrix = networkx.to_numpy_array, networkx.from_numpy_array


class Model:
    """What the published bound asks of its model."""

    def __init__(self, *_: Any, model: Any = None, **__: Any) -> None:
        self.model = model

    def predict_with_kernel(self, x: np.ndarray, kernel: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return the mean and the deviation of a clique, with noise."""
        mean, variance = self.model.predict(x, kern=kernel, full_cov=False, include_likelihood=True)
        return mean, np.sqrt(np.clip(variance, 1e-10, np.inf))


def stand_in(name: str, **content: Any) -> None:
    """Put a module without content of its own where the published code imports one."""
    module = types.ModuleType(name)
    module.__dict__.update(content)
    sys.modules[name] = module


for package in ("GPyOpt", "GPyOpt.optimization"):
    stand_in(package)
stand_in("GPyOpt.acquisitions", AcquisitionLCB=Model)
stand_in("GPyOpt.optimization.acquisition_optimizer", AcquisitionOptimizer=Model)
stand_in("mlflow_logging", MlflowLogger=object)
stand_in("common", Config=object)
stand_in("datasets", ComponentFunction=dict, SyntheticComponentFunction=dict)

from acquisition_optimizer import MPAcquisitionOptimizer  # type: ignore[import-not-found]  # noqa: E402
from function_optimizer import GraphFunction, ParameterOnlyOptimizer  # type: ignore[import-not-found]  # noqa: E402

BETA, D, N = float(0.5 * np.log(2 * 6)), 8, 600
EDGES = [(0, 3), (3, 4), (1, 6)]
rng = np.random.default_rng(17)
x = np.concatenate([rng.random((N, 4)), rng.integers(0, 2, (N, 2)), rng.integers(0, 5, (N, 2)) / 4], axis=1)
y = np.sin(5 * x[:, 0] * x[:, 3]) + x[:, 4] * x[:, 6] + x[:, 5] - x[:, 1] ** 2 + 0.1 * rng.standard_normal(N)
x, y = np.round(x, 4), np.round((y - y.mean()) / y.std(), 4)
lengthscales, scales = rng.uniform(0.2, 1.0, D), rng.uniform(0.4, 2.0, D)
grid = np.sort(rng.random((D, 4)), axis=1)


class Grid:
    """The values that message passing looks at."""

    dimension = D
    combined_domain = tuple(grid)

    def get_opt_domain(self) -> dict[str, Any]:
        """Return the values of all variables."""
        return {"domain": self.combined_domain}

    def none_value(self) -> np.ndarray:
        """Return a point to be filled in."""
        return np.full(D, -1.0)


graph = networkx.empty_graph(D)
graph.add_edges_from(EDGES)
function = GraphFunction(graph, {"lengthscale": 0.1, "variance": 0.5})
function.dimensional_parameters = list(zip(lengthscales, scales, strict=True))
function.kernels = function._make_kernels(function.dimensional_parameters, function.make_fn_decompositions())
process = GPy.models.GPRegression(
    x, y[:, None], GPy.kern.Add([k.copy() for k in function.kernels.values()]), noise_var=0.1
)
model = Model(model=process)


def cost_of(kernel: Any) -> Any:
    """Return minus the published bound of a clique."""

    def cost(z: np.ndarray) -> np.ndarray:
        mean, deviation = model.predict_with_kernel(z, kernel)
        return np.asarray(mean - BETA * deviation)

    return cost


costs = {clique: cost_of(kernel) for clique, kernel in function.kernels.items()}
bounds = {}
for clique, cost in costs.items():
    points = np.zeros((4 ** len(clique), D))
    points[:, list(clique)] = list(itertools.product(*(grid[i] for i in clique)))
    bounds[",".join(map(str, clique))] = (-cost(points)).reshape((4,) * len(clique)).tolist()


class Total(dict):  # type: ignore[type-arg]
    """The sum of the cliques' costs, which the published search checks its result against."""

    def __call__(self, z: np.ndarray) -> np.ndarray:
        """Return the sum at rows."""
        return np.asarray(sum(cost(z) for cost in self.values()))


search = MPAcquisitionOptimizer(Grid(), function, [], None, max_eval=-4)
search.domain = Grid()
best = search.optimize(f=Total(costs))[0][0]

start = GraphFunction(graph, {"lengthscale": 0.1, "variance": 0.5})
ParameterOnlyOptimizer(
    graphSamplingNumIter=100,
    lengthscaleNumIter=2,
    cycles=False,
    fully_optimize_lengthscales=False,
    p=0.5,
    M=D,
    max_group_size=D,
    sigma2=0.1,
    opt_restart=None,
    param_exploration=0.1,
).optimize_parameters(x, y, start)
fitted = np.array(start.dimensional_parameters)

golden = {
    "made with": {"numpy": np.__version__, "GPy": GPy.__version__, "networkx": networkx.__version__},
    "d": D,
    "edges": EDGES,
    "lengthscales": lengthscales.tolist(),
    "scales": scales.tolist(),
    "x": x.tolist(),
    "y": y.tolist(),
    "grid": grid.tolist(),
    "beta": BETA,
    "bounds": bounds,
    "best": best.tolist(),
    "fitted": {"lengthscales": fitted[:, 0].tolist(), "scales": fitted[:, 1].tolist()},
}
Path(__file__).with_name("rducb.json").write_text(json.dumps(golden) + "\n")
