"""A reply that a measure could not read is asked for again in a later run, as that of every part of a job."""

from __future__ import annotations

from typing import Any

import pytest
from test_unreadable_parts import check_asked_again

from plugins.llm_measures.scripted_evaluator import reply
from ragauge.plugins.llm_measures.faithfulness import Faithfulness
from ragauge.plugins.llm_measures.support import Support
from small_pipeline import SmallPipelines

# What replaces a part, the frame, readable replies.
PARTS: dict[str, tuple[dict[str, Any], str, Any]] = {
    "measure": ({"measure": Support()}, "scores", lambda prompt: '{"stated": false}'),
    "answers": ({"answers": {"faithfulness": Faithfulness()}}, "answer_values", reply),
}


@pytest.mark.parametrize("part", PARTS)
def test_what_could_not_be_read_is_asked_again_and_then_stored(part: str, small: SmallPipelines) -> None:
    check_asked_again(part, *PARTS[part], small)
