"""`context_relevance`: the share of a context's sentences needed to answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import pandas as pd

from ragauge.contract.answer_measures import NO_CONTEXT, NO_EVIDENCE
from ragauge.contract.checks import require_choice, require_count
from ragauge.contract.component import Tools
from ragauge.contract.identity import runtime
from ragauge.contract.measures import AnswerMeasureInfo, MeasuresPassages
from ragauge.contract.replies import Structured
from ragauge.contract.topics import is_unanswerable
from ragauge.llms.json_replies import OK, ask_each, json_of
from ragauge.llms.prompts import fill
from ragauge.llms.structured import fields, list_of, number_in
from ragauge.plugins.llm_measures import read_prompt
from ragauge.plugins.llm_measures.claims import questions_of
from ragauge.plugins.llm_measures.sentences import Part, Sentence, listed, parts_by_topic
from ragauge.plugins.llm_measures.values import Measured, lost, value_frame


@dataclass(frozen=True)
class ContextRelevance(MeasuresPassages):
    """Share of a context's sentences that are needed to answer the question, in [0, 1].

    Which are needed is asked once for the sentences of the longest context that the job lays out, whatever
    its own budget. by: `sentences` counts sentences, `chars` their characters. A sentence that the budget
    cuts counts with the share of its characters that stands in the context, one that is cut off not at all.
    Source: context relevance of RAGAS's paper (Es et al. 2023, section 3) by sentences; ARES (Saad-Falcon et
    al. 2024) asks for a yes or no of the same.
    repeat: the number of topics that are measured once more, to show the measure's own noise. prompt ($question,
    $sentences): a text, or the name of a .txt file; null for the shipped one.
    """

    component = "context_relevance"
    version = 3
    uses = frozenset({"chat"})
    needs = frozenset({"contexts"})
    infos = (
        AnswerMeasureInfo("context_relevance", "context relevance", unit="share", section="Contexts", of="context"),
    )
    sees_longest = True

    by: Literal["sentences", "chars"] = "sentences"
    prompt: str | None = None
    repeat: int = runtime(0)

    def __post_init__(self) -> None:
        require_choice("answers.context_relevance.by", self.by, ("sentences", "chars"))
        require_count("answers.context_relevance.repeat", self.repeat, 0)
        read_prompt(self, "prompt", "context_relevance.txt", ("question", "sentences"))

    def measure_passages(
        self,
        topics: pd.DataFrame,
        evidence: pd.DataFrame,
        passages: pd.DataFrame,
        answers: pd.DataFrame,
        tools: Tools,
    ) -> pd.DataFrame:
        """Frame `answer_values`; missing if a part of the context could not be judged.

        Its detail lists the passages of the context by rank: how many sentences of each stand in it, whole
        or cut, and the numbers of those that are needed.
        """
        # No sentence is needed for a question that the documents do not answer.
        able = topics[~is_unanswerable(topics)]
        queries = questions_of(able)
        here = passages[passages["chars"] > 0].sort_values(["qid", "rank"], kind="stable")
        ranked: dict[str, list[tuple[str, int]]] = {}
        for qid, docno, rank in zip(here["qid"], here["docno"], here["rank"], strict=True):
            ranked.setdefault(qid, []).append((docno, int(rank)))
        found = parts_by_topic(passages)
        parts = {
            qid: [part for part in found.get(qid, ()) if any(one.there for one in part)]
            for qid in answers["qid"]
            if qid in queries
        }
        requests = {qid: [self._request(queries[qid], part) for part in own] for qid, own in parts.items()}
        readers: dict[str, Callable[[str], frozenset[int] | None]] = {}
        for qid, own in parts.items():
            readers |= {
                request: Structured(
                    partial(read_needed, n_sentences=len(part)),
                    fields(needed=list_of(number_in(range(1, len(part) + 1)))),
                )
                for request, part in zip(requests[qid], own, strict=True)
            }
        guesses = dict.fromkeys(readers, frozenset[int]())
        replies = ask_each(tools.chat, readers, tools.store, self.infos[0].label, guesses=guesses)

        def measured(qid: str) -> Measured:
            if qid not in queries:
                return Measured(None, NO_EVIDENCE)
            said = [replies[request] for request in requests[qid]]
            if (missing := lost(*said)) is not None:
                return missing
            judged = [
                (sentence, i in (one.value or ()))
                for part, one in zip(parts[qid], said, strict=True)
                for i, sentence in enumerate(part)
                if sentence.there
            ]
            total = sum(self._weight(sentence) for sentence, _ in judged)
            if not total:
                return Measured(None, NO_CONTEXT)
            needed = sum(self._weight(sentence) for sentence, is_needed in judged if is_needed)
            shown = [_shown(docno, rank, judged) for docno, rank in ranked[qid]]
            return Measured((needed / total,), OK, {"passages": shown})

        return value_frame(answers, self.infos, [measured(qid) for qid in answers["qid"]])

    def _weight(self, sentence: Sentence) -> float:
        return float(sentence.there) if self.by == "chars" else sentence.there / len(sentence.text)

    def _request(self, query: str, part: Part) -> str:
        return fill(str(self.prompt), question=query, sentences=listed(part))


def _shown(docno: str, rank: int, judged: list[tuple[Sentence, bool]]) -> dict[str, Any]:
    own = [(sentence.number, is_needed) for sentence, is_needed in judged if sentence.docno == docno]
    needed = sorted(number for number, is_needed in own if is_needed)
    return {"docno": docno, "rank": rank, "sentences": len(own), "needed": needed}


def read_needed(reply: str, n_sentences: int) -> frozenset[int] | None:
    """The sentences (from 0) of a reply {"needed": [<numbers from 1>]}; None for anything else."""
    found = json_of(reply)
    numbers = found.get("needed") if isinstance(found, dict) else None
    if not isinstance(numbers, list) or not all(type(n) is int and 1 <= n <= n_sentences for n in numbers):
        return None
    return frozenset(number - 1 for number in numbers)
