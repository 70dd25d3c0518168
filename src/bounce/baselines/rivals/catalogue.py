"""The rivals by name; a rival's module is imported when it is made.

To add one: a module in this room with a subclass of `Rival`, and its line here.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bounce.baselines.rivals.rival import Rival
    from bounce.spaces.space import Space


@dataclass(frozen=True)
class Entry:
    """Where a rival is, and what it takes."""

    module: str
    cls: str
    takes: str
    """The kinds of variables that it takes, in words."""

    def make(self, space: Space, budget: int, seed: int, initial: int) -> Rival:
        """Return the rival."""
        rival: Rival = getattr(import_module(f"bounce.baselines.rivals.{self.module}"), self.cls)(
            space, budget, seed, initial
        )
        return rival


ALL, REALS, BITS = "all kinds", "reals", "bits"
RIVALS: dict[str, Entry] = {
    "turbo": Entry("turbo", "Turbo", REALS),
    "turbo-m": Entry("turbo", "TurboM", REALS),
    "baxus": Entry("baxus", "Baxus", REALS),
    "casmopolitan": Entry("casmopolitan", "Casmopolitan", ALL),
    "bodi": Entry("bodi", "Bodi", ALL),
    "bodi-published": Entry("bodi", "BodiPublished", ALL),
    "combo": Entry("combo", "Combo", "bits, ordinals and categories"),
    "combo-published": Entry("combo", "ComboPublished", "bits, ordinals and categories"),
    "rducb": Entry("rducb", "Rducb", ALL),
    "rducb-scaled": Entry("rducb", "RducbScaled", ALL),
    "cocabo": Entry("cocabo", "Cocabo", "categories and bits with at least one real"),
    "bocs": Entry("bocs", "Bocs", BITS),
    "hesbo": Entry("hesbo", "Hesbo", REALS),
    "rembo": Entry("rembo", "Rembo", REALS),
    "alebo": Entry("alebo", "Alebo", REALS),
    "pr": Entry("reparameterisation", "Reparameterisation", ALL),
    "leaf": Entry("leaf", "Leaf", ALL),
    "gtbo": Entry("gtbo", "Gtbo", REALS),
    "la-mcts": Entry("la_mcts", "LaMcts", REALS),
    "mcts-vs": Entry("mcts_vs", "MctsVs", REALS),
    "random-projections": Entry("projections", "RandomProjections", "bits, ordinals and categories"),
}
