"""Cases: the combinations of values with which an expression is true, or false, as far as they can be told apart.

A case is a dict from names to values: what holds of a point that has one of the values of each name.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from bounce.spaces.grammar import AllOf, AnyOf, Name, Negation, Node, walk
from bounce.spaces.truth import Rows, column
from bounce.trial import Scalar

Case = dict[str, tuple[Scalar, ...]]
Domains = Mapping[str, Sequence[Scalar]]

MOST = 256  # cases of one expression


def cases(node: Node, text: str, domains: Domains, *, wanted: bool) -> list[Case] | None:
    """Return the cases in which a part of a text is true, or false, as `wanted`.

    `domains` has the values of the parameters that have few. None if the part relates parameters to each other
    otherwise than by and, or, not; or if there are too many cases.
    """
    if isinstance(node, Negation):
        return cases(node.item, text, domains, wanted=not wanted)
    names = {part.name for part in walk(node) if isinstance(part, Name)}
    if len(names) == 1 and names <= domains.keys():
        return _of_one(node, text, next(iter(names)), domains, wanted)
    if not isinstance(node, AllOf | AnyOf):
        return None
    found = [cases(item, text, domains, wanted=wanted) for item in node.items]
    several = [each for each in found if each is not None]
    if len(several) < len(found):
        return None
    if isinstance(node, AnyOf) == wanted:
        together = [case for each in several for case in each]
    elif math.prod(map(len, several)) <= MOST:
        together = [case for case in map(_joined, itertools.product(*several)) if all(case.values())]
    else:
        return None
    return together if len(together) <= MOST else None


def _of_one(node: Node, text: str, name: str, domains: Domains, wanted: bool) -> list[Case] | None:
    """Return the values of one parameter with which a part is true or false; None if it is undefined for some."""
    values = domains[name]
    numeric = all(isinstance(value, int | float) for value in values)
    array = column(values) if numeric else np.array([*values, None], dtype=object)[:-1]  # not as one type of all
    with np.errstate(all="ignore"):
        truth = Rows(text, {name: array}, graded=False).truth(node)
    if np.any(truth.error):
        return None
    true = np.broadcast_to(truth.value, (len(values),))
    found = tuple(value for value, own in zip(values, true, strict=True) if own == wanted)
    return [{name: found}] if found else []


def _joined(several: Iterable[Case]) -> Case:
    """Return the case in which several hold."""
    found: Case = {}
    for case in several:
        found |= {name: tuple(x for x in values if x in found.get(name, values)) for name, values in case.items()}
    return found
