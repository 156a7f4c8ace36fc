"""`noise_sensitivity`: the share of an answer's claims that are wrong and come from its context."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pandas as pd

from ragauge.contract.answer_measures import NO_ANSWER, NO_CLAIMS, NO_CONTEXT, NO_REFERENCE
from ragauge.contract.checks import require_count
from ragauge.contract.component import Tools
from ragauge.contract.identity import runtime
from ragauge.contract.measures import AnswerMeasureInfo, MeasuresPassages
from ragauge.contract.topics import references
from ragauge.llms.json_replies import OK
from ragauge.plugins.llm_measures.claims import (
    CLAIMS,
    IN_PASSAGES,
    IN_SENTENCES,
    MATCH,
    ClaimVerdict,
    claims_of,
    matches,
    passages_by_topic,
    prompts,
    questions_of,
    supports,
)
from ragauge.plugins.llm_measures.context_recall import of_reference, reference_statements
from ragauge.plugins.llm_measures.faithfulness import told
from ragauge.plugins.llm_measures.values import Measured, lost, value_frame

_INFOS = (
    AnswerMeasureInfo("noise_sensitivity_relevant", "wrong claims from relevant passages", "lower", "share", "Claims"),
    AnswerMeasureInfo(
        "noise_sensitivity_irrelevant", "wrong claims from irrelevant passages", "lower", "share", "Claims"
    ),
)


def noise_sensitivity(
    correct: Sequence[bool], of_claims: Sequence[ClaimVerdict], of_statements: Sequence[ClaimVerdict]
) -> tuple[float, float]:
    """Shares of all claims that are incorrect and come from a relevant passage, and from irrelevant ones.

    A passage is relevant if a statement of the reference answer rests on it. A wrong claim that rests on
    both kinds counts as one of the relevant. Source: RAGChecker (Ru et al., NeurIPS 2024, section 3.3), as
    RAGAS computes it.
    """
    sources = claim_sources(correct, of_claims, of_statements)
    return sources.count("relevant") / len(sources), sources.count("irrelevant") / len(sources)


def claim_sources(
    correct: Sequence[bool], of_claims: Sequence[ClaimVerdict], of_statements: Sequence[ClaimVerdict]
) -> list[str | None]:
    """For every wrong claim that comes from passages, whether from `relevant` or `irrelevant` ones; otherwise None."""
    relevant = {i for verdict in of_statements if verdict.stance == "supported" for i in verdict.passages}
    return [
        None
        if right or verdict.stance != "supported"
        else "relevant"
        if relevant & set(verdict.passages)
        else "irrelevant"
        for right, verdict in zip(correct, of_claims, strict=True)
    ]


@dataclass(frozen=True)
class NoiseSensitivity(MeasuresPassages):
    """The shares of an answer's claims that are wrong and come from the context.

    Two values: from relevant passages, and from irrelevant ones. All that it asks for is what faithfulness,
    answer_correctness and context_recall ask for, and is paid for once. RAGAS asks about every passage alone
    (3 + 2 k requests a sample of k passages); here one request names the passages that a claim rests on.
    repeat: the number of topics that are measured once more, to show the measure's own noise.

    Missing, with a status: an answer without claims, a topic without a context or a reference answer (or one
    that states nothing), replies that failed or cannot be read.
    """

    component = "noise_sensitivity"
    version = 3
    uses = frozenset({"chat"})
    needs = frozenset({"references", "answers", "contexts"})
    infos = _INFOS
    may_lack_claims = True
    sees_longest = True

    repeat: int = runtime(0)
    prompts: Any = field(
        init=False, repr=False, default_factory=partial(prompts, CLAIMS, IN_PASSAGES, IN_SENTENCES, MATCH)
    )

    def __post_init__(self) -> None:
        require_count("answers.noise_sensitivity.repeat", self.repeat, 0)

    def measure_passages(
        self,
        topics: pd.DataFrame,
        evidence: pd.DataFrame,
        passages: pd.DataFrame,
        answers: pd.DataFrame,
        tools: Tools,
    ) -> pd.DataFrame:
        """Frame `answer_values`; the detail lists the claims, whether each is right, and its source."""
        shown, known = passages_by_topic(passages), references(topics)
        question = questions_of(topics)
        rows = list(zip(answers["qid"], answers["answer"], strict=True))
        measured = {
            i: Measured(None, status) for i, (qid, a) in enumerate(rows)
            if (status := _lacking(a, qid in shown, bool(known[qid])))
        }  # fmt: skip
        asked = [i for i in range(len(rows)) if i not in measured]
        qids = [rows[i][0] for i in asked]
        claims = dict(zip(asked, claims_of([(question[rows[i][0]], rows[i][1]) for i in asked], tools), strict=True))
        statements = reference_statements(topics, qids, tools)
        for i in asked:
            found = claims[i], statements[rows[i][0]]
            if (missing := lost(*found)) is not None:
                measured[i] = missing
            elif not all(one.value for one in found):
                measured[i] = Measured(None, NO_CLAIMS)
        ready = [i for i in asked if i not in measured]
        here = {rows[i][0] for i in ready}
        of_statements = of_reference({q: f for q, f in statements.items() if q in here}, passages, tools)
        texts = {i: claims[i].value or () for i in ready}
        of_claims = supports([(texts[i], shown[rows[i][0]]) for i in ready], tools)
        agree = matches(
            [(question[q], texts[i], statements[q].value or (), known[q][1:]) for i in ready for q in [rows[i][0]]],
            tools,
        )
        for i, verdicts, match in zip(ready, of_claims, agree, strict=True):
            qid = rows[i][0]
            measured[i] = lost(verdicts, match, of_statements[qid]) or _measured(
                texts[i], verdicts.value or (), match.value.claims if match.value else (),
                of_statements[qid].value or (), shown[qid],
            )  # fmt: skip
        return value_frame(answers, self.infos, [measured[i] for i in range(len(rows))])


def _lacking(answer: object, has_context: bool, has_reference: bool) -> str | None:
    if not has_reference:
        return NO_REFERENCE
    if not isinstance(answer, str):
        return NO_ANSWER
    return None if has_context else NO_CONTEXT


def _measured(claims: Any, verdicts: Any, correct: Any, of_statements: Any, passages: Any) -> Measured:
    sources = claim_sources(correct, verdicts, of_statements)
    of_each = zip(told(claims, verdicts, passages), correct, sources, strict=True)
    detail = {"claims": [{**one, "correct": right, "wrong_from": source} for one, right, source in of_each]}
    return Measured(noise_sensitivity(correct, verdicts, of_statements), OK, detail)
