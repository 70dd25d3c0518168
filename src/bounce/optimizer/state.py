"""The state of a run: its trials, and a head of bounded size that says where the algorithm stands.

Both become JSON values and come back bit for bit. Codes on the grid of the space are exact in JSON. A document of an
earlier version is upgraded when it is read (`upgraded`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any

import numpy as np

from bounce.acquire.design import Design
from bounce.errors import InvalidState
from bounce.gp.kernels import Hyper
from bounce.gp.linalg import Array
from bounce.gp.targets import BENDS
from bounce.method import FIRST, Method
from bounce.spaces.kinds import Codes
from bounce.spaces.outcomes import Limit, feasible
from bounce.spaces.space import Space
from bounce.subspace.embedding import Embedding
from bounce.subspace.stages import Stage
from bounce.subspace.trust_region import TrustRegion
from bounce.trial import ASKED, STATES, VALUED, Scalar, State, Trial

VERSION = 6
STORED = tuple(f.name for f in fields(Trial) if f.name not in ("point", "feasible"))  # these two follow from the rest
OWN = ("codes", "batch", "told", "asked_codes", "enqueued", "counted", "was", "former_point", "free")
RECORD = (*STORED, *OWN)
"""The keys of a record's document."""

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
WITHOUT_6: dict[str, Any] = {"repeats": None}  # what the default of version 5 did, ...
WITHOUT = WITHOUT_6 | {  # ... and that of version 4
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


@dataclass(frozen=True, eq=False)
class Record:
    """A trial with what only the optimizer needs."""

    trial: Trial
    codes: Codes
    batch: int
    """The id of the first trial of its batch."""
    told: int | None = None
    """Its place in the order of tells."""
    asked_codes: Codes | None = None
    """The codes of the point that was asked for, where another one was used."""
    enqueued: bool = False
    """Whether the user chose its point."""
    counted: bool = False
    """Whether it has moved the trust region; it does so once."""
    was: State | None = None
    """The state it had before the space was changed and it was left outside; its codes then mean nothing."""
    former: Mapping[str, Scalar] = field(default_factory=dict)
    """Its values of parameters that the space no longer has."""
    free: tuple[str, ...] = ()
    """The parameters that an enqueued point leaves open until it is asked for; their codes then mean nothing."""

    @property
    def spent(self) -> bool:
        """Whether it has cost budget."""
        return (self.was or self.trial.state) in ASKED

    @property
    def id(self) -> int:
        """The trial's id."""
        return self.trial.id

    @property
    def value(self) -> float:
        """The value of a trial that has one."""
        assert self.trial.value is not None
        return self.trial.value

    @property
    def tell(self) -> int:
        """The place of a finished trial in the order of tells."""
        assert self.told is not None
        return self.told

    @property
    def proposed(self) -> bool:
        """Whether the acquisition chose it.

        Initial points, repeats, and points that doubt the model, neither move the region nor use its budget.
        """
        return self.trial.acquisition is not None


@dataclass(frozen=True, eq=False)
class Fit:
    """The last fit of the hyperparameters."""

    hyper: Hyper
    tells: int
    """How many tells it had seen."""
    stage: int
    """The number of the stage it was made in."""
    bend: float = 0.0
    """How much the targets are bent."""
    beliefs: Mapping[str, Hyper] = field(default_factory=dict)
    """The hyperparameters of what is believed about limits, by the names of `bounce.optimizer.limits`."""


@dataclass(frozen=True, eq=False)
class Head:
    """Where the algorithm stands."""

    stage: Stage
    design: Design
    fit: Fit | None


def observations(records: Sequence[Record], restart: int | None) -> list[Record]:
    """Return the trials with a value since a restart, by id; with None, all trials with a value."""
    return [r for r in records if r.trial.state in VALUED and restart in (None, r.trial.restart)]


def best_of(records: Iterable[Record], sign: float, limits: Sequence[Limit] = ()) -> Record | None:
    """Return the trial with the best value, the first of several; None if none has a value.

    With limits, it is the best of those that keep them. Before there is one, it is the trial that breaks them least.
    """
    valued = [record for record in records if record.trial.state in VALUED]
    if not limits:
        return min(valued, key=lambda record: sign * record.value, default=None)
    return valued[int(ranks(valued, sign, limits).argmin())] if valued else None


def ranks(records: Sequence[Record], sign: float, limits: Sequence[Limit]) -> Array:
    """Return the ranks (n,) of trials with a value: by violation, then by value, then by place; 0 for the best."""
    ranks = np.empty(len(records))
    ranks[np.lexsort((np.array([sign * r.value for r in records]), violations(records, limits)))] = np.arange(
        len(records)
    )
    return ranks


def violations(records: Sequence[Record], limits: Sequence[Limit]) -> Array:
    """Return by how much each of some trials breaks the limits, all of them together; infinite if that is not known.

    The violation of each limit is divided by the median of those of the trials that break it, so that outcomes in
    different units count alike, and one outlier does not set the scale.
    """
    total = np.zeros(len(records))
    for limit in limits:
        own = np.array(
            [
                np.inf if limit.name not in r.trial.outcomes else limit.violation(r.trial.outcomes[limit.name])
                for r in records
            ]
        )
        broken = own[(own > 0) & np.isfinite(own)]
        with np.errstate(over="ignore"):
            total += own / np.median(broken) if len(broken) else own
    held = np.array([bool(r.trial.feasible) for r in records], dtype=bool)
    return np.where(held, 0.0, np.maximum(total, np.finfo(float).tiny))


def spent(records: Iterable[Record]) -> int:
    """Return how much of the budget trials have cost."""
    return sum(record.spent for record in records)


def evidence(records: Sequence[Record], restart: int | None, sign: float, method: Method) -> tuple[list[Record], Array]:
    """Return the trials that the model learns from, by id, and what it is told about each, to be minimised.

    They are those since a restart, or with None all of them. A failed trial counts as the worst value seen, or not at
    all (`Method.failures`).
    """
    done = observations(records, restart)
    if method.failures != "worst":
        return done, np.array([sign * r.value for r in done])
    found = [r for r in records if r.told is not None and restart in (None, r.trial.restart)]
    worst = max(sign * r.value for r in done)
    return found, np.array([sign * r.value if r.trial.state in VALUED else worst for r in found])


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


# Earlier versions


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
    elif state.get("version") in (4, 5):
        without = WITHOUT if state["version"] == 4 else WITHOUT_6
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
    """Versions 4 and 5 had a default without some of today's choices; a run continues with the one it began with."""
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
    if hyper is not None and not _is_number(hyper["comb"]):  # otherwise that of another kernel, to be fitted again
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
