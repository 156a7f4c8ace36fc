"""Rewriters in what every part of a job must do: unreadable replies asked again, frames made in batches."""

from __future__ import annotations

from typing import Any

import pytest
from test_in_batches import check_in_batches
from test_unreadable_parts import check_asked_again

from ragauge.plugins.rewriting.multi_query import Decompose, MultiQuery
from ragauge.plugins.rewriting.prf import PRF
from ragauge.retrieval.retrievers import BM25
from small_pipeline import SmallPipelines


@pytest.mark.parametrize("rewriter", [MultiQuery(), Decompose()])
def test_what_could_not_be_read_is_asked_again_and_then_stored(rewriter: Any, small: SmallPipelines) -> None:
    check_asked_again("rewriter", {"rewriter": rewriter}, "queries", lambda prompt: "tower of Anna\nbridge", small)


def test_a_job_in_batches_makes_the_frames_of_one_in_memory(
    small: SmallPipelines, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_in_batches(small, monkeypatch, {"retriever": BM25(top_k=3), "rewriter": PRF(fb_docs=2)})
