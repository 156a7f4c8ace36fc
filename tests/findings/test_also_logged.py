"""A declared metric is on the terminal, in report and comparison, and known to a gate, by its declaration alone."""

from __future__ import annotations

import pytest

from ragauge.compare import _metrics
from ragauge.contract.finding import Grid, JobFinding
from ragauge.contract.metrics import Metric
from ragauge.findings import also_logged, order
from ragauge.findings.also_logged import AlsoLogged, lines_of
from sweep_records import record, sweep


class Long(JobFinding):
    """A finding that shows nothing itself."""

    name = "long"
    metrics = (
        Metric("long{,_lo,_hi}", label="long contexts", better="lower", unit="share"),
        Metric("own", label="shown by the finding", listed="compare"),
        Metric("unnamed"),
    )


@pytest.fixture
def long(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (also_logged, order, _metrics):
        monkeypatch.setattr(module, "job_findings", lambda: [Long()])
    _metrics.declared_metrics.cache_clear()
    monkeypatch.setattr(_metrics, "declared_metrics", _metrics.declared_metrics.__wrapped__)


def test_a_line_has_the_number_with_its_interval() -> None:
    values = {"long": 0.43, "long_lo": 0.4, "long_hi": 0.46, "own": 1.0, "unnamed": 2.0}
    assert lines_of(Long.metrics, values) == ["  long contexts 43.0 % (40.0 % to 46.0 %)"]
    assert lines_of(Long.metrics, {"long": 0.43}) == ["  long contexts 43.0 %"]
    assert lines_of(Long.metrics, {"own": 1.0}) == []


@pytest.mark.usefixtures("long")
def test_the_report_has_a_column_and_the_sweep_a_table() -> None:
    jobs = sweep(record("retriever=bm25", long=0.5, long_lo=0.25, long_hi=0.75), record("retriever=mlq", own=1.0))
    found = AlsoLogged().compute(jobs, {})
    assert found is not None
    assert (
        found.tables["also_logged"].to_csv(index=False) == "system,long,long_lo,long_hi\nbm25,0.5,0.25,0.75\nmlq,,,\n"
    )
    [section] = AlsoLogged().show(jobs, found.value, {}).sections
    grid = section.blocks[1]
    assert isinstance(grid, Grid)
    title, number = grid.columns[1], grid.rows[0][1]
    assert (title.title, title.note, number.value, number.kind) == ("Long contexts", "lower is better", 0.5, "share")
    assert grid.rows[1][1].value is None
    assert AlsoLogged().compute(sweep(record("retriever=bm25", own=1.0)), {}) is None


@pytest.mark.usefixtures("long")
def test_a_comparison_has_its_title_and_a_gate_its_name() -> None:
    assert _metrics.title_of("long", {}) == "long contexts"
    assert [name for name in _metrics.declared_metrics() if name in ("long", "own", "unnamed")] == ["long", "own"]
    assert {"long", "long_hi", "own", "unnamed"} <= set(order.metrics_of_jobs())
