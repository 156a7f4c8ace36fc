"""`faithfulness`: shares of an answer's claims that its context supports and contradicts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any, Literal

import pandas as pd

from ragauge.contract.answer_measures import NO_ANSWER, NO_CLAIMS, NO_CONTEXT
from ragauge.contract.checks import require_choice, require_count
from ragauge.contract.component import Tools
from ragauge.contract.identity import later, runtime
from ragauge.contract.measures import AnswerMeasureInfo, MeasuresPassages
from ragauge.contract.topics import HISTORY, spoken
from ragauge.llms.json_replies import OK, Found
from ragauge.plugins.llm_measures.claims import (
    CLAIMS,
    IN_PASSAGES,
    Claims,
    ClaimVerdict,
    Passage,
    claims_of,
    one_line,
    passages_by_topic,
    prompts,
    questions_of,
    sentences,
    supports,
)
from ragauge.plugins.llm_measures.values import Measured, lost, value_frame
from ragauge.texts.words import FUNCTION_WORDS, words

_NAMES = {
    "context": ("faithfulness", "contradicted_share"),
    "history": ("faithfulness_to_history", "contradicted_by_history_share"),
    "both": ("faithfulness", "contradicted_share"),
}
_SOURCES = {"context": "context", "history": "history", "both": "context and history"}


def faithfulness(verdicts: Sequence[ClaimVerdict]) -> tuple[float, float]:
    """Shares of the claims that the context supports and contradicts; it does not mention the rest.

    Source: RAGAS (Es et al., EACL 2024), whose verdicts are two: supported or not.
    """
    stances = [verdict.stance for verdict in verdicts]
    return stances.count("supported") / len(stances), stances.count("contradicted") / len(stances)


@dataclass(frozen=True)
class Faithfulness(MeasuresPassages):
    """Share of an answer's claims that its context supports, or the earlier turns of its conversation.

    by: `llm` asks for the claims of the answer and for the verdict of the context on them, in three ways. `words` is a
        stand-in by rules: claims are the sentences of the answer, and one is supported if all of its words that are no
        function words stand in the context. It cannot tell a contradiction from what is not in the context, and has no
        `contradicted_share`.
    against: `context`, `history` (the earlier turns, each a passage), or `both` together. An answer of a later turn may
        repeat what was said before and stands in no passage now. `history` has names of its own:
        `faithfulness_to_history`, `contradicted_by_history_share`.
    repeat: the number of topics that are measured once more, to show the measure's own noise.

    Missing, with a status: an answer without claims (one that says it cannot answer), a topic without a
    context (or history), replies that failed or cannot be read.
    """

    component = "faithfulness"
    version = 2
    needs = frozenset({"answers", "contexts"})
    may_lack_claims = True

    by: Literal["llm", "words"] = "llm"
    against: Literal["context", "history", "both"] = later("context")
    repeat: int = runtime(0)
    prompts: Any = field(init=False, repr=False, default_factory=partial(prompts, CLAIMS, IN_PASSAGES))

    def __post_init__(self) -> None:
        require_choice("answers.faithfulness.by", self.by, ("llm", "words"))
        require_choice("answers.faithfulness.against", self.against, tuple(_NAMES))
        require_count("answers.faithfulness.repeat", self.repeat, 0)

    @property
    def uses(self) -> frozenset[str]:
        """The chat model, unless rules decide."""
        return frozenset({"chat"} if self.by == "llm" else ())

    @property
    def infos(self) -> tuple[AnswerMeasureInfo, ...]:
        """The supported share and, by an LLM, the contradicted share."""
        supported, contradicted = _NAMES[self.against]
        to = "" if self.against == "context" else f" to {_SOURCES[self.against]}"
        if self.by == "words":
            label = f"faithfulness{to} by words (stand-in, no LLM)"
            return (AnswerMeasureInfo(supported, label, unit="share", section="Claims"),)
        against = f"claims that the {_SOURCES[self.against]} contradicts"
        return (
            AnswerMeasureInfo(supported, f"faithfulness{to}", unit="share", section="Claims"),
            AnswerMeasureInfo(contradicted, against, "lower", "share", "Claims"),
        )

    def describe(self, tools: Tools) -> dict[str, str]:
        """The judge of whether a claim is supported, as a run tag."""
        to = {} if self.against == "context" else {"against": self.against}
        return {"by": "words (stand-in, no LLM)" if self.by == "words" else "llm", **to}

    def measure_passages(
        self,
        topics: pd.DataFrame,
        evidence: pd.DataFrame,
        passages: pd.DataFrame,
        answers: pd.DataFrame,
        tools: Tools,
    ) -> pd.DataFrame:
        """Frame `answer_values`; the detail lists the claims, their verdicts, and the passages."""
        shown = passages_by_topic(passages) if self.against != "history" else {}
        if self.against != "context" and HISTORY in topics:
            for qid, history in zip(topics["qid"], topics[HISTORY], strict=True):
                shown[qid] = [*shown.get(qid, ()), *_turns(history)]
        shown = {qid: own for qid, own in shown.items() if own}
        question = questions_of(topics)
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
        verdicts: Found[tuple[ClaimVerdict, ...]] | None,
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
    claims: Claims, verdicts: Sequence[ClaimVerdict], passages: Sequence[Passage], called: str = "claim"
) -> list[dict[str, Any]]:
    """The claims with the passages' verdicts, as JSON values; passages by docno."""
    return [
        {called: claim, "verdict": v.stance, "passages": [passages[i].docno for i in v.passages]}
        for claim, v in zip(claims, verdicts, strict=True)
    ]


def _turns(history: Sequence[str]) -> list[Passage]:
    """The earlier turns as passages, named turn-1 and so on."""
    said = [one_line(spoken(history[at : at + 2])) for at in range(0, len(history), 2)]
    return [Passage(f"turn-{number}", text) for number, text in enumerate(said, 1) if text]


def _by_sentence(texts: Sequence[tuple[str, str]]) -> list[Found[Claims]]:
    """The sentences of every answer that contain a content word."""
    return [Found(tuple(one for one in sentences(text) if set(words(one)) - FUNCTION_WORDS), OK) for _, text in texts]


@lru_cache(maxsize=1 << 14)  # contexts share passages
def _word_set(text: str) -> frozenset[str]:
    return frozenset(words(text))


def _by_words(claims: Claims, passages: Sequence[Passage]) -> Found[tuple[ClaimVerdict, ...]]:
    """Supported if the context contains every content word; cites the passages that contain any."""
    held = [_word_set(passage.text) for passage in passages]
    every = frozenset().union(*held)
    verdicts = []
    for claim in claims:
        content = set(words(claim)) - FUNCTION_WORDS
        by = tuple(i for i, of_passage in enumerate(held) if content & of_passage)
        verdicts.append(ClaimVerdict("supported", by) if content <= every else ClaimVerdict("absent"))
    return Found(tuple(verdicts), OK)
