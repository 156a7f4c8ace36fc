"""`answer_correctness`: agreement of the answer's claims with those of the reference answer, and similarity."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from ragauge.contract.answer_measures import NO_ANSWER, NO_CLAIMS, NO_REFERENCE
from ragauge.contract.checks import is_number, require, require_count
from ragauge.contract.component import Embedder, Tools
from ragauge.contract.identity import runtime
from ragauge.contract.measures import AnswerMeasure, AnswerMeasureInfo
from ragauge.contract.topics import references
from ragauge.llms.json_replies import OK, Found
from ragauge.plugins.llm_measures.claims import (
    CLAIMS,
    MATCH,
    Claims,
    Match,
    claims_of,
    matches,
    one_line,
    prompts,
    questions_of,
)
from ragauge.plugins.llm_measures.context_recall import reference_statements
from ragauge.plugins.llm_measures.values import Measured, lost, value_frame

_WEIGHTS = (0.75, 0.25)  # of F1 and of similarity: those of RAGAS

_INFOS = (
    AnswerMeasureInfo("answer_correctness", "answer correctness", section="Claims"),
    AnswerMeasureInfo("claims_f1", "F1 of claims", unit="share", section="Claims"),
)


def claims_f1(match: Match) -> float:
    """TP / (TP + (FP + FN) / 2), in [0, 1]; 0 if nothing agrees.

    TP: claims of the answer that the reference supports; FP: those that it does not; FN: statements of the
    reference that the answer does not say. Source: RAGAS's documentation of answer correctness.
    """
    tp = sum(match.claims)
    wrong = len(match.claims) - tp + len(match.statements) - sum(match.statements)
    return tp / (tp + 0.5 * wrong) if tp else 0.0


@dataclass(frozen=True)
class AnswerCorrectness(AnswerMeasure):
    """The weighted mean of the F1 of claims and of the similarity to the reference answer.

    weights: those of the F1, and of the cosine of answer and reference answer by the configured embedder; where the
        second is 0 nothing is embedded.
    repeat: the number of topics that are measured once more, to show the measure's own noise.

    An answer without claims has an F1 of 0. Statements are those of the first reference answer; the request names the
    others as well. The similarity is the highest. Missing, with a status: topics without a reference answer, or with
    one that states nothing; replies that failed or cannot be read.
    Source: RAGAS. Its F1 is 1 where a text has no statement, so that a refusal counts as right, and its request may
    class a claim twice or not at all.
    """

    component = "answer_correctness"
    version = 2
    needs = frozenset({"references", "answers"})
    infos = _INFOS
    may_lack_claims = True

    weights: Sequence[float] = _WEIGHTS
    repeat: int = runtime(0)
    prompts: Any = field(init=False, repr=False, default_factory=partial(prompts, CLAIMS, MATCH))

    def __post_init__(self) -> None:
        given: Any = self.weights
        ok = isinstance(given, (list, tuple)) and len(given) == 2
        ok = ok and all(is_number(w) and w >= 0 for w in given) and sum(given) > 0
        require("answers.answer_correctness.weights", given, ok, "two numbers from 0, not both 0")
        require_count("answers.answer_correctness.repeat", self.repeat, 0)

    @property
    def uses(self) -> frozenset[str]:
        """The chat model, and the embedder if similarity counts."""
        return frozenset({"chat", "embedder"} if self.weights[1] else {"chat"})

    def measure(
        self,
        topics: pd.DataFrame,
        evidence: pd.DataFrame,
        contexts: pd.DataFrame,
        answers: pd.DataFrame,
        tools: Tools,
    ) -> pd.DataFrame:
        """Frame `answer_values`; the detail lists claims, statements and their agreement."""
        known = references(topics)
        question = questions_of(topics)
        rows = list(zip(answers["qid"], answers["answer"], strict=True))
        asked = [i for i, (qid, answer) in enumerate(rows) if isinstance(answer, str) and known[qid]]
        claims = claims_of([(question[rows[i][0]], rows[i][1]) for i in asked], tools)
        statements = reference_statements(topics, [rows[i][0] for i in asked], tools)
        both = [(i, of_answer, statements[rows[i][0]]) for i, of_answer in zip(asked, claims, strict=True)]
        todo = [
            (i, (question[rows[i][0]], a.value, s.value, known[rows[i][0]][1:]))
            for i, a, s in both
            if a.value is not None and s.value
        ]
        found = dict(zip([i for i, _ in todo], matches([request for _, request in todo], tools), strict=True))
        similar: dict[int, float] = {}
        if self.weights[1]:
            ready = [i for i, match in found.items() if match.value is not None]
            texts = [(rows[i][1], known[rows[i][0]]) for i in ready]
            similar = dict(zip(ready, similarities(texts, tools.embedder), strict=True))
        measured = {i: self._measured(a, s, found.get(i), similar.get(i)) for i, a, s in both}
        return value_frame(
            answers,
            self.infos,
            [
                measured.get(i) or Measured(None, NO_REFERENCE if not known[qid] else NO_ANSWER)
                for i, (qid, _) in enumerate(rows)
            ],
        )

    def _measured(
        self,
        claims: Found[Claims],
        statements: Found[Claims],
        match: Found[Match] | None,
        similarity: float | None,
    ) -> Measured:
        if (missing := lost(claims, statements, match)) is not None:
            return missing
        if match is None or match.value is None:
            return Measured(None, NO_CLAIMS)  # of the reference
        f1, weights = claims_f1(match.value), self.weights
        value = (weights[0] * f1 + weights[1] * (similarity or 0.0)) / sum(weights)
        detail: dict[str, Any] = {
            "claims": [
                {"claim": claim, "in_reference": said}
                for claim, said in zip(claims.value or (), match.value.claims, strict=True)
            ],
            "statements": [
                {"statement": statement, "in_answer": said}
                for statement, said in zip(statements.value or (), match.value.statements, strict=True)
            ],
        }
        if similarity is not None:
            detail["similarity"] = round(similarity, 4)
        return Measured((value, f1), OK, detail)


def similarities(pairs: Sequence[tuple[str, Sequence[str]]], embedder: Embedder) -> list[float]:
    """The highest cosine of every text to one of its references, in [-1, 1]; 0 if either is blank."""
    lines = [(one_line(text), [line for one in of if (line := one_line(one))]) for text, of in pairs]
    every = dict.fromkeys(text for text, of in lines for text in (text, *of) if text)
    if not every:
        return [0.0] * len(lines)
    vectors = np.asarray(embedder.embed(list(every)), dtype=np.float64)
    at = {text: vectors[i] for i, text in enumerate(every)}
    return [max((float(at[text] @ at[one]) for one in of), default=0.0) if text else 0.0 for text, of in lines]
