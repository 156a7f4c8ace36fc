"""`answer_relevancy`: similarity of the question to questions that the answer would answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from ragauge.contract.answer_measures import NO_ANSWER
from ragauge.contract.checks import require_count
from ragauge.contract.component import Tools
from ragauge.contract.identity import runtime
from ragauge.contract.measures import AnswerMeasure, AnswerMeasureInfo
from ragauge.contract.replies import Structured
from ragauge.contract.topics import STANDALONE
from ragauge.llms.json_replies import OK, Found, ask_each, json_of, truth_of
from ragauge.llms.prompts import fill
from ragauge.llms.structured import TEXT, TRUTH, fields, list_of
from ragauge.plugins.llm_measures.claims import QUESTIONS, one_line, prompt, prompts, texts_of
from ragauge.plugins.llm_measures.values import Measured, lost, value_frame

_INFOS = (
    AnswerMeasureInfo("answer_relevancy", "answer relevancy", section="Claims"),
    AnswerMeasureInfo("noncommittal_share", "noncommittal answers", "lower", "share", "Claims"),
)


@dataclass(frozen=True)
class Asked:
    """The questions that a text would answer, and whether it is noncommittal."""

    questions: tuple[str, ...]
    noncommittal: bool


def relevancy(cosines: Sequence[float], noncommittal: bool) -> float:
    """The mean cosine of the generated questions to the question, in [-1, 1]; 0 for a noncommittal answer.

    Source: RAGAS (Es et al., EACL 2024, section 3) and its documentation of response relevancy.
    """
    return 0.0 if noncommittal else float(np.mean(cosines))


@dataclass(frozen=True)
class AnswerRelevancy(AnswerMeasure):
    """The mean cosine of the question to questions that an LLM generates from the answer alone.

    questions: how many are generated, by one request for every distinct answer; RAGAS sends as many equal
        requests, which a model at temperature 0 answers alike.
    repeat: the number of topics that are measured once more, to show the measure's own noise.

    The question of a later turn is its `standalone_question`, where the dataset has one. A noncommittal answer has 0.
    So has a blank one, without a request. The cosine is that of the configured embedder.
    Missing, with a status: replies that failed or cannot be read.
    """

    component = "answer_relevancy"
    version = 2
    uses = frozenset({"chat", "embedder"})
    needs = frozenset({"answers"})
    infos = _INFOS

    questions: int = 3
    repeat: int = runtime(0)
    prompts: Any = field(init=False, repr=False, default_factory=partial(prompts, QUESTIONS))

    def __post_init__(self) -> None:
        require_count("answers.answer_relevancy.questions", self.questions, most=20)
        require_count("answers.answer_relevancy.repeat", self.repeat, 0)

    def measure(
        self,
        topics: pd.DataFrame,
        evidence: pd.DataFrame,
        contexts: pd.DataFrame,
        answers: pd.DataFrame,
        tools: Tools,
    ) -> pd.DataFrame:
        """Frame `answer_values`; the detail lists the questions with their cosines."""
        known = topics["query"] if STANDALONE not in topics else topics[STANDALONE].fillna(topics["query"])
        query = dict(zip(topics["qid"], map(one_line, known), strict=True))
        rows = list(zip(answers["qid"], answers["answer"], strict=True))
        asked = self._asked([answer for _, answer in rows if isinstance(answer, str)], tools)
        found = {one_line(a): asked[one_line(a)] for _, a in rows if isinstance(a, str)}
        texts = {query[qid]: None for qid, _ in rows}
        texts |= {one: None for reply in found.values() if reply.value for one in reply.value.questions}
        vectors = np.asarray(tools.embedder.embed(list(texts), role="query"), dtype=np.float64)
        at = {text: vectors[i] for i, text in enumerate(texts)}

        def measured(qid: str, answer: object) -> Measured:
            if not isinstance(answer, str):
                return Measured(None, NO_ANSWER)
            reply = found[one_line(answer)]
            if (missing := lost(reply)) is not None or reply.value is None:
                return missing or Measured(None, reply.status)
            like = [float(at[one] @ at[query[qid]]) for one in reply.value.questions]
            pairs = zip(reply.value.questions, like, strict=True)
            detail = {
                "questions": [{"question": one, "cosine": round(cosine, 4)} for one, cosine in pairs],
                "noncommittal": reply.value.noncommittal,
            }
            vague = reply.value.noncommittal
            return Measured((relevancy(like, vague), float(vague)), OK, detail)

        return value_frame(answers, self.infos, [measured(qid, answer) for qid, answer in rows])

    def _asked(self, answers: Sequence[str], tools: Tools) -> dict[str, Found[Asked]]:
        """The questions generated from every answer, by the answer on one line."""
        lines = dict.fromkeys(map(one_line, answers))
        n = str(self.questions)
        requests = {line: fill(prompt(QUESTIONS), n=n, text=line) for line in lines if line}
        read = partial(_read, n=self.questions)
        guesses = {request: Asked(("?",) * self.questions, False) for request in requests.values()}
        readers = dict.fromkeys(guesses, Structured(read, _REPLY))
        found = ask_each(tools.chat, readers, tools.store, "questions of answers", guesses=guesses)
        blank = Found(Asked((), True), OK)
        return {line: found[requests[line]] if line else blank for line in lines}


_REPLY = fields(questions=list_of(TEXT), noncommittal=TRUTH)


def _read(reply: str, n: int) -> Asked | None:
    """The n distinct questions; a noncommittal answer may have fewer."""
    found = json_of(reply)
    if not isinstance(found, dict) or not {"questions", "noncommittal"} <= set(found):
        return None
    questions, vague = texts_of(found, "questions"), truth_of(found["noncommittal"])
    if questions is None or vague is None:
        return None
    return Asked(questions, vague) if len(questions) == n or (vague and len(questions) < n) else None
