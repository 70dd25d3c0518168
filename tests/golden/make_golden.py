"""Write golden.json: what GPyTorch and BoTorch compute where the package uses its own code.

The tests only read the JSON and need none of this. To make it anew, in an environment of its own:

    pip install numpy==2.4.6 torch==2.13.0 gpytorch==1.15.2 botorch==0.18.1
    python tests/golden/make_golden.py

The committed values were made with these versions, on Python 3.11; the JSON names them too. Nothing here imports
the package. Points are stored as its codes and turned into columns here: one column per binary variable, one per
category, i/(c − 1) for ordinal code i, reals as they are. Everything is float64, targets are minimised.

Shapes: n data, m test points, p fixed points, S samples, d variables; codes (·, d), normals (p, S).
"""

from __future__ import annotations

import json
import platform
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import botorch
import gpytorch
import numpy as np
import torch
from botorch.acquisition import LogExpectedImprovement, qExpectedImprovement
from botorch.acquisition.analytic import _log_ei_helper
from botorch.acquisition.objective import LinearMCObjective
from botorch.exceptions.warnings import NumericsWarning
from botorch.models import SingleTaskGP
from botorch.sampling import SobolQMCNormalSampler
from gpytorch.constraints import Positive
from gpytorch.kernels import Kernel, MaternKernel, ScaleKernel
from gpytorch.likelihoods import GaussianLikelihood
from gpytorch.means import ConstantMean, ZeroMean
from gpytorch.mlls import ExactMarginalLogLikelihood
from gpytorch.priors import GammaPrior

N_TEST, N_FIXED, N_SAMPLES = 6, 3, 16
MONTE_CARLO_SAMPLES, MONTE_CARLO_SEEDS = 2**15, 16
# The branches of log EI: the right side, both sides of −1, the tail.
TAIL = [3.0, 0.0, -0.5, -0.999, -1.001, -2.0, -5.0, -10.0, -40.0, -1000.0, -9.0e3, -1.1e4, -1.0e5]


@dataclass(frozen=True)
class Case:
    """A space, the hyperparameters and where the data come from."""

    name: str
    variables: tuple[tuple[str, int], ...]
    """Kind and cardinality per variable; 0 for reals."""
    n: int
    seed: int
    combinatorial: float | dict[str, float] = 1.0
    """One lengthscale, or one per kind, in the order of the package's θ."""
    real: tuple[float, ...] = ()
    signal: float = 1.0
    noise: float = 0.1
    rho: float = 0.5
    deepest: float | None = None
    """What replaces the lowest target, to put every test point into the tail of log EI."""

    @property
    def reals(self) -> list[int]:
        """The variables of kind real."""
        return [j for j, (kind, _) in enumerate(self.variables) if kind == "real"]

    @property
    def is_mixed(self) -> bool:
        """Whether there are reals and others."""
        return 0 < len(self.reals) < len(self.variables)


CASES = (
    Case("binary", (("binary", 2),) * 7, n=10, seed=1, combinatorial=1.7, signal=1.3, noise=0.02),
    Case(
        "categorical",
        (
            ("categorical", 3),
            ("binary", 2),
            ("categorical", 7),
            ("binary", 2),
            ("categorical", 2),
            ("categorical", 4),
        ),
        n=12,
        seed=2,
        combinatorial=2.4,
        signal=0.8,
        noise=0.005,
    ),
    Case(
        "ordinal",
        (("ordinal", 5), ("binary", 2), ("ordinal", 2), ("categorical", 3), ("ordinal", 11), ("binary", 2)),
        n=11,
        seed=3,
        combinatorial=0.9,
        signal=2.1,
        noise=0.3,
    ),
    Case("reals", (("real", 0),) * 4, n=12, seed=22, real=(0.3, 1.9, 0.75, 6.0), signal=1.6, noise=0.01),
    Case(
        "mixed",
        (
            ("real", 0),
            ("categorical", 4),
            ("binary", 2),
            ("real", 0),
            ("ordinal", 6),
            ("binary", 2),
            ("categorical", 3),
            ("real", 0),
        ),
        n=12,
        seed=5,
        combinatorial=1.4,
        real=(0.45, 1.2, 0.8),
        signal=0.9,
        noise=0.015,
        rho=0.35,
    ),
    Case(
        "apart",
        (
            ("ordinal", 5),
            ("binary", 2),
            ("categorical", 3),
            ("ordinal", 2),
            ("binary", 2),
            ("categorical", 6),
            ("ordinal", 9),
        ),
        n=12,
        seed=7,
        combinatorial={"binary": 1.1, "categorical": 2.7, "ordinal": 0.4},
        signal=1.4,
        noise=0.05,
    ),
    Case(
        "mixed apart",
        (
            ("ordinal", 7),
            ("real", 0),
            ("binary", 2),
            ("categorical", 4),
            ("real", 0),
            ("binary", 2),
            ("ordinal", 4),
        ),
        n=12,
        seed=8,
        combinatorial={"binary": 3.1, "categorical": 0.9, "ordinal": 0.6},
        real=(0.5, 1.6),
        signal=1.2,
        noise=0.02,
        rho=0.4,
    ),
    Case(
        "tail",
        (("real", 0), ("binary", 2), ("real", 0)),
        n=9,
        seed=6,
        combinatorial=0.7,
        real=(0.15, 0.1),
        signal=1.1,
        noise=0.001,
        rho=0.8,
        deepest=-60.0,
    ),
)


class Mixture(Kernel):  # type: ignore[misc]
    """ρ·k_c·k_r + (1 − ρ)·(k_c + k_r) of two kernels."""

    def __init__(self, combinatorial: Kernel, real: Kernel, rho: float) -> None:
        super().__init__()
        self.combinatorial, self.real = combinatorial, real
        self.register_parameter("rho", torch.nn.Parameter(torch.tensor(rho)))

    def forward(self, x1: Any, x2: Any, diag: bool = False, **params: Any) -> Any:
        """Return the mixture's matrix, or its diagonal."""
        combinatorial, real = (kernel(x1, x2, diag=diag, **params) for kernel in (self.combinatorial, self.real))
        if not diag:
            combinatorial, real = combinatorial.to_dense(), real.to_dense()
        return self.rho * combinatorial * real + (1.0 - self.rho) * (combinatorial + real)


class Apart(Kernel):  # type: ignore[misc]
    """A Matérn-5/2 kernel of columns of several kinds, with one lengthscale per kind, each with its prior."""

    def __init__(self, lengths: dict[str, float], kinds: list[str]) -> None:
        super().__init__(active_dims=[j for j, kind in enumerate(kinds) if kind in lengths])
        self.owner = [list(lengths).index(kind) for kind in kinds if kind in lengths]
        self.matern = MaternKernel(nu=2.5)
        self.matern.lengthscale = 1.0
        self.register_parameter("raw_lengthscale", torch.nn.Parameter(torch.tensor([*lengths.values()]).log()))
        self.register_prior("prior", GammaPrior(1.5, 0.1), lambda kernel: kernel.raw_lengthscale.exp())

    def forward(self, x1: Any, x2: Any, **params: Any) -> Any:
        """Return the matrix or, if asked for, its diagonal."""
        lengths = self.raw_lengthscale.exp()[self.owner]
        return self.matern.forward(x1 / lengths, x2 / lengths, **params)


def exponential() -> Positive:
    """Return a constraint whose raw parameter is the logarithm, so that autograd differentiates by it."""
    return Positive(transform=torch.exp, inv_transform=torch.log)


def draw(case: Case, n: int, rng: np.random.RandomState) -> Any:
    """Draw distinct codes; reals are multiples of 1/1024."""
    rows: list[list[float]] = []
    while len(rows) < n:
        row = [
            float(rng.randint(cardinality) if cardinality else rng.randint(1, 1024) / 1024)
            for _, cardinality in case.variables
        ]
        if row not in rows:
            rows.append(row)
    return torch.tensor(rows)


def columns(case: Case, codes: Any) -> Any:
    """Turn codes (n, d) into the columns a kernel sees."""
    parts = []
    for (kind, cardinality), code in zip(case.variables, codes.unbind(-1), strict=True):
        if kind == "categorical":
            parts.append(torch.nn.functional.one_hot(code.long(), cardinality).to(codes))
        else:
            parts.append((code / (cardinality - 1) if kind == "ordinal" else code).unsqueeze(-1))
    return torch.cat(parts, dim=-1)


def matern(length: float | tuple[float, ...], where: list[int]) -> MaternKernel:
    """Return a Matérn-5/2 kernel of some columns, with its prior; one lengthscale per column if given so."""
    ard = len(length) if isinstance(length, tuple) else None
    kernel = MaternKernel(
        nu=2.5,
        ard_num_dims=ard,
        active_dims=where,
        lengthscale_prior=GammaPrior(1.5, 0.1),
        lengthscale_constraint=exponential(),
    )
    kernel.lengthscale = torch.tensor(length)
    return kernel


class Reference:
    """The model of one case, and its parameters in the order of the package's θ."""

    def __init__(self, case: Case, codes: Any, targets: Any) -> None:
        self.case, self.codes, self.targets = case, codes, targets
        widths = [cardinality if kind == "categorical" else 1 for kind, cardinality in case.variables]
        kinds = np.repeat([kind for kind, _ in case.variables], widths)
        if isinstance(case.combinatorial, dict):
            self.combinatorial = Apart(case.combinatorial, kinds.tolist())
        else:
            self.combinatorial = matern(case.combinatorial, np.flatnonzero(kinds != "real").tolist())
        self.real = matern(case.real, np.flatnonzero(kinds == "real").tolist())
        kernels = [k for k, used in ((self.combinatorial, (kinds != "real").any()), (self.real, case.reals)) if used]
        base = Mixture(self.combinatorial, self.real, case.rho) if case.is_mixed else kernels[0]
        self.kernel = ScaleKernel(base, outputscale_prior=GammaPrior(1.5, 0.5), outputscale_constraint=exponential())
        self.kernel.outputscale = torch.tensor(case.signal)
        self.likelihood = GaussianLikelihood(noise_prior=GammaPrior(1.1, 0.1), noise_constraint=exponential())
        self.likelihood.noise = torch.tensor(case.noise)
        self.parameters = [kernel.raw_lengthscale for kernel in kernels]
        self.parameters += [self.kernel.raw_outputscale, self.likelihood.noise_covar.raw_noise]
        self.parameters += [base.rho] if case.is_mixed else []
        self.model = SingleTaskGP(
            columns(case, codes),
            targets.unsqueeze(-1),
            likelihood=self.likelihood,
            covar_module=self.kernel,
            mean_module=ZeroMean(),
            outcome_transform=None,
        )

    def log_posterior(self) -> tuple[float, list[float], float]:
        """Return log likelihood plus log priors at the best constant mean, the gradient by θ, and that mean."""
        mean = ConstantMean()
        model = SingleTaskGP(
            *self.model.train_inputs,
            self.targets.unsqueeze(-1),
            likelihood=self.likelihood,
            covar_module=self.kernel,
            mean_module=mean,
            outcome_transform=None,
        ).train()
        likelihood = ExactMarginalLogLikelihood(self.likelihood, model)

        def value() -> Any:
            return likelihood(model(*model.train_inputs), model.train_targets) * len(self.targets)  # GPyTorch: / n

        for _ in range(3):  # quadratic in the constant: Newton's method
            (slope,) = torch.autograd.grad(value(), mean.raw_constant, create_graph=True)
            (curvature,) = torch.autograd.grad(slope, mean.raw_constant)
            with torch.no_grad():
                mean.raw_constant -= slope / curvature
        best = value()
        gradient = torch.autograd.grad(best, self.parameters)
        flat = torch.cat([part.reshape(-1) for part in gradient]).tolist()
        return best.item(), flat, mean.constant.item()

    def conditioned(self, codes: Any, values: Any) -> SingleTaskGP:
        """Return the model with values of the latent function, free of noise, added to the data."""
        noise = torch.cat([torch.full_like(self.targets, self.case.noise), torch.zeros_like(values)])
        return SingleTaskGP(
            columns(self.case, torch.cat([self.codes, codes])),
            torch.cat([self.targets, values]).unsqueeze(-1),
            train_Yvar=noise.unsqueeze(-1),
            covar_module=self.kernel,
            mean_module=ZeroMean(),
            outcome_transform=None,
        ).eval()

    def log_ei(self, codes: Any) -> Any:
        """Return log EI (m,) below the lowest target."""
        acquisition = LogExpectedImprovement(self.model, self.targets.min(), maximize=False)
        return acquisition(columns(self.case, codes).unsqueeze(-2))

    def samples(self, fixed: Any, normals: Any) -> Any:
        """Return joint samples (S, p) of the latent function at fixed points, from given normals (p, S)."""
        posterior = self.model.posterior(columns(self.case, fixed))
        return posterior.rsample_from_base_samples(normals.shape[1:], normals.T).squeeze(-1)

    def log_qei(self, codes: Any, fixed: Any, samples: Any) -> Any:
        """Return the log (m,) of the mean EI given each sample, below the lowest of targets and sample."""
        terms = []
        for values in samples:
            best = torch.minimum(self.targets.min(), values.min())
            acquisition = LogExpectedImprovement(self.conditioned(fixed, values), best, maximize=False)
            terms.append(acquisition(columns(self.case, codes).unsqueeze(-2)))
        return torch.logsumexp(torch.stack(terms), dim=0) - np.log(len(terms))

    def monte_carlo(self, codes: Any, fixed: Any, seed: int) -> Any:
        """Return the joint q-EI (m,) of fixed points and one more, minus that of the fixed points."""
        pending = columns(self.case, fixed)

        def acquisition(points: Any, **options: Any) -> Any:
            return qExpectedImprovement(
                self.model,
                -self.targets.min(),
                sampler=SobolQMCNormalSampler(torch.Size([MONTE_CARLO_SAMPLES]), seed=seed),
                objective=LinearMCObjective(torch.tensor([-1.0])),
                **options,
            )(points)

        together = acquisition(columns(self.case, codes).unsqueeze(-2), X_pending=pending)
        return together - acquisition(pending)


def value_and_gradient(function: Callable[[Any], Any], case: Case, codes: Any) -> tuple[list[float], Any]:
    """Return values (m,) at codes and their gradients (m, reals) with respect to the reals."""
    codes = codes.clone().requires_grad_()
    values = function(codes)
    (gradient,) = torch.autograd.grad(values.sum(), codes)
    return values.tolist(), gradient[:, case.reals].tolist()


def golden(case: Case) -> dict[str, Any]:
    """Return inputs and golden values of one case."""
    rng = np.random.RandomState(case.seed)
    points = draw(case, case.n + N_TEST + N_FIXED, rng)
    data, test, fixed = points.split([case.n, N_TEST, N_FIXED])
    y = rng.standard_normal(case.n)
    y = (y - y.mean()) / y.std()
    if case.deepest is not None:
        y[y.argmin()] = case.deepest
    normals = torch.tensor(rng.standard_normal((N_FIXED, N_SAMPLES)))

    reference = Reference(case, data, torch.tensor(y))
    value, gradient, constant = reference.log_posterior()
    document: dict[str, Any] = {
        "variables": case.variables,
        "hyper": {
            "combinatorial_lengthscales": [*case.combinatorial.values()]
            if isinstance(case.combinatorial, dict)
            else [case.combinatorial],
            "real_lengthscales": case.real,
            "signal": case.signal,
            "noise": case.noise,
            "rho": case.rho,
        },
        "data": data.tolist(),
        "targets": y.tolist(),
        "test": test.tolist(),
        "fixed": fixed.tolist(),
        "normals": normals.tolist(),
        "log_posterior": value,
        "log_posterior_gradient": gradient,
        "constant_mean": constant,
    }
    with torch.no_grad():
        document["kernel"] = reference.kernel(columns(case, data), columns(case, test)).to_dense().tolist()
        posterior = reference.model.posterior(columns(case, test))
        document["mean"] = posterior.mean.squeeze(-1).tolist()
        document["variance"] = posterior.variance.squeeze(-1).tolist()
        samples = reference.samples(fixed, normals)
        document["samples"] = samples.T.tolist()
    document["log_ei"], document["log_ei_gradient"] = value_and_gradient(reference.log_ei, case, test)
    document["log_qei"], document["log_qei_gradient"] = value_and_gradient(
        lambda codes: reference.log_qei(codes, fixed, samples), case, test
    )
    if case.deepest is None:  # no sample would improve on it
        with torch.no_grad():
            runs = torch.stack([reference.monte_carlo(test, fixed, seed) for seed in range(MONTE_CARLO_SEEDS)])
        errors = runs.std(dim=0) / MONTE_CARLO_SEEDS**0.5
        document["monte_carlo"] = runs.mean(dim=0).tolist()
        document["monte_carlo_tolerance"] = 5.0 * errors.max().item()
    return document


def spread(document: Any, indent: str = "") -> str:
    """Return JSON with one line per key."""
    if not isinstance(document, dict):
        return json.dumps(document, allow_nan=False)
    inner = indent + " "
    lines = [f"{inner}{json.dumps(key)}: {spread(value, inner)}" for key, value in document.items()]
    return "{\n" + ",\n".join(lines) + f"\n{indent}}}"


def main() -> None:
    """Compute all cases and write the file beside this script."""
    torch.set_default_dtype(torch.float64)
    torch.set_num_threads(1)
    warnings.simplefilter("ignore", NumericsWarning)  # qExpectedImprovement advertises its logarithm
    exact = gpytorch.settings.fast_computations(covar_root_decomposition=False, log_prob=False, solves=False)
    with exact, gpytorch.settings.min_fixed_noise(double_value=0.0):
        document = {
            "versions": {
                "python": platform.python_version(),
                "numpy": np.__version__,
                "torch": torch.__version__,
                "gpytorch": gpytorch.__version__,
                "botorch": botorch.__version__,
            },
            "cases": {case.name: golden(case) for case in CASES},
            "log_h": {"u": TAIL, "value": _log_ei_helper(torch.tensor(TAIL)).tolist()},
        }
    Path(__file__).with_name("golden.json").write_text(spread(document) + "\n")


if __name__ == "__main__":
    main()
