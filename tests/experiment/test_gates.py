"""What holds a job to its gate is found by an entry point; a gate that nothing reads is refused."""

from __future__ import annotations

from importlib.metadata import EntryPoint
from operator import attrgetter
from typing import Any

import pytest

from ragauge.contract import loading
from ragauge.contract.errors import ConfigError
from ragauge.contract.settings import Settings
from ragauge.experiment.gates import GROUP, gates
from ragauge.experiment.job import check_settings


def test_a_gate_is_read_by_what_is_installed_and_refused_where_nothing_is(monkeypatch: pytest.MonkeyPatch) -> None:
    points: dict[str, Any] = {}
    monkeypatch.setattr(loading, "entry_points", lambda group: points.get(group, []))
    with_rule = Settings(gate={"ir_score": 0.5})
    with pytest.raises(ConfigError, match=f"nothing is installed that holds a job to it .*{GROUP}"):
        gates(with_rule)
    assert gates(Settings()) == []
    points[GROUP] = [EntryPoint("mine", __name__, GROUP)]
    [found] = gates(with_rule)
    assert found.__name__ == __name__


def test_looks_at_what_is_judged_take_a_gate() -> None:
    looks = Settings(judge={"looks": 5})
    with pytest.raises(ConfigError, match=r"^judge\.looks=5 stops once the gate is decided: give a rule"):
        check_settings(looks)
    check_settings(Settings(judge={"looks": 5}, gate={"correct_share": 0.6}))


@pytest.mark.parametrize("key", ["measure_latency", "foresight.target", "human_evidence"])
def test_a_setting_that_a_missing_plug_in_reads_is_refused(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    usual, asking = Settings(judge={}), Settings(judge={})
    of, _, name = key.rpartition(".")
    setattr(attrgetter(of)(asking) if of else asking, name, True)
    monkeypatch.setattr(loading, "entry_points", lambda group: [EntryPoint(key, __name__, group)])
    check_settings(asking)
    monkeypatch.setattr(loading, "entry_points", lambda group: [])
    check_settings(usual)
    with pytest.raises(ConfigError, match=rf"{key}=True: no plug-in is installed that reads it .entry point {key} "):
        check_settings(asking)
