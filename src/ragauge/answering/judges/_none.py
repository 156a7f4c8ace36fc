"""No judging."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import pandas as pd

from ragauge.answering.judges._frame import Verdict, verdict_frame
from ragauge.contract.protocols import Tools


@dataclass(frozen=True)
class NoJudge:
    """No verdicts: answers are kept as they are."""

    component: ClassVar[str] = "none"
    kind: ClassVar[str] = "none"
    uses: ClassVar[frozenset[str]] = frozenset()

    def judge(self, topics: pd.DataFrame, evidence: pd.DataFrame, answers: pd.DataFrame, tools: Tools) -> pd.DataFrame:
        """Frame `verdicts` without labels; every status is none."""
        return verdict_frame(answers[["qid", "n_tokens"]], [Verdict(None, "none")] * len(answers))
