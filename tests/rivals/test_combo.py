from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.linalg import expm
from scipy.optimize import approx_fprime
from scipy.stats import kstest, norm

from bounce import Binary, Categorical, Ordinal, Space
from bounce.baselines.rivals.combo import (
    Combo,
    ComboPublished,
    Evidence,
    Improvement,
    State,
    log_prior_beta,
    log_prior_noise,
    prior_variances,
)
from bounce.baselines.rivals.diffusion import STABLE, Diffusion, complete, heat, path, spectrum
from bounce.baselines.rivals.gaussian import Fit
from bounce.baselines.rivals.slice_sampling import slice_sample
from bounce.spaces.kinds import Kind

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "rivals" / "combo.json").read_text())
BATCHES = 25


def test_categories_on_a_path_differ_in_prior_variance_and_on_a_complete_graph_do_not() -> None:
    np.testing.assert_allclose(prior_variances(path(5)), [1.29, 0.83, 0.77, 0.83, 1.29], atol=0.005)
    np.testing.assert_allclose(prior_variances(complete(5)), np.ones(5))
    for beta in (0.01, 0.5, 3.0, 50.0):
        assert prior_variances(path(7), beta).mean() == pytest.approx(1.0)


def test_the_graph_of_categories_is_what_the_two_versions_differ_in() -> None:
    assert (Combo.graph(Kind.CATEGORICAL, 5) == complete(5)).all()
    assert (ComboPublished.graph(Kind.CATEGORICAL, 5) == path(5)).all()
    for kind in (Kind.BINARY, Kind.ORDINAL):
        assert (Combo.graph(kind, 4) == path(4)).all()
        assert (ComboPublished.graph(kind, 4) == path(4)).all()


@pytest.mark.parametrize("graph", [path(2), path(6), complete(5)])
def test_a_factor_is_the_exponential_of_the_laplacian_with_a_mean_of_one_on_its_diagonal(graph: np.ndarray) -> None:
    for beta in (0.03, 1.0, 4.0):
        kernel = expm(-beta * (np.diag(graph.sum(axis=0)) - graph))
        np.testing.assert_allclose(heat(*spectrum(graph), beta), kernel * len(graph) / np.trace(kernel), atol=1e-12)


def test_bits_and_categories_have_closed_forms() -> None:
    beta = 0.7
    assert heat(*spectrum(path(2)), beta)[0] == pytest.approx([1.0, np.tanh(beta)])
    other = (1.0 - np.exp(-5 * beta)) / (1.0 + 4.0 * np.exp(-5 * beta))
    np.testing.assert_allclose(heat(*spectrum(complete(5)), beta), np.where(np.eye(5) > 0, 1.0, other))


def case(number: int) -> tuple[dict[str, Any], Diffusion, np.ndarray, list[State]]:
    golden = GOLDEN["fixed"][number]
    states = [
        State(mean, log_amplitude, log_noise, np.array(log_beta))
        for (log_amplitude, mean, log_noise), log_beta in zip(
            golden["log_amplitude_mean_log_noise"], golden["log_beta"], strict=True
        )
    ]
    return golden, Diffusion([np.array(graph) for graph in golden["graphs"]]), np.array(golden["x"], float), states


EACH = range(len(GOLDEN["fixed"]))


@pytest.mark.parametrize("number", EACH)
def test_kernels_are_those_of_the_published_code(number: int) -> None:
    golden, kernel, x, states = case(number)
    amplitude, theta = np.exp(states[0].log_amplitude), states[0].log_beta
    rows, others = kernel.features(x), kernel.features(np.array(golden["z"]))
    expected = np.array(golden["kernel"]) - amplitude * STABLE * np.eye(len(x))
    np.testing.assert_allclose(amplitude * kernel(theta, rows, rows), expected, atol=3e-6 * amplitude)
    np.testing.assert_allclose(amplitude * kernel(theta, others, rows), golden["cross"], atol=3e-6 * amplitude)
    np.testing.assert_allclose(
        amplitude * kernel.diagonal(theta, rows), np.diag(golden["kernel"]), atol=3e-6 * amplitude
    )


@pytest.mark.parametrize("number", EACH)
def test_likelihoods_and_acquisition_values_are_those_of_the_published_code(number: int) -> None:
    golden, kernel, x, states = case(number)
    y = np.array(golden["y"])
    evidence = Evidence(kernel, x, y)
    for state, expected in zip(states, golden["log_likelihood"], strict=True):
        k = np.prod([evidence.factor(j, log_beta) for j, log_beta in enumerate(state.log_beta)], axis=0)
        assert evidence.likelihood(k, state) == pytest.approx(expected, rel=1e-4)
    same = [replace(state, mean=states[-1].mean) for state in states]  # what the published code does
    for means, used in (("each", states), ("the last", same)):
        improvement = Improvement(kernel, used, x, y, x[:0])(np.array(golden["z"], float))
        np.testing.assert_allclose(np.exp(improvement), golden[f"acquisition with {means} mean"], rtol=2e-3, atol=1e-6)


@pytest.mark.parametrize("number", EACH)
def test_with_the_same_samples_it_proposes_what_the_published_code_does(
    number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    golden, kernel, x, states = case(number)
    makers: dict[str, list[Any]] = {"bits": [Binary] * 8, "mixed": [Binary, Binary, Ordinal, Categorical, Categorical]}
    space = Space(
        [
            Binary(f"x{j}") if maker is Binary else maker(f"x{j}", list(range(len(graph))))
            for j, (maker, graph) in enumerate(
                zip(makers.get(golden["name"], [Categorical] * 4), golden["graphs"], strict=True)
            )
        ]
    )
    cls = ComboPublished if golden["name"] == "categories on paths" else Combo
    rival = cls(space, 20, 0)
    assert all((a == b).all() for a, b in zip(rival._kernel.graphs, kernel.graphs, strict=True))
    same = [replace(state, mean=states[-1].mean) for state in states]
    monkeypatch.setattr(rival, "_sample", lambda evidence, *, rng: same)
    for row in x:
        rival._note(row)
    chosen = rival._choose(x, np.array(golden["y"]), x[:0], rng=np.random.default_rng(0))
    assert chosen.tolist() == golden["suggestion"]


def test_a_pending_point_loses_its_improvement_and_others_hardly_any() -> None:
    golden, kernel, x, states = case(0)
    z = np.array(golden["z"], float)
    y = np.array(golden["y"])
    alone, beside = (Improvement(kernel, states, x, y, pending)(z) for pending in (x[:0], z[1:2]))
    assert beside[1] < alone[1] - 1.0
    far = np.abs(z - z[1]).sum(axis=1) >= 4
    assert far.any()
    np.testing.assert_allclose(beside[far], alone[far], atol=0.5)


def test_priors_are_those_of_the_published_code_up_to_constants() -> None:
    golden = GOLDEN["priors"]
    kernel = Diffusion([path(2)] * 4 + [path(5)])

    def check(name: str, ours: Any, scale: float = 1.0) -> None:
        got = np.array([ours(value * scale) for value in golden["at"]])
        expected = np.array(golden[name])
        finite = np.isfinite(expected)
        assert (np.isfinite(got) == finite).all()
        gap = got[finite] - expected[finite]
        np.testing.assert_allclose(gap, gap[0], atol=1e-5)

    check("beta", log_prior_beta)
    check("noise", log_prior_noise)
    values = np.array([-0.93, 1.53, 0.2])
    check("mean", Evidence(kernel, np.zeros((3, 5)), values).log_prior_mean, 0.1)
    values = np.array([-1.0, 0.0, 1.0]) * np.sqrt(1.3)  # their variance is 1.3
    check("amplitude", Evidence(kernel, np.zeros((3, 5)), values).log_prior_amplitude)


@pytest.mark.slow
@pytest.mark.parametrize("golden", GOLDEN["sampled"], ids=lambda golden: golden["name"])
def test_sampled_hyperparameters_have_the_distribution_of_the_published_ones(golden: dict[str, Any]) -> None:
    kernel = Diffusion([np.array(graph) for graph in golden["graphs"]])
    evidence = Evidence(kernel, np.array(golden["x"], float), np.array(golden["y"]))
    rng = np.random.default_rng(0)
    state = State(0.0, float(np.log(0.5)), 0.0, np.zeros(len(kernel.graphs)))
    chain = []
    for _ in range(200 + golden["sweeps"] // 3):
        state = evidence.sweep(state, rng=rng)
        chain.append([state.log_amplitude, state.mean, state.log_noise, *state.log_beta])
    drawn = np.array(chain[200:])
    for power in (1, 2):
        batches = (drawn**power)[: len(drawn) // BATCHES * BATCHES].reshape(BATCHES, -1, drawn.shape[1]).mean(axis=1)
        ours, error = batches.mean(axis=0), batches.std(axis=0, ddof=1) / BATCHES**0.5
        theirs, other = (np.array(golden[f"{name} of power {power}"]) for name in ("mean", "error"))
        z = (ours - theirs) / np.sqrt(error**2 + other**2)
        assert np.abs(z).max() < 4.0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("log_density", "cdf"),
    [
        (lambda x: -0.5 * x**2, "norm"),
        (lambda x: -x if x >= 0.0 else -np.inf, "expon"),
        (lambda x: 0.0 if 0.0 <= x <= 1.0 else -np.inf, "uniform"),
    ],
)
def test_slice_sampling_leaves_a_density_unchanged(log_density: Any, cdf: str) -> None:
    rng = np.random.default_rng(0)
    at, drawn = 0.5, []
    for step in range(12_000):
        at = slice_sample(log_density, at, rng=rng)
        if step % 8 == 0:
            drawn.append(at)
    assert kstest(drawn, cdf).pvalue > 1e-3


@pytest.mark.slow
def test_slice_sampling_crosses_from_one_mode_to_another_as_often_as_their_weights_say() -> None:
    """Without the test that makes doubling reversible, the right share would be 0.38 here, and not 0.49."""

    def log_density(x: float) -> float:
        return float(np.logaddexp(-0.5 * (x / 0.15) ** 2 - np.log(0.15), -0.5 * ((x - 2.5) / 0.6) ** 2 - np.log(0.6)))

    rng = np.random.default_rng(1)
    at, right = 0.0, []
    for _ in range(10_000):
        at = slice_sample(log_density, at, rng=rng)
        right.append(at > 1.25)
    batches = np.array(right).reshape(40, -1).mean(axis=1)
    assert abs(batches.mean() - 0.5 * norm.cdf(1.25 / 0.6)) < 3.5 * batches.std(ddof=1) / 40**0.5


def test_the_gradient_by_log_beta_is_exact() -> None:
    rng = np.random.default_rng(0)
    kernel = Diffusion([path(2), path(4), complete(3)])
    x = kernel.features(rng.integers(0, [2, 4, 3], (10, 3)).astype(float))
    y, at = rng.standard_normal(10), np.array([-0.5, -1.0, -0.3, 0.2, -2.0])
    fit = Fit()
    numeric = approx_fprime(at, lambda p: fit.loss(kernel, x, y, p)[0], 1e-7)
    np.testing.assert_allclose(fit.loss(kernel, x, y, at)[1], numeric, rtol=1e-4, atol=1e-5)


def test_neighbours_are_the_edges_of_the_graphs() -> None:
    row = np.array([1.0, 0.0, 2.0])
    near = Diffusion([path(2), path(4), complete(3)]).neighbours(row)
    assert near.tolist() == [[0, 0, 2], [1, 1, 2], [1, 0, 0], [1, 0, 1]]
    assert len(Diffusion([path(5)] * 3).neighbours(np.full(3, 2.0))) == 6
    assert len(Diffusion([complete(5)] * 3).neighbours(np.full(3, 2.0))) == 12


def mixed() -> Space:
    return Space(
        [
            Binary("a"),
            Binary("b"),
            Ordinal("c", [1, 2, 3, 4]),
            Categorical("d", list("uvw")),
            Categorical("e", list("xyz")),
        ]
    )


def test_ascents_end_where_no_neighbour_is_better_and_the_best_comes_first() -> None:
    space = mixed()
    rival = Combo(space, 20, 0)
    weights = np.random.default_rng(0).standard_normal((5, 4))

    def value(z: np.ndarray) -> np.ndarray:
        return np.asarray(weights[np.arange(5), z.astype(int)].sum(axis=1) + 0.5 * (z[:, 0] != z[:, 1]))

    start = space.sample(20, rng=np.random.default_rng(1))
    ends = rival._ascend(start, value(start), value)
    assert (np.diff(value(ends)) <= 0.0).all()
    for end in ends:
        assert value(rival._kernel.neighbours(end)).max() <= value(end[None])[0]
    assert value(ends).max() == pytest.approx(value(space.grid()).max())


def test_a_point_that_is_known_gives_way_to_the_next_end_then_to_a_neighbour() -> None:
    rival = Combo(Space([Binary("a"), Binary("b")]), 20, 0)
    ends = np.array([[1.0, 1.0], [0.0, 1.0]])
    assert rival._first_unseen(ends).tolist() == [1.0, 1.0]
    rival._note(ends[0])
    assert rival._first_unseen(ends).tolist() == [0.0, 1.0]
    rival._note(ends[1])
    assert rival._first_unseen(ends).tolist() == [1.0, 0.0]


def test_samples_of_the_published_version_share_the_last_prior_mean() -> None:
    space = mixed()
    x = space.sample(8, rng=np.random.default_rng(0))
    y = np.random.default_rng(1).standard_normal(8)
    for cls, count in ((Combo, 10), (ComboPublished, 1)):
        rival = cls(space, 20, 0)
        rival._state = State(0.0, 0.0, -3.0, np.zeros(5))  # no burn-in
        states = rival._sample(Evidence(rival._kernel, x, y), rng=np.random.default_rng(2))
        assert len({state.mean for state in states}) == count
        assert len({state.log_noise for state in states}) == 10


@pytest.mark.slow
def test_it_burns_in_once_and_then_takes_ten_samples_for_each_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    sweeps: list[State] = []
    sweep = Evidence.sweep

    def spy(self: Evidence, state: State, *, rng: np.random.Generator) -> State:
        sweeps.append(state)
        return sweep(self, state, rng=rng)

    monkeypatch.setattr(Evidence, "sweep", spy)
    rival = Combo(mixed(), 20, 0)
    counts = []
    for trial in rival.ask(5):
        rival.tell(trial, float(trial.id))
    for _ in range(2):
        sweeps.clear()
        trial = rival.ask()[0]
        counts.append(len(sweeps))
        rival.tell(trial, 1.0)
    assert counts == [110, 10]


def test_only_the_published_version_prefers_the_first_and_last_category_before_it_knows_anything() -> None:
    """The paper's histogram: categories of the points with the highest expected improvement, far from the data."""
    n = 6
    rng = np.random.default_rng(0)
    x = rng.integers(1, 4, (8, n)).astype(float)
    y = rng.standard_normal(8)
    states = [State(0.0, 0.0, -6.0, np.zeros(n))]
    z = rng.integers(0, 5, (4000, n)).astype(float)

    def share_of_ends(graph: Any) -> float:
        values = Improvement(Diffusion([graph(5)] * n), states, x, y, x[:0])(z)
        best = z[np.argsort(-values)[:40]]
        return float(np.isin(best, [0.0, 4.0]).mean())

    assert share_of_ends(path) > share_of_ends(complete) + 0.1
