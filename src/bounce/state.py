"""What a run is made of: its trials, and a head of bounded size that says where the algorithm stands.

Both become JSON values and come back bit for bit. Codes on the grid of `bounce.space` are exact in JSON.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal

import numpy as np

from bounce.embedding import Embedding
from bounce.errors import InvalidState
from bounce.kernels import Hyper
from bounce.linalg import Array
from bounce.parameters import Codes, Scalar
from bounce.space import Space
from bounce.trust_region import TrustRegion

State = Literal["pending", "done", "failed"]


@dataclass(frozen=True)
class Trial:
    """A point that was asked for, and what is known of it: a snapshot."""

    id: int
    point: dict[str, Scalar]
    value: float | None = None
    state: State = "pending"
    error: str | None = None
    """What was said of a failure."""
    space: int = 0
    """The number of the target space it was made in."""
    target_dim: int = 0
    """The number of bins of that space."""
    length_comb: float = 0.0
    """The length of the trust region for combinatorial bins: how many may change."""
    length_cont: float = 0.0
    """The length of the trust region for reals: the side of the box, of 1."""
    restart: int = 0
    """How often the run had started again."""
    acquisition: float | None = None
    """The log of the improvement expected of it; None for an initial point."""
    seconds_ask: float = 0.0
    """Its share of the time its ask took."""
    seconds_eval: float | None = None
    """How long its evaluation took, where that is known."""

    def __hash__(self) -> int:
        return hash(self.id)


@dataclass(frozen=True, eq=False)
class Record:
    """A trial with what only the optimizer needs."""

    trial: Trial
    codes: Codes
    batch: int
    """The id of the first trial of its batch."""
    told: int | None = None
    """Its place in the order of tells."""

    @property
    def id(self) -> int:
        """The trial's id."""
        return self.trial.id

    @property
    def value(self) -> float:
        """The value of a trial that is done."""
        assert self.trial.value is not None
        return self.trial.value

    @property
    def tell(self) -> int:
        """The place of a finished trial in the order of tells."""
        assert self.told is not None
        return self.told

    @property
    def proposed(self) -> bool:
        """Whether the model chose it; initial points neither move the region nor use its budget."""
        return self.trial.acquisition is not None


@dataclass(frozen=True, eq=False)
class Head:
    """Where the algorithm stands."""

    embedding: Embedding
    region: TrustRegion
    space: int
    restart: int
    entered: int
    """How many trials had been asked for when this space began, its initial points included."""
    design_seed: int
    design_size: int
    """How many initial points this restart is to have."""
    design_used: int
    """How many it has had; more than its size where no value came back."""
    hyper: Hyper | None
    fitted: int
    """How many tells the last fit had seen."""
    fitted_space: int
    """The space it was made in."""


def observations(records: Sequence[Record], restart: int) -> list[Record]:
    """Return the trials with a value since a restart, by id: the data of the model."""
    return [r for r in records if r.trial.state == "done" and r.trial.restart == restart]


def evidence(records: Sequence[Record], restart: int, sign: float) -> tuple[list[Record], Array]:
    """Return the finished trials since a restart, by id, and what the model is told of each, to be minimised.

    A failed trial counts as the worst value seen: left out, the model would propose its neighbours for ever.
    """
    found = [r for r in records if r.trial.state != "pending" and r.trial.restart == restart]
    worst = max(sign * r.value for r in found if r.trial.state == "done")
    return found, np.array([sign * r.value if r.trial.state == "done" else worst for r in found])


def record_to_dict(record: Record) -> dict[str, Any]:
    """Return a record as JSON values; the point follows from its codes."""
    document = {name: value for name, value in vars(record.trial).items() if name != "point"}
    return document | {"codes": record.codes.tolist(), "batch": record.batch, "told": record.told}


def record_from_dict(space: Space, document: Mapping[str, Any], place: int) -> Record:
    """Build the record at a place in the list of trials."""
    codes = np.array([document["codes"]], dtype=np.float64)
    trial = Trial(point={}, **{f.name: document[f.name] for f in fields(Trial) if f.name != "point"})
    value, told, batch = trial.value, document["told"], document["batch"]
    done = trial.state == "done"
    if not (
        space.holds(codes)
        and _is_int(trial.id)
        and trial.id == place
        and trial.state in ("pending", "done", "failed")
        and done == (value is not None)
        and (not done or _is_number(value))
        and (trial.state == "pending") == (told is None)
        and (told is None or _is_int(told))
        and _is_int(batch)
        and 0 <= batch <= place
        and all(_is_int(n) and n >= 0 for n in (trial.space, trial.target_dim, trial.restart))
        and all(_is_number(x) for x in (trial.length_comb, trial.length_cont, trial.seconds_ask))
        and all(x is None or _is_number(x) for x in (trial.acquisition, trial.seconds_eval))
        and (trial.error is None or isinstance(trial.error, str))
    ):
        raise InvalidState(f"trial {place} of the state is damaged: {document!r}")
    object.__setattr__(trial, "point", space.decode(codes)[0])
    return Record(trial, codes[0], batch, told)


def head_to_dict(head: Head) -> dict[str, Any]:
    """Return a head as JSON values."""
    document = {f.name: getattr(head, f.name) for f in fields(Head)}
    hyper = head.hyper
    return document | {
        "embedding": head.embedding.to_dict(),
        "region": asdict(head.region),
        "hyper": None if hyper is None else hyper_to_dict(hyper),
    }


def hyper_to_dict(hyper: Hyper) -> dict[str, Any]:
    """Return hyperparameters as JSON values."""
    return asdict(hyper) | {"comb": hyper.comb.tolist(), "cont": hyper.cont.tolist()}


def hyper_from_dict(document: Mapping[str, Any]) -> Hyper | None:
    """Build hyperparameters; None, so that they are fitted again, if they are of a version with another kernel."""
    if _is_number(document["comb"]):
        return None
    given = {f.name: document[f.name] for f in fields(Hyper)}
    if not all(_is_number(x) for x in [*given["comb"], *given["cont"]]):
        raise InvalidState(f"the state's lengthscales are damaged: {document!r}")
    return Hyper(**given | {name: np.array(given[name], float) for name in ("comb", "cont")})


def head_from_dict(space: Space, document: Mapping[str, Any]) -> Head:
    """Build a head, in which everything fits the space."""
    given = {f.name: document[f.name] for f in fields(Head)}
    embedding = Embedding.from_dict(space, given.pop("embedding"))
    region = TrustRegion(**given.pop("region"))
    hyper = None if (found := given.pop("hyper")) is None else hyper_from_dict(found)
    latent = embedding.latent
    positive = [] if hyper is None else [hyper.signal, hyper.noise, *hyper.comb, *hyper.cont]
    if not (
        (region.n_comb, region.n_cont) == (len(latent.combinatorial), len(latent.reals))
        and all(_is_int(n) and n >= 0 for n in (region.budget, region.used, region.successes, region.failures))
        and all(_is_int(n) and n >= (-1 if name == "fitted_space" else 0) for name, n in given.items())
        and all(_is_number(x) and x >= 0 for x in (region.comb, region.cont))
        and all(_is_number(x) and 1e-9 < x < 1e9 for x in positive)
        and (hyper is None or (_is_number(hyper.rho) and 0 <= hyper.rho <= 1))
        and (hyper is None or len(hyper.cont) == len(latent.reals))
        and (hyper is None or len(hyper.comb) in (1, len(latent.combinatorial_kinds)))
    ):
        raise InvalidState("the state's head does not fit its embedding")
    return Head(embedding=embedding, region=region, hyper=hyper, **given)


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
