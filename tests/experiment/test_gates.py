"""What holds a job to its gate is found by an entry point; a gate that nothing reads is refused."""

from __future__ import annotations

from importlib.metadata import EntryPoint
from typing import Any

import pytest
from omegaconf import OmegaConf

from ragauge.contract import loading
from ragauge.contract.errors import ConfigError
from ragauge.experiment.gates import GROUP, gates
from ragauge.experiment.prepared import check_settings


def test_a_gate_is_read_by_what_is_installed_and_refused_where_nothing_is(monkeypatch: pytest.MonkeyPatch) -> None:
    points: dict[str, Any] = {}
    monkeypatch.setattr(loading, "entry_points", lambda group: points.get(group, []))
    with_rule = OmegaConf.create({"gate": {"ir_score": 0.5}})
    with pytest.raises(ConfigError, match=f"nothing is installed that holds a job to it .*{GROUP}"):
        gates(with_rule)
    assert gates(OmegaConf.create({"gate": {}})) == []
    points[GROUP] = [EntryPoint("mine", __name__, GROUP)]
    [found] = gates(with_rule)
    assert found.__name__ == __name__


def test_looks_at_what_is_judged_take_a_gate() -> None:
    looks = OmegaConf.create({"judge": {"looks": 5}, "gate": {}})
    with pytest.raises(ConfigError, match=r"^judge\.looks=5 stops once the gate is decided: give a rule"):
        check_settings(looks)
    check_settings(OmegaConf.create({"judge": {"looks": 5}, "gate": {"correct_share": 0.6}}))


@pytest.mark.parametrize("key", ["measure_latency", "foresight.target", "human_evidence"])
def test_a_setting_that_a_missing_plug_in_reads_is_refused(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    cfg = OmegaConf.from_dotlist(["measure_latency=false", "foresight.target=null", "human_evidence=null"])
    asking = OmegaConf.merge(cfg, OmegaConf.from_dotlist([f"{key}=true"]))
    monkeypatch.setattr(loading, "entry_points", lambda group: [EntryPoint(key, __name__, group)])
    check_settings(asking)
    monkeypatch.setattr(loading, "entry_points", lambda group: [])
    check_settings(cfg)
    with pytest.raises(ConfigError, match=rf"{key}=True: no plug-in is installed that reads it .entry point {key} "):
        check_settings(asking)
