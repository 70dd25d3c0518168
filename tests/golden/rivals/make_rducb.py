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
X = np.concatenate([rng.random((N, 4)), rng.integers(0, 2, (N, 2)), rng.integers(0, 5, (N, 2)) / 4], axis=1)
Y = np.sin(5 * X[:, 0] * X[:, 3]) + X[:, 4] * X[:, 6] + X[:, 5] - X[:, 1] ** 2 + 0.1 * rng.standard_normal(N)
X, Y = np.round(X, 4), np.round((Y - Y.mean()) / Y.std(), 4)
LENGTHSCALES, SCALES = rng.uniform(0.2, 1.0, D), rng.uniform(0.4, 2.0, D)
GRID = np.sort(rng.random((D, 4)), axis=1)
WIDTHS = np.array([15.0, 2.0, 4.0, 100.0, 1.0, 1.0, 1.0, 1.0])  # of the reals and the others, as they are
START = {"lengthscale": 0.1, "variance": 0.5}


class Grid:
    """The values that message passing looks at."""

    dimension = D

    def __init__(self, grid: np.ndarray) -> None:
        self.combined_domain = tuple(grid)

    def get_opt_domain(self) -> dict[str, Any]:
        """Return the values of all variables."""
        return {"domain": self.combined_domain}

    def none_value(self) -> np.ndarray:
        """Return a point to be filled in."""
        return np.full(D, -1.0)


class Total(dict):  # type: ignore[type-arg]
    """The sum of the cliques' costs, which the published search checks its result against."""

    def __call__(self, z: np.ndarray) -> np.ndarray:
        """Return the sum at rows."""
        return np.asarray(sum(cost(z) for cost in self.values()))


def graph() -> Any:
    """Return the forest."""
    found = networkx.empty_graph(D)
    found.add_edges_from(EDGES)
    return found


def cost_of(model: Model, kernel: Any) -> Any:
    """Return minus the published bound of a clique."""

    def cost(z: np.ndarray) -> np.ndarray:
        mean, deviation = model.predict_with_kernel(z, kernel)
        return np.asarray(mean - BETA * deviation)

    return cost


def fit(x: np.ndarray, y: np.ndarray) -> dict[str, Any]:
    """Return where the published fit ends."""
    function = GraphFunction(graph(), START)
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
    ).optimize_parameters(x, y, function)
    found = np.array(function.dimensional_parameters)
    return {"lengthscales": found[:, 0].tolist(), "scales": found[:, 1].tolist()}


def computed(x: np.ndarray, y: np.ndarray, grid: np.ndarray, lengthscales: np.ndarray) -> dict[str, Any]:
    """Return the bounds of all cliques, the point that message passing finds, and the fit, with what they are of."""
    function = GraphFunction(graph(), START)
    function.dimensional_parameters = list(zip(lengthscales, SCALES, strict=True))
    function.kernels = function._make_kernels(function.dimensional_parameters, function.make_fn_decompositions())
    kernel = GPy.kern.Add([k.copy() for k in function.kernels.values()])
    model = Model(model=GPy.models.GPRegression(x, y[:, None], kernel, noise_var=0.1))
    costs = {clique: cost_of(model, kernel) for clique, kernel in function.kernels.items()}
    bounds = {}
    for clique, cost in costs.items():
        points = np.zeros((4 ** len(clique), D))
        points[:, list(clique)] = list(itertools.product(*(grid[i] for i in clique)))
        bounds[",".join(map(str, clique))] = (-cost(points)).reshape((4,) * len(clique)).tolist()
    search = MPAcquisitionOptimizer(Grid(grid), function, [], None, max_eval=-4)
    best = search.optimize(f=Total(costs))[0][0]
    given = {"x": x, "y": y, "grid": grid, "lengthscales": lengthscales, "scales": SCALES, "best": best}
    return {**{key: value.tolist() for key, value in given.items()}, "bounds": bounds, "fitted": fit(x, y)}


golden = {
    "made with": {"numpy": np.__version__, "GPy": GPy.__version__, "networkx": networkx.__version__},
    "d": D,
    "edges": EDGES,
    "beta": BETA,
    "standardised": computed(X, Y, GRID, LENGTHSCALES),
    "as they are": computed(X * WIDTHS, 40 * Y + 150, GRID * WIDTHS[:, None], LENGTHSCALES * WIDTHS),
}
Path(__file__).with_name("rducb.json").write_text(json.dumps(golden) + "\n")
