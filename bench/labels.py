"""Labels: one word for a method and its options.

- `tpe`, `random`, ...: a name of `bounce.baselines`.
- `bounce`: Bounce with its defaults.
- `bounce:initial_dims=15` and `bounce:method.caution=1.0:initial_points=10`: Bounce with some options; `method=paper`
  names a method, and `method.FIELD` changes a field of it.
- A name of your own for such options, defined by texts such as `early=budget_to_input=50`. Without options,
  `before`, it is Bounce with its defaults under another name, to compare two versions of the code.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from bounce import Bounce, Space, baselines
from bounce.errors import InvalidInput
from bounce.optimizer.options import Options

BOUNCE = "bounce"
NAME = re.compile(r"[A-Za-z][A-Za-z0-9._-]*")


@dataclass(frozen=True)
class Label:
    """A method by its label; the options are those of Bounce, empty for others."""

    name: str
    method: str
    options: Mapping[str, Any] = field(default_factory=dict)

    def make(self, space: Space, budget: int, seed: int) -> Any:
        """Return an optimizer to ask and tell."""
        if self.method == BOUNCE:
            return Bounce(space, budget, seed=seed, **self.options)
        return baselines.make(self.method, space, budget, seed)


def options(texts: Iterable[str]) -> dict[str, Any]:
    """Return the options in texts such as `initial_dims=15` and `method.caution=1.0`, checked."""
    found: dict[str, Any] = {}
    fields: dict[str, Any] = {}
    for text in texts:
        name, equals, given = text.partition("=")
        if not equals:
            raise InvalidInput(f"an option must be FIELD=VALUE, such as initial_dims=15, not {text!r}")
        value = _value(given)
        if name.startswith("method."):
            fields[name.removeprefix("method.")] = value
        else:
            found[name] = value
    if fields:
        found["method"] = fields | ({"base": found["method"]} if "method" in found else {})
    Options.of({"budget": 1, **found})
    for fixed in ("budget", "seed", "batch_size"):
        if fixed in found:
            raise InvalidInput(f"{fixed} cannot be an option of a label: the run sets it")
    return found


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return {"None": None, "True": True, "False": False}.get(text, text)


def named(definitions: Iterable[str]) -> dict[str, Label]:
    """Return the labels defined by texts such as `early=budget_to_input=50`; a name may be given several times."""
    texts: dict[str, list[str]] = {}
    for definition in definitions:
        name, equals, option = definition.partition("=")
        if not NAME.fullmatch(name) or name in (BOUNCE, *baselines.names()):
            raise InvalidInput(f"a label must be a new name, such as early=budget_to_input=50, not {definition!r}")
        texts.setdefault(name, []).extend([option] if equals else [])
    return {name: Label(name, BOUNCE, options(own)) for name, own in texts.items()}


def labels(text: str, definitions: Iterable[str] = ()) -> list[Label]:
    """Return the labels of a text with commas between them; without text, those of the definitions."""
    known = named(definitions)
    found = []
    for name in dict.fromkeys(part.strip() for part in text.split(",")):
        method, *given = name.split(":")
        if name in known:
            found.append(known[name])
        elif method == BOUNCE:
            found.append(Label(name, BOUNCE, options(given)))
        elif name in baselines.names():
            found.append(Label(name, name))
        else:
            others = ", ".join([BOUNCE, "bounce:FIELD=VALUE", *baselines.names(), *known])
            raise InvalidInput(f"there is no method {name!r}; the names are {others}")
    return [*found, *(label for label in known.values() if label not in found)]
