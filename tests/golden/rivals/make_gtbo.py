"""Write golden values of group testing, from the published code.

Run it with torch and botorch, and a stand-in for gin, outside of this package's environment:

    PYTHONPATH=<clone of gtboauthors/gtbo> python tests/golden/rivals/make_gtbo.py
"""

from __future__ import annotations

import json
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType, SimpleNamespace

import torch

gin = ModuleType("gin")
gin.configurable = lambda f=None, **_: f if f is not None else (lambda g: g)  # type: ignore[attr-defined]
sys.modules["gin"] = gin

bayes, evaluators, temperature, testers = (
    import_module(f"gtbo.group_testing.{name}")
    for name in ("bayes", "ground_truth_evaluator", "samplers.temperature", "tester")
)
get_gp = import_module("gtbo.gaussian_process").get_gp

torch.set_default_dtype(torch.float64)


def main() -> None:
    torch.manual_seed(0)
    found: dict[str, object] = {}

    class Bench(SimpleNamespace):
        def __call__(self, x: torch.Tensor) -> torch.Tensor:
            value = (3.0 * x[2] - x[5] ** 2 + 0.01 * torch.randn(1)).squeeze()
            self.seen.append((x.tolist(), float(value)))
            return value

    bench = Bench(dim=30, lb_vec=torch.zeros(30), ub_vec=torch.ones(30), returns_noiseless=False, seen=[])
    evaluator = evaluators.GroundTruthEvaluator(bench, torch.full((30,), 0.5), 10)
    found["defaults"] = [value for _, value in bench.seen[:10]]
    found["changed"] = [value for _, value in bench.seen[10:]]
    found["changed_rows"] = [row for row, _ in bench.seen[10:]]
    signal = float(torch.sqrt(evaluator.f_std**2 + evaluator.pure_noise_std**2))
    noise = float(evaluator.noise_std)
    found |= {"signal": signal, "noise": noise, "default": float(evaluator.default_mean)}

    tester = testers.GroupTester(evaluator=evaluator, noise_std=noise, signal_std=signal)
    gammas = torch.tensor([0.01, 0.1, 0.3, 0.5, 0.8, 0.99])
    found["gammas"] = gammas.tolist()
    found["information"] = [float(tester.estimate_entropy(g) - tester.estimate_conditional_entropy(g)) for g in gammas]

    groups = torch.rand(7, 6) < 0.4
    particles = torch.rand(20, 6) < 0.3
    results = torch.randn(7) * 0.4
    logs = bayes.log_probability(particles, results, groups.long(), 0.05, 0.1**2, 0.5**2)
    found |= {
        "groups": groups.int().tolist(),
        "particles": particles.int().tolist(),
        "results": results.tolist(),
        "logs": logs.tolist(),
    }
    found["steps"] = [
        [rho, scale, float(temperature.find_step_length(rho, scale * logs)[0])]
        for rho in (0.0, 0.4)
        for scale in (0.01, 0.1, 1.0)
    ]

    x, y = torch.rand(12, 4), torch.randn(12)
    model, *_ = get_gp(x, y, (0.0, 1.0), (3.0, 1.0), [0, 2])
    model.covar_module.base_kernel.lengthscale = torch.tensor([0.5, 9.0, 1.2, 20.0])
    model.covar_module.outputscale = 1.7
    model.likelihood.noise = 0.03
    model.mean_module.constant.data.fill_(0.2)
    model.train()
    found |= {"x": x.tolist(), "y": y.tolist()}
    found["prior"] = float(
        sum(prior.log_prob(closure(module)).sum() for _, module, prior, closure, _ in model.named_priors())
    )
    with torch.no_grad():
        found["likelihood"] = float(model.likelihood(model(x)).log_prob(y))
    Path(__file__).with_name("gtbo.json").write_text(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
