"""A few tries of every fault of the campaign; `python bench/faults.py --minutes 30` makes more."""

from __future__ import annotations

import pytest

import faults

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("faults")]


@pytest.mark.parametrize("name", faults.FAULTS)
def test_a_fault_costs_nothing_that_was_announced(name: str) -> None:
    for seed in range(5):
        found = faults.attempt(name, seed)
        assert found in (faults.SAME, faults.REFUSED), f"seed {seed}"
