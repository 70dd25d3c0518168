"""BoTorch: a Gaussian process for mixed spaces and log expected improvement, with their defaults.

Reals are codes in [0, 1]; ordered and binary variables are grids in [0, 1] under the same kernel; categories have a
separate kernel. The model is `MixedSingleTaskGP` if the space has categories, otherwise `SingleTaskGP`. The search is
`optimize_acqf_mixed_alternating`. Only this module imports torch.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from bounce.baselines.baseline import INITIAL, SEEDS, Baseline, require
from bounce.spaces.kinds import Codes, Kind, on_grid
from bounce.spaces.space import Space


class Botorch(Baseline):
    """A model that is fitted again for every proposal."""

    name = "botorch"

    def __init__(self, space: Space, budget: int, seed: int, initial: int = INITIAL) -> None:
        require("botorch", "botorch")
        super().__init__(space, budget, seed, initial)
        self._categories = [int(j) for j in space.of_kind(Kind.CATEGORICAL)]
        self._grids = {int(j): int(space.cardinalities[j]) for j in space.of_kind(Kind.BINARY, Kind.ORDINAL)}
        self._rows: list[Codes] = []
        self._values: list[float] = []

    def _propose(self) -> tuple[Codes, Any]:
        if not self._values:  # every trial so far failed
            return self.space.sample(1, rng=np.random.default_rng([self.seed, len(self._trials)]))[0], None
        with _seeded((self.seed + len(self._trials)) % SEEDS):
            return self._codes(self._search()), None

    def _given(self, row: Codes) -> Any:
        return None

    def _learn(self, row: Codes, token: Any, value: float) -> None:
        self._rows.append(row)
        self._values.append(value)

    def _inputs(self, rows: list[Codes]) -> Codes:
        x = np.array(rows)
        for j, c in self._grids.items():
            x[:, j] /= c - 1
        return x

    def _codes(self, x: Codes) -> Codes:
        row = x.copy()
        row[self.space.reals] = on_grid(np.clip(x[self.space.reals], 0.0, 1.0))
        for j, c in self._grids.items():
            row[j] = np.rint(x[j] * (c - 1))
        row[self._categories] = np.rint(x[self._categories])
        return row

    def _search(self) -> Codes:
        import torch
        from botorch.acquisition import LogExpectedImprovement, qLogExpectedImprovement
        from botorch.fit import fit_gpytorch_mll
        from botorch.models import MixedSingleTaskGP, SingleTaskGP
        from botorch.optim.optimize_mixed import optimize_acqf_mixed_alternating
        from gpytorch.mlls import ExactMarginalLogLikelihood

        x = torch.from_numpy(self._inputs(self._rows))
        y = -torch.tensor(self._values, dtype=torch.float64)[:, None]  # BoTorch maximises
        model = MixedSingleTaskGP(x, y, cat_dims=self._categories) if self._categories else SingleTaskGP(x, y)
        fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
        pending = [row for row, _ in self._tokens.values()]
        if pending:
            acquisition = qLogExpectedImprovement(model, y.max(), X_pending=torch.from_numpy(self._inputs(pending)))
        else:
            acquisition = LogExpectedImprovement(model, y.max())
        upper = torch.ones(len(self.space), dtype=torch.float64)
        for j in self._categories:
            upper[j] = float(self.space.cardinalities[j] - 1)
        found, _ = optimize_acqf_mixed_alternating(
            acquisition,
            bounds=torch.stack([torch.zeros_like(upper), upper]),
            discrete_dims={j: [i / (c - 1) for i in range(c)] for j, c in self._grids.items()},
            cat_dims={j: [float(i) for i in range(self.space.cardinalities[j])] for j in self._categories},
            q=1,
        )
        return np.asarray(found[0].detach().numpy(), dtype=np.float64)


@contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """Seed torch's global generator while a proposal is computed."""
    import torch

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield
