"""Write combo.json: what the published COMBO computes where the package uses its own code.

The tests only read the JSON and need none of this. To make it again, in an environment of its own:

    pip install numpy==2.4.6 torch==2.13.0 scipy
    git clone https://github.com/QUVA-Lab/COMBO && git -C COMBO checkout 9529eab
    PYTHONPATH=COMBO python tests/golden/rivals/make_combo.py

The published code is of 2019. Functions that torch and numpy have removed since are put back here, and its imports of
psutil and simanneal, which it does not use here, find empty modules; nothing else of it is changed. It computes in
single precision. Its sampler has no seed of its own: numpy's and torch's are set.
"""

# mypy: ignore-errors
# The published code has no types, and is not there when types are checked.

from __future__ import annotations

import contextlib
import io
import json
import platform
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import torch

torch.set_num_threads(1)
np.int = int  # noqa: NPY001
sys.modules["psutil"] = ModuleType("psutil")
sys.modules["simanneal"] = sys.modules["simanneal.anneal"] = annealing = ModuleType("simanneal")
annealing.Annealer, annealing.round_figures = object, None
torch.cholesky = lambda a, upper=False: torch.linalg.cholesky(a)
torch.triangular_solve = lambda b, a, upper=False: (torch.linalg.solve_triangular(a, b, upper=upper),)

from COMBO.acquisition.acquisition_marginalization import (  # noqa: E402
    acquisition_expectation,
    inference_sampling,
)
from COMBO.acquisition.acquisition_optimization import next_evaluation  # noqa: E402
from COMBO.graphGP.inference.inference import Inference  # noqa: E402
from COMBO.graphGP.kernels.diffusionkernel import DiffusionKernel  # noqa: E402
from COMBO.graphGP.models.gp_regression import GPRegression  # noqa: E402
from COMBO.graphGP.sampler import priors  # noqa: E402
from COMBO.graphGP.sampler.sample_posterior import posterior_sampling  # noqa: E402

SWEEPS, BURN_IN = 1800, 200
BATCHES = 30  # of sweeps, for the standard errors of means of a chain


def path(n: int) -> torch.Tensor:
    return torch.diag(torch.ones(n - 1), -1) + torch.diag(torch.ones(n - 1), 1)


def complete(n: int) -> torch.Tensor:
    return torch.ones(n, n) - torch.eye(n)


def spectra(graphs: list[torch.Tensor]) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    values, vectors = zip(*(torch.linalg.eigh(torch.diag(graph.sum(dim=0)) - graph) for graph in graphs), strict=True)
    return list(values), list(vectors)


def model_of(graphs: list[torch.Tensor], log_beta: np.ndarray, hyper: list[float]) -> GPRegression:
    frequencies, bases = spectra(graphs)
    kernel = DiffusionKernel(torch.tensor(log_beta, dtype=torch.float32), frequencies, bases)
    model = GPRegression(kernel=kernel)
    model.vec_to_param(torch.tensor(hyper, dtype=torch.float32))
    return model


def fixed(name: str, graphs: list[torch.Tensor], seed: int) -> dict[str, Any]:
    """Kernel matrix, likelihood and acquisition at hyperparameters that are given."""
    rng = np.random.default_rng(seed)
    sizes = np.array([len(graph) for graph in graphs])
    n, m, samples = 9, 6, 3
    x, z = rng.integers(0, sizes, (n, len(sizes))), rng.integers(0, sizes, (m, len(sizes)))
    y = np.round(rng.standard_normal(n), 3)
    y = (y - y.mean()) / y.std()
    hyper = np.round(
        np.stack([rng.normal(0, 1, samples), rng.normal(0, 0.2, samples), rng.normal(-4, 1, samples)]).T, 3
    )
    log_beta = np.round(rng.normal(-0.5, 1.0, (samples, len(sizes))), 3)
    # the order of the parameters is that of the model's parts: kernel, mean, likelihood
    tx, tz, ty = torch.tensor(x), torch.tensor(z), torch.tensor(y[:, None], dtype=torch.float32)
    likelihoods = []
    for h, b in zip(hyper, log_beta, strict=True):
        model = model_of(graphs, b, h.tolist())
        likelihoods.append(-float(Inference((tx, ty), model).negative_log_likelihood(model.param_to_vec())))
    model = model_of(graphs, log_beta[0], hyper[0].tolist())
    frequencies, bases = spectra(graphs)
    partition = [[j] for j in range(len(sizes))]

    def inferences(part: slice) -> list[Any]:
        """The models of some of the samples; all of them share the prior mean of the last."""
        h, b = torch.tensor(hyper[part], dtype=torch.float32), torch.tensor(log_beta[part], dtype=torch.float32)
        count = len(h)
        return inference_sampling(
            tx, ty, sizes, list(h), list(b), [partition] * count, [frequencies] * count, [bases] * count
        )

    def acquisition(part: slice) -> np.ndarray:
        models = inferences(part)
        values = acquisition_expectation(tz, models, [partition] * len(models), sizes, reference=float(ty.min()))
        return values[:, 0].numpy().astype(float)

    with contextlib.redirect_stdout(io.StringIO()):
        suggestion = next_evaluation(
            tx[torch.argmin(ty)], tx, inferences(slice(None)), [partition] * samples, [graphs] * samples, sizes,
            reference=float(ty.min()), parallel=False,
        )[0]  # fmt: skip
    return {
        "name": name,
        "graphs": [graph.tolist() for graph in graphs],
        "x": x.tolist(),
        "z": z.tolist(),
        "y": y.tolist(),
        "log_amplitude_mean_log_noise": hyper.tolist(),
        "log_beta": log_beta.tolist(),
        "kernel": model.kernel(tx).tolist(),
        "cross": model.kernel(tz, tx).tolist(),
        "log_likelihood": likelihoods,
        "suggestion": suggestion.flatten().tolist(),
        "acquisition with the last mean": acquisition(slice(None)).tolist(),
        "acquisition with each mean": sum(acquisition(slice(s, s + 1)) for s in range(samples)).tolist(),
    }


def sampled(name: str, graphs: list[torch.Tensor], seed: int) -> dict[str, Any]:
    """Means and mean squares of the sampled hyperparameters, with standard errors, from a long chain."""
    rng = np.random.default_rng(seed)
    sizes = np.array([len(graph) for graph in graphs])
    x = rng.integers(0, sizes, (12, len(sizes)))
    y = 2.0 * x[:, 0] - 1.0 * x[:, 1] * x[:, 2] + 0.3 * rng.standard_normal(len(x))
    y = np.round((y - y.mean()) / y.std(), 6)
    y = (y - y.mean()) / y.std()
    tx, ty = torch.tensor(x), torch.tensor(y[:, None], dtype=torch.float32)
    model = model_of(graphs, np.zeros(len(graphs)), [0.0, 0.0, 0.0])
    model.init_param(ty)
    np.random.seed(seed)  # noqa: NPY002
    torch.manual_seed(seed)
    with contextlib.redirect_stdout(io.StringIO()):
        hyper, log_beta, *_ = posterior_sampling(
            model, tx, ty, sizes, graphs, torch.zeros(len(graphs)), [[j] for j in range(len(graphs))],
            n_sample=SWEEPS, n_burn=BURN_IN, n_thin=1,
        )  # fmt: skip
    chain = np.concatenate([torch.stack(hyper).numpy(), torch.stack(log_beta).numpy()], axis=1).astype(np.float64)
    statistics = {}
    for power in (1, 2):
        batches = (chain**power).reshape(BATCHES, -1, chain.shape[1]).mean(axis=1)
        statistics[f"mean of power {power}"] = batches.mean(axis=0).tolist()
        statistics[f"error of power {power}"] = (batches.std(axis=0, ddof=1) / BATCHES**0.5).tolist()
    quantiles = np.quantile(chain, [0.1, 0.25, 0.5, 0.75, 0.9], axis=0)
    return {
        "name": name,
        "graphs": [graph.tolist() for graph in graphs],
        "x": x.tolist(),
        "y": y.tolist(),
        "columns": ["log_amplitude", "mean", "log_noise", *(f"log_beta_{j}" for j in range(len(graphs)))],
        "sweeps": SWEEPS,
        "quantiles": quantiles.tolist(),
        **statistics,
    }


def main() -> None:
    grid = np.round(np.linspace(-13.0, 10.0, 24), 3)
    spectrum = spectra([path(2)] * 4 + [path(5)])[0]
    least = np.prod([float(torch.exp(-f[-1]) / torch.exp(-f).mean()) for f in spectrum])
    most = np.prod([float(1.0 / torch.exp(-f).mean()) for f in spectrum])
    mixed = [path(2), path(2), path(4), complete(3), complete(5)]
    document = {
        "versions": {"python": platform.python_version(), "torch": torch.__version__, "numpy": np.__version__},
        "commit": "9529eabb86365ce3a2ca44fff08291a09a853ca2",
        "priors": {
            "at": grid.tolist(),
            "beta": [float(priors.log_prior_edgeweight(v)) for v in grid],
            "noise": [float(priors.log_prior_noisevar(v)) for v in grid],
            "mean": [float(priors.log_prior_constmean(v / 10.0, -0.93, 1.53)) for v in grid],
            "amplitude": [float(priors.log_prior_kernelamp(v, 1.3, least, most)) for v in grid],
        },
        "fixed": [
            fixed("bits", [path(2)] * 8, 0),
            fixed("mixed", mixed, 1),
            fixed("categories on paths", [path(5)] * 4, 2),
        ],
        "sampled": [sampled("bits", [path(2)] * 4, 3), sampled("mixed", [path(2), path(3), complete(4)], 4)],
    }
    file = Path(__file__).with_name("combo.json")
    file.write_text(json.dumps(document) + "\n")


if __name__ == "__main__":
    main()
