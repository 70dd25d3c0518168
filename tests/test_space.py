from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from bounce import Binary, Categorical, Integer, InvalidPoint, InvalidSpace, Ordinal, Real, Space
from bounce.spaces.parameters import GRID, Kind
from spaces import generators, mixed, spaces


@given(spaces(), generators())
def test_decoding_codes_and_encoding_the_points_gives_the_codes_back(space: Space, rng: np.random.Generator) -> None:
    codes = space.sample(8, rng=rng)
    again = space.encode(space.decode(codes))
    assert space.holds(codes)
    assert space.holds(again)
    assert space.decode(again)[0].keys() == space.decode(codes)[0].keys()
    columns = space.combinatorial
    np.testing.assert_array_equal(again[:, columns], codes[:, columns])
    np.testing.assert_allclose(
        np.array([[float(x) for x in p.values() if isinstance(x, float)] for p in space.decode(again)]),
        np.array([[float(x) for x in p.values() if isinstance(x, float)] for p in space.decode(codes)]),
        rtol=1e-12,
    )


@given(spaces(), generators())
def test_points_keep_their_values_through_codes_and_json(space: Space, rng: np.random.Generator) -> None:
    for point in space.decode(space.sample(4, rng=rng)):
        assert point in space
        native = json.loads(json.dumps(point))
        back = space.decode(space.encode([native]))[0]
        for name, value in point.items():
            if isinstance(value, float):
                assert back[name] == pytest.approx(value, rel=1e-12)
            else:
                assert back[name] == value
                assert type(back[name]) is type(value)


@given(spaces())
def test_a_space_goes_through_json_unchanged(space: Space) -> None:
    assert Space.from_dict(json.loads(json.dumps(space.to_dict()))) == space


@given(st.integers(1, 10**6), st.integers(1, 10**9), st.booleans(), st.data())
def test_every_wide_integer_has_a_code_of_its_own(low: int, width: int, log: bool, data: st.DataObject) -> None:
    parameter = Integer("n", low, low + width, log=log)
    value = data.draw(st.integers(parameter.low, parameter.high))
    assert parameter.decode(parameter.encode(value)) == value
    assert type(parameter.decode(parameter.encode(value))) is int


@pytest.mark.parametrize("low", [-(10**12), 1])
def test_the_largest_integers_are_still_told_apart(low: int) -> None:
    parameter = Integer("n", low, 10**12, log=low > 0)
    for value in (low, low + 1, 7, 10**9, 10**12 - 1, 10**12):
        assert parameter.decode(parameter.encode(value)) == value


@pytest.mark.parametrize("log", [False, True])
@given(st.floats(1e-280, 1e280), st.floats(1e-280, 1e280))
def test_the_ends_of_a_real_are_exact(log: bool, one: float, other: float) -> None:
    assume(abs(one - other) > 1e-9 * max(one, other))
    parameter = Real("x", min(one, other), max(one, other), log=log)
    assert (parameter.decode(0.0), parameter.decode(1.0)) == (parameter.low, parameter.high)
    assert (parameter.encode(parameter.low), parameter.encode(parameter.high)) == (0.0, 1.0)


@given(st.integers(-(10**6), 10**6), st.integers(-(10**6), 10**6), st.integers(-9, 9), st.booleans(), st.data())
@settings(max_examples=300)
def test_a_decimal_comes_back_from_its_code_as_it_was_given(
    one: int, other: int, exponent: int, log: bool, data: st.DataObject
) -> None:
    """Ends of up to 7 digits, values of up to 9; a log scale of at least a thousandth above its lower end."""
    one, other = (abs(one) + 1, abs(other) + 1) if log else (one, other)
    assume(one != other and (not log or max(one, other) > 1.001 * min(one, other)))
    low, high = min(one, other), max(one, other)
    parameter = Real("x", float(f"{low}e{exponent}"), float(f"{high}e{exponent}"), log=log)
    value = float(f"{data.draw(st.integers(100 * low, 100 * high))}e{exponent - 2}")
    assert parameter.decode(parameter.encode(value)) == value


@pytest.mark.parametrize(
    ("low", "high", "log", "value"),
    [
        (1e-2, 1.0, True, 0.01),
        (8764.4, 760000.0, True, 70000.0),
        (7.8, 10.0, False, 7.896),
        (10000.0, 10001.0, False, 10000.1),
        (-0.1, 0.2, False, 0.0),
        (9624000.0, 9670000.0, True, 9640000.0),
        (-37.0, -0.887666, False, -8.1314),
        (-5091.1, -790.0, False, -1000.0),
        (47.0, 957.3, True, 946.9),
    ],
)
def test_a_value_shows_no_digits_of_rounding(low: float, high: float, log: bool, value: float) -> None:
    parameter = Real("x", low, high, log=log)
    assert parameter.decode(parameter.encode(value)) == value


@pytest.mark.slow
@given(st.floats(1e-6, 1e6), st.floats(1e-6, 1e6), st.booleans(), st.integers(1, 2**52 - 1))
@settings(max_examples=300)
def test_between_the_ends_no_shorter_decimal_has_the_same_code(one: float, other: float, log: bool, step: int) -> None:
    assume(max(one, other) > 1.5 * min(one, other))
    parameter = Real("x", min(one, other), max(one, other), log=log)
    shown = parameter.decode(step / GRID)
    code = parameter.encode(shown)
    digits = len(f"{shown!r}".split("e")[0].replace(".", "").strip("0"))
    for fewer in range(1, digits):
        shorter = float(f"{shown:.{fewer}g}")
        assert (
            not parameter.low <= shorter <= parameter.high or parameter.encode(shorter) != code or code != step / GRID
        )


@given(st.integers(0, 2**52), st.integers(-60, 60))
def test_the_codes_of_a_unit_scaled_by_a_power_of_two_come_back_bit_for_bit(step: int, power: int) -> None:
    parameter = Real("x", 0.0, 2.0**power)
    assert parameter.encode(parameter.decode(step / GRID)) == step / GRID


@pytest.mark.slow
@given(st.floats(-1e6, 1e6), st.floats(-1e6, 1e6), st.booleans(), st.integers(0, 2**52))
@settings(max_examples=300)
def test_other_codes_come_back_up_to_the_rounding_of_doubles(one: float, other: float, log: bool, step: int) -> None:
    """A range far from zero has more codes than doubles, and a logarithm has rounding of its own."""
    one, other = (abs(one) + 1e-6, abs(other) + 1e-6) if log else (one, other)
    assume(abs(one - other) > 1e-3 * max(abs(one), abs(other), 1e-3))
    parameter = Real("x", min(one, other), max(one, other), log=log)
    low, high = (math.log(parameter.low), math.log(parameter.high)) if log else (parameter.low, parameter.high)
    steps = abs(parameter.encode(parameter.decode(step / GRID)) * GRID - step)
    assert steps <= 2 + 4 * max(abs(low), abs(high), float(log)) / (high - low)


def test_mirroring_a_real_code_twice_gives_it_back() -> None:
    codes = Space([Real("x", 0, 1)]).sample(10_000, rng=np.random.default_rng(0))[:, 0]
    assert np.array_equal(1.0 - (1.0 - codes), codes)
    assert 1.0 - (1.0 - 1.0 / GRID) == 1.0 / GRID


def test_a_log_scale_spends_as_much_on_each_decade() -> None:
    parameter = Real("x", 1e-3, 1e3, log=True)
    assert parameter.decode(0.5) == pytest.approx(1.0)
    numbers = Integer("n", 1, 10**6, log=True)
    codes = np.linspace(0, 1, 7)
    assert np.all(np.diff(np.log10([numbers.decode(u) for u in codes])) > 0.5)


def test_kinds_follow_the_number_of_values() -> None:
    assert Integer("n", 1, 64).kind is Kind.ORDINAL
    assert Integer("n", 1, 65).kind is Kind.REAL
    assert Integer("n", 1, 8, log=True).kind is Kind.REAL
    others = (Real("x", 0, 1), Binary("b"), Ordinal("o", [1, 2]), Categorical("c", ["a", "b"]))
    assert [p.kind for p in others] == [Kind.REAL, Kind.BINARY, Kind.ORDINAL, Kind.CATEGORICAL]


def test_attributes_are_what_was_given() -> None:
    real, integer = Real("x", 1, 10, log=True), Integer("n", 2, 5)
    assert (real.name, real.low, real.high, real.log) == ("x", 1.0, 10.0, True)
    assert (integer.name, integer.low, integer.high, integer.log) == ("n", 2, 5, False)
    assert Ordinal("o", [3, 1, 2]).values == (3, 1, 2)
    assert Categorical("c", ["a", None, True, 1, 2.5]).choices == ("a", None, True, 1, 2.5)
    space = Space([real, integer])
    assert space.parameters == (real, integer)
    assert len(space) == 2


def test_sizes_are_counted_exactly() -> None:
    assert Space([Binary(f"b{i}") for i in range(100)]).size == 2**100
    assert Space([Integer("n", 0, 999), Ordinal("o", [1, 2, 3])]).size == 3000
    assert Space([Binary("b"), Real("x", 0, 1)]).size == math.inf
    assert Space([Binary(f"b{i}") for i in range(1100)]).size == 2**1100  # more than a float holds
    grid = Space([Integer("n", 1, 100), Categorical("c", ["a", "b", "c"])]).grid()
    assert len(np.unique(grid, axis=0)) == 300


def test_a_grid_of_reals_is_refused() -> None:
    with pytest.raises(InvalidSpace, match="cannot be listed"):
        Space([Real("x", 0, 1)]).grid()


def test_samples_reach_every_value_evenly() -> None:
    space = Space([Binary("b"), Categorical("c", ["a", "b", "c"]), Integer("n", 1, 100), Real("x", 0, 1)])
    codes = space.sample(6000, rng=np.random.default_rng(1))
    for column, c in ((0, 2), (1, 3)):
        assert np.bincount(codes[:, column].astype(int)) == pytest.approx([6000 / c] * c, rel=0.1)
    counts = np.bincount([int(p["n"]) for p in space.decode(codes)], minlength=101)[1:]
    assert counts.min() > 30
    assert counts.max() < 100


def test_binary_takes_bools_and_bits_and_gives_bools() -> None:
    space = Space([Binary("b")])
    for value in (True, 1, 1.0, np.True_, np.int64(1)):
        assert space.decode(space.encode([{"b": value}])) == [{"b": True}]
    for other in (2, "1", None, 0.5, [1]):
        with pytest.raises(InvalidPoint, match="must be True or False"):
            space.encode([{"b": other}])


def test_json_scalars_are_told_apart_as_json_does() -> None:
    space = Space([Categorical("c", [True, 1, None, "1", 2.0])])
    assert [p["c"] for p in space.decode(np.arange(5.0)[:, None])] == [True, 1, None, "1", 2.0]
    assert space.encode([{"c": 2}, {"c": np.float64(2)}, {"c": True}, {"c": np.True_}, {"c": 1}])[:, 0].tolist() == [
        4,
        4,
        0,
        0,
        1,
    ]


def test_equal_points_have_equal_keys() -> None:
    space = Space([Integer("n", 1, 1000), Real("x", 0, 1), Binary("b")])
    a = np.array([[0.4005, 0.25, 1.0], [0.4005 + 1e-9, 0.25, 1.0], [0.4005, 0.25 + 1e-9, 1.0], [0.4005, 0.25, 0.0]])
    keys = space.keys(a)
    assert keys[0] == keys[1]
    assert len(set(keys)) == 3
    minus, plus = space.keys(np.array([[0.5, -0.0, 0.0], [0.5, 0.0, 0.0]]))
    assert minus == plus
    around_zero = Space([Integer("n", -100, 100)])
    below, above = around_zero.keys(np.array([[0.4995], [0.5005]]))  # −0 and 0 after rounding
    assert below == above


def test_only_lists_of_points_are_encoded() -> None:
    space = Space([Binary("b")])
    for points in (None, {"b": True}, "b"):
        with pytest.raises(InvalidPoint, match="list of points"):
            space.encode(points)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Space([]), "at least one parameter"),
        (lambda: Space("abc"), "list of parameters"),
        (lambda: Space(3), "list of parameters"),  # type: ignore[arg-type]
        (lambda: Space(["x"]), "not 'x'"),
        (lambda: Space([Binary("a"), Binary("a")]), "'a' appears twice"),
        (lambda: Binary(""), "not empty"),
        (lambda: Binary(3), "must be a string"),  # type: ignore[arg-type]
        (lambda: Real("x", 1, 1), "low must be less than high"),
        (lambda: Real("x", 2, 1), "low=2.0 and high=1.0"),
        (lambda: Real("x", math.nan, 1), "low must be a finite number, not nan"),
        (lambda: Real("x", 0, math.inf), "high must be a finite number, not inf"),
        (lambda: Real("x", "0", 1), "not '0'"),  # type: ignore[arg-type]
        (lambda: Real("x", False, True), "not false"),
        (lambda: Real("x", -1e308, 1e308), "too wide"),
        (lambda: Real("x", 0, 10**400), "high must be a finite number"),
        (lambda: Real("x", 1e16, 1e16 + 8), "too few numbers"),
        (lambda: Real("x", 0, 5e-324), "too few numbers"),
        (lambda: Real("x", 1.0, 1.0 + 1e-15, log=True), "too few numbers"),
        (lambda: Real("x", 0, 1, log=True), "low > 0, not 0.0"),
        (lambda: Real("x", 0, 1, log=1), "log must be true or false"),  # type: ignore[arg-type]
        (lambda: Integer("n", 0.5, 2), "must be an integer, not 0.5"),  # type: ignore[arg-type]
        (lambda: Integer("n", 0, True), "must be an integer, not true"),
        (lambda: Integer("n", 3, 3), "low=3 and high=3"),
        (lambda: Integer("n", 0, 9, log=True), "low > 0, not 0"),
        (lambda: Integer("n", 0, 10**13), "at most"),
        (lambda: Ordinal("o", [1]), "at least two"),
        (lambda: Categorical("c", []), "at least two"),
        (lambda: Categorical("c", ["a", "a"]), "'a' appears twice"),
        (lambda: Categorical("c", [1, 1.0]), "1.0 appears twice"),
        (lambda: Categorical("c", [[1], [2]]), r"not \[1\]"),  # type: ignore[list-item]
        (lambda: Categorical("c", "ab"), "must be a list"),
        (lambda: Categorical("c", {"a", "b"}), "must be a list"),  # type: ignore[arg-type]
        (lambda: Categorical("c", 3), "must be a list, not 3"),  # type: ignore[arg-type]
        (lambda: Categorical("c", np.array(3)), "must be a list"),  # type: ignore[arg-type]
        (lambda: Ordinal("o", [1.0, math.nan]), "finite numbers"),
        (lambda: Ordinal("o", [1, object()]), "strings, finite numbers"),  # type: ignore[list-item]
    ],
)
def test_a_bad_space_is_refused_with_what_was_given(make: Any, said: str) -> None:
    with pytest.raises(InvalidSpace, match=said):
        make()


@pytest.mark.parametrize(
    ("point", "said"),
    [
        ({"x": 3.0}, "missing"),
        ({"x": 0.5, "n": 1, "c": "a", "y": 1}, r"unknown \['y'\]"),
        ({"x": 1.5, "n": 1, "c": "a"}, "'x' must lie between 0.0 and 1.0, not 1.5"),
        ({"x": math.nan, "n": 1, "c": "a"}, "finite number"),
        ({"x": "0.5", "n": 1, "c": "a"}, "finite number, not '0.5'"),
        ({"x": 10**400, "n": 1, "c": "a"}, "finite number"),
        ({"x": True, "n": 1, "c": "a"}, "finite number, not True"),
        ({"x": 0.5, "n": 1.5, "c": "a"}, "whole number, not 1.5"),
        ({"x": 0.5, "n": 9, "c": "a"}, "'n' must lie between 0 and 3, not 9"),
        ({"x": 0.5, "n": 1, "c": "z"}, r"one of \['a', 'b'\], not 'z'"),
        ({"x": 0.5, "n": 1, "c": ["a"]}, "one of"),
        ([0.5, 1, "a"], "must be a dict"),
    ],
)
def test_a_bad_point_is_refused_with_what_was_given(point: Any, said: str) -> None:
    space = Space([Real("x", 0, 1), Integer("n", 0, 3), Categorical("c", ["a", "b"])])
    with pytest.raises(InvalidPoint, match=said):
        space.encode([point])
    assert point not in space


@pytest.mark.parametrize(
    ("document", "said"),
    [
        (None, "list 'parameters'"),
        ({}, "list 'parameters'"),
        ({"parameters": ["x"]}, "must be a table"),
        ({"parameters": [{"name": "x", "type": "complex"}]}, "not 'complex'"),
        ({"parameters": [{"name": "x", "type": "real", "low": 0}]}, r"missing \['high'\]"),
        ({"parameters": [{"name": "x", "type": "binary", "low": 0}]}, r"unknown \['low'\]"),
    ],
)
def test_a_bad_document_is_refused(document: Any, said: str) -> None:
    with pytest.raises(InvalidSpace, match=said):
        Space.from_dict(document)


def test_codes_of_a_wrong_shape_or_range_are_not_held() -> None:
    space = mixed(1)
    good = space.sample(2, rng=np.random.default_rng(0))
    assert space.holds(good)
    assert not space.holds(good[0])
    assert not space.holds(good[:, 1:])
    for column, code in ((0, 1.5), (0, math.nan), (0, 0.1 + 2.0**-56), (2, 0.5), (2, 9.0), (4, -1.0)):
        bad = good.copy()
        bad[0, column] = code
        assert not space.holds(bad), (column, code)


def test_names_and_choices_of_any_length_are_refused_in_short() -> None:
    with pytest.raises(InvalidSpace, match="must have at most 1000 characters, not 10,000,000: 'xxx") as info:
        Real("x" * 10**7, 0.0, 1.0)
    assert len(str(info.value)) < 200
    with pytest.raises(
        InvalidSpace, match="'c': choices must have at most 10,000 characters each, not 10,000,000"
    ) as info:
        Categorical("c", ["a", "b" * 10**7])
    assert len(str(info.value)) < 300
