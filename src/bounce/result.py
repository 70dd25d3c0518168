"""What a run found."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from bounce.errors import InvalidInput
from bounce.state import Trial

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Result:
    """What a run found."""

    trials: list[Trial]
    best: Trial | None
    """The trial with the best value; None if none has a value."""
    seed: int
    """What makes the same run again, also if it was drawn."""

    def to_frame(self) -> pd.DataFrame:
        """Return the trials as a pandas table: a column per parameter, then what is known of each trial."""
        try:
            import pandas as pd
        except ImportError:
            raise InvalidInput("a table needs pandas: pip install 'bounce-bo[frame]'") from None
        rows = []
        for trial in self.trials:
            facts = asdict(trial)
            point = facts.pop("point")
            rows.append({"id": facts.pop("id")} | {f"point.{name}": x for name, x in point.items()} | facts)
        return pd.DataFrame(rows)
