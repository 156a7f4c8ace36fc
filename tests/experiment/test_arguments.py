"""A sweep whose jobs a plug-in's argument configured has an origin; any other sweep has none."""

from __future__ import annotations

from importlib.metadata import EntryPoint
from typing import Any

import pandas as pd
import pytest

from ragauge.contract import loading
from ragauge.contract.jobs import Jobs
from ragauge.experiment.arguments import origin_of_sweep
from sweep_records import record_of


def of_sweep(jobs: Jobs) -> Any:
    """What the plug-in's module of the argument says."""
    return f"the origin of {len(jobs.records)} jobs"


def test_the_records_of_jobs_say_whether_a_sweep_has_an_origin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading, "entry_points", lambda group: [EntryPoint("again", __name__, group)])

    def found(*records: dict[str, Any]) -> Any:
        return origin_of_sweep(Jobs("s", "e", list(map(record_of, records)), [], pd.DataFrame()))

    assert found({"seed": 0}, {"seed": 0, "again": {"run": "a"}}) == "the origin of 2 jobs"
    assert found({"seed": 0}) is None
