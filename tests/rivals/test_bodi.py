"""BODi: dictionaries, features, model, acquisition and searches, against the published code and against formulas.

Golden values: tests/golden/rivals/make_bodi.py.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from scipy.stats import chi2, gamma, multivariate_normal, norm

from bounce import Binary, Categorical, Ordinal, Real, Space, baselines
from bounce.baselines.rivals.ascent import Improvement, Search, maximise, neighbours, sprayed
from bounce.baselines.rivals.bodi import LEAST, design, fitted, loss
from bounce.baselines.rivals.dictionaries import Dictionary, Embedding, described, normalised_levels, published
from bounce.baselines.rivals.gaussian import Gaussian, Matern52
from bounce.baselines.rivals.rival import standardised

GOLDEN = json.loads((Path(__file__).parents[1] / "golden/rivals/bodi.json").read_text())
LENGTHSCALES = (1e-6, 1e6)
UNIT = np.zeros(2), np.ones(2)


def bits(n: int) -> Space:
    return Space([Binary(f"b{i}") for i in range(n)])


def mixed() -> Space:
    return Space(
        [Binary("a"), Real("b", 0, 1), Categorical("c", list("xyz")), Ordinal("d", [1, 2, 3, 4]), Real("e", 0, 1)]
    )


# ---------------------------------------------------------------------------------------------------- dictionaries


def agree(ours: np.ndarray, theirs: np.ndarray) -> bool:
    """Whether two histograms come from one distribution (chi-squared of two samples, at 1 in 10,000)."""
    total = ours + theirs
    ours, theirs = (np.append(h[total >= 20], h[total < 20].sum()) for h in (ours, theirs))
    a, b = ours.sum(), theirs.sum()
    seen = ours + theirs > 0
    statistic = ((ours * math.sqrt(b / a) - theirs * math.sqrt(a / b)) ** 2)[seen] / (ours + theirs)[seen]
    return bool(statistic.sum() < chi2(seen.sum() - 1).ppf(1 - 1e-4))


def test_published_bits_have_as_many_ones_as_those_of_the_published_code() -> None:
    anchors = published(np.full(12, 2), 20_000, rng=np.random.default_rng(0))
    ones = np.bincount(anchors.sum(axis=1).astype(int), minlength=13)
    assert ones[[0, 11, 12]].tolist() == [0, 0, 0]
    assert agree(ones, np.array(GOLDEN["binary counts"]))
    np.testing.assert_allclose(anchors.mean(axis=0), 5.5 / 12, atol=0.015)  # every place alike


def test_published_categories_come_as_often_as_those_of_the_published_code() -> None:
    anchors = published(np.full(25, 5), 20_000, rng=np.random.default_rng(0))
    for code in range(5):
        counts = np.bincount((anchors == code).sum(axis=1), minlength=26)
        assert agree(counts, np.array(GOLDEN["category counts"][code]))


def test_described_bits_have_any_number_of_ones() -> None:
    anchors = described(np.full(12, 2), 26_000, rng=np.random.default_rng(0))
    ones = np.bincount(anchors.sum(axis=1).astype(int), minlength=13)
    assert agree(ones, np.full(13, 2000))


def test_described_entries_of_fewer_codes_are_uniform_over_them() -> None:
    sizes = np.array([2, 5, 3, 5])
    anchors = described(sizes, 20_000, rng=np.random.default_rng(0))
    for j, size in enumerate(sizes):
        np.testing.assert_allclose(np.bincount(anchors[:, j].astype(int)) / 20_000, 1 / size, atol=0.02)
    # Two variables of the largest size share θ: they agree with probability E Σ θ_i² = 2/(size + 1), not 1/size.
    assert (anchors[:, 1] == anchors[:, 3]).mean() == pytest.approx(2 / 6, abs=0.02)


@pytest.mark.parametrize("sampler", [described, published])
@pytest.mark.parametrize("sizes", [[2], [2, 2], [2, 2, 2], [3], [5, 2, 3], [1, 4]])
def test_small_dictionaries_hold_codes(sampler: Any, sizes: list[int]) -> None:
    anchors = sampler(np.array(sizes), 50, rng=np.random.default_rng(0))
    assert anchors.shape == (50, len(sizes))
    assert ((anchors >= 0) & (anchors < np.array(sizes)) & (anchors == np.floor(anchors))).all()


def test_features_are_shares_of_entries_that_agree() -> None:
    rng = np.random.default_rng(0)
    sizes = np.array([2, 5, 3, 4])
    dictionary = Dictionary(described(sizes, 7, rng=rng), sizes)
    x = rng.integers(0, sizes, (30, 4)).astype(float)
    expected = (x[:, None] == dictionary.anchors).mean(axis=2)
    np.testing.assert_allclose(dictionary(x), expected, atol=1e-15)


def test_moves_lead_to_each_neighbour_once() -> None:
    rng = np.random.default_rng(0)
    sizes = np.array([2, 5, 3])
    dictionary = Dictionary(described(sizes, 6, rng=rng), sizes)
    x = rng.integers(0, sizes, (4, 3)).astype(float)
    moves, added = dictionary.moves(x)
    assert moves.shape == (4, 1 + 4 + 2)
    for k in range(moves.shape[1]):
        near = dictionary.moved(x, moves[:, k])
        assert ((near != x).sum(axis=1) == 1).all()
        np.testing.assert_allclose(dictionary(near), dictionary(x) + added[:, k], atol=1e-15)
    assert len({tuple(dictionary.moved(x[:1], moves[:1, k])[0]) for k in range(7)}) == 7


# ------------------------------------------------------------------------------------------- against published code


def embedded(kind: str) -> tuple[Embedding, dict[str, np.ndarray], Gaussian]:
    """The golden model of a kind, on our side: we minimise."""
    case = GOLDEN[kind]
    x, y = np.array(case["x"]), np.array(case["y"])
    d = x.shape[1]
    space = {
        "binary": bits(d),
        "categorical": Space([Categorical(f"c{i}", list("vwxyz")) for i in range(d)]),
        "mixed": Space([*bits(d - 2).parameters, Real("r", 0, 1), Real("s", 0, 1)]),
    }[kind]
    sizes = space.cardinalities[space.combinatorial]
    levels = normalised_levels(sizes, x[:, space.combinatorial])
    low, high = x[:, space.reals].min(axis=0), x[:, space.reals].max(axis=0)
    embedding = Embedding(space, Dictionary(np.array(case["anchors"]), sizes, levels), low, high - low)
    z = embedding(x)
    targets = -standardised(y) * math.sqrt((len(y) - 1) / len(y))
    covariance = Matern52(z.shape[1], LENGTHSCALES)
    gp = Gaussian(covariance, np.log(case["lengthscales"]), 1.7, 0.02, z, targets, constant=False)
    return embedding, {key: np.array(value) for key, value in case.items()}, gp


KINDS = ["binary", "categorical", "mixed"]


@pytest.mark.parametrize("kind", KINDS)
def test_features_and_covariances_are_those_of_the_published_code(kind: str) -> None:
    _, golden, gp = embedded(kind)
    np.testing.assert_allclose(gp.x[:, : golden["features"].shape[1]], golden["features"], atol=1e-12)
    np.testing.assert_allclose(1.7 * gp.covariance(gp.theta, gp.x, gp.x), golden["covariance"], atol=1e-7)


@pytest.mark.parametrize("kind", KINDS)
def test_acquisition_values_are_those_of_the_published_code(kind: str) -> None:
    embedding, golden, gp = embedded(kind)
    mean, sd = gp.posterior(embedding(golden["candidates"]))
    np.testing.assert_allclose(-mean, golden["mean"], atol=1e-6)
    np.testing.assert_allclose(sd**2, golden["variance"], atol=1e-6)
    improvement = Improvement(gp, embedding, np.empty((0, len(embedding.space))), rng=np.random.default_rng(0))
    np.testing.assert_allclose(improvement.at(golden["candidates"]), golden["improvement"], rtol=1e-5, atol=1e-9)


def raw(lengthscales: Any, signal: float, noise: float) -> np.ndarray:
    """The parameters of a fit for a zero mean."""
    natural = np.append(lengthscales, [signal - LEAST[0], noise - LEAST[1]])
    return np.append(np.log(np.expm1(natural)), 0.0)


@pytest.mark.parametrize("kind", KINDS)
def test_likelihood_and_priors_are_those_of_the_published_code(kind: str) -> None:
    _, golden, gp = embedded(kind)
    value = loss(gp.x, gp.y, raw(golden["lengthscales"], 1.7, 0.02))[0] - CONSTANTS / len(gp.y)
    assert value * len(gp.y) == pytest.approx(float(golden["loss"]), rel=1e-6)


CONSTANTS = sum(shape * math.log(rate) - math.lgamma(shape) for shape, rate in ((2.0, 0.15), (0.9, 10.0)))


def test_the_loss_is_the_density_of_the_data_and_its_gradient_is_exact() -> None:
    _, golden, gp = embedded("mixed")
    at = raw(golden["lengthscales"], 1.7, 0.02)
    at[-1] = 0.3
    k = 1.7 * gp.covariance(gp.theta, gp.x, gp.x) + 0.02 * np.eye(len(gp.y))
    density = multivariate_normal(np.full(len(gp.y), 0.3), k).logpdf(gp.y)
    density += gamma(2.0, scale=1 / 0.15).logpdf(1.7) + gamma(0.9, scale=0.1).logpdf(0.02)
    value, gradient = loss(gp.x, gp.y, at)
    assert value - CONSTANTS / len(gp.y) == pytest.approx(-density / len(gp.y))
    np.testing.assert_allclose(gradient, approx_fprime(at, lambda p: loss(gp.x, gp.y, p)[0], 1e-7), atol=1e-6)


@pytest.mark.parametrize("case", range(len(GOLDEN["fits"])))
def test_fits_end_at_the_optimum_of_the_published_fit(case: int) -> None:
    """Of many optima: 128 lengthscales and 30 or 60 values."""
    golden = GOLDEN["fits"][case]
    x, anchors, near = (np.array([list(row) for row in golden[key]], dtype=float) for key in ("x", "anchors", "near"))
    space = bits(x.shape[1])
    y = np.array(golden["y"])
    embedding = Embedding(space, Dictionary(anchors, space.cardinalities), np.empty(0), np.empty(0))
    z = embedding(x)
    gp = fitted(z, -standardised(y) * math.sqrt((len(y) - 1) / len(y)))
    assert gp.signal == pytest.approx(golden["signal"], rel=0.01)
    assert gp.noise == pytest.approx(golden["noise"], rel=0.01)
    assert np.exp(gp.theta.min()) == pytest.approx(min(golden["lengthscales"]), rel=0.01)
    improvement = Improvement(gp, embedding, np.empty((0, len(space))), rng=np.random.default_rng(0))
    np.testing.assert_allclose(improvement.at(near), golden["improvement"], rtol=0.05, atol=1e-3)


def test_climbs_end_where_those_of_the_published_code_end() -> None:
    embedding, golden, gp = embedded("binary")
    improvement = Improvement(gp, embedding, np.empty((0, 9)), rng=np.random.default_rng(0))
    starts = np.concatenate([golden["starts"], neighbours(embedding, golden["x"][golden["y"].argmax()])])
    values = improvement.at(starts)
    top = np.argsort(-values)[:6]
    search = Search(improvement, starts[top], values[top]).climbed(np.full(6, True))
    best = search.values.argmax()
    assert search.codes[best].tolist() == golden["found"].tolist()
    assert search.values[best] == pytest.approx(float(golden["found value"]), rel=1e-6)


def test_mixed_searches_find_as_much_as_those_of_the_published_code() -> None:
    embedding, golden, gp = embedded("mixed")
    improvement = Improvement(gp, embedding, np.empty((0, 9)), rng=np.random.default_rng(0))
    incumbent = golden["x"][golden["y"].argmax()]
    for seed in range(3):
        found = maximise(improvement, incumbent, rng=np.random.default_rng(seed))
        assert improvement.at(found[None])[0] == pytest.approx(float(golden["found value"]), rel=1e-5)


def test_after_normalisation_only_the_least_and_the_largest_code_agree_with_anchors() -> None:
    rng = np.random.default_rng(0)
    sizes = np.full(6, 5)
    seen = np.concatenate([rng.integers(0, 5, (20, 6)), np.zeros((1, 6)), np.full((1, 6), 4)]).astype(float)
    dictionary = Dictionary(published(sizes, 200, rng=rng), sizes, normalised_levels(sizes, seen))
    for code, agrees in enumerate([True, False, False, False, True]):
        assert dictionary(np.full((1, 6), float(code))).any() == agrees
    seen[:, 2] = 3.0  # a column of one code stays as it is
    assert normalised_levels(sizes, seen)[10:15].tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]


# ------------------------------------------------------------------------------------------------------ acquisition


def model(seed: int = 3) -> tuple[Embedding, Gaussian]:
    """A process on a mixed space with parameters that nobody fitted."""
    space, sizes = mixed(), np.array([2, 3, 4])
    rng = np.random.default_rng(seed)
    embedding = Embedding(space, Dictionary(described(sizes, 16, rng=rng), sizes), *UNIT)
    z = embedding(space.sample(25, rng=rng))
    y = standardised(np.sin(3.0 * z.sum(axis=1)) + z[:, 0])
    return embedding, Gaussian(Matern52(18, LENGTHSCALES), rng.uniform(-1.0, 1.0, 18), 1.3, 0.01, z, y)


def improvement_of(pending: int = 0) -> Improvement:
    embedding, gp = model()
    rng = np.random.default_rng(4)
    return Improvement(gp, embedding, embedding.space.sample(pending, rng=rng), rng=rng)


def test_improvement_is_that_of_the_posterior() -> None:
    embedding, gp = model()
    codes = embedding.space.sample(9, rng=np.random.default_rng(1))
    mean, sd = gp.posterior(embedding(codes))
    u = (gp.y.min() - mean) / sd
    expected = sd * (norm.pdf(u) + u * norm.cdf(u))
    np.testing.assert_allclose(improvement_of().at(codes), expected, rtol=1e-8, atol=1e-12)


def test_improvement_beside_pending_points_is_that_of_the_batch() -> None:
    """What a point adds to the expected improvement of a batch, by plain Monte Carlo from the joint posterior."""
    embedding, gp = model()
    rng = np.random.default_rng(3)
    pending, candidates = (embedding.space.sample(n, rng=rng) for n in (3, 4))
    draws = gp.sample(embedding(np.concatenate([pending, candidates])), 400_000, rng=rng)
    lowest = np.minimum(draws[:, :3].min(axis=1), gp.y.min())[:, None]
    expected = np.maximum(lowest - draws[:, 3:], 0.0).mean(axis=0)
    found = np.mean([Improvement(gp, embedding, pending, rng=rng).at(candidates) for _ in range(100)], axis=0)
    np.testing.assert_allclose(found, expected, rtol=0.03, atol=1e-4)


# ---------------------------------------------------------------------------------------------------------- search


def test_a_climb_ends_at_a_point_without_a_better_neighbour() -> None:
    improvement = improvement_of()
    space = improvement.embedding.space
    codes = space.sample(5, rng=np.random.default_rng(0))
    search = Search(improvement, codes, improvement.at(codes)).climbed(np.array([True, True, True, True, False]))
    assert (search.codes[4] == codes[4]).all()
    np.testing.assert_allclose(search.values, improvement.at(search.codes), rtol=1e-9)
    for row, value in zip(search.codes[:4], search.values[:4], strict=True):
        assert improvement.at(neighbours(improvement.embedding, row)).max() <= value * (1 + 1e-9)


def test_alternation_finds_reals_that_no_random_point_beats() -> None:
    improvement = improvement_of()
    space = improvement.embedding.space
    found = maximise(improvement, space.sample(1, rng=np.random.default_rng(0))[0], rng=np.random.default_rng(1))
    random = space.sample(20_000, rng=np.random.default_rng(2))
    assert improvement.at(found[None])[0] >= improvement.at(random).max()


def test_spray_points_are_neighbours_with_perturbed_reals() -> None:
    improvement = improvement_of()
    space = improvement.embedding.space
    point = space.sample(1, rng=np.random.default_rng(0))[0]
    codes, values = sprayed(improvement, point, 10_000, rng=np.random.default_rng(1))
    others = space.combinatorial
    assert len(codes) == 200 * (1 + 2 + 3)
    assert ((codes[:, others] != point[others]).sum(axis=1) == 1).all()
    inner = codes[:, space.reals][(codes[:, space.reals] > 0).all(axis=1) & (codes[:, space.reals] < 1).all(axis=1)]
    assert np.abs(inner - point[space.reals]).max() < 5 / 8
    np.testing.assert_allclose(values, improvement.at(codes), rtol=1e-9)
    assert (np.diff(values) <= 0).all()


# ---------------------------------------------------------------------------------------------------------- rivals


def test_the_published_design_has_between_1_and_d_minus_2_ones() -> None:
    ones = design(bits(10), 500, seed=1).sum(axis=1)
    assert set(ones) == set(range(1, 9))
    reals = design(Space([Real("a", 0, 1), Binary("b")]), 8, seed=1)[:, 0]
    assert sorted((reals * 8).astype(int)) == list(range(8))  # one per cell, as a Sobol sequence has them


def test_published_and_described_methods_start_at_their_own_points() -> None:
    space = bits(12)
    first, second = (baselines.make(name, space, 9, 0).ask(5) for name in ("bodi", "bodi-published"))
    assert [t.point for t in first] == [t.point for t in baselines.make("random", space, 9, 0).ask(5)]
    assert [t.point for t in second] == space.decode(design(space, 5, seed=0))


@pytest.mark.slow
def test_a_thousand_bits() -> None:
    space = bits(1000)
    optimizer = baselines.make("bodi", space, 7, 0)
    trials = optimizer.ask(6)
    optimizer.tell(trials, [float(sum(map(bool, trial.point.values()))) for trial in trials])
    assert optimizer.ask()[0].point in space
