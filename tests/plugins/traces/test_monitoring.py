"""The window of a dataset of traces: its ends are times in the config before anything is read."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from omegaconf import OmegaConf

from ragauge.experiment import measuring
from ragauge.experiment.folder import JobFolder

BEGAN = 1_760_000_000  # 2025-10-09T08:53:20Z


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What a dataset is made of, in place of reading MLflow."""
    found: list[dict[str, Any]] = []

    def build(kind: str, spec: dict[str, Any], options: dict[str, Any]) -> SimpleNamespace:
        found.append(spec)
        return SimpleNamespace(files=lambda: {"traces": Path("traces/one.parquet")})

    monkeypatch.setattr(measuring, "build", build)
    return found


def folder_of_sweep(tmp_path: Path) -> JobFolder:
    sweep = tmp_path / "sweep"
    (sweep / "3").mkdir(parents=True)
    (sweep / "multirun.yaml").write_text("", encoding="utf-8")
    os.utime(sweep / "multirun.yaml", (BEGAN, BEGAN))
    return JobFolder(sweep / "3", sweep, 3, {}, ())


def config(**dataset: Any) -> Any:
    """A config whose keys are fixed, as Hydra gives it."""
    cfg = OmegaConf.create(
        {"dataset": {"_target_": "ragauge.plugins.traces.components.MlflowTraces", "experiment": "app", **dataset}}
    )
    OmegaConf.set_struct(cfg, True)
    return cfg


@pytest.mark.parametrize("there", [{}, {"until": None}])
def test_every_job_of_a_sweep_ends_where_the_sweep_began(
    tmp_path: Path, built: list[dict[str, Any]], there: dict[str, Any]
) -> None:
    cfg = config(since="1d", **there)
    assert measuring.pin_window(cfg, folder_of_sweep(tmp_path)) == {"snapshot": "traces/one.parquet"}
    ends = {"since": "2025-10-08T08:53:20+00:00", "until": "2025-10-09T08:53:20+00:00"}
    assert {key: cfg.dataset[key] for key in ends} == ends
    assert {key: built[0][key] for key in ends} == ends


def test_a_window_that_was_kept_stays_as_it_is(tmp_path: Path, built: list[dict[str, Any]]) -> None:
    cfg = config(since="1d", snapshot="kept.parquet")
    assert measuring.pin_window(cfg, folder_of_sweep(tmp_path)) == {"snapshot": "traces/one.parquet"}
    assert (cfg.dataset.since, "until" in cfg.dataset, built[0]["since"]) == ("1d", False, "1d")


def test_other_datasets_have_no_window(tmp_path: Path, built: list[dict[str, Any]]) -> None:
    folder = folder_of_sweep(tmp_path)
    for target in ("ragauge.datasets.SampleDataset", "nowhere.at.All"):
        cfg = OmegaConf.create({"dataset": {"_target_": target}})
        assert measuring.pin_window(cfg, folder) == {}
    assert built == []
