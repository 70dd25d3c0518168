"""The options of a run: names, defaults and limits, the same in Python, in a spec and on the command line."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any

from bounce.errors import InvalidOption
from bounce.trust_region import STRATEGIES

LARGEST = 10**9


def whole(name: str, value: object, least: int) -> int:
    """Return an integer that is large enough, or say what was given instead."""
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        number = None
    if number is None or isinstance(value, bool) or number < least:
        raise InvalidOption(f"{name} must be an integer of at least {least}, not {value!r}")
    if number > LARGEST and name != "seed":
        raise InvalidOption(f"{name} must be at most {LARGEST}, not {value!r}")
    return number


def _one_of(name: str, value: object, allowed: Iterable[str]) -> None:
    names = list(allowed)
    if not isinstance(value, str) or value not in names:
        raise InvalidOption(f"{name} must be one of {names}, not {value!r}")


@dataclass(frozen=True)
class Options:
    """The options of a run, checked."""

    budget: int
    batch_size: int = 1
    seed: int | None = None
    direction: str = "minimize"
    initial_points: int = 5
    initial_dims: int | None = None
    new_bins: int = 2
    budget_to_input: int | None = None
    low_sequency: bool = False
    trust_region: str = "bounce"
    robust: bool = True

    def __post_init__(self) -> None:
        for name in ("budget", "batch_size", "initial_points", "new_bins"):
            object.__setattr__(self, name, whole(name, getattr(self, name), 1))
        for name, least in (("seed", 0), ("initial_dims", 1), ("budget_to_input", 1)):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, whole(name, getattr(self, name), least))
        _one_of("direction", self.direction, ("minimize", "maximize"))
        _one_of("trust_region", self.trust_region, STRATEGIES)
        for name in ("low_sequency", "robust"):
            if not isinstance(getattr(self, name), bool):
                raise InvalidOption(f"{name} must be True or False, not {getattr(self, name)!r}")

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Options:
        """Build options from names and values, refusing names that are none."""
        names = [f.name for f in fields(cls)]
        unknown = [name for name in given if name not in names]
        if unknown:
            raise InvalidOption(f"unknown option {unknown[0]!r}; the options are {', '.join(names)}")
        return cls(**given)
