"""Write mcts-vs.json: what the published code of MCTS-VS computes.

The tests only read the JSON. To make it again, get lamda-bbo/MCTS-VS at 29d32b6 and, in an environment of its own:

    pip install numpy torch==2.13.0 scikit-learn==1.9.1
    python tests/golden/rivals/make_mcts_vs.py PATH-TO-MCTS-VS

Nothing here imports the package. The published code maximises. A tree case has groups, their values, the scores of all
variables, the variables of both children and their bounds; a model case has data, candidates and their expected
improvement. Values have mean 0 and deviation 1, so that the package's standardisation leaves them as they are.
"""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import numpy as np


def trees(node_of: Any, key_of: Any) -> list[dict[str, Any]]:
    """Score, split and bound nodes of 6, 12 and 30 variables."""
    found = []
    for d, n, seed in ((6, 5, 0), (12, 9, 1), (30, 20, 2)):
        rng = np.random.default_rng(seed)
        groups = (rng.random((n, d)) < 0.5).astype(int)
        values = [rng.random(rng.integers(1, 5)).tolist() for _ in groups]
        node = node_of(parent=None, dims=d, active_dims_idx=list(range(d)), min_num_variables=3, reset_id=True)
        bags = {key_of(group): [(None, v) for v in some] for group, some in zip(groups, values, strict=True)}
        node.init_bag(list(groups), [], bags)
        node.n = 7
        children = node.split("mean")
        for child, visits in zip(children, (3, 2), strict=True):
            child.n = visits
        found.append(
            {
                "groups": groups.tolist(),
                "values": values,
                "scores": node.axis_score.tolist(),
                "children": [[int(i) for i in child.active_dims_idx] for child in children],
                "bounds": [float(child.get_uct(0.1)) for child in children],
            }
        )
    return found


def models(module: Any) -> list[dict[str, Any]]:
    """Fit and compute the expected improvement."""
    found = []
    for n, d, seed in ((10, 2, 0), (30, 6, 1)):
        rng = np.random.default_rng(seed)
        x, z = rng.random((n, d)), rng.random((5, d))
        y = np.sin(5.0 * x[:, 0]) + x[:, 1]
        y = (y - y.mean()) / y.std()
        gp = module.get_gpr_model()
        gp.fit(x, y)
        gains = module.expected_improvement(gp, x, y, z, xi=0.0001)
        theta = np.exp(gp.kernel_.theta)
        case = {
            "x": x,
            "minus_y": -y,
            "z": z,
            "improvement": gains.ravel(),
            "signal": theta[0],
            "lengthscale": theta[1],
        }
        found.append({key: value.tolist() for key, value in case.items()})
    return found


def main() -> None:
    """Write the file."""
    sys.modules |= {"matplotlib": MagicMock(), "matplotlib.pyplot": MagicMock(), "pandas": MagicMock()}
    sys.path.insert(0, sys.argv[1])
    model = importlib.import_module("baseline.vanilia_bo")
    node, key_of = importlib.import_module("MCTSVS.Node").Node, importlib.import_module("utils").ndarray2str
    del sys.modules["pandas"]  # scikit-learn asks for it when it fits
    golden = {"trees": trees(node, key_of), "models": models(model)}
    Path(__file__).with_name("mcts-vs.json").write_text(json.dumps(golden) + "\n")


if __name__ == "__main__":
    main()
