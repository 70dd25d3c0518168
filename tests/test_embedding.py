from __future__ import annotations

import json
import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bounce import Categorical, InvalidState, Ordinal, Space
from bounce.spaces.parameters import Kind
from bounce.subspace.code_tables import bins_per_kind
from bounce.subspace.embedding import Embedding
from spaces import binary, generators, mixed, reals, spaces


def embed(space: Space, n_bins: int, rng: np.random.Generator, *, low_sequency: bool = False) -> Embedding:
    return Embedding.random(space, n_bins, low_sequency=low_sequency, rng=rng)


@pytest.mark.slow
@given(spaces(), st.integers(1, 6), st.integers(1, 3), st.booleans(), generators())
@settings(max_examples=150)
def test_a_split_keeps_every_point_of_its_parent(
    space: Space, n_bins: int, new_bins: int, low_sequency: bool, rng: np.random.Generator
) -> None:
    parent = embed(space, n_bins, rng, low_sequency=low_sequency)
    z = parent.latent.sample(6, rng=rng)
    original = parent.up(z)
    x = original
    while not parent.is_input:
        child = parent.split(new_bins, rng=rng)
        moved, inside = child.down(parent.up(z))
        assert inside.all()
        assert child.latent.holds(moved)
        np.testing.assert_array_equal(child.up(moved), parent.up(z))
        parent, z, x = child, moved, child.up(moved)
    np.testing.assert_array_equal(x, original)


@given(spaces(), st.integers(1, 6), generators())
def test_down_inverts_up(space: Space, n_bins: int, rng: np.random.Generator) -> None:
    embedding = embed(space, n_bins, rng)
    for _ in range(3):
        z = embedding.latent.sample(6, rng=rng)
        back, inside = embedding.down(embedding.up(z))
        assert inside.all()
        np.testing.assert_array_equal(back, z)
        embedding = embedding.split(1, rng=rng)


@given(spaces(discrete=True), st.integers(1, 6), st.booleans(), generators())
def test_every_value_of_every_variable_is_reachable_in_every_space(
    space: Space, n_bins: int, low_sequency: bool, rng: np.random.Generator
) -> None:
    embedding = embed(space, n_bins, rng, low_sequency=low_sequency)
    while True:
        for table, cardinality in zip(embedding.tables, space.cardinalities, strict=True):
            assert set(table.tolist()) == set(range(cardinality))
        if embedding.is_input:
            break
        embedding = embedding.split(1, rng=rng)
    assert embedding.latent.size == space.size


@given(spaces(discrete=True, most=8), st.integers(1, 4), generators())
def test_different_latent_codes_are_different_points(space: Space, n_bins: int, rng: np.random.Generator) -> None:
    embedding = embed(space, n_bins, rng)
    while True:
        if embedding.latent.size <= 3000:
            z = embedding.latent.grid()
            assert len(set(space.keys(embedding.up(z)))) == len(z)
        if embedding.is_input:
            break
        embedding = embedding.split(2, rng=rng)


def test_points_outside_the_target_space_are_recognised() -> None:
    rng = np.random.default_rng(0)
    space = mixed(4)
    embedding = embed(space, 5, rng)
    x = space.sample(200, rng=rng)
    z, inside = embedding.down(x)
    assert not inside.any()
    assert len(z) == 200


def test_bins_hold_one_kind_and_are_even() -> None:
    rng = np.random.default_rng(0)
    space = mixed(10)
    embedding = embed(space, 8, rng)
    for part in embedding.members:
        assert len({space.kinds[i] for i in part}) == 1
    while not embedding.is_input:
        for kind in Kind:
            sizes = [len(p) for p in embedding.members if space.kinds[p[0]] is kind]
            assert max(sizes) - min(sizes) <= 2
        embedding = embedding.split(2, rng=rng)


def test_a_split_divides_every_bin_that_can_be_divided() -> None:
    rng = np.random.default_rng(0)
    embedding = embed(binary(50), 5, rng)
    dims = [5]
    while not embedding.is_input:
        embedding = embedding.split(1, rng=rng)
        dims.append(len(embedding.members))
    assert dims == [5, 10, 20, 40, 50]


def test_bins_are_shared_in_proportion() -> None:
    assert bins_per_kind({Kind.BINARY: 50, Kind.REAL: 3}, 5) == {Kind.BINARY: 4, Kind.REAL: 1}
    assert bins_per_kind({Kind.BINARY: 10, Kind.REAL: 10}, 6) == {Kind.BINARY: 3, Kind.REAL: 3}
    assert bins_per_kind({Kind.BINARY: 1, Kind.REAL: 99}, 4) == {Kind.BINARY: 1, Kind.REAL: 3}
    assert bins_per_kind({Kind.BINARY: 2, Kind.REAL: 2}, 9) == {Kind.BINARY: 2, Kind.REAL: 2}


def test_every_kind_gets_a_bin() -> None:
    assert len(embed(mixed(3), 2, np.random.default_rng(0)).members) == 4


def test_the_papers_mapping_of_unequal_cardinalities() -> None:
    # The figure of the paper: a bin of 3 categories maps to 1, 1, 2 of 2 categories, up to relabelling;
    # here without relabelling, counted from 0: ceil(k·2/3) − 1.
    space = Space([Categorical("k", ["a", "b"]), Categorical("l", ["a", "b", "c"])])
    embedding = embed(space, 1, np.random.default_rng(0), low_sequency=True)
    assert embedding.up(np.arange(3.0)[:, None]).tolist() == [[0, 0], [1, 1], [1, 2]]


def test_the_mapping_is_exact_where_floats_are_not() -> None:
    # ceil(25 · (7/25)) is 8 in floats.
    space = Space([Ordinal("a", list(range(7))), Ordinal("b", list(range(25)))])
    embedding = embed(space, 1, np.random.default_rng(0), low_sequency=True)
    assert embedding.tables[0].max() == 6
    k = np.arange(1, 26)
    assert embedding.tables[0].tolist() == [math.ceil(i * 7 / 25 - 1e-9) - 1 for i in k]


def test_ordinals_keep_their_order_or_reverse_it() -> None:
    space = Space([Ordinal(f"o{i}", list(range(2 + i % 7))) for i in range(40)])
    embedding = embed(space, 6, np.random.default_rng(3))
    directions = Counter[int]()
    while True:
        for table in embedding.tables:
            steps = np.unique(np.sign(np.diff(table)))
            assert not {-1, 1} <= set(steps.tolist())
        if embedding.is_input:
            break
        embedding = embedding.split(2, rng=np.random.default_rng(1))
    for table in embedding.tables:
        directions[int(np.sign(table[-1] - table[0]))] += 1
    assert min(directions[1], directions[-1]) > 8


def test_signs_and_permutations_are_random_unless_low_sequency() -> None:
    rng = np.random.default_rng(0)
    space = mixed(40)
    shuffled, plain = embed(space, 8, rng), embed(space, 8, rng, low_sequency=True)
    assert 20 < shuffled.mirrored.sum() < 60  # of 80 reals
    assert not plain.mirrored.any()
    flipped = [t for t, k in zip(shuffled.tables, space.kinds, strict=True) if k is Kind.BINARY and t[0] == 1]
    assert 10 < len(flipped) < 30
    for table in plain.tables:
        assert np.all(np.diff(table) >= 0)
    zero = plain.up(np.zeros((1, len(plain.members))))
    assert not zero.any()


def test_relabelling_the_input_commutes_with_the_embedding_and_its_splits() -> None:
    space = mixed(5)
    relabel = np.random.default_rng(7)
    for seed in range(5):
        a = embed(space, 6, np.random.default_rng(seed))
        permutations = [
            relabel.permutation(c) if k is Kind.CATEGORICAL else np.arange(c)[:: -1 if relabel.random() < 0.5 else 1]
            for c, k in zip(space.cardinalities, space.kinds, strict=True)
        ]
        tables = tuple(p[t] for p, t in zip(permutations, a.tables, strict=True))
        b = Embedding(space, a.members, a.mirrored, tables)
        for _ in range(3):
            z = a.latent.sample(9, rng=relabel)
            x, y = a.up(z), b.up(z)
            for j in space.combinatorial:
                np.testing.assert_array_equal(permutations[j][x[:, j].astype(int)], y[:, j])
            assert a.latent == b.latent
            a, b = a.split(1, rng=np.random.default_rng(seed)), b.split(1, rng=np.random.default_rng(seed))


@given(spaces(), st.integers(1, 6), generators())
def test_an_embedding_goes_through_json_unchanged(space: Space, n_bins: int, rng: np.random.Generator) -> None:
    embedding = embed(space, n_bins, rng).split(1, rng=rng)
    back = Embedding.from_dict(space, json.loads(json.dumps(embedding.to_dict())))
    z = embedding.latent.sample(5, rng=rng)
    assert back.latent == embedding.latent
    np.testing.assert_array_equal(back.up(z), embedding.up(z))


def test_a_document_that_does_not_fit_the_space_is_refused() -> None:
    space = mixed(2)
    good = embed(space, 6, np.random.default_rng(0)).to_dict()
    Embedding.from_dict(space, good)
    for bad in (
        good | {"members": good["members"][1:]},
        good | {"members": [[i for part in good["members"] for i in part]]},
        good | {"tables": good["tables"][1:]},
        good | {"tables": [[0, 0] if t else [] for t in good["tables"]]},
        good | {"mirrored": [int(space.combinatorial[0])]},
    ):
        with pytest.raises(InvalidState, match="does not fit"):
            Embedding.from_dict(space, bad)


def test_parents_are_the_bins_that_were_split() -> None:
    rng = np.random.default_rng(0)
    parent = embed(reals(12), 3, rng)
    child = parent.split(1, rng=rng)
    for j, i in enumerate(parent.parents(child)):
        assert set(child.members[j]) <= set(parent.members[i])


def test_small_target_spaces_can_be_listed() -> None:
    rng = np.random.default_rng(0)
    listed = embed(binary(20), 5, rng).points(100)
    assert listed is not None
    assert len(np.unique(listed, axis=0)) == 32
    assert embed(binary(20), 8, rng).points(100) is None
    assert embed(reals(3), 3, rng).points(100) is None
