"""Agreement: the space and options that a study is opened with, and those it has.

A study keeps its space and options; only its budget may grow by opening it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from bounce.errors import InvalidOption, InvalidStudy
from bounce.optimizer.bounce import Bounce
from bounce.optimizer.options import Options
from bounce.spaces.space import Space
from bounce.study.keeper import Keeper


def first_optimizer(file: Path | None, space: Space | None, given: dict[str, Any]) -> Bounce:
    """Return the optimizer of a new study."""
    if space is None:
        if file is None:
            raise InvalidStudy("a study in memory needs a space and a budget")
        if file.exists():
            raise InvalidStudy(f"{file} is empty: it contains no study")
        raise InvalidStudy(f"the study {file} does not exist; to create it, give a space and a budget")
    if "budget" not in given:
        raise InvalidOption("a new study needs a budget: the number of evaluations", option="budget")
    return Bounce(space, **given)


def larger_budget(keeper: Keeper, space: Space | None, given: dict[str, Any]) -> int | None:
    """Refuse a space or options that differ from the stored ones; return the budget if a larger one is given."""
    optimizer = keeper.optimizer
    if space is not None and space != optimizer.space:
        raise InvalidOption(f"{keeper.name} has another space: {optimizer.space.difference(space)}", option="space")
    stored = optimizer.options
    asked = Options.of(stored | given, beside=("path", "space")).document()
    differing = [name for name in given if asked[name] != stored[name] and not (name == "seed" and given[name] is None)]
    if differing == ["budget"] and asked["budget"] > stored["budget"]:
        budget: int = asked["budget"]
        return budget
    if differing:
        differences = ", ".join(f"{name} is {_shown(stored[name])}, not {_shown(asked[name])}" for name in differing)
        raise InvalidOption(
            f"{keeper.name} has other options: {differences}. Only the budget can change, and only grow",
            option=differing[0],
        )
    return None


def _shown(option: Any) -> str:
    """Return the value of an option as TOML and JSON write it."""
    return "unset" if option is None else json.dumps(option)
