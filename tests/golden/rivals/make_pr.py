"""Write golden values of probabilistic reparameterisation, from the published code.

Run it with torch, gpytorch and botorch, outside of this package's environment:

    PYTHONPATH=<clone of facebookresearch/bo_pr> python tests/golden/rivals/make_pr.py

The space has 2 reals, 2 ordinals (4 and 3 values), 3 bits and 2 categories (3 and 4 values), in this order. The
acquisition function is a stand-in: 1 + sin of a linear function of the features.
"""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from gpytorch.mlls import ExactMarginalLogLikelihood

published = {name: import_module(f"discrete_mixed_bo.{name}") for name in ("kernels", "wrapper")}
method = import_module("discrete_mixed_bo.probabilistic_reparameterization")
# A property that today's torch does not let the published code set.
del published["wrapper"].AcquisitionFunctionWrapper.model
torch.set_default_dtype(torch.float64)
REALS, TOPS, COUNTS = 2, [3, 2, 1, 1, 1], [3, 4]
LAST = REALS + len(TOPS)
SIZE = LAST + sum(COUNTS)
WEIGHTS = torch.cos(torch.arange(SIZE) * 1.7)


class Stub:
    """The acquisition function."""

    model = SimpleNamespace()

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        return 1.0 + torch.sin(x[..., 0, :] @ WEIGHTS[: x.shape[-1]])


def points(n: int, generator: torch.Generator) -> torch.Tensor:
    """Return n points of the space as features."""
    x = torch.rand(n, SIZE, generator=generator)
    for j, top in enumerate(TOPS):
        x[:, REALS + j] = torch.randint(0, top + 1, (n,), generator=generator) / top
    start = LAST
    for count in COUNTS:
        chosen = torch.randint(0, count, (n,), generator=generator)
        x[:, start : start + count] = torch.nn.functional.one_hot(chosen, count).double()
        start += count
    return x


def fit(generator: torch.Generator) -> dict[str, object]:
    """Return bits, values, and the lengthscale, signal variance and log likelihood that the published fit finds."""
    bits = torch.randint(0, 2, (40, 20), generator=generator).double()
    y = bits @ torch.randn(20, generator=generator)
    y = y + 0.2 * torch.einsum("ni,ij,nj->n", bits, torch.randn(20, 20, generator=generator), bits)
    y = (y - y.mean()) / y.std(correction=0)
    kernel = published["kernels"].get_kernel("mixed", 20, list(range(20)), {}, bits, y)
    gp = SingleTaskGP(bits, y[:, None], torch.full((40, 1), 1e-7), covar_module=kernel, outcome_transform=None)
    likelihood = ExactMarginalLogLikelihood(gp.likelihood, gp)
    fit_gpytorch_mll(likelihood)
    gp.train().requires_grad_(False)
    found: dict[str, object] = {"bits": bits.int().tolist(), "y": y.tolist()}
    found["fit"] = [
        float(kernel.base_kernel.lengthscale),
        float(kernel.outputscale),
        float(likelihood(gp(bits), y)) * 40,
    ]
    return found


def main() -> None:
    generator = torch.Generator().manual_seed(0)
    found: dict[str, object] = {"weights": WEIGHTS.tolist()}

    rows = points(6, generator)
    codes = torch.cat(
        [rows[:, :LAST], rows[:, LAST : LAST + 3].argmax(1)[:, None], rows[:, LAST + 3 :].argmax(1)[:, None]], dim=1
    ).double()
    for name, kind, x, features in (
        ("mixed", "mixed", rows[:, :LAST], {}),
        ("categorical", "mixed_categorical", codes, {LAST: 3, LAST + 1: 4}),
    ):
        kernel = published["kernels"].get_kernel(kind, x.shape[1], [4, 5, 6], features, x, x[:, :1])
        parts = kernel.kernels if kind == "mixed_categorical" else [kernel]
        first, second = parts[0].base_kernel.kernels[:2]
        first.lengthscale = torch.tensor([0.3, 0.7, 1.1, 1.9])
        second.lengthscale = torch.tensor(0.8)
        parts[0].outputscale = 1.3
        if len(parts) > 1:
            parts[0].base_kernel.kernels[2].lengthscale = torch.tensor([0.4, 1.5])
            parts[1].outputscale = 0.6
        with torch.no_grad():
            found[name] = kernel(x).to_dense().tolist()
    found["rows"] = rows.tolist()

    theta = torch.rand(5, SIZE, generator=generator)
    theta[3, REALS : REALS + 3] = 1.0  # at the upper end
    theta[4, REALS + 1 : LAST] = 0.0
    options: dict[str, Any] = {
        "acq_function": Stub(),
        "dim": SIZE,
        "integer_indices": list(range(REALS, LAST)),
        "integer_bounds": torch.tensor([[0.0] * len(TOPS), [float(top) for top in TOPS]]),
        "categorical_features": {LAST: COUNTS[0], LAST + 1: COUNTS[1]},
    }
    sampled = method.MCProbabilisticReparameterization(mc_samples=64, grad_estimator="reinforce_ma", **options)
    steps = torch.rand(64, 1, len(TOPS), generator=generator)
    categories = torch.rand(64, 1, len(COUNTS), generator=generator)
    values, gradients = [], []
    inner = sampled.input_transform["round"]
    inner.register_buffer("base_samples", steps)
    inner.register_buffer("base_samples_categorical", categories)
    for _ in range(3):  # the baseline is 0 at first, then a moving average
        x = theta[:, None].clone().requires_grad_(True)
        value = sampled(x)
        gradients.append(torch.autograd.grad(value.sum(), x)[0][:, 0].tolist())
        values.append(value.tolist())
    found |= {"theta": theta.tolist(), "uniform": torch.cat([steps, categories], dim=2)[:, 0].tolist()}
    found |= {"values": values[0], "gradients": gradients}
    # The published table of configurations looks for categories before it widens them, so categories come alone here.
    options |= {"categorical_features": {}, "dim": LAST}
    exact = method.AnalyticProbabilisticReparameterization(dtype=torch.float64, device=torch.device("cpu"), **options)
    x = theta[:3, None, :LAST].clone().requires_grad_(True)
    value = exact(x)
    found["exact"] = value.tolist()
    found["exact_gradients"] = torch.autograd.grad(value.sum(), x)[0][:, 0].tolist()
    found |= fit(generator)
    Path(__file__).with_name("pr.json").write_text(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
