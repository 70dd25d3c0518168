"""Our numerics against GPyTorch and BoTorch, whose values tests/golden/make_golden.py wrote down."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import ndtri
from scipy.stats import qmc

from bounce.acquire.improvement import Acquisition, log_h
from bounce.gp.fit import LogPosterior
from bounce.gp.kernels import Hyper, Kernel
from bounce.gp.linalg import Array
from bounce.gp.points import Points
from bounce.gp.posterior import GP
from bounce.method import Method
from bounce.spaces.parameters import Binary, Categorical, Ordinal, Parameter, Real
from bounce.spaces.space import Space

GOLDEN = json.loads((Path(__file__).parent / "golden" / "golden.json").read_text())
LOG_H = list(zip(GOLDEN["log_h"]["u"], GOLDEN["log_h"]["value"], strict=True))


def parameter(name: str, kind: str, cardinality: int) -> Parameter:
    if kind == "real":
        return Real(name, 0.0, 1.0)
    if kind == "binary":
        return Binary(name)
    return (Ordinal if kind == "ordinal" else Categorical)(name, range(cardinality))


class Case:
    """Our objects at the inputs of one case; `case["mean"]` is the golden array of that name."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.document: dict[str, Any] = GOLDEN["cases"][name]
        self.space = Space([parameter(f"x{j}", *spec) for j, spec in enumerate(self.document["variables"])])
        given = self.document["hyper"]
        self.hyper = Hyper(
            **given | {name: np.array(given[name]) for name in ("combinatorial_lengthscales", "real_lengthscales")}
        )
        self.kernel = Kernel(self.space, self.hyper)

    def __getitem__(self, key: str) -> Array:
        return np.array(self.document[key])

    @cached_property
    def gp(self) -> GP:
        return GP.at(self.kernel, Points(self["data"]))

    @cached_property
    def log_posterior(self) -> LogPosterior:
        per_kind = len(self.hyper.combinatorial_lengthscales) > 1
        method = Method(lengthscales="per-kind" if per_kind else "shared", real_lengthscales="apart")
        return LogPosterior(self.space, Points(self["data"]), self["targets"], method)

    @cached_property
    def theta(self) -> Array:
        return self.log_posterior.pack(self.hyper)

    def acquisition(self, fixed: int, normals: Array | None = None) -> Acquisition:
        """Return the acquisition beside the first fixed points: `fixed` is 0 for log EI or 3 for q-EI."""
        normals = self["normals"] if normals is None else normals
        return Acquisition.of(self.gp, self["targets"], Points(self["fixed"][:fixed]), normals)


CASES = [Case(name) for name in GOLDEN["cases"]]
every_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
every_case_with_reals = pytest.mark.parametrize(
    "case", [case for case in CASES if len(case.space.reals)], ids=lambda case: case.name
)
every_case_but_the_tail = pytest.mark.parametrize(
    "case", [case for case in CASES if "monte_carlo" in case.document], ids=lambda case: case.name
)
alone_or_beside_fixed_points = pytest.mark.parametrize(("fixed", "key"), [(0, "log_ei"), (3, "log_qei")])


def differences(function: Callable[[Array], float], x: Array, step: float) -> Array:
    """Return the gradient by central differences of fourth order."""
    slopes = np.empty(len(x))
    for j, e in enumerate(step * np.eye(len(x))):
        near, far = function(x + e) - function(x - e), function(x + 2 * e) - function(x - 2 * e)
        slopes[j] = (8.0 * near - far) / (12.0 * step)
    return slopes


@every_case
def test_kernel_matrix_is_that_of_gpytorch(case: Case) -> None:
    assert_allclose(case.kernel(Points(case["data"]), Points(case["test"])), case["kernel"], rtol=1e-13)


@every_case
def test_kernel_of_one_pair_is_that_of_gpytorch(case: Case) -> None:
    # One pair at a time takes another path than a matrix, whose distances are looked up.
    pairs = [[case.kernel(Points(a[None]), Points(b[None]))[0, 0] for b in case["test"]] for a in case["data"]]
    assert_allclose(pairs, case["kernel"], rtol=1e-13)


@every_case
def test_log_posterior_is_that_of_gpytorch(case: Case) -> None:
    value, _ = case.log_posterior(case.theta)
    assert_allclose(value, case["log_posterior"], rtol=1e-12)


@every_case
def test_gradient_of_the_log_posterior_is_that_of_autograd(case: Case) -> None:
    _, gradient = case.log_posterior(case.theta)
    assert_allclose(gradient, case["log_posterior_gradient"], rtol=1e-11)


@every_case
def test_constant_mean_is_that_of_gpytorch(case: Case) -> None:
    assert_allclose(case.gp.mean(case["targets"]), case["constant_mean"], rtol=1e-11)


@every_case
def test_posterior_mean_is_that_of_gpytorch(case: Case) -> None:
    mean, _ = case.gp.posterior(Points(case["test"]), case["targets"])
    assert_allclose(mean, case["mean"], rtol=1e-11)


@every_case
def test_posterior_variance_is_that_of_gpytorch(case: Case) -> None:
    _, variance = case.gp.posterior(Points(case["test"]), case["targets"])
    assert_allclose(variance, case["variance"], rtol=1e-11)


@every_case
def test_thresholds_are_the_lowest_of_targets_and_botorch_samples(case: Case) -> None:
    expected = np.minimum(case["targets"].min(), case["samples"].min(axis=0))
    assert_allclose(case.acquisition(3).thresholds, expected, rtol=1e-11)


@every_case
@alone_or_beside_fixed_points
def test_acquisition_is_that_of_botorch(case: Case, fixed: int, key: str) -> None:
    assert_allclose(case.acquisition(fixed)(case["test"]), case[key], rtol=1e-11)


@every_case_with_reals
@alone_or_beside_fixed_points
def test_acquisition_with_gradient_has_the_value_of_botorch(case: Case, fixed: int, key: str) -> None:
    values, _ = case.acquisition(fixed).with_gradient(case["test"])
    assert_allclose(values, case[key], rtol=1e-11)


@every_case_with_reals
@alone_or_beside_fixed_points
def test_gradient_of_the_acquisition_is_that_of_autograd(case: Case, fixed: int, key: str) -> None:
    _, gradient = case.acquisition(fixed).with_gradient(case["test"])
    assert_allclose(gradient, case[f"{key}_gradient"], rtol=1e-10)


@every_case_but_the_tail
def test_q_ei_estimates_what_a_point_adds_to_the_joint_improvement(case: Case) -> None:
    # BoTorch's joint q-EI of fixed points and one more, minus that of the fixed points, by Monte Carlo.
    points = qmc.Sobol(3, rng=np.random.default_rng(0)).random_base2(15)
    estimate = np.exp(case.acquisition(3, ndtri(points).T)(case["test"]))
    assert_allclose(estimate, case["monte_carlo"], rtol=0, atol=float(case["monte_carlo_tolerance"]))


@pytest.mark.parametrize(("u", "value"), LOG_H)
def test_log_h_is_that_of_botorch_far_into_the_tail(u: float, value: float) -> None:
    assert_allclose(log_h(np.array([u])), [value], rtol=1e-14)


@every_case
def test_gradient_of_the_log_posterior_is_its_slope(case: Case) -> None:
    _, gradient = case.log_posterior(case.theta)
    slopes = differences(lambda theta: case.log_posterior(theta)[0], case.theta, step=1e-3)
    assert_allclose(gradient, slopes, rtol=1e-8)


@every_case_with_reals
@pytest.mark.parametrize("fixed", [0, 3])
def test_gradient_of_the_acquisition_is_its_slope(case: Case, fixed: int) -> None:
    acquisition, reals = case.acquisition(fixed), case.space.reals
    _, gradients = acquisition.with_gradient(case["test"])
    for z, gradient in zip(case["test"], gradients, strict=True):

        def value(x: Array, z: Array = z) -> float:
            moved = z.copy()
            moved[reals] = x
            return float(acquisition(moved[None])[0])

        assert_allclose(gradient, differences(value, z[reals], step=2e-4), rtol=1e-8)
