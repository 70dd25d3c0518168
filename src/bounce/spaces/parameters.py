"""Parameters: one variable each, native values outside, codes inside. The types there are, and their documents."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import Any

from bounce.errors import InvalidSpace
from bounce.spaces.choices import Binary, Categorical, Ordinal
from bounce.spaces.composites import COMPOSITES
from bounce.spaces.kinds import GRID, Codes, Kind, Parameter, on_grid
from bounce.spaces.mixtures import Mixture
from bounce.spaces.numbers import Integer, Real
from bounce.spaces.permutations import Permutation
from bounce.spaces.subsets import Subset

__all__ = [
    "COMPOSITES",
    "FIELDS",
    "GRID",
    "OPTIONAL",
    "TYPES",
    "Binary",
    "Categorical",
    "Codes",
    "Integer",
    "Kind",
    "Mixture",
    "Ordinal",
    "Parameter",
    "Permutation",
    "Real",
    "Subset",
    "document_of",
    "on_grid",
    "parameter_from_dict",
]

TYPES: dict[str, type[Any]] = {t.type: t for t in (Real, Integer, Ordinal, Categorical, Binary, *COMPOSITES)}
FIELDS = {t.type: tuple(f.name for f in fields(t) if f.name != "name") for t in TYPES.values()}
OPTIONAL = {t.type: {f.name for f in fields(t) if f.default is not MISSING} for t in TYPES.values()}


def document_of(parameter: Parameter) -> dict[str, Any]:
    """Return a parameter as JSON values, without what it does not have."""
    document: dict[str, Any] = {"name": parameter.name, "type": parameter.type}
    for key in FIELDS[parameter.type]:
        value = getattr(parameter, key)
        if value is not None:
            document[key] = list(value) if isinstance(value, tuple) else value
    if parameter.when is not None:
        document["when"] = {name: list(values) for name, values in dict(parameter.when).items()}
    return document


def parameter_from_dict(document: Mapping[str, Any]) -> Parameter:
    """Build a parameter from its document, the inverse of `Space.to_dict`."""
    if not isinstance(document, Mapping):
        raise InvalidSpace(f"a parameter must be a table with name and type, not {document!r}")
    type_name = document.get("type")
    if not isinstance(type_name, str) or type_name not in TYPES:
        raise InvalidSpace(f"a parameter's type must be one of {list(TYPES)}, not {type_name!r}")
    allowed = ("name", *FIELDS[type_name])
    given = {key: value for key, value in document.items() if key != "type"}
    unknown = [key for key in given if key not in allowed]
    missing = [key for key in allowed if key not in given and key not in OPTIONAL[type_name]]
    if unknown or missing:
        raise InvalidSpace(
            f"a parameter of type {type_name!r} takes {list(allowed)}: "
            + "; ".join(f"{what} {keys}" for what, keys in (("unknown", unknown), ("missing", missing)) if keys)
        )
    parameter: Parameter = TYPES[type_name](**given)
    return parameter
