"""`answers=[semantic_entropy]`: how much the answers to a topic differ in meaning."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from ragauge.contract.checks import require_choice, require_number
from ragauge.contract.component import Tools
from ragauge.contract.measures import AnswerMeasureInfo, MeasuresRepeats
from ragauge.measures.answers import measured
from ragauge.measures.tokens import normalised


@dataclass(frozen=True)
class SemanticEntropy(MeasuresRepeats):
    """The entropy -sum p log p, in nats, of the meanings that the `llm.repeat` answers to a topic have.

    p are the shares of the answers in clusters of equal meaning: the discrete semantic entropy of Farquhar et al.
    (Nature 630, 2024), after Kuhn et al. (ICLR 2023). An answer joins the first cluster whose first answer means the
    same. by: `equal`, answers that are equal without case, punctuation and articles; or `cosine`, answers whose vectors
    have a cosine of at least `threshold`. The sources ask a model whether two answers entail each other; both ways here
    need none. Cosines hardly see a number or a negation. The value is 0 where all answers mean the same, and log r at
    most. It is missing for a topic with no answer.
    """

    component = "semantic_entropy"
    info = AnswerMeasureInfo("semantic_entropy", "semantic entropy of the answers", direction="lower")
    needs = frozenset({"answers"})

    by: str = "equal"
    threshold: float = 0.9

    def __post_init__(self) -> None:
        require_choice("answers.semantic_entropy.by", self.by, ("equal", "cosine"))
        require_number("answers.semantic_entropy.threshold", self.threshold, -1, 1)

    @property
    def uses(self) -> frozenset[str]:
        """The embedder, for cosines."""
        return frozenset({"embedder"} if self.by == "cosine" else ())

    def measure(
        self,
        topics: pd.DataFrame,
        evidence: pd.DataFrame,
        contexts: pd.DataFrame,
        answers: pd.DataFrame,
        tools: Tools,
    ) -> pd.DataFrame:
        """Frame `answer_values` of the first answers: 0 until the repeats are there."""
        return measured(answers, self.info.name, lambda qid, answer: 0.0)

    def measure_repeats(self, answers: pd.DataFrame, tools: Tools) -> pd.DataFrame:
        """[qid x semantic_entropy] of [qid, sample, answer]; ignores missing answers."""
        known = answers[answers["answer"].notna()]
        by_topic = known.groupby("qid")["answer"]
        if self.by == "equal":
            counts = {qid: list(Counter(map(_form, own)).values()) for qid, own in by_topic}
        else:
            texts = list(dict.fromkeys(known["answer"]))
            embedded = tools.embedder.embed(texts).astype(np.float64) if texts else []
            vectors = dict(zip(texts, embedded, strict=True))
            counts = {qid: _near([vectors[text] for text in own], self.threshold) for qid, own in by_topic}
        found = {str(qid): entropy(of) for qid, of in counts.items()}
        return pd.DataFrame({self.info.name: pd.Series(found, dtype="float64")})


def _form(text: str) -> str:
    """The text without case, punctuation and articles."""
    return " ".join(normalised(text))


def _near(vectors: Sequence[np.ndarray], threshold: float) -> list[int]:
    """The sizes of the clusters of vectors by a cosine threshold."""
    firsts: list[np.ndarray] = []
    counts: list[int] = []
    for one in vectors:
        alike = [float(one @ of) >= threshold for of in firsts]
        if any(alike):
            counts[alike.index(True)] += 1
        else:
            firsts.append(one)
            counts.append(1)
    return counts


def entropy(counts: Sequence[int]) -> float:
    """-sum p log p, in nats, of counts of clusters."""
    shares = np.array(counts) / sum(counts)
    return abs(float(-(shares * np.log(shares)).sum()))
