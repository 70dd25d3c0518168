"""Documents of earlier versions: what a state or a trial lacks, and the method that its run began with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bounce.method import FIRST
from bounce.optimizer.documents import VERSION

RENAMED = {"space": "stage", "length_comb": "radius", "length_cont": "side"}  # fields of a trial, version 1 to 2
NEW_IN_6: dict[str, Any] = {"repeats": None}  # fields of a trial that version 5 did not have
NEW_IN_5: dict[str, Any] = {"outcomes": {}}  # fields of a trial that version 4 did not have
NEW_IN_4: dict[str, Any] = {"sem": None}  # fields of a trial that version 3 did not have
NEW_IN_3: dict[str, Any] = {"attempts": 0, "free": None}  # fields of a trial that version 2 did not have
NEW_IN_2: dict[str, Any] = {  # fields of a trial that version 1 did not have
    "notes": {},
    "asked_codes": None,
    "enqueued": False,
    "counted": False,
    "was": None,
    "former_point": None,
}
WITHOUT_8: dict[str, Any] = {"limit_changes": "radius"}  # the default of version 7, ...
WITHOUT_7 = WITHOUT_8 | {"auditions": None, "limit_unit": "median"}  # ... that of version 6, ...
WITHOUT_6 = WITHOUT_7 | {"climbs": "one", "capped": "mixed", "repeats": None}  # ... that of version 5, ...
WITHOUT_5 = WITHOUT_6 | {  # ... and that of version 4
    "lengthscale_prior": "gamma",
    "real_lengthscales": "apart",
    "tolerance": "fixed",
    "design": "latin",
}
PLAIN = {
    "targets": "raw",
    "caution": 1.0,
    "doubt_best": False,
    "lengthscales": "shared",
}  # version 1: robust = false


def upgraded(state: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a state document in this release's version."""
    if state.get("version") == 1:
        state = {
            **state,
            "version": VERSION,
            "options": _options_of_1(state["options"]),
            "head": _head_of_1(state["head"]),
            "trials": [upgraded_trial(trial, 1) for trial in state["trials"]],
        }
    elif state.get("version") in (4, 5, 6, 7):
        without = {4: WITHOUT_5, 5: WITHOUT_6, 6: WITHOUT_7, 7: WITHOUT_8}[state["version"]]
        trials = [upgraded_trial(trial, state["version"]) for trial in state["trials"]]
        options = {**state["options"], "method": _with(state["options"]["method"], without)}
        state = {**state, "version": VERSION, "options": options, "trials": trials}
    elif state.get("version") in (2, 3):  # options that were not there yet have their defaults
        trials = [upgraded_trial(trial, state["version"]) for trial in state["trials"]]
        options = {**state["options"], "method": _method_of_3(state["options"]["method"])}
        state = {**state, "version": VERSION, "options": options, "trials": trials}
    return state


def upgraded_trial(document: Mapping[str, Any], version: int) -> dict[str, Any]:
    """Return the document of a trial in this release's version."""
    trial = dict(document)
    if version < 2:
        trial = NEW_IN_2 | {RENAMED.get(name, name): x for name, x in trial.items()}
    if version < 3:
        trial = NEW_IN_3 | trial
    if version < 4:
        trial = NEW_IN_4 | trial
    if version < 5:
        trial = NEW_IN_5 | trial
    return NEW_IN_6 | trial if version < 6 else trial


def _options_of_1(options: Mapping[str, Any]) -> dict[str, Any]:
    """Version 1 bundled four choices as `robust`."""
    kept = {name: x for name, x in options.items() if name != "robust"}
    return kept | {"method": _method_of_3("default" if options["robust"] else PLAIN)}


def _with(method: str | Mapping[str, Any], former: Mapping[str, Any]) -> str | dict[str, Any]:
    """Versions 4 to 7 had a default without some of today's choices; a run continues with the one it began with."""
    if isinstance(method, str):
        return dict(former) if method == "default" else method
    return {**(former if method.get("base", "default") == "default" else {}), **method}


def _method_of_3(method: str | Mapping[str, Any]) -> str | dict[str, Any]:
    """Until version 3, the default was another method; a run continues with the one it began with."""
    if isinstance(method, str):
        return FIRST if method == "default" else method
    return {"base": FIRST, **method}


def _head_of_1(head: Mapping[str, Any]) -> dict[str, Any]:
    """Version 1 had everything side by side, and other names for lengths and lengthscales."""
    names = {"n_comb": "n_combinatorial", "n_cont": "n_real", "comb": "radius", "cont": "side"}
    hyper = head["hyper"]
    fit = None
    if hyper is not None and isinstance(hyper["comb"], list):  # otherwise that of another kernel, to be fitted again
        names_of_hyper = {"comb": "combinatorial_lengthscales", "cont": "real_lengthscales"}
        fit = {
            "hyper": {names_of_hyper.get(name, name): x for name, x in hyper.items()},
            "tells": head["fitted"],
            "stage": head["fitted_space"],
        }
    return {
        "stage": {
            "number": head["space"],
            "restart": head["restart"],
            "entered": head["entered"],
            "embedding": head["embedding"],
            "region": {names.get(name, name): x for name, x in head["region"].items()},
        },
        "design": {name: head[f"design_{name}"] for name in ("seed", "size", "used")},
        "fit": fit,
    }
