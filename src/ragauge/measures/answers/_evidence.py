"""Measures of evidence beside the job's own: what of the evidence stands in the context, in other ways."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from ragauge.contract.answer_measures import NO_EVIDENCE
from ragauge.contract.offers import MeasureOffers, offered
from ragauge.contract.protocols import AnswerMeasureInfo, Tools
from ragauge.measures.scores import part_scores

_LABELS = {
    "substring": "evidence in one piece", "words": "words of the evidence", "semantic": "evidence by meaning",
    "subsequence": "characters of the evidence", "support": "evidence stated",
}  # fmt: skip


@dataclass(frozen=True)
class EvidenceMeasure:
    """A measure of evidence (config group `measure`) at the job's budget, as a column of the outcomes.

    A topic's value is what its IR score would be with this measure, uncorrected: the mean over the parts of
    its evidence. Missing for a topic without evidence, and where a reply failed.
    """

    component: ClassVar[str] = "evidence_measure"
    needs: ClassVar[frozenset[str]] = frozenset({"evidence"})

    measure_of_evidence: Any

    def __init__(self, measure: Any) -> None:
        object.__setattr__(self, "measure_of_evidence", measure)

    @property
    def uses(self) -> frozenset[str]:
        """The shared models of the measure."""
        return offered(self.measure_of_evidence, MeasureOffers).uses

    @property
    def info(self) -> AnswerMeasureInfo:
        """evidence_<measure>, a property of the context."""
        name = self.measure_of_evidence.name
        return AnswerMeasureInfo(
            f"evidence_{name}",
            _LABELS.get(name, f"evidence, {name}"),
            "higher",
            "ratio",
            "Evidence",
            "context",
        )

    def measure_layouts(
        self,
        evidence: pd.DataFrame,
        layouts: pd.DataFrame,
        prefixes: pd.DataFrame,
        answers: pd.DataFrame,
        tools: Tools,
    ) -> pd.DataFrame:
        """Frame `answer_values`; `prefixes` are of one budget, `evidence` is what contexts are scored by."""
        here = prefixes[prefixes["qid"].isin(evidence["qid"])].reset_index(drop=True)
        parts = part_scores(self.measure_of_evidence, evidence, layouts, here, tools)
        by_topic = parts.groupby("qid")["value"].agg(lambda values: values.mean(skipna=False))
        value = answers["qid"].map(by_topic).astype("float64")
        there = answers["qid"].isin(evidence["qid"])
        status = np.where(there, np.where(value.notna(), "ok", "failed"), NO_EVIDENCE)
        return answers[["qid", "n_tokens"]].assign(measure=self.info.name, value=value, status=status)
