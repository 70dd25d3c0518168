"""Expressions mean what Python means, and refuse everything else with its place."""

from __future__ import annotations

import contextlib
import itertools
import math
import operator
import pickle
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from bounce.errors import InvalidSpace
from bounce.spaces.expressions import Expression

NUMBERS, FLAGS = ("x", "y", "z"), ("f", "g")
NAMES = (*NUMBERS, *FLAGS, "s", "my name", "a-b", "lambda")


class Unclear(Exception):
    """Two numbers may differ only by rounding."""


class Finite(float):
    """A float whose arithmetic raises where it is undefined or infinite, as an expression's does."""

    __hash__ = float.__hash__


def _checked(name: str) -> Any:
    def operation(self: float, *others: float) -> Finite:
        result = getattr(float, name)(float(self), *map(float, others))
        if isinstance(result, complex) or not math.isfinite(result):
            raise OverflowError
        return Finite(result)

    return operation


def _compared(name: str) -> Any:
    def operation(self: float, other: object) -> Any:
        if isinstance(other, float | int) and 0 < abs(float(self) - float(other)) <= 1e-6 * (
            1 + abs(float(self)) + abs(float(other))
        ):
            raise Unclear
        return getattr(float, name)(float(self), other)

    return operation


for _name in ("lt", "le", "gt", "ge", "eq", "ne"):
    setattr(Finite, f"__{_name}__", _compared(f"__{_name}__"))
for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow"):
    setattr(Finite, f"__{_name}__", _checked(f"__{_name}__"))
    setattr(Finite, f"__r{_name}__", _checked(f"__r{_name}__"))
for _name in ("neg", "pos", "abs"):
    setattr(Finite, f"__{_name}__", _checked(f"__{_name}__"))

PYTHON: dict[str, Any] = {
    "Finite": Finite,
    "__builtins__": {},
    "abs": abs,
    "min": lambda *items: min(items),
    "max": lambda *items: max(items),
    "sum": lambda *items: sum(items),
    "count": lambda *items: sum(bool(item) for item in items),
}

numbers = st.recursive(
    st.sampled_from(NUMBERS) | st.integers(0, 9).map(str) | st.sampled_from(("0.5", "1.25", "1e3")),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["+", "-", "*", "/", "//", "%"]), inner).map(
            lambda t: f"({t[0]} {t[1]} {t[2]})"
        ),
        st.tuples(inner, st.sampled_from("+-"), inner, st.sampled_from("+-"), inner).map(" ".join).map("({})".format),
        st.tuples(inner, st.sampled_from(("2", "3", "-1", "x"))).map(lambda t: f"({t[0]} ** {t[1]})"),
        inner.map("-{}".format),
        inner.map("abs({})".format),
        st.tuples(st.sampled_from(("min", "max", "sum")), inner, inner).map(lambda t: f"{t[0]}({t[1]}, {t[2]})"),
    ),
    max_leaves=6,
)
compares = st.sampled_from(["<", "<=", ">", ">=", "==", "!="])
truths = st.recursive(
    st.one_of(
        st.sampled_from(FLAGS),
        st.tuples(numbers, compares, numbers).map(" ".join),
        st.tuples(numbers, compares, numbers, compares, numbers).map(" ".join),
        st.sampled_from(("s == 'a'", "s != 'b'", "s in ['a', 'c']", "s not in ('b', 2)", "x in [-1, 0.5, True]")),
        st.lists(st.sampled_from(FLAGS) | st.just("x"), min_size=1, max_size=3).map(
            lambda items: f"count({', '.join(items)}) <= 1"
        ),
    ),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(("and", "or")), inner).map(lambda t: f"({t[0]} {t[1]} {t[2]})"),
        inner.map(lambda text: f"(not {text})"),
    ),
    max_leaves=6,
)
quarters = st.integers(-12, 12).map(lambda i: i / 4)
rows = st.lists(
    st.fixed_dictionaries(
        dict.fromkeys(NUMBERS, quarters)
        | {name: st.booleans() for name in FLAGS}
        | {"s": st.sampled_from(("a", "b", "c", 2.0))}
    ),
    min_size=1,
    max_size=8,
)


def _columns(given: list[dict[str, Any]]) -> dict[str, Any]:
    columns: dict[str, Any] = {name: np.array([row[name] for row in given]) for name in (*NUMBERS, *FLAGS)}
    columns["s"] = np.array([row["s"] for row in given], dtype=object)
    return columns


def _python(text: str, row: dict[str, Any]) -> bool:
    """Return what Python makes of a row: an undefined result does not hold."""
    values = {k: Finite(v) if isinstance(v, float) else v for k, v in row.items()}
    try:
        return bool(eval(re.sub(r"(?<![\w.])\d+(\.\d+)?(e\d+)?", r"Finite(\g<0>)", text), PYTHON, values))
    except (ZeroDivisionError, OverflowError):
        return False


def _parsed(text: str) -> Expression:
    """Read a text that names a parameter for sure, and means the same."""
    return Expression.parse(f"({text}) and x == x", NAMES)


@given(truths, rows)
def test_an_expression_holds_where_python_says_so(text: str, points: list[dict[str, Any]]) -> None:
    try:
        expected = [_python(text, row) for row in points]
    except Unclear:
        assume(False)
    assert _parsed(text).holds(_columns(points)).tolist() == expected


@given(truths, rows)
def test_the_violation_is_zero_exactly_where_it_holds(text: str, points: list[dict[str, Any]]) -> None:
    expression = _parsed(text)
    violation = expression.violation(_columns(points))
    assert np.isfinite(violation).all()
    assert (violation >= 0).all()
    assert ((violation == 0) == expression.holds(_columns(points))).all()


@given(truths, rows)
def test_the_parts_hold_together_where_the_whole_does(text: str, points: list[dict[str, Any]]) -> None:
    expression = _parsed(f"{text} and x < y <= (z + 1) * 2 and f")
    parts = expression.parts
    assert len(parts) >= 5
    together = np.logical_and.reduce([part.holds(_columns(points)) for part in parts])
    assert (together == expression.holds(_columns(points))).all()


@given(
    st.lists(st.tuples(st.integers(-5, 5), st.sampled_from(NUMBERS)), min_size=1, max_size=5),
    st.sampled_from(("<", "<=", ">", ">=")),
    st.integers(-9, 9),
    rows,
)
def test_a_linear_inequality_agrees_with_its_coefficients(
    terms: list[tuple[int, str]], symbol: str, bound: int, points: list[dict[str, Any]]
) -> None:
    text = " - ".join(f"({slope} * ({name} + 2) / 4)" for slope, name in terms) + f" {symbol} {bound}"
    expression = Expression.parse(text, NAMES)
    found = expression.linear()
    if found is None:  # every slope is 0 or cancels
        total = {name: 0.0 for _, name in terms}
        for i, (slope, name) in enumerate(terms):
            total[name] += slope if i == 0 else -slope
        assert not any(total.values())
        return
    slopes, b = found
    assert set(slopes) <= expression.names
    columns = _columns(points)
    slack = b - sum(slope * columns[name] for name, slope in slopes.items())
    clear = np.abs(slack) > 1e-9
    assert ((slack > 0) == expression.holds(columns))[clear].all()


@pytest.mark.parametrize(
    "text", ["x < 1 and y < 1", "x == 1", "x * y < 1", "abs(x) < 1", "not (x < 1)", "0 < x < 1", "x / y < 1", "f"]
)
def test_what_is_not_one_linear_inequality_has_no_coefficients(text: str) -> None:
    assert Expression.parse(text, NAMES).linear() is None


def test_linear_counts_less_as_less_or_equal_and_turns_greater() -> None:
    assert Expression.parse("2 * x + y < 10 - y", NAMES).linear() == ({"x": 2.0, "y": 2.0}, 10.0)
    assert Expression.parse("sum(x, y) >= 3", NAMES).linear() == ({"x": -1.0, "y": -1.0}, -3.0)


def test_a_guard_keeps_an_undefined_part_from_counting() -> None:
    x = {"x": np.array([0.0, 0.1, 1.0])}
    assert Expression.parse("1 / x < 3", NAMES).holds(x).tolist() == [False, False, True]
    assert Expression.parse("not 1 / x < 3", NAMES).holds(x).tolist() == [False, True, False]
    assert Expression.parse("x == 0 or 1 / x < 3", NAMES).holds(x).tolist() == [True, False, True]
    assert Expression.parse("x ** 0.5 < 3 or x ** 400 > 1e9", NAMES).holds({"x": np.array([-1.0, 10.0])}).sum() == 0


ORDERS: dict[str, Any] = {
    "<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
    ">=": operator.ge,
    ">": operator.gt,
}


@pytest.mark.parametrize("symbol", ORDERS)
def test_numbers_that_differ_by_rounding_are_equal(symbol: str) -> None:
    tenths = np.arange(11)
    i, j = (axis.ravel() for axis in np.meshgrid(tenths, tenths))
    x, y = i / 10, j / 10
    for bound in range(1, 20):
        expected = ORDERS[symbol](i + j, bound)
        for text in (
            f"x + y {symbol} {bound / 10}",
            f"x {symbol} {bound / 10} - y",
            f"x + y - {bound / 10} {symbol} 0",
        ):
            expression = Expression.parse(text, NAMES)
            assert (expression.holds({"x": x, "y": y}) == expected).all(), text
            assert ((expression.violation({"x": x, "y": y}) == 0) == expected).all(), text


def test_rounding_does_not_matter_in_lists_and_functions() -> None:
    columns = {"x": np.arange(11) / 10, "y": np.full(11, 0.2)}
    assert Expression.parse("3 * x in [0.3, 0.6]", NAMES).holds(columns).tolist() == [i in (1, 2) for i in range(11)]
    assert (
        Expression.parse("sum(x, y, 0.1) / 3 == 0.1", NAMES).holds({"x": np.array([0.2]), "y": np.array([0.0])}).all()
    )


def test_numbers_that_differ_by_more_than_rounding_differ() -> None:
    columns = {"x": np.array([0.1]), "y": np.array([0.2 + 1e-14])}
    assert Expression.parse("x + y > 0.3", NAMES).holds(columns).all()
    assert Expression.parse("x <= 0.3", NAMES).holds({"x": np.array([0.1 + 0.2])}).sum() == 0  # nothing is computed
    assert Expression.parse("x * x == 1e12 - 1", NAMES).holds({"x": np.array([1e6])}).sum() == 0


def test_undefined_results_make_no_warning(recwarn: pytest.WarningsRecorder) -> None:
    Expression.parse("1 / x + x ** 999 + x % 0 < 3", NAMES).violation({"x": np.array([0.0, 1e9, -1.0])})
    assert not list(recwarn)


def test_a_constraint_that_names_an_inactive_parameter_holds() -> None:
    columns = {"x": np.array([1.0, None, 9.0], dtype=object), "s": np.array(["a", "b", None], dtype=object)}
    assert Expression.parse("x < 5", NAMES).holds(columns).tolist() == [True, True, False]
    assert Expression.parse("not x < 5", NAMES).holds(columns).tolist() == [False, True, True]
    assert Expression.parse("x < 5 and s == 'b'", NAMES).violation(columns).tolist() == [1.0, 0.0, 0.0]


def test_none_is_a_value_where_the_active_rows_are_given() -> None:
    columns = {"s": np.array(["a", None, None], dtype=object)}
    active = {"s": np.array([True, True, False])}
    assert Expression.parse("s != None", NAMES).holds(columns, active).tolist() == [True, False, True]
    assert Expression.parse("not s in ['b', None]", NAMES).holds(columns, active).tolist() == [True, False, True]


def test_the_violation_grows_with_the_distance() -> None:
    columns = {"x": np.array([1.0, 2.0, 5.0]), "y": np.array([0.0, 0.0, 4.0]), "s": np.array(["a"] * 3, dtype=object)}
    assert Expression.parse("x <= 1", NAMES).violation(columns).tolist() == [0.0, 1.0, 4.0]
    assert Expression.parse("x <= 1 and y <= 1", NAMES).violation(columns).tolist() == [0.0, 1.0, 7.0]
    assert Expression.parse("x <= 1 or y <= 1", NAMES).violation(columns).tolist() == [0.0, 0.0, 3.0]
    assert Expression.parse("not (x > 1 or y > 1)", NAMES).violation(columns).tolist() == [0.0, 1.0, 7.0]
    assert Expression.parse("x == 2", NAMES).violation(columns).tolist() == [1.0, 0.0, 3.0]
    assert Expression.parse("x in [1, 4]", NAMES).violation(columns).tolist() == [0.0, 1.0, 1.0]
    assert Expression.parse("s == 'b'", NAMES).violation(columns).tolist() == [1.0, 1.0, 1.0]
    assert Expression.parse("x < 1", NAMES).violation(columns)[0] > 0


def test_names_may_be_anything_in_backquotes_and_words_of_python() -> None:
    columns = {"my name": np.array([1.0, 2.0]), "lambda": np.array([2.0, 1.0])}
    expression = Expression.parse("`my name` < lambda and `lambda` > 0", NAMES)
    assert expression.names == {"my name", "lambda"}
    assert expression.holds(columns).tolist() == [True, False]
    assert [str(part) for part in expression.parts] == ["`my name` < lambda", "`lambda` > 0"]
    assert Expression.parse("s == '`x`'", NAMES).compared == {"s": ("`x`",)}


def test_compared_lists_the_constants_of_a_parameter() -> None:
    text = "not (s == 'a' and x in [1, -2]) or 'b' != s"
    assert Expression.parse(text, NAMES).compared == {"s": ("a", "b"), "x": (1, -2)}


DOMAINS: dict[str, list[Any]] = {"x": [1, 2, 3], "s": ["a", "b", 2], "f": [False, True]}


@pytest.mark.parametrize(
    ("text", "forbidden"),
    [
        ("not (x == 1 and s == 'b')", [{"x": (1,), "s": ("b",)}]),
        ("x != 1 or s != 'b'", [{"x": (1,), "s": ("b",)}]),
        ("not (x == 1 and s in ['a', 2] and f)", [{"x": (1,), "s": ("a", 2), "f": (True,)}]),
        ("x <= 2 and (f or s == 'a')", [{"x": (3,)}, {"f": (False,), "s": ("b", 2)}]),
        ("not (x < 3 and x > 1 and not f)", [{"x": (2,), "f": (False,)}]),
        ("x ** 2 < 20 or f", []),
        ("x == s", None),
        ("x + y <= 3 or f", None),
        ("count(f, g) <= 1", None),
        ("y <= 1 or f", None),
        ("1 / (x - 1) < 3 or f", None),
    ],
)
def test_forbidden_combinations_of_values_are_told_apart(text: str, forbidden: Any) -> None:
    expression = Expression.parse(text, NAMES)
    assert expression.forbidden(DOMAINS) == forbidden
    for x, s, f in itertools.product(*DOMAINS.values()) if forbidden is not None else ():
        point = {"x": x, "s": s, "f": f}
        columns = {"x": np.array([x]), "s": np.array([s], dtype=object), "f": np.array([f])}
        hit = any(all(point[name] in values for name, values in case.items()) for case in forbidden)
        assert expression.holds(columns).tolist() == [not hit]


def test_too_many_forbidden_combinations_are_not_listed() -> None:
    names = [f"s{i}" for i in range(9)]
    text = "not (" + " and ".join(f"({a} == 1 or {b} == 2)" for a in names for b in names if a != b) + ")"
    assert Expression.parse(text, names).forbidden({name: [1, 2, 3] for name in names}) is None


def test_a_long_sum_is_one_level_deep() -> None:
    names = [f"x{i}" for i in range(400)]
    expression = Expression.parse(" + ".join(names) + " <= 100", names)
    assert expression.holds({name: np.array([0.25, 0.5]) for name in names}).tolist() == [True, False]
    found = expression.linear()
    assert found is not None
    assert len(found[0]) == 400


def test_an_expression_survives_pickling() -> None:
    expression = pickle.loads(pickle.dumps(Expression.parse("2 * x <= y", NAMES)))
    assert str(expression) == "2 * x <= y"
    assert expression.holds({"x": np.array([1.0]), "y": np.array([3.0])}).all()


def test_no_rows_give_no_results() -> None:
    assert Expression.parse("x < 1", NAMES).holds({"x": np.array([])}).shape == (0,)
    everything = {"x": np.array([None, None], dtype=object)}
    assert Expression.parse("x < 1", NAMES).violation(everything).tolist() == [0.0, 0.0]


def _caret(message: str) -> str:
    """Return what the text shows at the place that a message points at."""
    _, shown, caret = message.split("\n")
    return shown[len(caret) - 1 :]


@pytest.mark.parametrize(
    ("text", "place", "said"),
    [
        ("2 * x + yy < 3", "yy < 3", "did you mean 'y'?"),
        ("my_name < 3", "my_name < 3", "did you mean `my name`, in backquotes?"),
        ("x < 1 and `my nam` > 2", "`my nam` > 2", "did you mean `my name`"),
        ("x < 1 and w.real > 2", "w.real > 2", "an attribute is not allowed"),
        ("x < 1 and x[0] > 2", "x[0] > 2", "an index is not allowed"),
        ("x <= 0,5", "0,5", "numbers have a decimal point: write 0.5, not 0,5"),
        ("x == 1.5, y", "x == 1.5, y", "a tuple outside of 'in' is not allowed"),
        ("x < open('f')", "open('f')", "the functions are min, max, abs, sum, count"),
        ("'é' == s and x << 2 == 4", "x << 2 == 4", "operator is not allowed"),
        ("(x < 1) & (y < 2)", "(x < 1) & (y < 2)", "write 'and'"),
        ("x < 'a'", "'a'", "< compares numbers"),
        ("x + None < 1", "None < 1", "is not a number"),
        ("x + 1", "x + 1", "compare it"),
        ("x < 1 and 3", "3", "neither true nor false"),
        ("x in s", "s", "a list of constants"),
        ("x in [y]", "y]", "only constants"),
        ("x is 1", "1", "write == or !="),
        ("x < 1 and my name < 3", "my name < 3", "goes in backquotes: `my name`"),
        ("x < 1 and a-b < 3", "a-b < 3", "goes in backquotes: `a-b`"),
        ("x < 1 && y < 2", "& y < 2", "write 'and'"),
        ("x < 1 || y < 2", "| y < 2", "write 'or'"),
        ("x = 1", "= 1", "write =="),
        ("x =< 1", "=< 1", "write <="),
        ("x => 1", "=> 1", "write >="),
        ("x <> 1", "<> 1", "write !="),
        ("!f", "!f", "write 'not'"),
        ("x <=", "", "allowed are"),
        ("x ^ 2 < 1", "x ^ 2 < 1", "a power is written **"),
        ("f == true", "true", "did you mean True"),
        ("x != null", "null", "did you mean None"),
        ("x + 1 == 'a'", "'a'", "this is a string"),
        ("x <", "", "cannot be read"),
        ("x < 1)", ")", "cannot be read"),
        ("`x", "`x", "does not end"),
        ("x < 1e999", "1e999", "too large"),
        ("abs(x, y) < 1", "abs(x, y) < 1", "one argument"),
        ("1 < 2", "1 < 2", "names no parameter"),
        ("x < 3 if y else f", "x < 3 if y else f", "'if' is not allowed"),
        ("f'{x}' == s", "f'{x}' == s", "an f-string is not allowed"),
        ("x < 1j", "1j", "is not allowed"),
    ],
)
def test_a_mistake_is_named_with_its_place(text: str, place: str, said: str) -> None:
    with pytest.raises(InvalidSpace) as caught:
        Expression.parse(text, NAMES)
    assert said in str(caught.value)
    assert _caret(str(caught.value)) == place
    assert caught.value.key == "constraints"


def test_a_string_where_a_number_is_needed_is_named_at_evaluation() -> None:
    columns = {"s": np.array([3, "auto"], dtype=object)}
    with pytest.raises(InvalidSpace, match="'auto' is not a number, and < compares numbers"):
        Expression.parse("s < 4", NAMES).holds(columns)
    assert Expression.parse("s == 'auto' or s < 4", NAMES).holds(columns).all()
    with pytest.raises(InvalidSpace, match="'auto' is a string"):
        Expression.parse("not s", NAMES).holds(columns)


@pytest.mark.parametrize(
    "text",
    [
        "(" * 5000 + "x",
        "-" * 5000 + "x < 1",
        "not " * 4000 + "f",
        "x" + " ** x" * 3000 + " < 1",
        "x" + " + x" * 4000 + " < 1",
        "x < " + "9" * 10_000,
        "x < 1 or " * 5000 + "f",
        "x\0 < 1",
        "",
        " \n ",
        "[" * 199 + "x" + "]" * 199,
        "x < 9 ** 9 ** 9 ** 9",
        "\ud800 < x",
    ],
)
def test_a_hostile_text_is_refused_or_read_at_once(text: str) -> None:
    with contextlib.suppress(InvalidSpace):
        Expression.parse(text, NAMES).holds({"x": np.array([1.0]), "f": np.array([True])})


def test_a_text_of_another_type_is_refused() -> None:
    with pytest.raises(InvalidSpace, match="must be a string"):
        Expression.parse(3, NAMES)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("blend.x <= 0.5", "goes in backquotes: `blend.x`"),
        ("'acid' in extras", "is written `extras.acid`"),
        ("'acid' not in extras", "is written not `extras.acid`"),
        ("count(extras) <= 1", "'extras' has several parts, each with a name of its own, such as `extras.acid`"),
        ("extras.__class__ == 1", "an attribute is not allowed"),
    ],
)
def test_a_part_of_a_composite_in_another_notation_is_refused_with_the_right_one(text: str, said: str) -> None:
    with pytest.raises(InvalidSpace, match=re.escape(said)):
        Expression.parse(text, ["blend.x", "blend.y", "extras.acid", "order: a before b"])
