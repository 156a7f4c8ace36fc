"""`sufficient_context`: whether a context as a whole suffices to answer, judged without a reference."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import pandas as pd

from ragauge.contract.answer_measures import NO_CONTEXT
from ragauge.contract.checks import require_count
from ragauge.contract.component import Tools
from ragauge.contract.identity import runtime
from ragauge.contract.measures import AnswerMeasureInfo, MeasuresRanking
from ragauge.contract.replies import Structured
from ragauge.llms.json_replies import OK, ask_each, json_of, quoted
from ragauge.llms.prompts import fill
from ragauge.llms.structured import TEXT, fields, one_of
from ragauge.plugins.llm_measures import read_prompt
from ragauge.plugins.llm_measures.claims import one_line, questions_of
from ragauge.plugins.llm_measures.values import Measured, lost, value_frame
from ragauge.retrieval.passages import standing

SUFFICIENT, CONTRADICTORY, INSUFFICIENT = VERDICTS = ("sufficient", "contradictory", "insufficient")


class Sufficiency(NamedTuple):
    """One of `VERDICTS`, and the model's reason."""

    verdict: str
    reason: str | None


@dataclass(frozen=True)
class SufficientContext(MeasuresRanking):
    """Whether the context alone allows concluding an answer to the question: 1 or 0.

    sufficient_context: 1 where the verdict is sufficient. contradictory_context: 1 where passages of the context
        support different answers, and nothing in it decides between them.
    No answer, reference or evidence is looked at, so every topic with a context has a value before the llm is asked.
    One request for each distinct question and context. Source: Joren et al., Sufficient Context, ICLR 2025, whose
    rater says sufficient or not; a contradiction that nothing decides is not sufficient there.
    repeat: the number of topics that are measured once more, to show the measure's own noise. prompt ($question,
    $passages): a text, or the name of a .txt file; null for the shipped one.
    """

    component = "sufficient_context"
    version = 2
    uses = frozenset({"chat"})
    needs = frozenset({"contexts"})
    infos = (
        AnswerMeasureInfo("sufficient_context", "sufficient context", unit="share", section="Contexts", of="context"),
        AnswerMeasureInfo(
            "contradictory_context", "contradictory context", "lower", "share", "Contexts", "context", False
        ),
    )

    prompt: str | None = None
    repeat: int = runtime(0)

    def __post_init__(self) -> None:
        require_count("answers.sufficient_context.repeat", self.repeat, 0)
        read_prompt(self, "prompt", "sufficient_context.txt", ("question", "passages"))

    def measure_ranking(
        self, topics: pd.DataFrame, run: pd.DataFrame, passages: pd.DataFrame, n_tokens: int, tools: Tools
    ) -> pd.DataFrame:
        """Frame `answer_values`, a row per topic and info; missing where the reply is missing."""
        seen = {str(qid): own.tolist() for qid, own in standing(passages).groupby("qid", sort=False)["seen"]}
        requests = {qid: self._request(query, seen[qid]) for qid, query in questions_of(topics).items() if qid in seen}
        readers = dict.fromkeys(requests.values(), Structured(read_verdict, _REPLY))
        guesses = dict.fromkeys(readers, Sufficiency(INSUFFICIENT, None))
        replies = ask_each(tools.chat, readers, tools.store, self.infos[0].label, guesses=guesses)

        def measured(qid: str) -> Measured:
            if qid not in requests:
                return Measured(None, NO_CONTEXT)
            said = replies[requests[qid]]
            if (missing := lost(said)) is not None or said.value is None:
                return missing or Measured(None, NO_CONTEXT)
            verdict = said.value.verdict
            return Measured((float(verdict == SUFFICIENT), float(verdict == CONTRADICTORY)), OK, said.value._asdict())

        rows = topics[["qid"]].assign(n_tokens=n_tokens).astype({"n_tokens": "int64"})
        return value_frame(rows, self.infos, [measured(qid) for qid in rows["qid"]])

    def _request(self, query: str, seen: Sequence[str]) -> str:
        return fill(str(self.prompt), question=query, passages="\n".join(map(quoted, seen)))


_REPLY = fields(reason=TEXT, verdict=one_of(VERDICTS))


def read_verdict(reply: str) -> Sufficiency | None:
    """The verdict of a reply {"reason": ..., "verdict": one of `VERDICTS`}; None for anything else."""
    found = json_of(reply)
    if not isinstance(found, dict) or found.get("verdict") not in VERDICTS:
        return None
    reason = found.get("reason")
    return Sufficiency(found["verdict"], one_line(reason) if isinstance(reason, str) else None)
