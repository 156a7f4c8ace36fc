"""Each plug-in can be deleted: without it a job's config composes, a sweep's findings are found and shown."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from hydra import compose, initialize_config_dir
from test_groups import contents, load, write

from processes import ROOT
from ragauge.commands import known
from ragauge.contract import loading
from ragauge.experiment.setup import config
from ragauge.experiment.stages.components import instantiate_components
from ragauge.findings.of_sweeps import findings
from ragauge.findings.order import metrics_of_jobs
from without_plugin import Deleted

PLUGINS = sorted(file.parent.name for file in (ROOT / "src/ragauge/plugins").glob("*/__init__.py"))
OF_PLUGINS = {
    "budgets",
    "foresight",
    "parts",
    "robustness",
    "transfer",
}  # each brings a finding of its own name
JOB = ["dataset=sample", "retriever=bm25", "n_tokens=300"]


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    jobs = [{"topics": "a", "overrides": [f"retriever={r}"], "noise": i} for i, r in enumerate(("bm25", "sim"))]
    return write(tmp_path_factory.mktemp("sweep"), *jobs)


@pytest.fixture(params=PLUGINS)
def plugin(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """A plug-in that is hidden from this process."""
    deleted, points = Deleted(f"ragauge.plugins.{request.param}"), loading.entry_points
    for module in list(filter(deleted.holds, sys.modules)):
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setattr(sys, "meta_path", [deleted, *sys.meta_path])
    monkeypatch.setattr(loading, "entry_points", lambda group: deleted.left(points(group)))
    return str(request.param)


@pytest.mark.slow
def test_what_is_left_works_without_the_plug_in(plugin: str, swept: Path) -> None:
    config.register()
    with initialize_config_dir(str(ROOT / "conf"), version_base="1.3"):
        cfg = compose("config", overrides=JOB)
    config.check_values(cfg)
    instantiate_components(cfg)
    assert metrics_of_jobs()
    assert known.lines()
    names = {finding.name for finding in findings()}
    assert {name for name in OF_PLUGINS if name in names} == OF_PLUGINS - {plugin}
    if plugin in OF_PLUGINS:
        (found,) = contents(load(swept))
        assert {"leaderboard", "thresholds", "what_ran"} <= set(found.shown)
        assert plugin not in found.shown
