"""What a race makes of systems that fail, or that reach their limit of money."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytest

from ragauge.contract.errors import DataError, GateError
from ragauge.plugins.race.sweeping import _asked


@dataclass
class Answering:
    """A system that answers, or raises."""

    name: str
    error: Exception | None = None

    def values(self, measure: str, order: Sequence[str]) -> np.ndarray:
        if self.error is not None:
            raise self.error
        return np.ones(len(order))


def test_a_system_that_fails_is_named_and_its_values_are_missing(capsys: pytest.CaptureFixture[str]) -> None:
    systems = [Answering("bm25"), Answering("sim", DataError("no index"))]
    values = _asked(systems, "right", ["q1", "q2"])  # type: ignore[arg-type]
    assert values is not None
    np.testing.assert_array_equal(values, [[1, 1], [np.nan, np.nan]])
    assert capsys.readouterr().err == "race: sim leaves the race: DataError: no index\n"


def test_the_limit_of_money_ends_the_race(capsys: pytest.CaptureFixture[str]) -> None:
    systems = [Answering("bm25"), Answering("sim", GateError("max_cost_usd: 1 of 1 USD are spent"))]
    assert _asked(systems, "right", ["q1"]) is None  # type: ignore[arg-type]
    assert "max_cost_usd" in capsys.readouterr().err
