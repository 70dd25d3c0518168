from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import fields
from typing import Any, get_type_hints

import numpy as np
import pytest

import bounce
from bounce import Bounce, InvalidOption, Method, Study
from bounce.optimizer.options import Options, RunOptions
from spaces import binary

NAMES = [field.name for field in fields(Options)]
BESIDE = ["known", "start", "path", "executor", "workers", "timeout", "max_failures", "logs"]
BESIDE += ["callbacks", "stop_when", "progress"]
CALLS: dict[str, Callable[..., Any]] = {
    "minimize": bounce.minimize,
    "maximize": bounce.maximize,
    "Bounce": Bounce,
    "Study.open": Study.open,
}


def test_the_options_that_editors_see_are_the_options() -> None:
    assert list(RunOptions.__annotations__) == [name for name in NAMES if name != "budget"]
    defined, shown = get_type_hints(Options), get_type_hints(RunOptions)
    for name in RunOptions.__annotations__:
        if name != "method":  # which may also be named, or given as a table
            assert shown[name] == defined[name], name


def test_every_option_says_what_it_is() -> None:
    for field in fields(Options):
        assert field.metadata["help"], field.name


@pytest.mark.parametrize("name", CALLS)
def test_every_call_shows_every_option_with_its_default(name: str) -> None:
    shown = inspect.signature(CALLS[name]).parameters
    for field in fields(Options):
        assert field.name in shown
        if field.name not in ("budget", "method"):
            own = "maximize" if (name, field.name) == ("maximize", "direction") else field.default
            assert shown[field.name].default == own
            assert shown[field.name].kind is inspect.Parameter.KEYWORD_ONLY
    assert shown["method"].default == Method()
    assert not any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in shown.values())


@pytest.mark.parametrize("name", ["minimize", "maximize"])
def test_a_run_in_one_call_shows_how_it_is_run(name: str) -> None:
    assert set(inspect.signature(CALLS[name]).parameters) == {"objective", "space", *NAMES, *BESIDE}


def refused(call: Callable[[], Any]) -> str:
    with pytest.raises(InvalidOption) as caught:
        call()
    return str(caught.value)


@pytest.mark.parametrize("name", ["minimize", "maximize"])
@pytest.mark.parametrize(
    ("option", "meant"),
    [
        ("n_jobs", "workers"),
        ("time_out", "timeout"),
        ("robust", "method"),
        ("n_trials", "budget"),
        ("callback", "callbacks"),
    ],
)
def test_an_unknown_option_is_answered_with_all_names_and_the_one_that_is_meant_first(
    name: str, option: str, meant: str
) -> None:
    said = refused(lambda: CALLS[name](lambda point: 0.0, binary(3), 5, **{option: 4}))
    assert said.startswith(f"unknown option '{option}'; did you mean '{meant}'? The options are {meant}, ")
    listed = said.split("The options are ")[1].split(", ")
    assert sorted(listed) == sorted([*NAMES, *BESIDE])


def test_an_option_that_resembles_none_is_answered_with_all_names() -> None:
    said = refused(lambda: bounce.minimize(lambda point: 0.0, binary(3), 5, qqq=1))  # type: ignore[call-arg]
    assert said == f"unknown option 'qqq'. The options are {', '.join([*NAMES, *BESIDE])}"


def test_an_optimizer_does_not_offer_what_only_a_run_takes() -> None:
    said = refused(lambda: Bounce(binary(3), 5, n_jobs=4))  # type: ignore[call-arg]
    assert said == f"unknown option 'n_jobs'. The options are {', '.join(NAMES)}"


def test_the_error_of_an_option_names_it() -> None:
    for given, name in (({"sead": 1}, "sead"), ({"seed": -1}, "seed"), ({"method": "new"}, "method")):
        with pytest.raises(InvalidOption) as caught:
            Options.of({"budget": 5, **given})
        assert caught.value.option == name


@pytest.mark.parametrize("noise", [0.0, -1, float("nan"), float("inf"), True, None, "", "0.5", "some", [0.1], 10**400])
def test_a_noise_that_is_neither_a_name_nor_a_deviation_is_refused(noise: Any) -> None:
    with pytest.raises(InvalidOption, match=r"noise must be 'auto', 'none' or a positive number.*, not ") as caught:
        Options.of({"budget": 5, "noise": noise})
    assert caught.value.option == "noise"


def test_a_noise_is_a_name_or_a_number() -> None:
    assert Options(budget=5).noise == "auto"
    assert Options(budget=5, noise="none").noise == "none"
    numbers: list[Any] = [2, 2.0, np.float32(2), np.int64(2)]
    for given in numbers:
        kept = Options(budget=5, noise=given).document()["noise"]
        assert (kept, type(kept)) == (2.0, float)


def test_options_go_through_their_document() -> None:
    options = Options(budget=50, seed=3, method=Method(caution=1.0), noise=0.5, initial_dims=4)
    assert Options.of(options.document()) == options
    assert options.document()["method"] == {"caution": 1.0}
    assert Options(budget=5).document()["method"] == "default"
    assert Options.of({"budget": 5, "method": "paper"}).method == Method.paper()


def test_a_run_needs_a_budget() -> None:
    assert refused(lambda: Options.of({})) == "a budget is needed: the number of evaluations"
