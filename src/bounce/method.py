"""Method: every choice of the algorithm, by name.

The paper leaves some choices open and others can be made better. Each field is one such choice. `Method.paper()` is
the paper as published, `Method()` is the default, and an ablation replaces one field:

>>> Method.paper()
>>> dataclasses.replace(Method(), caution=1.0)

The numbers in the docstrings are means over seeds, from docs/ablations.md unless another source is named. "From X to Y"
compares the code just before and just after a choice was adopted; other fields had the values of that time. Choices
that change only how something is computed, and not what, are not fields; docs/method.md lists them.

A leaf: every room reads the choices that concern it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Literal, Self, get_args, get_origin, get_type_hints

from bounce.errors import InvalidOption, quoted

LARGEST = {"spread": 10.0, "noise_floor": 1.0, "real_noise_floor": 1.0}  # beyond these, numbers overflow
FIRST = "0.1"  # the name of the default method of that version


@dataclass(frozen=True, repr=False)
class Method:
    """The choices of the algorithm; the defaults are those of this package, `Method.paper()` those of the paper."""

    # What the model believes (room gp)

    mean: Literal["constant", "zero"] = "constant"
    """The prior mean of the standardised values: the constant of highest likelihood, or zero (paper). With zero, the
    mean of the values seen so far is treated as typical of the whole space, although most lie near the best point."""

    targets: Literal["clipped", "raw"] = "clipped"
    """What the model learns from: values with outliers on the bad side lowered, or as they are (paper). One penalty of
    1e6 makes everything else look equal. cluster60 after 200 evaluations: from −43.7 to −48.5,
    measured together with `doubt_best` and `noise_floor`."""

    bend: bool = True
    """Whether the targets may be put on a scale that is finer near the best value, where this makes them more likely
    under the model. The paper has no such scale. `mixint-rosenbrock` of bench/suites.py after 200 evaluations, 3 seeds:
    from 19 to 11; a pipeline: from 0.039 to 0.033."""

    failures: Literal["worst", "learned", "ignored"] = "worst"
    """What the model learns from a failed trial: the worst value seen; the probability that an evaluation succeeds,
    which multiplies the expected improvement; or nothing. The paper has no failures, so its model sees only values. If
    failures are ignored, nothing keeps the search away from their neighbours. Learned, it finds better values but fails
    more often, since it looks closely at the edge of what fails: docs/method.md has the numbers."""

    limit_unit: Literal["quarter", "median"] = "quarter"
    """The unit of the log scale of an outcome that has a limit: the distance to the limit that a quarter of its values
    exceed, or the median one, which shrinks as a search gathers values at the limit, until the scale is a step. The
    paper has no limits. Designs of machine parts after 60 evaluations, medians of ten seeds: from 6496 to 6157 and from
    2.591 to 2.197."""

    limit_changes: Literal["two", "radius"] = "two"
    """Where outcomes have limits, how many combinatorial bins may change at least: two, since one alone often breaks a
    limit, or as many as the radius says. The paper has no limits. A welded beam after 60 evaluations, medians of ten
    seeds: from 2.197 to 1.772; six other problems stayed as they were."""

    lengthscales: Literal["per-bin", "per-kind", "shared"] = "per-bin"
    """The combinatorial lengthscales: one for each bin, one for each kind (binary, ordinal, categorical), or one for
    all (paper). From all to each kind, with 20 binary and 10 irrelevant categorical variables, after 50 evaluations:
    from 5.32 to 0. From each kind to each bin, `inert-lock` after 200 evaluations without an embedding, 3 seeds: from
    0.76 to 0.01."""

    spread: float = 0.7
    """With a lengthscale per bin, the standard deviation of their logs around the mean of their kind. The paper
    has one lengthscale for all. More is better on plateaus and worse with noise."""

    lengthscale_prior: Literal["either", "scaled", "gamma"] = "either"
    """The prior of combinatorial lengthscales: Γ(1.5, 0.1) (paper); log-normal around twice the root of the number of
    bins ("scaled"); or the second where it explains at least 20 values mostly by noise, and else the first. Under the
    first, short lengthscales explain noise as well as noise does, and the model believes a lucky value. With a noise of
    20 % of the range of good values, true value of `pbo-ising-triangular` after 100 evaluations, 3 seeds: 122 to 98."""

    real_lengthscales: Literal["tied", "apart"] = "tied"
    """The lengthscales of reals: tied to their mean where there are 2 to 20 real bins and no categorical ones, but not
    in embeddings of reals alone; or each with a prior of its own (paper), which lets a fit to few values call one
    variable rough and all others flat. Tied, Hartmann6 after 15, 30 and 60 evaluations, 6 seeds: from −1.05, −2.09 and
    −3.13 to −2.31, −3.01 and −3.24."""

    climbs: Literal["several", "one"] = "several"
    """How often a fit climbs where all bins are real and their lengthscales are apart: up to three times more, each
    time with one more short lengthscale, or once (paper), which often takes a variable that matters for noise.
    hartmann500 after 25, 50 and 100 evaluations, 20 seeds, together with `capped`: from −1.71, −2.66 and −3.11 to
    −2.00, −2.98 and −3.18."""

    noise_floor: float = 1e-6
    """The least noise variance, of a variance of 1, where some bins are combinatorial. The paper names none; 1e-4 is
    decision 7 in docs/method.md. ackley53 after 200 evaluations, measured together with `real_moves`: the median went
    from 0.020 to 0.003, the mean from 0.028 to 0.035."""

    real_noise_floor: float = 1e-4
    """The least noise variance where all bins are real. A smaller one was tried together with two other changes, and
    hartmann500 got worse (two seeds); which of the three did it is not known."""

    nearest: int | None = 512
    """How many observations the model holds, those nearest to the best one; None for all (paper). Bounds the time of
    an ask; runs of up to this many evaluations are the same."""

    nearest_fit: int | None = 256
    """How many of these the hyperparameters are fitted to where there are reals; None for all (paper). Bounds the
    time of a fit."""

    refits: Literal["thinned", "every-ask"] = "thinned"
    """When hyperparameters are fitted: when the stage is new or 1 in 20 observations is, or whenever there is a new
    observation (paper). Saves most of the time of an ask."""

    # Where the search looks (room subspace)

    flat: int | None = 20
    """Spaces of at most this many variables are searched without an embedding, and the first stage of larger ones has
    this many bins unless all variables are real; None for 5 bins, 2 if all are real, in spaces of every size (paper).
    Two pipelines with 17 variables after 25 evaluations, 3 seeds: from 0.067 and 0.077 to 0.046 and 0.063, together
    with `design`, `lengthscales` and `bend`."""

    arrival: Literal["dimension", "half"] = "dimension"
    """How many evaluations the stages share unless `budget_to_input` says so: half of the budget but at most half
    as many as there are variables, or half of the budget (paper). Together with 20 bins in the first stage, 16 problems
    of bench/suites.py after 100 and 200 evaluations, 3 seeds: regret from 0.54 and 0.34 to 0.45 and 0.24."""

    box_cap: float | None = 0.5
    """Lengthscales of reals above this value are capped when the box is shaped; None for no cap (paper). Without a cap,
    reals that do not matter leave a narrow box for the others. ackley53 after 200 evaluations: from 0.070 (8 seeds) to
    0.0017 (10 seeds)."""

    capped: Literal["everywhere", "mixed"] = "everywhere"
    """Where `box_cap` holds: in every space, or in mixed ones only. The paper has no cap. Ackley with 10 of 200 reals
    that matter, after 200 evaluations, 5 seeds, with `climbs` in both: from 4.5 to 3.5."""

    restart: Literal["reopen", "forget"] = "reopen"
    """What happens when the region has collapsed in the input space: it reopens around the best point with all data
    kept, or the run starts again from new points and forgets its data (paper). Over 17 small problems, reopening won
    69 paired runs and lost 41: it is better in one basin (sphere, Rosenbrock, traps) and worse where there are several
    (Shekel, Schwefel)."""

    # What to try next (room acquire)

    design: Literal["centred", "latin", "sobol"] = "centred"
    """The initial design: a Latin hypercube over all variables, which sees every category where there is room, with the
    reals and ordinals of its first point in the middle of their ranges, but not in embeddings of reals alone; such a
    hypercube as it is; or a Sobol sequence for the reals and uniform draws for the others (paper). With the middle,
    `mixint-rosenbrock` after 25, 50 and 100 evaluations, 3 seeds: from 4450, 1642 and 361 to 1764, 988 and 264."""

    caution: float = 1.4
    """Where no bin is real, standard deviations are multiplied by this; 1 trusts the model as it is (paper). labs50
    after 500 evaluations: from −3.98 to −4.33."""

    doubt: int | None = 3
    """After some evaluations without progress, every how many of them change all variables that the model believes not
    to matter; None for never (paper). LeadingOnes after 100 evaluations, 3 seeds: from 299 to 292; royal road after
    200: from 7.0 to 4.3 incomplete blocks."""

    auditions: int | None = 3
    """In the input space, every how many evaluations another value of a choice that decides much gets a turn, with a
    model of its own; None for never (paper). log(best value / optimum) of 24 made-up problems with such a choice after
    50, 75 and 120 evaluations: from 0.49, 0.43 and 0.40 to 0.43, 0.29 and 0.15."""

    tolerance: Literal["earned", "fixed"] = "earned"
    """How much worse the model may expect a doubting point to be than the best one: four times as much for each one
    before it that cost nothing, or always the same. The paper has no such points. LeadingOnes after 50 and 100
    evaluations, 4 seeds: from 303.9 and 292.8 to 302.0 and 288.7."""

    incumbent: Literal["believed", "value"] = "value"
    """What a proposal is to improve on: the lowest posterior mean where the fitted noise is large (`NOISY` in
    `bounce.optimizer.model`), or always the lowest value (paper), which may be a lucky one. Believed, the true value of
    the recommended point of `noisy-pipeline-wine` after 25 and 50 evaluations, 3 seeds: from 0.171 and 0.106 to 0.081
    and 0.081. Not measured without noise."""

    repeats: int | None = 4
    """Where values look noisy, every how many evaluations the point that is believed to be the best is evaluated once
    more; None for never (paper). `pbo-ising-triangular` with a noise of 20 % of the range of good values, true value of
    the recommended point after 50 and 100 evaluations, 5 seeds: from 123 and 112 to 113 and 95."""

    doubt_best: bool = True
    """When no candidate has a log EI above −15, look for an improvement on the lowest posterior mean instead of the
    lowest value, which is then assumed to be lucky noise. The paper always uses the lowest value."""

    real_moves: bool = True
    """In a mixed space, add 512 candidates that move reals and keep the other bins. The paper has none. ackley53 after
    100 evaluations: from 0.529 to 0.245, measured together with `noise_floor`."""

    search: Literal["halved", "full"] = "halved"
    """Local searches: the better half continues after every step, down to four, and fewer start if one takes long; or
    all 20 run to completion (paper). The end results are equal within the standard error; an ask is faster."""

    leaps: bool = True
    """After eight steps, a local search may make the best 2, 4, 8, ... moves at once. The paper makes one at a time.
    From the same states the log EI found differs by at most 0.002."""

    strides: bool = True
    """Ordinals of more than 64 levels may move 64 and 4,096 levels at once as well as one. The paper moves one level,
    which takes long to cross 5,000 of them: an ask takes 0.04 s instead of 0.20 s."""

    sampling: Literal["fast", "exact"] = "fast"
    """How candidates choose the bins that change when these are few among many: with replacement, so that now and then
    fewer change, or without (paper)."""

    batches: Literal["beside", "full"] = "beside"
    """Further points of a batch: one short search that starts next to the previous point, or the full search for each
    (paper). From the same states the mean log EI is no lower, in 20 % less time where the search is long."""

    def __post_init__(self) -> None:
        for name, expected in get_type_hints(type(self)).items():
            value = getattr(self, name)
            allowed = get_args(expected) if get_origin(expected) is Literal else None
            if allowed is not None:
                if value not in allowed:
                    raise _refused(name, f"one of {', '.join(map(repr, allowed))}", value)
            elif expected is bool:
                if not isinstance(value, bool):
                    raise _refused(name, "true or false", value)
            elif not (value is None and type(None) in get_args(expected)):
                whole = int in (expected, *get_args(expected))
                number = isinstance(value, int if whole else int | float) and not isinstance(value, bool)
                if not number or not 0 < value < math.inf:
                    raise _refused(name, "a positive whole number" if whole else "a positive number", value)
                if value > LARGEST.get(name, math.inf):
                    raise _refused(name, f"at most {LARGEST[name]:g}", value)

    def __repr__(self) -> str:
        document = self.document()
        if isinstance(document, str):
            return f"Method.of({document!r})"
        return f"Method({', '.join(f'{name}={value!r}' for name, value in document.items())})"

    @classmethod
    def paper(cls) -> Self:
        """Return the method of the paper, as the notes on its open points settle it."""
        return cls(
            mean="zero",
            targets="raw",
            bend=False,
            failures="ignored",
            limit_unit="median",
            limit_changes="radius",
            lengthscales="shared",
            lengthscale_prior="gamma",
            real_lengthscales="apart",
            climbs="one",
            flat=None,
            arrival="half",
            design="sobol",
            noise_floor=1e-4,
            real_noise_floor=1e-4,
            nearest=None,
            nearest_fit=None,
            refits="every-ask",
            box_cap=None,
            capped="mixed",
            restart="forget",
            caution=1.0,
            doubt=None,
            auditions=None,
            tolerance="fixed",
            repeats=None,
            doubt_best=False,
            real_moves=False,
            search="full",
            leaps=False,
            strides=False,
            sampling="exact",
            batches="full",
        )

    @classmethod
    def first_release(cls) -> Self:
        """Return the default method of version 0.1, with which studies of that version continue."""
        return cls(
            bend=False,
            limit_unit="median",
            limit_changes="radius",
            lengthscales="per-kind",
            lengthscale_prior="gamma",
            real_lengthscales="apart",
            climbs="one",
            flat=None,
            arrival="half",
            capped="mixed",
            design="sobol",
            doubt=None,
            auditions=None,
            tolerance="fixed",
            repeats=None,
        )

    @classmethod
    def of(cls, given: object) -> Method:
        """Return a method from its name, a document that `document` returned, or a method itself.

        A document is a table of the fields that differ from the method named by its key `base`, or from the default.
        """
        if isinstance(given, Method):
            return given
        names = [field.name for field in fields(cls)]
        if isinstance(given, str) and given in _NAMED:
            return _NAMED[given]
        if not isinstance(given, Mapping):
            raise _refused(None, f"{' or '.join(map(repr, _NAMED))}, or a table of its fields", given)
        base = cls.of(given.get("base", "default"))
        for name in given:
            if name != "base" and name not in names:
                raise InvalidOption(f"method has no field {name!r}; its fields are {', '.join(names)}", option="method")
        return replace(base, **{name: value for name, value in given.items() if name != "base"})

    def document(self) -> str | dict[str, Any]:
        """Return the method's name, or the fields in which it differs from the default, as JSON values."""
        for name, method in _NAMED.items():
            if self == method:
                return name
        default = asdict(_NAMED["default"])
        return {name: value for name, value in asdict(self).items() if value != default[name]}


def _refused(name: str | None, right: str, given: object) -> InvalidOption:
    where = "method" if name is None else f"method.{name}"
    return InvalidOption(f"{where} must be {right}, not {quoted(given)}", option="method")


_NAMED = {"default": Method(), "paper": Method.paper(), FIRST: Method.first_release()}
