"""Write hesbo.json: what the published code of HeSBO and REMBO computes, and the fit of its library.

The tests only read the JSON. To make it again, get aminnayebi/HesBO at af9eb8c and, in an environment of its own:

    pip install numpy==2.4.6 scipy==1.17.1 GPy==1.15.0 paramz==0.10.0 pyDOE==1.6.0
    python tests/golden/rivals/make_hesbo.py PATH-TO-HESBO

Nothing of the published code is changed, and nothing here imports the package. The fit is that of GPy as the published
code calls it: Matérn-5/2 with a lengthscale for each dimension, from unit parameters and a noise variance of 0.001.
"""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np


def main(path: str) -> None:
    sys.path.insert(0, path)
    sys.modules["pyDOE"] = importlib.import_module("pydoe")  # its name today
    gpy = importlib.import_module("GPy")
    rng = np.random.default_rng(0)
    golden: dict[str, Any] = {}

    bins, signs = rng.integers(3, size=8), rng.choice([-1.0, 1.0], size=8)
    z = rng.uniform(-1.0, 1.0, (5, 3))
    matrix = np.zeros((8, 3))
    matrix[np.arange(8), bins] = signs
    x = importlib.import_module("count_sketch").back_projection(z, bins, signs, 1)
    golden["hesbo"] = {"matrix": matrix.tolist(), "z": z.tolist(), "x": x.tolist()}

    a, z = rng.standard_normal((3, 8)), rng.uniform(-np.sqrt(3.0), np.sqrt(3.0), (5, 3))
    x = importlib.import_module("projections").ConvexProjection(a).evaluate(z)
    golden["rembo"] = {"matrix": a.T.tolist(), "z": z.tolist(), "x": x.tolist()}

    z, at = rng.uniform(-1.0, 1.0, (30, 3)), rng.uniform(-1.0, 1.0, (6, 3))
    y = np.sin(3.0 * z[:, 0]) + z[:, 1] ** 2 + 0.1 * rng.standard_normal(30)
    y = (y - y.mean()) / y.std()
    kernel = gpy.kern.Matern52(input_dim=3, ARD=True, variance=1.0, lengthscale=None)
    model = gpy.models.GPRegression(z, y[:, None], kernel=kernel)
    model.likelihood.variance = 1e-3
    model.optimize()
    mean, variance = model.predict(at)
    golden["fit"] = {
        "z": z.tolist(),
        "y": y.tolist(),
        "log_likelihood": float(model.log_likelihood()),
        "lengthscales": np.asarray(kernel.lengthscale).tolist(),
        "signal": float(kernel.variance[0]),
        "noise": float(model.likelihood.variance[0]),
        "at": at.tolist(),
        "mean": mean[:, 0].tolist(),
        "variance": variance[:, 0].tolist(),
    }
    (Path(__file__).parent / "hesbo.json").write_text(json.dumps(golden) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
