"""Write bodi.json: samples, features, covariances, likelihoods and acquisition values of the published code of BODi.

Usage: python make_bodi.py FOLDER, where FOLDER has a checkout of aryandeshwal/BODi at aa507d3 (branch `pestcontrol`).
Needs torch, gpytorch, botorch and cma. Its numbers come from botorch 0.18.1, gpytorch 1.15.2, torch 2.13.0 and
numpy 2.4.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import torch

sys.path.insert(0, sys.argv[1])

import bodi.categorical_dictionary_kernel as categorical
import bodi.dictionary_kernel as binary
from bodi.optimize import optimize_acq_function_mixed_alternating, optimize_acqf_binary_local_search
from botorch.acquisition.analytic import ExpectedImprovement
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from botorch.models.transforms import Normalize
from gpytorch.constraints import GreaterThan
from gpytorch.kernels import ScaleKernel
from gpytorch.likelihoods import GaussianLikelihood
from gpytorch.mlls import ExactMarginalLogLikelihood
from gpytorch.priors import GammaPrior

DOUBLE = {"dtype": torch.double}
ANCHORS = 10


def counts(rows: torch.Tensor, size: int) -> list[list[int]]:
    """Return per code and number of entries with that code, how many rows have that number."""
    d = rows.shape[1]
    each = [(rows == code).sum(dim=1) for code in range(size)]
    return [torch.bincount(one, minlength=d + 1).tolist() for one in each]


def model(x: torch.Tensor, y: torch.Tensor, kernel: torch.nn.Module) -> SingleTaskGP:
    """Return the published model of data."""
    likelihood = GaussianLikelihood(
        noise_prior=GammaPrior(torch.tensor(0.9, **DOUBLE), torch.tensor(10.0, **DOUBLE)),
        noise_constraint=GreaterThan(1e-4),
    )
    scaled = ScaleKernel(
        base_kernel=kernel,
        outputscale_prior=GammaPrior(torch.tensor(2.0, **DOUBLE), torch.tensor(0.15, **DOUBLE)),
        outputscale_constraint=GreaterThan(1e-6),
    )
    targets = (y - y.mean()) / y.std()
    return SingleTaskGP(
        x, targets[:, None], covar_module=scaled, input_transform=Normalize(d=x.shape[1]), likelihood=likelihood
    ).to(torch.double)


def case(kind: str, x: np.ndarray, candidates: np.ndarray, *, rng: np.random.Generator) -> dict[str, object]:
    """Return inputs and outputs of one model with given parameters, and the likelihood that its fit reaches."""
    columns = [j for j in range(x.shape[1]) if kind != "mixed" or j < x.shape[1] - 2]
    if kind == "categorical":
        kernel = categorical.DictionaryKernel(columns, x.shape[1], ANCHORS, similarity=True)
    else:
        kernel = binary.DictionaryKernel(columns, x.shape[1], ANCHORS, similarity=True)
    y = np.sin(2.0 * x.sum(axis=1)) + 0.3 * x[:, 0] + 0.1 * rng.standard_normal(len(x))
    gp = model(torch.tensor(x, **DOUBLE), torch.tensor(y, **DOUBLE), kernel)
    lengthscales = np.exp(rng.uniform(-1.5, 1.0, ANCHORS + x.shape[1] - len(columns)))
    kernel.base_kernel.lengthscale = torch.tensor(lengthscales, **DOUBLE)
    gp.covar_module.outputscale = torch.tensor(1.7, **DOUBLE)
    gp.likelihood.noise = torch.tensor(0.02, **DOUBLE)
    gp.eval()
    out: dict[str, object] = {"x": x.tolist(), "y": y.tolist(), "candidates": candidates.tolist()}
    reals = ANCHORS + np.argsort(kernel.cont_dims)  # the kernel has them in the order of a set
    out |= {"anchors": kernel.basis_vectors.tolist(), "lengthscales": lengthscales[[*range(ANCHORS), *reals]].tolist()}
    with torch.no_grad():
        inputs = gp.input_transform(torch.tensor(x, **DOUBLE))
        encode = categorical.encode_via_random_vectors if kind == "categorical" else binary.encode_via_basis_vectors
        out["features"] = encode(inputs[:, columns], kernel.basis_vectors.to(inputs)).tolist()
        out["covariance"] = gp.covar_module(inputs).to_dense().tolist()
        targets = gp.train_targets
        acquisition = ExpectedImprovement(gp, best_f=targets.max())
        out["improvement"] = acquisition(torch.tensor(candidates, **DOUBLE)[:, None]).tolist()
        posterior = gp.posterior(torch.tensor(candidates, **DOUBLE))
        out["mean"], out["variance"] = posterior.mean[:, 0].tolist(), posterior.variance[:, 0].tolist()
    if kind == "binary":
        torch.manual_seed(5)
        starts = torch.randint(0, 2, (40, x.shape[1]), **DOUBLE)
        torch.manual_seed(5)
        config = {"n_initial_candts": 40, "n_restarts": 6, "n_binary": x.shape[1], "num_ls_steps": 50}
        best = torch.tensor(x, **DOUBLE)[targets.argmax()][None]
        found, value = optimize_acqf_binary_local_search(acquisition, config | {"add_spray_points": True}, best)
        out |= {"starts": starts.tolist(), "found": found[0].tolist(), "found value": float(value)}
    if kind == "mixed":
        config = {"n_alternate_steps": 50, "num_cmaes_steps": 50, "num_ls_steps": 50, "n_spray_points": 200}
        best = torch.tensor(x, **DOUBLE)[targets.argmax()][None]
        _, value = optimize_acq_function_mixed_alternating(
            acquisition, torch.arange(7, 9), best, config | {"add_spray_points": True}
        )
        out["found value"] = float(value)
    gp.train()
    mll = ExactMarginalLogLikelihood(gp.likelihood, gp)
    out["loss"] = -len(x) * float(mll(gp(*gp.train_inputs), gp.train_targets).detach())
    return out


def fit(seed: int, n: int) -> dict[str, object]:
    """Return data on 40 bits, and what the published fit with 128 anchors makes of them."""
    d, rng = 40, np.random.default_rng(seed)
    torch.manual_seed(seed)
    x = (rng.random((n, d)) < rng.random((n, 1))).astype(float)
    w = rng.standard_normal(d)
    y = np.round(np.sin(x @ w / 2) + (x @ w) / 3, 6)
    kernel = binary.DictionaryKernel(list(range(d)), d, 128, similarity=True)
    gp = model(torch.tensor(x), torch.tensor(y), kernel)
    fit_gpytorch_mll(ExactMarginalLogLikelihood(gp.likelihood, gp))
    gp.eval()
    near = np.abs(x[y.argmax()] - np.eye(d))
    with torch.no_grad():
        acquisition = ExpectedImprovement(gp, best_f=gp.train_targets.max())
        values = acquisition(torch.tensor(near)[:, None]).tolist()
    lengthscales = kernel.base_kernel.lengthscale.detach().reshape(-1)
    rows = {"x": x, "anchors": kernel.basis_vectors.numpy(), "near": near}
    return {key: ["".join(map(str, row.astype(int))) for row in value] for key, value in rows.items()} | {
        "y": y.tolist(),
        "signal": gp.covar_module.outputscale.item(),
        "noise": gp.likelihood.noise.item(),
        "lengthscales": lengthscales.tolist(),
        "improvement": values,
    }


def main() -> None:
    """Compute and write everything."""
    torch.manual_seed(1)
    np.random.seed(1)  # noqa: NPY002
    rng = np.random.default_rng(1)
    golden: dict[str, object] = {
        "binary counts": counts(binary.generate_random_basis_vector(20_000, 12), 2)[1],
        "category counts": counts(categorical.generate_random_basis_vector(20_000, 25, 5), 5),
        "binary": case("binary", *(rng.integers(0, 2, (n, 9)).astype(float) for n in (15, 20)), rng=rng),
        "categorical": case("categorical", *(rng.integers(0, 5, (n, 7)).astype(float) for n in (15, 20)), rng=rng),
        "mixed": case(
            "mixed",
            *(np.hstack([rng.integers(0, 2, (n, 7)), rng.random((n, 2))]) for n in (15, 20)),
            rng=rng,
        ),
        "fits": [fit(0, 30), fit(1, 60), fit(2, 60)],
    }
    path = Path(__file__).with_name("bodi.json")
    path.write_text(json.dumps(golden) + "\n")


main()
