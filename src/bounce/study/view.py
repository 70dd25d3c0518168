"""View: what can be seen of a study. Nothing here changes it.

Everything is as the file has it when it is asked for, with what other processes have stored.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bounce.errors import BounceError
from bounce.markup import facts
from bounce.optimizer.importance import Importance
from bounce.optimizer.stopping import StopWhen
from bounce.spaces.space import Space
from bounce.study.history import Entry
from bounce.study.keeper import Keeper
from bounce.study.status import Status
from bounce.trial import STATES, Recommendation, Result, Trial, best_in_words, counts_in_words

if TYPE_CHECKING:
    import pandas as pd


class View:
    """A study as its user sees it; `Study` changes what is seen."""

    _keeper: Keeper

    @property
    def path(self) -> Path | None:
        """The study's file; None for one in memory."""
        return self._keeper.path

    @property
    def space(self) -> Space:
        """The space of the study."""
        return self._keeper.optimizer.space

    @property
    def options(self) -> dict[str, Any]:
        """The options of the run, the seed included."""
        return self._keeper.optimizer.options

    @property
    def trials(self) -> list[Trial]:
        """All trials, by id."""
        return self._keeper.optimizer.trials

    @property
    def pending(self) -> list[Trial]:
        """The trials that have been asked for and not told, by id."""
        return self._keeper.optimizer.pending

    @property
    def best(self) -> Trial | None:
        """The trial with the best value, the earliest of several; None before the first value (`Bounce.best`)."""
        return self._keeper.optimizer.best

    def recommend(self) -> Recommendation | None:
        """Return the evaluated point that the model believes to be the best; None before the first value.

        Of noisy values, the best one may be a lucky one (`Bounce.recommend`). Nothing in the study changes.
        """
        return self._keeper.optimizer.recommend()

    def improvement_expected(self) -> float | None:
        """Return an upper bound on what can still be gained, as far as the model can tell (`Bounce`)."""
        return self._keeper.optimizer.improvement_expected()

    def reached(self, stop_when: str | StopWhen) -> str | None:
        """Return why a run with this condition should end now; None if it should go on."""
        return self._keeper.optimizer.reached(stop_when)

    def importance(self) -> Importance | None:
        """Return how much each parameter matters and with whom; None with fewer than 8 values, or if all are equal.

        The shares are of the variance over the whole space (`Bounce.importance`). Nothing in the study changes.
        """
        return self._keeper.optimizer.importance()

    @property
    def remaining(self) -> int:
        """How many trials may still be asked for."""
        return self._keeper.optimizer.remaining

    @property
    def failures_in_a_row(self) -> int:
        """How many of the latest outcomes are failures with the same error."""
        return self._keeper.optimizer.failures_in_a_row

    @property
    def done(self) -> bool:
        """Whether nothing can be asked for and nothing is pending."""
        return self._keeper.optimizer.done

    @property
    def result(self) -> Result:
        """The result so far."""
        return Result(self.trials, self.best, self.options["seed"])

    def to_frame(self) -> pd.DataFrame:
        """Return the trials as a pandas table."""
        return self.result.to_frame()

    @property
    def status(self) -> Status:
        """Where the study stands."""
        optimizer = self._keeper.optimizer
        trials, stage = optimizer.trials, optimizer.stage
        counts = {state: sum(trial.state == state for trial in trials) for state in STATES}
        asked = [trial.seconds_ask for trial in trials if trial.seconds_ask > 0]
        evaluated = [trial.seconds_eval for trial in trials if trial.seconds_eval is not None]
        return Status(
            path=self.path,
            budget=optimizer.budget,
            spent=optimizer.spent,
            remaining=optimizer.remaining,
            best=optimizer.best,
            target_dim=len(stage.latent),
            dimensions=len(optimizer.space),
            radius=stage.region.radius,
            side=stage.region.side,
            restart=stage.restart,
            seconds_ask=sum(asked) / len(asked) if asked else None,
            seconds_eval=sum(evaluated) / len(evaluated) if evaluated else None,
            runner=self._keeper.runner,
            **counts,
        )

    @property
    def history(self) -> list[Entry]:
        """What was changed by hand, with what was there before, oldest first."""
        return self._keeper.history

    def __repr__(self) -> str:
        opened = f"Study.open({None if self.path is None else str(self.path)!r})"
        try:
            trials, best, budget = self.trials, self.best, self.options["budget"]
        except (BounceError, OSError) as error:  # a repr is what people look at when something is wrong
            return f"{opened}  # it cannot be read: {type(error).__name__}"
        return f"{opened}  # budget {budget}: {counts_in_words(trials)}, best: {best_in_words(best)}"

    def _repr_html_(self) -> str:
        now = self.status
        kinds = Counter(self.space.kinds)
        what = ", ".join(f"{n} {kind}" for kind, n in kinds.items())
        rows = {
            "evaluations": f"{now.done + now.failed} of {now.planned} finished: {counts_in_words(self.trials)}",
            "best": best_in_words(now.best),
            "space": f"{now.dimensions} parameters: {what}",
            "stage": f"{now.target_dim} bins",
            "direction": self.options["direction"],
            "seed": str(self.options["seed"]),
        }
        if now.runner is not None:
            rows["run by"] = now.runner
        title = "Study in memory" if self.path is None else f"Study {self.path}"
        share = (now.done + now.failed) / max(now.planned, 1)
        return facts(title, rows, None if now.best is None else now.best.point, share=share)
