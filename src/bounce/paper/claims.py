"""Claims: what the text of the paper says about its figures, checked on runs.

A claim is about methods on the panels of a figure (a problem and a version each). Methods on the same panel are
compared by seed, with the one-sided Wilcoxon signed-rank test; the two versions of a problem by the Mann-Whitney test,
since they are different problems. The effect is the difference of means in units of the pooled standard deviation.

The invariant: a verdict follows from the numbers shown with it. `HOLDS` needs the right order of the means and p below
0.05. A claim that things are alike needs p above it, and six seeds, since fewer can show no difference. Where the means
are as claimed but chance cannot be excluded, the claim is `OPEN`.

Shapes: values (n,) of n seeds after a number of evaluations.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bounce.gp.linalg import Array
from bounce.paper.analyses import ANALYSES
from bounce.paper.figures import Curve, Figure
from bounce.paper.traces import Seen

HOLDS, OPEN, FAILS, MISSING = "holds", "undecided", "does not hold", "not run"
LEVEL = 0.05
LEAST = 2  # seeds
ROUNDING = 1e-12  # of a mean: the means of as many equal values may differ by this
ENOUGH = 6  # seeds that can show a difference, two-sided, at this level

Runs = Callable[[Curve], Sequence[Seen]]
"""The runs of a curve, one for each seed."""


@dataclass(frozen=True)
class Verdict:
    """A claim, where it was looked at, whether it holds there, and the numbers."""

    figure: int
    says: str
    where: str
    verdict: str
    numbers: str


def paired(a: Array, b: Array) -> float:
    """Return the p-value for the values of a being lower than those of b, seed by seed; 1 if all are equal."""
    from scipy.stats import wilcoxon

    difference = a - b
    if not difference.any():
        return 1.0
    return float(wilcoxon(difference, alternative="less").pvalue)


def unpaired(a: Array, b: Array, alternative: str) -> float:
    """Return the p-value for values of a being lower ("less") than those of b, or different ("two-sided")."""
    from scipy.stats import mannwhitneyu

    if np.ptp(np.concatenate([a, b])) == 0.0:
        return 1.0
    return float(mannwhitneyu(a, b, alternative=alternative).pvalue)


def effect(a: Array, b: Array) -> float:
    """Return how much lower a is than b, in pooled standard deviations."""
    pooled = math.sqrt(0.5 * (float(a.var(ddof=1)) + float(b.var(ddof=1))))
    gap = float(b.mean() - a.mean())
    return gap / pooled if pooled > 0.0 else math.copysign(math.inf, gap) if gap else 0.0


@dataclass(frozen=True)
class Panel:
    """A problem in one version: the values of its methods after as many evaluations as all their runs have."""

    problem: str
    version: str
    traces: Mapping[str, Mapping[int, Seen]]
    """By method and seed, of the batch size that is looked at."""

    @classmethod
    def of(cls, figure: Figure, problem: str, version: str, runs: Runs, batch: int = 1) -> Panel:
        """Read the panel's runs."""
        found: dict[str, dict[int, Seen]] = {}
        for curve in figure.curves():
            if (curve.problem, curve.version, curve.batch) == (problem, version, batch):
                found[curve.method.key] = {trace.seed: trace for trace in runs(curve)}
        return cls(problem, version, found)

    @property
    def name(self) -> str:
        """The problem and its version."""
        return f"{self.problem}, {self.version}"

    def has(self, *methods: str) -> bool:
        """Whether there are runs of some methods with enough seeds in common."""
        return all(method in self.traces for method in methods) and len(self.seeds(*methods)) >= LEAST

    def seeds(self, *methods: str) -> list[int]:
        """Return the seeds that some methods have in common."""
        first, *others = (self.traces[method] for method in methods)
        return sorted(seed for seed in first if all(seed in other for other in others))

    def length(self, *methods: str) -> int:
        """Return how many evaluations all of their runs have."""
        return min(len(trace.best) for method in methods for trace in self.traces[method].values())

    def values(self, method: str, seeds: Sequence[int], at: int) -> Array:
        """Return the best values of a method after some evaluations."""
        return np.array([self.traces[method][seed].best[at - 1] for seed in seeds])

    def mark(self, at: int | None, *methods: str) -> int:
        """Return after how many evaluations some methods are compared: all that they have, or fewer."""
        length = self.length(*methods)
        return length if at is None else min(at, length)

    def compare(self, a: str, b: str, at: int | None) -> tuple[float, float, float, int]:
        """Return the difference of means of a and b, the p-value for a being lower, the effect and the seeds."""
        seeds = self.seeds(a, b)
        mark = self.mark(at, a, b)
        first, second = self.values(a, seeds, mark), self.values(b, seeds, mark)
        return float(first.mean() - second.mean()), paired(first, second), effect(first, second), len(seeds)


def _verdict(right: bool, p: float) -> str:
    return FAILS if not right else HOLDS if p < LEVEL else OPEN


def _unlike(p: float, seeds: int) -> str:
    """Return the verdict on a claim that two things are alike."""
    return FAILS if p < LEVEL else HOLDS if seeds >= ENOUGH else OPEN


def _order(claim: Mapping[str, Any], panel: Panel, rank: int) -> tuple[str, str]:
    """Judge that a method is first (rank 0) or second (1) among those that have run."""
    method = claim["method"]
    variants = [key for key in panel.traces if key.startswith("bounce")]  # no rivals of each other
    own = variants if method in variants else [key for key in variants if key != "bounce"]
    others = [key for key in panel.traces if key != method and key not in own and panel.has(method, key)]
    if len(others) <= rank:
        return MISSING, "too few runs"
    found = {key: panel.compare(method, key, claim.get("at")) for key in others}
    better = [key for key in others if found[key][0] > 0]
    beaten = [key for key in others if key not in better]
    p = max((found[key][1] for key in beaten), default=1.0)
    seeds = min(found[key][3] for key in others)
    nearest = min(others, key=lambda key: abs(found[key][0]))
    gap, _, size, _ = found[nearest]
    numbers = f"rank {len(better) + 1} of {len(others) + 1}; nearest {nearest}: {gap:+.4g}, effect {size:.2g}"
    marks = sorted({panel.mark(claim.get("at"), method, key) for key in others})
    after = f"{marks[0]} to {marks[-1]}" if len(marks) > 1 else f"{marks[0]}"
    return _verdict(len(better) == rank, p), f"{numbers}; p {p:.2g}; {seeds} seeds, {after} evaluations"


def _better(claim: Mapping[str, Any], panel: Panel) -> tuple[str, str]:
    if not panel.has(claim["method"], claim["than"]):
        return MISSING, "too few runs"
    gap, p, size, seeds = panel.compare(claim["method"], claim["than"], claim.get("at"))
    mark = panel.mark(claim.get("at"), claim["method"], claim["than"])
    said = f"{gap:+.4g}, effect {size:.2g}; p {p:.2g}; {seeds} seeds, {mark} evaluations"
    return _verdict(gap < 0, p), said


def _no_better(claim: Mapping[str, Any], panel: Panel) -> tuple[str, str]:
    if not panel.has(claim["method"], claim["than"]):
        return MISSING, "too few runs"
    gap, p, size, seeds = panel.compare(claim["method"], claim["than"], claim.get("at"))
    mark = panel.mark(claim.get("at"), claim["method"], claim["than"])
    return _unlike(p, seeds), f"{gap:+.4g}, effect {size:.2g}; p {p:.2g}; {seeds} seeds, {mark} evaluations"


def _alike(claim: Mapping[str, Any], panel: Panel) -> tuple[str, str]:
    methods = [method for method in claim["methods"] if panel.traces.get(method)]
    if len(methods) < len(claim["methods"]) or not panel.has(*methods):
        return MISSING, "too few runs"
    found = {}
    for i, a in enumerate(methods):
        for b in methods[i + 1 :]:
            gap, p, _, _ = panel.compare(a, b, claim.get("at"))
            _, q, _, _ = panel.compare(b, a, claim.get("at"))
            found[a, b] = (2.0 * min(p, q), gap)
    (a, b), (p, gap) = min(found.items(), key=lambda item: item[1][0])
    seeds = len(panel.seeds(*methods))
    said = f"most different: {a} and {b}, {gap:+.4g}; p {min(p, 1.0):.2g}; {seeds} seeds"
    return _unlike(p, seeds), f"{said}, {panel.mark(claim.get('at'), *methods)} evaluations"


_ON_PANELS: dict[str, Callable[[Mapping[str, Any], Panel], tuple[str, str]]] = {
    "first": lambda claim, panel: _order(claim, panel, 0),
    "second": lambda claim, panel: _order(claim, panel, 1),
    "better": _better,
    "no-better": _no_better,
    "alike": _alike,
}


def _both(figure: Figure, problem: str, method: str, runs: Runs) -> tuple[Array, Array] | None:
    """Return a method's values on the original and on the randomised version of a problem."""
    panels = [Panel.of(figure, problem, version, runs) for version in ("original", "randomized")]
    if not all(panel.has(method) for panel in panels):
        return None
    mark = min(panel.length(method) for panel in panels)
    first, second = (panel.values(method, panel.seeds(method), mark) for panel in panels)
    return first, second


def _versions(figure: Figure, claim: Mapping[str, Any], runs: Runs) -> list[Verdict]:
    """Judge claims about both versions of a problem: a method degrades, depends on the version, or does not."""
    kind = claim["kind"]
    found = []
    for problem in figure.problems:
        for method in claim.get("methods", [claim.get("method")]):
            both = _both(figure, problem, method, runs)
            if both is None:
                found.append(Verdict(figure.number, claim["says"], f"{problem}, {method}", MISSING, "too few runs"))
                continue
            original, randomised = both
            gap = float(randomised.mean() - original.mean())
            p = unpaired(original, randomised, "less" if kind == "degrades" else "two-sided")
            seeds = min(map(len, both))
            if kind == "degrades":
                verdict = _verdict(gap > 0, p)
            elif kind == "robust":
                verdict = _unlike(p, seeds)
            else:
                verdict = HOLDS if p < LEVEL else FAILS if seeds >= ENOUGH else OPEN
            numbers = f"randomised − original {gap:+.4g}, effect {effect(original, randomised):.2g}; p {p:.2g}"
            numbers += f"; {len(original)} seeds"
            found.append(Verdict(figure.number, claim["says"], f"{problem}, {method}", verdict, numbers))
    if "least" in claim:
        count = sum(verdict.verdict == HOLDS for verdict in found)
        run = sum(verdict.verdict != MISSING for verdict in found)
        verdict = HOLDS if count >= claim["least"] else FAILS if run == len(found) else MISSING
        says = f"on {count} of {run} problems that were run"
        found.append(Verdict(figure.number, claim["says"], "all problems", verdict, says))
    return found


def batches_to_reach(traces: Sequence[Seen], batch: int, target: float) -> int | None:
    """Return after how many batches the mean of the best values is at most a target; None if it never is."""
    length = min(len(trace.best) for trace in traces)
    mean = np.mean([trace.best[:length] for trace in traces], axis=0)
    reached = np.flatnonzero(mean <= target + ROUNDING * abs(target))
    return None if not len(reached) else int(reached[0]) // batch + 1


def _batches_verdict(needed: Mapping[int, int | None], made: Mapping[int, int]) -> str:
    """Judge that batches need fewer of them than single points; runs that are too short to tell leave it open."""
    one = needed[1] or made[1]
    larger = [(needed[batch], made[batch]) for batch in needed if batch > 1]
    if any(count >= one if count is not None else length >= one for count, length in larger):
        return FAILS
    return HOLDS if all(count is not None for count, _ in larger) else OPEN


def _fewer_batches(figure: Figure, claim: Mapping[str, Any], runs: Runs) -> list[Verdict]:
    found = []
    for problem in figure.problems:
        for version in figure.versions:
            own = {
                curve.batch: list(runs(curve))
                for curve in figure.curves()
                if (curve.problem, curve.version, curve.method.key) == (problem, version, claim["method"])
            }
            own = {batch: traces for batch, traces in own.items() if len(traces) >= LEAST}
            where = f"{problem}, {version}"
            if 1 not in own or len(own) < LEAST:
                found.append(Verdict(figure.number, claim["says"], where, MISSING, "too few runs"))
                continue
            length = min(len(trace.best) for trace in own[1])
            ends = np.array([trace.best[length - 1] for trace in own[1]])
            target = float(ends.mean() + ends.std(ddof=1) / math.sqrt(len(ends)))  # comparable: within a standard error
            needed = {batch: batches_to_reach(traces, batch, target) for batch, traces in own.items()}
            made = {batch: min(len(trace.best) for trace in traces) // batch for batch, traces in own.items()}
            verdict = _batches_verdict(needed, made)
            counts = {batch: count or f"not within {made[batch]}" for batch, count in sorted(needed.items())}
            numbers = ", ".join(f"B = {batch}: {count}" for batch, count in counts.items())
            found.append(Verdict(figure.number, claim["says"], where, verdict, f"batches needed: {numbers}"))
    return found


def _usually(figure: Figure, claim: Mapping[str, Any], runs: Runs) -> list[Verdict]:
    lower, count, said = 0, 0, []
    panels = len(figure.problems) * len(figure.versions) * len(figure.batches)
    for problem in figure.problems:
        for version in figure.versions:
            for batch in figure.batches:
                panel = Panel.of(figure, problem, version, runs, batch)
                if panel.has(claim["method"], claim["than"]):
                    gap, _, _, _ = panel.compare(claim["method"], claim["than"], None)
                    count, lower = count + 1, lower + (gap <= 0)
                    if gap > 0:
                        said.append(f"{problem} B = {batch}")
    where, numbers = "all panels", f"no worse on {lower} of {count}" + (f"; worse: {', '.join(said)}" if said else "")
    if count < panels:
        numbers += f"; {panels - count} more were not run"
    needed = claim.get("share", 0.5) * panels
    verdict = MISSING if not count else HOLDS if lower > needed else OPEN
    if count and lower + panels - count <= needed:  # whatever the panels say that were not run
        verdict = FAILS
    return [Verdict(figure.number, claim["says"], where, verdict, numbers)]


def _number(figure: Figure, claim: Mapping[str, Any]) -> Verdict:
    value = ANALYSES[claim["of"]]()
    right = abs(value - claim["wanted"]) <= claim["within"]
    numbers = f"{value:.4g}, the paper has {claim['wanted']:g}"
    return Verdict(figure.number, claim["says"], "computed", HOLDS if right else FAILS, numbers)


def check(figure: Figure, runs: Runs) -> list[Verdict]:
    """Return what holds of a figure's claims, on every panel that they are about."""
    found: list[Verdict] = []
    for claim in figure.claims:
        kind = claim["kind"]
        if kind == "number":
            found.append(_number(figure, claim))
        elif kind in ("degrades", "sensitive", "robust"):
            found += _versions(figure, claim, runs)
        elif kind == "fewer-batches":
            found += _fewer_batches(figure, claim, runs)
        elif kind == "usually-better":
            found += _usually(figure, claim, runs)
        else:
            for problem in figure.problems:
                for version in [claim["version"]] if "version" in claim else figure.versions:
                    if problem not in claim.get("except", ()):
                        panel = Panel.of(figure, problem, version, runs)
                        verdict, numbers = _ON_PANELS[kind](claim, panel)
                        found.append(Verdict(figure.number, claim["says"], panel.name, verdict, numbers))
    return found
