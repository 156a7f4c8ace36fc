"""`context_recall`: the share of the reference answer's statements that the context supports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar

import pandas as pd

from ragauge.contract.answer_measures import NO_CLAIMS, NO_REFERENCE
from ragauge.contract.checks import require_count
from ragauge.contract.identity import runtime
from ragauge.contract.protocols import AnswerMeasureInfo, Tools
from ragauge.contract.topics import references
from ragauge.measures.asked.asking import OK, Found
from ragauge.measures.asked.claims import (
    CLAIMS,
    IN_PASSAGES,
    Claims,
    Passage,
    Verdict,
    claims_of,
    passages_by_topic,
    prompts,
    supports,
)
from ragauge.measures.asked.faithfulness import faithfulness, told
from ragauge.measures.asked.values import Measured, lost, value_frame

_INFO = AnswerMeasureInfo("context_recall", "context recall", unit="share", section="Claims", of="context")


@dataclass(frozen=True)
class ContextRecall:
    """Of the statements of the reference answer the share that the context supports; 0 without a context.

    The statements are asked for once a topic, whatever the retriever and the budget, and are those that
    answer_correctness and noise_sensitivity take. Of several reference answers it is the first.
    repeat: how many topics are measured once more, to tell how far the values move by themselves.
    Source: RAGAS (Es et al., EACL 2024, and its documentation), whose request lists the statements anew in
    every sample.
    """

    component: ClassVar[str] = "context_recall"
    uses: ClassVar[frozenset[str]] = frozenset({"chat"})
    needs: ClassVar[frozenset[str]] = frozenset({"references", "contexts"})
    infos: ClassVar[tuple[AnswerMeasureInfo, ...]] = (_INFO,)
    may_lack_claims: ClassVar[bool] = True

    repeat: int = runtime(0)
    prompts: Any = field(init=False, repr=False, default_factory=partial(prompts, CLAIMS, IN_PASSAGES))

    def __post_init__(self) -> None:
        require_count("answers.context_recall.repeat", self.repeat, 0)

    def measure_passages(
        self,
        topics: pd.DataFrame,
        evidence: pd.DataFrame,
        passages: pd.DataFrame,
        answers: pd.DataFrame,
        tools: Tools,
    ) -> pd.DataFrame:
        """Frame `answer_values`; its detail lists the statements and what the context says of each."""
        shown = passages_by_topic(passages)
        qids = answers["qid"].tolist()
        statements = reference_statements(topics, qids, tools)
        verdicts = of_reference(statements, shown, tools)
        return value_frame(
            answers,
            self.infos,
            [_measured(statements.get(qid), verdicts.get(qid), shown.get(qid, ())) for qid in qids],
        )


def reference_statements(topics: pd.DataFrame, qids: Sequence[str], tools: Tools) -> dict[str, Found[Claims]]:
    """The statements of the first reference answer by qid; topics without a reference are not in it."""
    wanted, known = set(qids), references(topics)
    texts = {
        qid: (query, known[qid][0])
        for qid, query in zip(topics["qid"], topics["query"], strict=True)
        if qid in wanted and known[qid]
    }
    return dict(zip(texts, claims_of(list(texts.values()), tools), strict=True))


def of_reference(
    statements: Mapping[str, Found[Claims]], shown: Mapping[str, Sequence[Passage]], tools: Tools
) -> dict[str, Found[tuple[Verdict, ...]]]:
    """What the context says of the statements of the reference answer, by qid, where there are any."""
    there = {qid: found.value for qid, found in statements.items() if found.value}
    rows = [(claims, shown.get(qid, ())) for qid, claims in there.items()]
    return dict(zip(there, supports(rows, tools), strict=True))


def _measured(
    statements: Found[Claims] | None,
    verdicts: Found[tuple[Verdict, ...]] | None,
    passages: Sequence[Passage],
) -> Measured:
    if statements is None:
        return Measured(None, NO_REFERENCE)
    if (missing := lost(statements, verdicts)) is not None:
        return missing
    if verdicts is None or not statements.value or not verdicts.value:
        return Measured(None, NO_CLAIMS)
    supported, _ = faithfulness(verdicts.value)
    detail = {"statements": told(statements.value, verdicts.value, passages, "statement")}
    return Measured((supported,), OK, detail)
