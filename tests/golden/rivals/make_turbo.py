"""Write turbo.json: what the published code of TuRBO computes.

The tests only read the JSON. To make it again, get uber-research/TuRBO at de0db39 and, in an environment of its own:

    pip install numpy torch==2.13.0 gpytorch==1.15.2
    python tests/golden/rivals/make_turbo.py PATH-TO-TURBO

Nothing here imports the package. Each fit has its data, the parameters that the published training finds, the box of
the trust region, and the mean and variance of an observation at three points. Each schedule has the values told and the
lengths and counters after every round.
"""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch


def fits(train_gp: Any) -> list[dict[str, Any]]:
    """Train on three data sets."""
    found = []
    for n, d, seed in ((6, 2, 0), (25, 5, 1), (30, 40, 2)):
        rng = np.random.default_rng(seed)
        x, z = rng.random((n, d)), rng.random((3, d))
        y = np.sin(4.0 * x[:, 0]) + x[:, 1] ** 2 + 0.05 * rng.standard_normal(n)
        t = (y - np.median(y)) / y.std()
        gp = train_gp(train_x=torch.tensor(x), train_y=torch.tensor(t), use_ard=True, num_steps=50, hypers={})
        lengthscales = gp.covar_module.base_kernel.lengthscale.detach().numpy().ravel()
        weights = lengthscales / lengthscales.mean()
        weights = weights / np.prod(np.power(weights, 1.0 / len(weights)))
        with torch.no_grad():
            observed = gp.likelihood(gp(torch.tensor(z)))
        found.append(
            {
                "x": x.tolist(),
                "y": y.tolist(),
                "z": z.tolist(),
                "lengthscales": lengthscales.tolist(),
                "signal": gp.covar_module.outputscale.item(),
                "noise": gp.likelihood.noise.item(),
                "mean": gp.mean_module.constant.item(),
                "weights": weights.tolist(),
                "observed_mean": observed.mean.tolist(),
                "observed_variance": observed.variance.tolist(),
            }
        )
    return found


def schedules(turbo_1: Any, turbo_m: Any) -> list[dict[str, Any]]:
    """Resize regions after given rounds: one region with rounds of 1 and 3, and one of several regions."""
    found = []
    for d, size, m in ((3, 1, 1), (7, 3, 1), (6, 1, 2), (6, 4, 2)):
        rng = np.random.default_rng(10 * d + size)
        options = {"f": sum, "lb": np.zeros(d), "ub": np.ones(d), "n_init": 2, "max_evals": 1000, "batch_size": size}
        one = turbo_1(**options, verbose=False) if m == 1 else turbo_m(**options, n_trust_regions=m, verbose=False)
        first = [5.0, -1.0]
        known, states, rounds = np.array(first), [], []
        for i in range(120):
            lucky = 0.9 if i // 10 % 3 == 0 else 0.03
            values = known.min() + np.where(rng.random(size) < lucky / size**0.5, -0.1, 0.1) * rng.random(size)
            rounds.append(values.tolist())
            if m == 1:
                one._fX = known[:, None]
                one._adjust_length(values[:, None])
                states.append([float(one.length), int(one.succcount), int(one.failcount)])
            else:
                one.fX, one._idx = known[:, None], np.zeros((len(known), 1), dtype=int)
                one._adjust_length(values[:, None], 0)
                states.append([float(one.length[0]), int(one.succcount[0]), int(one.failcount[0])])
            known = np.append(known, values)
        found.append({"d": d, "size": size, "m": m, "first": first, "rounds": rounds, "states": states})
    return found


def main() -> None:
    """Write the file."""
    sys.path.insert(0, sys.argv[1])
    turbo = importlib.import_module("turbo")
    made_with = {"torch": torch.__version__, "numpy": np.__version__}
    found = fits(importlib.import_module("turbo.gp").train_gp), schedules(turbo.Turbo1, turbo.TurboM)
    golden = {"made_with": made_with, "fits": found[0], "schedules": found[1]}
    Path(__file__).with_name("turbo.json").write_text(json.dumps(golden) + "\n")


if __name__ == "__main__":
    main()
