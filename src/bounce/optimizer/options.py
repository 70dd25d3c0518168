"""The options of a run: names, defaults and limits, the same in Python, in a spec and on the command line.

`Options` is where they are defined. `RunOptions` repeats their names and types for editors, which cannot see
through `**options`; a test keeps the two equal.
"""

from __future__ import annotations

import difflib
import inspect
import math
import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from typing import Any, TypedDict, TypeVar

from bounce.errors import InvalidOption, quoted
from bounce.method import Method
from bounce.subspace.trust_region import STRATEGIES

LARGEST = 10**9
DIRECTIONS = ("minimize", "maximize")
NOISES = ("auto", "none")
SYNONYMS = {  # what other packages call them
    "n_jobs": "workers",
    "n_trials": "budget",
    "n_calls": "budget",
    "max_evals": "budget",
    "random_state": "seed",
    "n_initial_points": "initial_points",
    "robust": "method",  # of the first release
}
F = TypeVar("F", bound=Callable[..., Any])


def whole(name: str, value: object, least: int) -> int:
    """Return an integer that is large enough, or say what was given instead."""
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        number = None
    if number is None or isinstance(value, bool) or number < least:
        raise InvalidOption(f"{name} must be an integer of at least {least}, not {quoted(value)}", option=name)
    if number > LARGEST and name != "seed":
        raise InvalidOption(f"{name} must be at most {LARGEST}, not {value!r}", option=name)
    return number


def _one_of(name: str, value: object, allowed: Iterable[str]) -> None:
    names = list(allowed)
    if not isinstance(value, str) or value not in names:
        raise InvalidOption(f"{name} must be {' or '.join(map(repr, names))}, not {quoted(value)}", option=name)


def _noise(value: Any) -> str | float:
    """Return how noisy values are: a name, or their standard deviation."""
    number = None
    if not isinstance(value, str | bytes | bool):
        try:
            number = float(value)
        except (TypeError, ValueError, OverflowError):
            number = None
    if number is not None and 0 < number < math.inf:
        return number
    if isinstance(value, str) and value in NOISES:
        return value
    raise InvalidOption(
        f"noise must be 'auto', 'none' or a positive number, the standard deviation of a value, not {quoted(value)}",
        option="noise",
    )


def _about(default: Any, text: str) -> Any:
    return field(default=default, metadata={"help": text})


@dataclass(frozen=True)
class Options:
    """The options of a run, checked."""

    budget: int = field(metadata={"help": "the number of trials, failed ones included"})
    batch_size: int = _about(1, "how many trials an ask returns")
    seed: int | None = _about(None, "makes a run repeatable; drawn and recorded if it is not given")
    direction: str = _about("minimize", "'minimize' or 'maximize'")
    noise: str | float = _about("auto", "how noisy values are: 'auto', 'none', or the standard deviation of a value")
    initial_points: int | None = _about(
        None,
        "initial points evaluated before the model is used; by default half as many as the first stage has bins, at "
        "least 5 and at most 10, and more where parameters have conditions",
    )
    initial_dims: int | None = _about(
        None,
        "bins of the first stage; by default one for each of up to 20 variables, otherwise 20, or 2 if all are real",
    )
    new_bins: int = _about(2, "a bin is split into at most this many bins plus one")
    budget_to_input: int | None = _about(
        None,
        "evaluations shared among the stages; by default half of the budget, or half of the number of variables if "
        "that is smaller",
    )
    low_sequency: bool = _about(False, "no random signs: for long runs of equal values in consecutive variables")
    trust_region: str = _about("bounce", "'bounce', or for comparisons 'baxus' or 'casmopolitan'")
    method: Method = field(
        default_factory=Method,
        metadata={"help": "'default', 'paper', '0.1', or a Method: every choice of the algorithm"},
    )

    def __post_init__(self) -> None:
        for name in ("budget", "batch_size", "new_bins"):
            object.__setattr__(self, name, whole(name, getattr(self, name), 1))
        for name, least in (("seed", 0), ("initial_points", 1), ("initial_dims", 1), ("budget_to_input", 1)):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, whole(name, getattr(self, name), least))
        _one_of("direction", self.direction, DIRECTIONS)
        object.__setattr__(self, "noise", _noise(self.noise))
        _one_of("trust_region", self.trust_region, STRATEGIES)
        if not isinstance(self.low_sequency, bool):
            raise InvalidOption(
                f"low_sequency must be true or false, not {quoted(self.low_sequency)}", option="low_sequency"
            )
        object.__setattr__(self, "method", Method.of(self.method))

    @property
    def sign(self) -> float:
        """What turns the user's values into ones to minimise, and back."""
        return 1.0 if self.direction == "minimize" else -1.0

    @classmethod
    def of(cls, given: Mapping[str, Any], *, beside: Iterable[str] = ()) -> Options:
        """Build options from names and values; `beside` are the other arguments that the caller's user may give."""
        names = [f.name for f in fields(cls)]
        for name in given:
            if name not in names:
                raise unknown_option(name, [*names, *beside])
        if "budget" not in given:
            raise InvalidOption("a budget is needed: the number of evaluations", option="budget")
        return cls(**given)

    def document(self) -> dict[str, Any]:
        """Return the options as JSON values."""
        return {f.name: getattr(self, f.name) for f in fields(self)} | {"method": self.method.document()}


class RunOptions(TypedDict, total=False):
    """The options besides the space and the budget, for editors and type checkers."""

    batch_size: int
    seed: int | None
    direction: str
    noise: str | float
    initial_points: int | None
    initial_dims: int | None
    new_bins: int
    budget_to_input: int | None
    low_sequency: bool
    trust_region: str
    method: Method | str | Mapping[str, Any]


def unknown_option(name: str, known: Iterable[str]) -> InvalidOption:
    """Return the error of a name that is not an option: it lists all of them, the ones that may be meant first."""
    names = list(known)
    near = [n for n in [SYNONYMS.get(name, "")] if n in names]
    near += [n for n in difflib.get_close_matches(name, names, n=3) if n not in near]
    hint = f"; did you mean {near[0]!r}?" if near else "."
    listed = ", ".join([*near, *(n for n in names if n not in near)])
    return InvalidOption(f"unknown option {name!r}{hint} The options are {listed}", option=name)


def shows_options(beside: Mapping[str, Any]) -> Callable[[F], F]:
    """Show the options in the signature of a function that takes them as `**options`, for `help` and notebooks.

    `beside` are further keyword arguments with their defaults.
    """

    def shown(function: F) -> F:
        signature = inspect.signature(function)
        named = [p for p in signature.parameters.values() if p.kind is not inspect.Parameter.VAR_KEYWORD]
        taken = {p.name for p in named} | set(beside)
        keyword = inspect.Parameter.KEYWORD_ONLY
        named += [inspect.Parameter(name, keyword, default=default) for name, default in beside.items()]
        named += [
            inspect.Parameter(f.name, keyword, default=_default(f), annotation=f.type)
            for f in fields(Options)
            if f.name not in taken
        ]
        function.__signature__ = signature.replace(parameters=named)  # type: ignore[attr-defined]
        return function

    return shown


def _default(option: Field[Any]) -> Any:
    if option.default is not MISSING:
        return option.default
    return inspect.Parameter.empty if option.default_factory is MISSING else option.default_factory()
