"""Make casmopolitan.json from the published code: python make_casmopolitan.py CHECKOUT

CHECKOUT is a copy of github.com/xingchenwan/Casmopolitan at commit 0c9dd79 in which `Callable` is imported from
`collections.abc`. Needs torch and gpytorch (made with torch 2.13 and gpytorch 1.15; single precision).
"""

from __future__ import annotations

import contextlib
import io
import json
import random
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch

sys.path.insert(0, sys.argv[1])
import bo.localbo_cat as cat  # type: ignore[import-not-found]
import bo.localbo_mixed as mixed  # type: ignore[import-not-found]
import bo.localbo_utils as utils  # type: ignore[import-not-found]
from bo.kernels import MixtureKernel, TransformedCategorical  # type: ignore[import-not-found]
from bo.optimizer import copula_standardize  # type: ignore[import-not-found]

RUNS, STEPS = 60, 30  # of the searches


def numbers(value: Any) -> Any:
    return np.asarray(value.detach() if isinstance(value, torch.Tensor) else value, dtype=float).tolist()


def kernels(rng: np.random.Generator) -> dict[str, Any]:
    a, b = (np.concatenate([rng.integers(0, 3, (n, 6)), rng.random((n, 2))], axis=1) for n in (5, 4))
    ta, tb = torch.tensor(a).float(), torch.tensor(b).float()
    one = TransformedCategorical()
    one.lengthscale = 1.7
    both = MixtureKernel(list(range(6)), [6, 7], categorical_ard=False, continuous_ard=False)
    both.categorical_kern.lengthscale, both.continuous_kern.lengthscale = 0.9, 0.4
    return {
        "a": numbers(a),
        "b": numbers(b),
        "overlap": numbers(one.forward(ta[:, :6], tb[:, :6])),
        "mixture": numbers(both.forward(ta, tb)),
    }


def captured(kind: str, rng: np.random.Generator) -> dict[str, Any]:
    """Fit and acquisition as the published optimizer has them, with the search replaced by one that looks."""
    d, n = (12, 30) if kind == "categories" else (10, 30)
    config = np.array([2, 3] * 6 if kind == "categories" else [2, 3] * 4)
    c = len(config)
    x = np.concatenate([rng.integers(0, config, (n, c)), rng.random((n, d - c))], axis=1)
    raw = x[:, :4].sum(axis=1) + 2.0 * x[:, -1] + 0.3 * rng.standard_normal(n)
    y = copula_standardize(raw)
    z = np.concatenate([rng.integers(0, config, (6, c)), rng.random((6, d - c))], axis=1)
    out: dict[str, Any] = {"x": numbers(x), "raw": numbers(raw), "y": numbers(y), "z": numbers(z)}
    models = []
    train = utils.train_gp

    def training(*args: Any, **options: Any) -> Any:
        models.append(train(*args, **options))
        return models[-1]

    def look(centre: Any, f: Any, *rest: Any, **more: Any) -> Any:
        out["aei"] = [float(f(row)) for row in z]
        if kind == "mixed":
            out["slopes"] = []
            for row in z:
                at = torch.tensor(row).float().requires_grad_(True)
                f(at).backward()
                out["slopes"].append(numbers(at.grad[c:]))
        out["searches"] = searches(centre, f, rest)
        return np.array([centre]), np.array([0.0])

    def searches(centre: Any, f: Any, rest: Any) -> dict[str, Any]:
        found = []
        for _ in range(RUNS):
            if kind == "mixed":
                got = interleaved(centre, f, *rest[:5], 4, 1, 1, 1, STEPS)
            else:
                got = local(centre, f, config, 4, 1, 1, STEPS)
            found.append((*numbers(got[0][0]), float(got[1][0])))
        return {
            "distances": [int((np.array(row[:c]) != centre[:c]).sum()) for row in found],
            "values": [row[-1] for row in found],
            "numbers": [row[c:-1] for row in found],
        }

    local, interleaved = utils.local_search, utils.interleaved_search
    cat.train_gp = mixed.train_gp = training
    utils.local_search = utils.interleaved_search = look
    if kind == "mixed":
        method = mixed.CASMOPOLITANMixed(
            config, np.arange(c), np.arange(c, d), np.zeros(d - c), np.ones(d - c), 5, 1000, acq="ei", use_ard=False
        )
    else:
        method = cat.CASMOPOLITANCat(d, 5, 1000, config, acq="ei", use_ard=False)
    method._create_and_select_candidates(x, y, length=4, n_training_steps=300, hypers={})
    utils.local_search, utils.interleaved_search = local, interleaved
    cat.train_gp = mixed.train_gp = train
    model = models[0]
    kernel = model.covar_module.base_kernel
    parts = [kernel] if kind == "categories" else [kernel.categorical_kern, kernel.continuous_kern]
    out["lengthscales"] = [float(part.lengthscale) for part in parts]
    out["signal"] = float(model.covar_module.outputscale)
    out["noise"] = float(model.likelihood.noise)
    out["mean"] = float(model.mean_module.constant)
    return out


def schedule(rng: np.random.Generator) -> dict[str, Any]:
    """The region after each of many values."""
    method = mixed.CASMOPOLITANMixed(
        np.array([2] * 30), np.arange(30), np.arange(30, 32), np.zeros(2), np.ones(2), 5, 1000, use_ard=False, acq="ei"
    )
    values, lengths, best = [5.0], [], 5.0
    for t in range(420):
        better = rng.random() < (0.9 if t % 200 < 25 else 0.01)
        values.append(best - 0.1 if better else best + float(rng.random()))
        best = min(best, values[-1])
        method._fX = np.array(values[:-1])[:, None]
        method._adjust_length(np.array([[values[-1]]]))
        lengths.append([int(method.length_discrete), float(method.length)])
    return {"values": values, "lengths": lengths}


def main() -> None:
    rng = np.random.default_rng(0)
    random.seed(0)
    np.random.seed(0)  # noqa: NPY002  (the published code draws from it)
    torch.manual_seed(0)
    y = [3.0, -1.0, 3.0, 2.0, 7.0, 2.0, 2.0]
    with contextlib.redirect_stdout(io.StringIO()):
        golden = {
            "steps": STEPS,
            "copula": {"y": y, "z": numbers(copula_standardize(np.array(y)))},
            "kernels": kernels(rng),
            "categories": captured("categories", rng),
            "mixed": captured("mixed", rng),
            "schedule": schedule(rng),
        }
    Path(__file__).with_name("casmopolitan.json").write_text(json.dumps(golden) + "\n")


if __name__ == "__main__":
    main()
