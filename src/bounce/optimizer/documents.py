"""The state of a run as JSON values, which come back bit for bit: codes on the grid of the space are exact in JSON.

What is read is checked, so a damaged document never becomes a state. A document of an earlier version is upgraded
before it is read (`optimizer.upgrades`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from typing import Any

import numpy as np

from bounce.acquire.design import Design
from bounce.errors import InvalidState
from bounce.gp.kernels import Hyper
from bounce.gp.targets import BENDS
from bounce.optimizer.state import Fit, Head, Record
from bounce.spaces.kinds import Codes
from bounce.spaces.outcomes import feasible
from bounce.spaces.space import Space
from bounce.subspace.embedding import Embedding
from bounce.subspace.stages import Stage
from bounce.subspace.trust_region import TrustRegion
from bounce.trial import STATES, VALUED, Trial

VERSION = 8
STORED = tuple(f.name for f in fields(Trial) if f.name not in ("point", "feasible"))  # these two follow from the rest
OWN = ("codes", "batch", "told", "asked_codes", "enqueued", "counted", "was", "former_point", "free")
RECORD = (*STORED, *OWN)
"""The keys of a record's document."""


def record_to_dict(record: Record) -> dict[str, Any]:
    """Return a record as JSON values; the point follows from its codes."""
    document = {name: getattr(record.trial, name) for name in STORED}
    return document | {
        "codes": record.codes.tolist(),
        "batch": record.batch,
        "told": record.told,
        "asked_codes": None if record.asked_codes is None else record.asked_codes.tolist(),
        "enqueued": record.enqueued,
        "counted": record.counted,
        "was": record.was,
        "former_point": record.trial.point if record.was is not None else dict(record.former) or None,
        "free": list(record.free) or None,
    }


def records_from_dicts(space: Space, documents: Sequence[Mapping[str, Any]]) -> list[Record]:
    """Build the records of all trials."""
    codes = np.empty((len(documents), len(space)))
    for i, document in enumerate(documents):
        if len(document["codes"]) != len(space):
            raise _damaged(document, i)
        codes[i] = document["codes"]
    if not space.holds(codes):
        wrong = next(i for i in range(len(codes)) if not space.holds(codes[i : i + 1]))
        raise _damaged(documents[wrong], wrong)
    return [_record(space, document, i, codes[i : i + 1]) for i, document in enumerate(documents)]


def _damaged(document: Mapping[str, Any], place: int) -> InvalidState:
    return InvalidState(f"trial {place} of the state is damaged: {document!r}")


def _record(space: Space, document: Mapping[str, Any], place: int, codes: Codes) -> Record:
    """Build the record at a place in the list of trials, whose codes (1, D) are those of the space."""
    asked = document["asked_codes"]
    asked_codes = None if asked is None else np.array([asked], dtype=np.float64)
    trial = Trial(point={}, **{name: document[name] for name in STORED})
    value, told, batch = trial.value, document["told"], document["batch"]
    if not (
        (asked_codes is None or space.holds(asked_codes))
        and _is_int(trial.id)
        and trial.id == place
        and trial.state in STATES
        and (trial.state == "outside" or (trial.state in VALUED) == (value is not None))
        and (value is None or _is_number(value))
        and isinstance(trial.outcomes, dict)
        and all(isinstance(name, str) and _is_number(x) for name, x in trial.outcomes.items())
        and (value is not None or not trial.outcomes)
        and (trial.sem is None or (value is not None and _is_number(trial.sem) and trial.sem >= 0))
        and (trial.state in (*VALUED, "failed")) == (told is not None)
        and (trial.state == "outside") == (document["was"] is not None)
        and (told is None or _is_int(told))
        and _is_int(batch)
        and 0 <= batch <= place
        and all(_is_int(n) and n >= 0 for n in (trial.stage, trial.target_dim, trial.restart, trial.attempts))
        and (trial.repeats is None or (_is_int(trial.repeats) and 0 <= trial.repeats < place))
        and all(_is_number(x) for x in (trial.radius, trial.side, trial.seconds_ask))
        and all(x is None or _is_number(x) for x in (trial.acquisition, trial.seconds_eval))
        and (trial.error is None or isinstance(trial.error, str))
        and isinstance(trial.notes, dict)
        and all(isinstance(x, str) for note in trial.notes.items() for x in note)
    ):
        raise _damaged(document, place)
    former, outside = dict(document["former_point"] or {}), document["was"] is not None
    free = tuple(document["free"] or ())
    point = former if outside else {k: v for k, v in space.decode(codes)[0].items() if k not in free}
    object.__setattr__(trial, "point", point)
    object.__setattr__(trial, "feasible", feasible(space.limits, trial.outcomes))
    return Record(
        trial,
        codes[0],
        batch,
        told,
        asked_codes=None if asked_codes is None else asked_codes[0],
        enqueued=bool(document["enqueued"]),
        counted=bool(document["counted"]),
        was=document["was"],
        former={} if outside else former,
        free=free,
    )


def head_to_dict(head: Head) -> dict[str, Any]:
    """Return a head as JSON values."""
    stage, fit = head.stage, head.fit
    beliefs = {} if fit is None else {name: _hyper_to_dict(hyper) for name, hyper in fit.beliefs.items()}
    return {
        "stage": {
            "number": stage.number,
            "restart": stage.restart,
            "entered": stage.entered,
            "embedding": stage.embedding.to_dict(),
            "region": asdict(stage.region),
        },
        "design": asdict(head.design),
        "fit": None
        if fit is None
        else {"hyper": _hyper_to_dict(fit.hyper), "tells": fit.tells, "stage": fit.stage, "bend": fit.bend}
        | ({"beliefs": beliefs} if beliefs else {}),
    }


def _hyper_to_dict(hyper: Hyper) -> dict[str, Any]:
    return {name: x.tolist() if isinstance(x, np.ndarray) else x for name, x in vars(hyper).items()}


def head_from_dict(space: Space, document: Mapping[str, Any]) -> Head:
    """Build a head, in which everything fits the space."""
    given = dict(document["stage"])
    embedding = Embedding.from_dict(space, given.pop("embedding"))
    region = TrustRegion(**given.pop("region"))
    stage = Stage(embedding=embedding, region=region, **given)
    design = Design(**document["design"])
    latent = embedding.latent
    counts = [stage.number, stage.restart, stage.entered, design.seed, design.size, design.used]
    counts += [region.budget, region.used, region.successes, region.failures]
    if not (
        (region.n_combinatorial, region.n_real) == (len(latent.combinatorial), len(latent.reals))
        and all(_is_int(n) and n >= 0 for n in counts)
        and all(_is_number(x) and x >= 0 for x in (region.radius, region.side))
    ):
        raise InvalidState("the state's head does not fit its embedding")
    return Head(stage, design, None if document["fit"] is None else _fit_from_dict(latent, document["fit"]))


def _hyper_from_dict(latent: Space, document: Mapping[str, Any]) -> Hyper:
    given = dict(document)
    for name in ("combinatorial_lengthscales", "real_lengthscales"):
        if not all(_is_number(x) and 1e-9 < x < 1e9 for x in given[name]):
            raise InvalidState(f"the state's lengthscales are damaged: {given[name]!r}")
        given[name] = np.array(given[name], dtype=np.float64)
    hyper = Hyper(**given)
    if not (
        all(_is_number(x) and 1e-9 < x < 1e9 for x in (hyper.signal, hyper.noise))
        and _is_number(hyper.rho)
        and 0 <= hyper.rho <= 1
        and len(hyper.real_lengthscales) == len(latent.reals)
        and isinstance(hyper.per_bin, bool)
        and len(hyper.combinatorial_lengthscales)
        in ((len(latent.combinatorial),) if hyper.per_bin else (1, len(latent.combinatorial_kinds)))
    ):
        raise InvalidState("the state's hyperparameters do not fit its embedding")
    return hyper


def _fit_from_dict(latent: Space, document: Mapping[str, Any]) -> Fit:
    hyper = _hyper_from_dict(latent, document["hyper"])
    beliefs = {str(name): _hyper_from_dict(latent, given) for name, given in document.get("beliefs", {}).items()}
    if not all(_is_int(document[name]) and document[name] >= 0 for name in ("tells", "stage")):
        raise InvalidState("the state's hyperparameters do not fit its embedding")
    bend = document.get("bend", 0.0)
    if bend not in BENDS:
        raise InvalidState(f"the state's targets have an unknown bend: {bend!r}")
    return Fit(hyper, document["tells"], document["stage"], bend, beliefs)


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
