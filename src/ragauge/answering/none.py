"""No answers: for jobs that measure retrieval alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import pandas as pd

from ragauge.answering._frame import answer_frame
from ragauge.contract.protocols import Reply, Tools


@dataclass(frozen=True)
class NoLLM:
    """No answers: retrieval alone is measured."""

    component: ClassVar[str] = "none"
    kind: ClassVar[str] = "none"
    uses: ClassVar[frozenset[str]] = frozenset()

    def answer(self, topics: pd.DataFrame, contexts: pd.DataFrame, tools: Tools) -> pd.DataFrame:
        """Frame `answers` without answers; every status is none."""
        return answer_frame(contexts, [Reply(None)] * len(contexts), no_reply="none")
