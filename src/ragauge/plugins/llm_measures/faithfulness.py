"""`faithfulness`: the share of an answer's claims that its context supports, and that it contradicts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any, ClassVar, Literal

import pandas as pd

from ragauge.contract.answer_measures import NO_ANSWER, NO_CLAIMS, NO_CONTEXT
from ragauge.contract.checks import require_choice, require_count
from ragauge.contract.identity import runtime
from ragauge.contract.measures import AnswerMeasureInfo
from ragauge.contract.protocols import Tools
from ragauge.llms.json_replies import OK, Found
from ragauge.plugins.llm_measures.claims import (
    CLAIMS,
    IN_PASSAGES,
    Claims,
    Passage,
    Verdict,
    claims_of,
    passages_by_topic,
    prompts,
    sentences,
    supports,
)
from ragauge.plugins.llm_measures.values import Measured, lost, value_frame
from ragauge.texts.words import FUNCTION_WORDS, words

_INFOS = (
    AnswerMeasureInfo("faithfulness", "faithfulness", unit="share", section="Claims"),
    AnswerMeasureInfo("contradicted_share", "claims that the context contradicts", "lower", "share", "Claims"),
)
_BY_WORDS = (
    AnswerMeasureInfo("faithfulness", "faithfulness by words (stand-in, no LLM)", unit="share", section="Claims"),
)


def faithfulness(verdicts: Sequence[Verdict]) -> tuple[float, float]:
    """Shares of the claims that the context supports, and that it contradicts; the rest it does not state.

    Source: RAGAS (Es et al., EACL 2024), whose verdicts are two: supported or not.
    """
    stances = [verdict.stance for verdict in verdicts]
    return stances.count("supported") / len(stances), stances.count("contradicted") / len(stances)


@dataclass(frozen=True)
class Faithfulness:
    """Share of an answer's claims that its context supports.

    by: `llm` asks for the claims of the answer and for the verdict of the context on them, in three ways. `words` is a
        stand-in by rules: claims are the sentences of the answer, and one is supported if all of its words that are no
        function words stand in the context. It cannot tell a contradiction from what is not in the context, and has no
        `contradicted_share`.
    repeat: the number of topics that are measured once more, to show the measure's own noise.

    Missing, with a status: an answer without claims (one that says it cannot answer), a topic without a
    context, replies that failed or cannot be read.
    """

    component: ClassVar[str] = "faithfulness"
    needs: ClassVar[frozenset[str]] = frozenset({"answers", "contexts"})
    may_lack_claims: ClassVar[bool] = True

    by: Literal["llm", "words"] = "llm"
    repeat: int = runtime(0)
    prompts: Any = field(init=False, repr=False, default_factory=partial(prompts, CLAIMS, IN_PASSAGES))

    def __post_init__(self) -> None:
        require_choice("answers.faithfulness.by", self.by, ("llm", "words"))
        require_count("answers.faithfulness.repeat", self.repeat, 0)

    @property
    def uses(self) -> frozenset[str]:
        """The chat model, unless rules decide."""
        return frozenset({"chat"} if self.by == "llm" else ())

    @property
    def infos(self) -> tuple[AnswerMeasureInfo, ...]:
        """faithfulness, and by an LLM contradicted_share."""
        return _INFOS if self.by == "llm" else _BY_WORDS

    def describe(self, tools: Tools) -> dict[str, str]:
        """The judge of whether a claim is supported, as a tag of the run."""
        return {"by": "words (stand-in, no LLM)" if self.by == "words" else "llm"}

    def measure_passages(
        self,
        topics: pd.DataFrame,
        evidence: pd.DataFrame,
        passages: pd.DataFrame,
        answers: pd.DataFrame,
        tools: Tools,
    ) -> pd.DataFrame:
        """Frame `answer_values`; its detail lists the claims, their verdicts, and the passages."""
        shown = passages_by_topic(passages)
        question = dict(zip(topics["qid"], topics["query"], strict=True))
        rows = list(zip(answers["qid"], answers["answer"], strict=True))
        asked = [i for i, (qid, answer) in enumerate(rows) if isinstance(answer, str) and qid in shown]
        texts = [(str(question[rows[i][0]]), str(rows[i][1])) for i in asked]
        claims = claims_of(texts, tools) if self.by == "llm" else _by_sentence(texts)
        claimed = [(row, found.value) for row, found in zip(asked, claims, strict=True) if found.value]
        pairs = [(of_row, shown[rows[row][0]]) for row, of_row in claimed]
        verdicts = supports(pairs, tools) if self.by == "llm" else [_by_words(*pair) for pair in pairs]
        claims_at = dict(zip(asked, claims, strict=True))
        verdicts_at = {row: found for (row, _), found in zip(claimed, verdicts, strict=True)}
        return value_frame(
            answers,
            self.infos,
            [
                self._measured(answer, shown.get(qid), claims_at.get(i), verdicts_at.get(i))
                for i, (qid, answer) in enumerate(rows)
            ],
        )

    def _measured(
        self,
        answer: object,
        passages: Sequence[Passage] | None,
        claims: Found[Claims] | None,
        verdicts: Found[tuple[Verdict, ...]] | None,
    ) -> Measured:
        if not isinstance(answer, str):
            return Measured(None, NO_ANSWER)
        if passages is None:
            return Measured(None, NO_CONTEXT)
        if (missing := lost(claims, verdicts)) is not None:
            return missing
        if claims is None or verdicts is None or not claims.value or not verdicts.value:
            return Measured(None, NO_CLAIMS)
        return Measured(faithfulness(verdicts.value), OK, {"claims": told(claims.value, verdicts.value, passages)})


def told(
    claims: Claims, verdicts: Sequence[Verdict], passages: Sequence[Passage], called: str = "claim"
) -> list[dict[str, Any]]:
    """The claims with the passages' verdicts on them, as JSON values; passages by their docno."""
    return [
        {called: claim, "verdict": v.stance, "passages": [passages[i].docno for i in v.passages]}
        for claim, v in zip(claims, verdicts, strict=True)
    ]


def _by_sentence(texts: Sequence[tuple[str, str]]) -> list[Found[Claims]]:
    """The sentences of every answer that have a word which is no function word."""
    return [Found(tuple(one for one in sentences(text) if set(words(one)) - FUNCTION_WORDS), OK) for _, text in texts]


@lru_cache(maxsize=1 << 14)  # contexts share passages
def _word_set(text: str) -> frozenset[str]:
    return frozenset(words(text))


def _by_words(claims: Claims, passages: Sequence[Passage]) -> Found[tuple[Verdict, ...]]:
    """Supported where every content word stands in the context, by the passages that have any of them."""
    held = [_word_set(passage.text) for passage in passages]
    every = frozenset().union(*held)
    verdicts = []
    for claim in claims:
        content = set(words(claim)) - FUNCTION_WORDS
        by = tuple(i for i, of_passage in enumerate(held) if content & of_passage)
        verdicts.append(Verdict("supported", by) if content <= every else Verdict("absent"))
    return Found(tuple(verdicts), OK)
