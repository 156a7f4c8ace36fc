"""`context_recall`: the share of the reference answer's statements that the context supports."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pandas as pd

from ragauge.contract.answer_measures import NO_CLAIMS, NO_REFERENCE
from ragauge.contract.checks import require_count
from ragauge.contract.component import Tools
from ragauge.contract.identity import runtime
from ragauge.contract.measures import AnswerMeasureInfo, MeasuresPassages
from ragauge.contract.replies import Structured
from ragauge.contract.topics import references
from ragauge.llms.json_replies import OK, Found, ask_each, json_of
from ragauge.llms.prompts import fill
from ragauge.llms.structured import list_of, number_in, numbered_fields
from ragauge.plugins.llm_measures.claims import (
    CLAIMS,
    IN_SENTENCES,
    Claims,
    ClaimVerdict,
    Passage,
    at_once,
    by_number,
    claims_of,
    first_lost,
    numbered,
    passages_by_topic,
    prompt,
    prompts,
    questions_of,
)
from ragauge.plugins.llm_measures.faithfulness import faithfulness, told
from ragauge.plugins.llm_measures.sentences import Part, Sentence, listed, parts_by_topic
from ragauge.plugins.llm_measures.values import Measured, lost, value_frame

_INFO = AnswerMeasureInfo("context_recall", "context recall", unit="share", section="Claims", of="context")

# Of every statement the ways to support it: sentences of a part, by their place in it, that do so together.
Ways = tuple[tuple[frozenset[int], ...], ...]


@dataclass(frozen=True)
class ContextRecall(MeasuresPassages):
    """Share of the reference answer's statements that the context supports; 0 without a context.

    The statements are asked for once a topic, whatever the retriever and the budget, and are those that
    answer_correctness and noise_sensitivity take. With several reference answers it is the first. Their support is
    asked once for the sentences of the longest context that the job lays out, whatever its own budget. A statement is
    supported where all sentences of one way to support it stand whole in the context.
    repeat: the number of topics that are measured once more, to show the measure's own noise. Source: RAGAS (Es et al.,
        EACL 2024, and its documentation), which lists the statements again and judges them in every sample.
    """

    component = "context_recall"
    version = 3
    uses = frozenset({"chat"})
    needs = frozenset({"references", "contexts"})
    infos = (_INFO,)
    may_lack_claims = True
    sees_longest = True

    repeat: int = runtime(0)
    prompts: Any = field(init=False, repr=False, default_factory=partial(prompts, CLAIMS, IN_SENTENCES))

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
        """Frame `answer_values`; the detail lists the statements and whether the context supports each."""
        shown = passages_by_topic(passages)
        qids = answers["qid"].tolist()
        statements = reference_statements(topics, qids, tools)
        verdicts = of_reference(statements, passages, tools)
        return value_frame(
            answers,
            self.infos,
            [_measured(statements.get(qid), verdicts.get(qid), shown.get(qid, ())) for qid in qids],
        )


def reference_statements(topics: pd.DataFrame, qids: Sequence[str], tools: Tools) -> dict[str, Found[Claims]]:
    """The statements of the first reference answer by qid; omits topics without a reference."""
    wanted, known = set(qids), references(topics)
    texts = {qid: (query, known[qid][0]) for qid, query in questions_of(topics).items() if qid in wanted and known[qid]}
    return dict(zip(texts, claims_of(list(texts.values()), tools), strict=True))


def of_reference(
    statements: Mapping[str, Found[Claims]], passages: pd.DataFrame, tools: Tools
) -> dict[str, Found[tuple[ClaimVerdict, ...]]]:
    """Whether the context supports each statement of the reference answer, by qid; omits topics without statements.

    passages: frame `longest_passages`. A verdict is `supported`, by the passages (as `passages_by_topic`
    lists them) that the sentences of its ways stand in, or `absent`. There is one request for every part of the longest
    context that has a whole sentence in this one, and for every 20 statements. One that cannot be read makes all
    verdicts of the topic missing.
    """
    shown, parts = passages_by_topic(passages), parts_by_topic(passages)
    requests: dict[str, list[tuple[Part, list[str]]]] = {}
    readers: dict[str, Callable[[str], Ways | None]] = {}
    guesses: dict[str, Ways] = {}
    for qid, found in statements.items():
        if not found.value:
            continue
        asked = at_once(found.value)
        requests[qid] = []
        for part in parts.get(qid, ()):
            if not any(sentence.whole for sentence in part):
                continue
            of_part = [_request(some, part) for some in asked]
            requests[qid].append((part, of_part))
            for request, some in zip(of_part, asked, strict=True):
                read = partial(read_ways, n_statements=len(some), n_sentences=len(part))
                ways = list_of(list_of(number_in(range(1, len(part) + 1))))
                readers[request] = Structured(read, numbered_fields(len(some), ways))
                guesses[request] = ((),) * len(some)
    replies = ask_each(tools.chat, readers, tools.store, "statements in sentences", guesses=guesses)

    def verdicts(qid: str, claims: Claims) -> Found[tuple[ClaimVerdict, ...]]:
        found = [(part, [replies[one] for one in of_part]) for part, of_part in requests[qid]]
        missing = first_lost(*(one for _, of_part in found for one in of_part))
        if missing is not None:
            return Found(None, missing.status, missing.raw)
        place = {passage.docno: i for i, passage in enumerate(shown.get(qid, ()))}
        standing: list[set[str]] = [set() for _ in claims]
        for part, of_part in found:
            ways = [way for one in of_part for way in one.value or ()]
            for docnos, of_statement in zip(standing, ways, strict=True):
                docnos.update(supporting(of_statement, part))
        by = [tuple(sorted(place[docno] for docno in docnos)) for docnos in standing]
        return Found(tuple(ClaimVerdict("supported", one) if one else ClaimVerdict("absent") for one in by), OK)

    return {qid: verdicts(qid, found.value) for qid, found in statements.items() if found.value}


def supporting(ways: Sequence[frozenset[int]], part: Sequence[Sentence]) -> set[str]:
    """The passages of every way whose sentences all lie whole in the context; empty without such a way."""
    standing = [way for way in ways if all(part[i].whole for i in way)]
    return {part[i].docno for way in standing for i in way}


def read_ways(reply: str, n_statements: int, n_sentences: int) -> Ways | None:
    """The ways of a reply {"1": [[<sentences from 1>], ...], ...}; None for anything else."""
    entries = by_number(json_of(reply), n_statements)
    if entries is None or not all(isinstance(ways, list) for ways in entries):
        return None
    for way in (way for ways in entries for way in ways):
        if not isinstance(way, list) or not way:
            return None
        if not all(type(number) is int and 1 <= number <= n_sentences for number in way):
            return None
    return tuple(tuple(frozenset(number - 1 for number in way) for way in ways) for ways in entries)


def _request(statements: Claims, part: Part) -> str:
    return fill(
        prompt(IN_SENTENCES),
        n_statements=str(len(statements)),
        sentences=listed(part),
        statements=numbered(statements),
    )


def _measured(
    statements: Found[Claims] | None,
    verdicts: Found[tuple[ClaimVerdict, ...]] | None,
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
