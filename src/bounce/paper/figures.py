"""Figures: the experiments of the paper as data, read from figures.toml.

The invariant: a figure names its runs completely. Two figures that show the same problem, method and options share the
runs, because equal runs have equal names.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from importlib.resources import files
from json import dumps
from typing import Any

from bounce import benchmarks
from bounce.errors import DataError, InvalidInput
from bounce.paper.traces import Setup

VERSIONS = ("original", "randomized")
EVALUATIONS, REPETITIONS = 200, 50  # of the paper, unless a figure or a method says otherwise
LONGER = {"labs50": 500, "maxsat125": 500, "cluster60": 500}  # evaluations of these problems


@dataclass(frozen=True)
class Method:
    """A method of the figures: a name of `bounce.baselines` and the options of Bounce."""

    key: str
    label: str
    method: str
    options: Mapping[str, Any]
    repetitions: int = REPETITIONS


@dataclass(frozen=True)
class Curve:
    """One line of a panel: a problem, its version, a method and a batch size."""

    problem: str
    version: str
    method: Method
    batch: int
    evaluations: int
    to_input: int | None = None

    @property
    def setup(self) -> Setup:
        """What to run."""
        options = {"budget": self.evaluations, "batch_size": self.batch}
        if self.method.method == "bounce":
            options |= self.method.options
            if self.to_input is not None and self.batch > 1:
                options["budget_to_input"] = self.to_input
        return Setup(self.problem, options, self.version == "randomized", self.method.method)

    @property
    def name(self) -> str:
        """The folder and the file of its runs, without the seed: equal exactly if the runs are."""
        setup = self.setup
        digest = sha256(dumps([setup.method, dict(setup.options)], sort_keys=True).encode()).hexdigest()[:6]
        return f"{self.problem}-{self.version}/{self.method.key}-b{self.batch}-n{self.evaluations}-{digest}"

    @property
    def label(self) -> str:
        """The method, and the batch size if it is not one."""
        return self.method.label if self.batch == 1 else f"{self.method.label}, batches of {self.batch}"


@dataclass(frozen=True)
class Figure:
    """A figure: its panels, what the axis counts, and what the text says about it."""

    number: int
    title: str
    problems: tuple[str, ...] = ()
    versions: tuple[str, ...] = VERSIONS
    methods: tuple[Method, ...] = ()
    batches: tuple[int, ...] = (1,)
    evaluations: Mapping[int, int] = field(default_factory=dict)
    """By batch size; the problem's own number where it is missing."""
    to_input: Mapping[int, int] = field(default_factory=dict)
    """By batch size: after how many evaluations Bounce reaches the input space."""
    axis: str = "evaluations"
    claims: tuple[Mapping[str, Any], ...] = ()
    note: str = ""
    analysis: str | None = None
    """What it shows instead of runs, or beside them."""
    together: bool = False
    """Whether both versions of a problem share a panel."""
    only_one: tuple[str, ...] = ()
    """Methods without batches."""
    replaced: Mapping[str, str] = field(default_factory=dict)
    """Problems whose data are missing here, and what is run instead."""

    def curves(self) -> list[Curve]:
        """Return all curves, panel by panel."""
        return [
            Curve(problem, version, method, batch, self._evaluations(problem, batch), self.to_input.get(batch))
            for problem in self.problems
            for version in self.versions
            for method in self.methods
            for batch in self.batches
            if batch == 1 or method.key not in self.only_one
        ]

    def _evaluations(self, problem: str, batch: int) -> int:
        return self.evaluations.get(batch, LONGER.get(problem, EVALUATIONS))


def _by_batch(given: Mapping[str, Any]) -> dict[int, int]:
    return {int(batch): int(count) for batch, count in given.items()}


def _available(name: str) -> bool:
    try:
        benchmarks.load(name)
    except DataError:
        return False
    return True


@cache
def figures() -> dict[int, Figure]:
    """Return all figures by number."""
    document = tomllib.loads(files("bounce.paper").joinpath("figures.toml").read_text(encoding="utf-8"))
    methods = {
        key: Method(
            key,
            about["label"],
            about.get("method", key),
            about.get("options", {}),
            about.get("repetitions", REPETITIONS),
        )
        for key, about in document["methods"].items()
    }
    found: dict[int, Figure] = {}
    tables: dict[int, dict[str, Any]] = {}
    for own in document["figures"]:
        table = {**tables.get(own.get("same_as", 0), {}), **own}
        tables[table["number"]] = table
        replaced = {old: new for old, new in table.get("instead", {}).items() if not _available(old)}
        batches = tuple(table.get("batches", (1,)))
        found[table["number"]] = Figure(
            number=table["number"],
            title=table["title"],
            problems=tuple(replaced.get(name, name) for name in table.get("problems", ())),
            versions=tuple(table.get("versions", VERSIONS)),
            methods=tuple(methods[key] for key in table.get("methods", ())),
            batches=batches,
            evaluations=_by_batch(table.get("evaluations", {})),
            to_input=_by_batch(table.get("to_input", {})),
            axis=table.get("axis", "evaluations"),
            claims=tuple(table["claims"]),
            note=table.get("note", ""),
            analysis=table.get("analysis"),
            together=table.get("together", False),
            only_one=tuple(table.get("only_one", ())),
            replaced=replaced,
        )
    return found


def chosen(numbers: Sequence[int]) -> list[Figure]:
    """Return some figures by their numbers; all without any."""
    known = figures()
    for number in numbers:
        if number not in known:
            raise InvalidInput(f"the paper has no figure {number} with data; those with data are {_listed(known)}")
    return [known[number] for number in (dict.fromkeys(numbers) or known)]


def _listed(numbers: Iterable[int]) -> str:
    return ", ".join(map(str, numbers))
