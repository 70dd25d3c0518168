"""Write alebo.json: ALEBO's kernel, likelihood, Laplace variances and mixture, by automatic differentiation.

The published code lived in Ax and needs versions of 2020. This is an independent implementation with torch of what its
paper and its code say. The tests only read the JSON. To make it again, in an environment of its own:

    pip install numpy==2.4.6 torch==2.13.0
    python tests/golden/rivals/make_alebo.py

Nothing here imports the package.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.distributions import MultivariateNormal

NOISE, NUGGET = 1e-7, 1e-3


def kernel(u: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """Return exp(−½·(a − b)ᵀUᵀU(a − b)) for u, the upper triangle of U row by row."""
    d = a.shape[1]
    rows, columns = torch.triu_indices(d, d)
    matrix = torch.zeros(d, d, dtype=a.dtype).index_put((rows, columns), u)
    gap = a[:, None, :] - b[None, :, :]
    return torch.exp(-0.5 * torch.einsum("abi,ij,abj->ab", gap, matrix.T @ matrix, gap))


def moments(parameters: dict[str, Any], u: Tensor, at: Tensor) -> tuple[Tensor, Tensor]:
    """Return mean and variance of the process of one u."""
    z, y, signal, mean = (parameters[key] for key in ("z", "y", "signal", "mean"))
    k = signal * kernel(u, z, z) + NOISE * torch.eye(len(z), dtype=z.dtype)
    cross = signal * kernel(u, at, z)
    solved = torch.linalg.solve(k, cross.T)
    return mean + solved.T @ (y - mean), signal - (cross * solved.T).sum(dim=1)


def main() -> None:
    torch.manual_seed(0)
    torch.set_default_dtype(torch.float64)
    n, d = 12, 3
    z, at = torch.randn(n, d), torch.randn(5, d)
    y = torch.sin(z[:, 0]) + 0.5 * z[:, 1] ** 2
    y = (y - y.mean()) / y.std(unbiased=False)
    p = {"z": z, "y": y, "signal": 1.3, "mean": -0.2}
    u = torch.eye(d)[tuple(torch.triu_indices(d, d))] * 0.8 + 0.2 * torch.randn(d * (d + 1) // 2)

    def likelihood(u: Tensor) -> Tensor:
        k = p["signal"] * kernel(u, z, z) + NOISE * torch.eye(n)
        return MultivariateNormal(torch.full((n,), p["mean"]), k).log_prob(y)

    hessian = torch.autograd.functional.hessian(likelihood, u).diagonal()
    samples = torch.stack([u, *(u + 0.1 * torch.randn(len(u)) for _ in range(4))])
    each = [moments(p, sample, at) for sample in samples]
    means, variances = torch.stack([m for m, _ in each]), torch.stack([v for _, v in each])
    golden = {
        "z": z.tolist(),
        "y": y.tolist(),
        "signal": p["signal"],
        "mean": p["mean"],
        "u": u.tolist(),
        "kernel": kernel(u, at, z).tolist(),
        "log_likelihood": float(likelihood(u)),
        "laplace_sd": (1.0 / torch.sqrt(torch.abs(-hessian / n + NUGGET))).tolist(),
        "samples": samples.tolist(),
        "at": at.tolist(),
        "mixture_mean": means.mean(dim=0).tolist(),
        "mixture_variance": (variances.mean(dim=0) + means.var(dim=0, unbiased=False)).tolist(),
    }
    (Path(__file__).parent / "alebo.json").write_text(json.dumps(golden) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
