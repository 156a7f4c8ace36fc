"""`ragauge stages`: the plan of a job."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from ragauge.commands import stages


def test_the_plan_of_a_job_is_printed_stage_by_stage(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    key = SimpleNamespace(version=3, digest="0123456789abcdef")
    lines = [SimpleNamespace(name="dataset", key=key, waits_for=None, stored=True),
             SimpleNamespace(name="run", key=None, waits_for="dataset", stored=False)]  # fmt: skip
    monkeypatch.setattr(stages, "composed", lambda overrides: overrides)
    monkeypatch.setattr("ragauge.experiment.stages.components.make_pipeline",
                        lambda cfg, folder: SimpleNamespace(lines=lambda: lines))  # fmt: skip
    assert stages.main(["retriever=bm25"]) == 0
    assert [line.split() for line in capsys.readouterr().out.splitlines() if line.strip()] == [
        ["stage", "version", "digest", "stored"], ["dataset", "3", "0123456789ab", "yes"],
        ["run", "known", "after", "dataset", "no"],
    ]  # fmt: skip


def test_the_command_stages_lists_those_of_the_config(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)

    def listed(*overrides: str) -> list[list[str]]:
        assert stages.main([f"store={tmp_path / 'store'}", *overrides]) == 0
        return [line.split() for line in capsys.readouterr().out.splitlines()]

    plain = [row[0] for row in listed("retriever=sim")]
    assert plain[:7] == ["stage", "dataset", "located", "chunks", "index", "run", "context"]
    rows = listed("retriever=sim", "order=reverse")
    # Nothing is made, so that what depends on it has no digest yet.
    assert rows[6][1:] == ["known", "after", "run", "no"]
    assert not list(tmp_path.glob("store/*/*"))
