"""An answer beside its reference answers, of which the best counts: all distinct pairs at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from ragauge.contract.answer_measures import infos_of
from ragauge.contract.protocols import Tools
from ragauge.contract.topics import references
from ragauge.measures.answers._frame import status_of


class AgainstReferences:
    """Frame `answer_values` from the values of pairs (answer, reference)."""

    uses: ClassVar[frozenset[str]] = frozenset()
    needs: ClassVar[frozenset[str]] = frozenset({"references", "answers"})

    def compared(self, answers: Sequence[str], references: Sequence[str], tools: Tools) -> Mapping[str, np.ndarray]:
        """Of every info's name the value of every pair, float64 [pairs]."""
        raise NotImplementedError

    def measure(
        self,
        topics: pd.DataFrame,
        evidence: pd.DataFrame,
        contexts: pd.DataFrame,
        answers: pd.DataFrame,
        tools: Tools,
    ) -> pd.DataFrame:
        """Frame `answer_values`: of every answer the best over the topic's reference answers."""
        known = references(topics)
        pairs: dict[tuple[str, str], int] = {}
        status: list[str] = []
        wanted: list[int] = []  # the pairs of every answer, one answer after the other
        first: list[int] = []
        for qid, answer in zip(answers["qid"].tolist(), answers["answer"].tolist(), strict=True):
            status.append(status_of(qid, answer, bool(known[qid])))
            if status[-1] == "ok":
                first.append(len(wanted))
                wanted += [pairs.setdefault((answer, one), len(pairs)) for one in known[qid]]
        values = self.compared([a for a, _ in pairs], [r for _, r in pairs], tools) if pairs else {}
        ok = np.array([one == "ok" for one in status], dtype=bool)
        frames = []
        # typed as a measure only where it is used as one
        measure: Any = self
        for info in infos_of(measure):
            found = np.full(len(answers), np.nan)
            if pairs:
                found[ok] = np.maximum.reduceat(values[info.name][wanted], first)
            frames.append(answers[["qid", "n_tokens"]].assign(measure=info.name, value=found, status=status))
        return pd.concat(frames, ignore_index=True)
