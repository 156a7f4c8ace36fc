"""Jobs with an expander, in batches as in memory."""

from __future__ import annotations

from typing import Any

import pytest
from test_in_batches import check_in_batches

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
