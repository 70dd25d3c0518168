"""Leaves: a point as a row of single values, for tables. A subset and a mixture have a column for each member.

The invariant: `folded(space, flattened(space, point)) == point`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from bounce.spaces.choices import Binary
from bounce.spaces.kinds import Parameter
from bounce.spaces.mixtures import Mixture
from bounce.spaces.numbers import Real
from bounce.spaces.space import Space
from bounce.spaces.subsets import Subset
from bounce.trial import Trial


def _members(parameter: Any) -> list[Any]:
    """Return the members of a parameter that has a column for each; none of any other."""
    if isinstance(parameter, Subset):
        return list(parameter.members)
    return list(parameter.components) if isinstance(parameter, Mixture) else []


def leaves(space: Space) -> list[Parameter]:
    """Return the parameters of a table's columns."""
    found: list[Parameter] = []
    for parameter in space.parameters:
        names = [f"{parameter.name}.{member}" for member in _members(parameter)]
        if isinstance(parameter, Mixture):
            found += [Real(name, 0.0, parameter.total, step=parameter.step) for name in names]
        else:
            found += [Binary(name) for name in names] if names else [parameter]
    return found


def flattened(space: Space, point: Mapping[str, Any]) -> dict[str, Any]:
    """Return a point with a value for each leaf; a point of another space keeps what is not known here."""
    parameters = {parameter.name: parameter for parameter in space.parameters}
    flat: dict[str, Any] = {}
    for name, value in point.items():
        parameter: Any = parameters.get(name)
        if isinstance(parameter, Subset) and isinstance(value, list):
            flat |= {f"{name}.{member}": member in value for member in parameter.members}
        elif isinstance(parameter, Mixture) and isinstance(value, dict):
            flat |= {f"{name}.{component}": value.get(component, 0.0) for component in parameter.components}
        else:
            flat[name] = value
    return flat


def folded(space: Space, flat: Mapping[str, Any]) -> dict[str, Any]:
    """Return the point of values by leaf; members that a row leaves out are not in it, if it has any."""
    point: dict[str, Any] = {}
    for parameter in space.parameters:
        members = {member: f"{parameter.name}.{member}" for member in _members(parameter)}
        if not members and parameter.name in flat:
            point[parameter.name] = flat[parameter.name]
        elif not any(name in flat for name in members.values()):
            continue
        elif isinstance(parameter, Mixture):
            point[parameter.name] = {member: flat.get(name, 0.0) for member, name in members.items()}
        else:
            point[parameter.name] = [member for member, name in members.items() if flat.get(name)]
    return point


def flat_trials(space: Space, trials: Iterable[Trial]) -> list[Trial]:
    """Return trials whose points have a value for each leaf."""
    if not any(_members(parameter) for parameter in space.parameters):
        return list(trials)
    return [replace(trial, point=flattened(space, trial.point)) for trial in trials]
