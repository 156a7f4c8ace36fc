"""Jobs with an expander: in batches as in memory, and the stage that it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from test_in_batches import check_in_batches

from ragauge.commands.stages import main as stages_command
from ragauge.plugins.expansion.expanders import DocumentExpander, NeighbourExpander, ParentExpander
from ragauge.retrieval.retrievers import BM25
from small_pipeline import SmallPipelines


@pytest.mark.parametrize(
    "expander", [NeighbourExpander(), ParentExpander(tokens=8), DocumentExpander(depth=2)], ids=repr
)
def test_a_job_in_batches_makes_the_frames_of_one_in_memory(
    small: SmallPipelines, monkeypatch: pytest.MonkeyPatch, expander: Any
) -> None:
    check_in_batches(small, monkeypatch, {"retriever": BM25(top_k=3), "expander": expander})


def test_the_stage_comes_between_run_and_context(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert stages_command([f"store={tmp_path / 'store'}", "expander=neighbours"]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert [row[0] for row in rows[5:8]] == ["run", "expanded", "context"]
