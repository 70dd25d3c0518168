"""Optuna's own public test cases for samplers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

optuna = pytest.importorskip("optuna")
cases = pytest.importorskip("optuna.testing.pytest_samplers", reason="Optuna has public test cases since version 5")

from bounce.integrations.optuna import BounceSampler  # noqa: E402

Basic: Any = cases.BasicSamplerTestCase
Relative: Any = cases.RelativeSamplerTestCase
SingleOnly: Any = cases.SingleOnlySamplerTestCase


class TestBounceSampler(Basic, Relative, SingleOnly):  # type: ignore[misc]
    @pytest.fixture
    def sampler(self) -> Callable[[], Any]:
        return lambda: BounceSampler(seed=0)
