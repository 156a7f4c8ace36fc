"""Measures of the passages in a context: one request per question and passage, whatever found it.

The whole passage is judged, also where the budget cut it, so that all retrievers and budgets share a request.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Generic, Literal, NamedTuple, TypeVar

import pandas as pd

from ragauge.contract.answer_measures import NO_CONTEXT, NO_EVIDENCE, NO_REFERENCE
from ragauge.contract.checks import require_choice, require_count
from ragauge.contract.identity import runtime
from ragauge.contract.protocols import AnswerMeasureInfo, Tools
from ragauge.contract.topics import is_unanswerable, references
from ragauge.llms.json_replies import json_of
from ragauge.llms.prompts import fill, load_prompt
from ragauge.measures.asked.asking import OK, Found, ask_each, quoted
from ragauge.measures.asked.claims import one_line
from ragauge.measures.asked.values import Measured, lost, value_frame
from ragauge.texts.sentences import sentence_spans

T = TypeVar("T")


class Passage(NamedTuple):
    """A passage of a context: its place in the ranking, its whole text, how much stands in the context."""

    rank: int
    docno: str
    text: str
    chars: int


class _OfPassages(Generic[T]):
    """Asks once about every question and passage, and makes one value per context of the verdicts."""

    infos: ClassVar[tuple[AnswerMeasureInfo, ...]]
    without_truth: ClassVar[str]  # status of a topic that has nothing to judge by
    blank: ClassVar[Any]  # the verdict on a passage without any text, where nobody is asked

    @abstractmethod
    def _truth(self, topics: pd.DataFrame) -> dict[str, tuple[str, ...]]:
        """What passages are judged by, for every topic that can be measured."""

    @abstractmethod
    def _request(self, query: str, truth: Sequence[str], text: str) -> tuple[str, Callable[[str], T | None]]:
        """What is asked about a passage, and how the reply is read."""

    @abstractmethod
    def _value(self, passages: Sequence[Passage], verdicts: Sequence[T]) -> float | None:
        """The value of a context, of its passages by rank; None where there is nothing to measure."""

    @staticmethod
    @abstractmethod
    def _shown(verdict: T) -> dict[str, Any]:
        """A verdict as JSON values."""

    def measure_passages(
        self,
        topics: pd.DataFrame,
        evidence: pd.DataFrame,
        passages: pd.DataFrame,
        answers: pd.DataFrame,
        tools: Tools,
    ) -> pd.DataFrame:
        """Frame `answer_values`; missing where one of a context's passages could not be judged."""
        truth = self._truth(topics)
        queries = dict(zip(topics["qid"], topics["query"], strict=True))
        found = _by_topic(passages)
        pairs = dict.fromkeys(
            (qid, one.text) for qid in answers["qid"] if qid in truth for one in found.get(qid, ())
        )
        requests = {
            (qid, text): self._request(queries[qid], truth[qid], text) for qid, text in pairs if text.strip()
        }
        readers = dict(requests.values())
        guesses = dict.fromkeys(readers, self.blank)
        replies = ask_each(tools.chat, readers, tools.store, self.infos[0].label, guesses=guesses)
        verdicts: dict[tuple[str, str], Found[T]] = dict.fromkeys(pairs, Found(self.blank, OK))
        verdicts |= {pair: replies[prompt] for pair, (prompt, _) in requests.items()}

        def measured(qid: str) -> Measured:
            if qid not in truth:
                return Measured(None, self.without_truth)
            own = found.get(qid, [])
            if not own:
                return Measured(None, NO_CONTEXT)
            said = [verdicts[qid, one.text] for one in own]
            if (missing := lost(*said)) is not None:
                return missing
            known = [verdict.value for verdict in said if verdict.value is not None]
            value = self._value(own, known)
            if value is None:
                return Measured(None, NO_CONTEXT)
            shown = [
                {"docno": one.docno, "rank": one.rank, **self._shown(verdict)}
                for one, verdict in zip(own, known, strict=True)
            ]
            return Measured((value,), OK, {"passages": shown})

        return value_frame(answers, self.infos, [measured(qid) for qid in answers["qid"]])


def _by_topic(passages: pd.DataFrame) -> dict[str, list[Passage]]:
    """The passages of every topic by their rank."""
    found: dict[str, list[Passage]] = {}
    columns = (passages[name] for name in ("qid", "rank", "docno", "text", "chars"))
    for qid, rank, docno, text, chars in zip(*columns, strict=True):
        found.setdefault(qid, []).append(Passage(int(rank), docno, text, int(chars)))
    return {qid: sorted(own) for qid, own in found.items()}


class Useful(NamedTuple):
    """Whether a passage is useful, and why the model says so."""

    useful: bool
    reason: str | None


@dataclass(frozen=True)
class ContextPrecision(_OfPassages[Useful]):
    """Mean of precision@k over the ranks k of the useful passages of a context; 0 where none is useful.

    A passage is useful if it helped to arrive at a reference answer. One that the budget cut counts as whole.
    Source: RAGAS, context precision with reference (Es et al., RAGAS: Automated Evaluation of Retrieval
    Augmented Generation, 2023, and its documentation).
    repeat: how many topics are measured once more, to tell how far the values move by themselves.
    prompt ($question, $references, $passage): a text, or the name of a .txt file; null for the shipped one.
    """

    component: ClassVar[str] = "context_precision"
    uses: ClassVar[frozenset[str]] = frozenset({"chat"})
    needs: ClassVar[frozenset[str]] = frozenset({"references", "contexts"})
    infos: ClassVar[tuple[AnswerMeasureInfo, ...]] = (
        AnswerMeasureInfo(
            "context_precision", "context precision", unit="share", section="Contexts", of="context"
        ),
    )
    without_truth: ClassVar[str] = NO_REFERENCE
    blank: ClassVar[Useful] = Useful(False, None)

    prompt: str | None = None
    repeat: int = runtime(0)

    def __post_init__(self) -> None:
        require_count("answers.context_precision.repeat", self.repeat, 0)
        text = load_prompt(
            self.prompt,
            "context_precision.txt",
            ("question", "references", "passage"),
            key="answers.context_precision.prompt",
        )
        object.__setattr__(self, "prompt", text)

    def _truth(self, topics: pd.DataFrame) -> dict[str, tuple[str, ...]]:
        marked = set(topics["qid"][is_unanswerable(topics)])
        return {qid: texts for qid, texts in references(topics).items() if texts and qid not in marked}

    def _request(
        self, query: str, truth: Sequence[str], text: str
    ) -> tuple[str, Callable[[str], Useful | None]]:
        listed = "\n".join(map(quoted, truth))
        return fill(str(self.prompt), question=query, references=listed, passage=quoted(text)), read_useful

    def _value(self, passages: Sequence[Passage], verdicts: Sequence[Useful]) -> float:
        return average_precision([verdict.useful for verdict in verdicts])

    @staticmethod
    def _shown(verdict: Useful) -> dict[str, Any]:
        return {"useful": verdict.useful, "reason": verdict.reason}


def average_precision(useful: Sequence[bool]) -> float:
    """sum over k of precision@k * useful_k, over the number of useful ones; in [0, 1], 0 without any."""
    n_useful, total = 0, 0.0
    for k, is_useful in enumerate(useful, start=1):
        if is_useful:
            n_useful += 1
            total += n_useful / k
    return total / n_useful if n_useful else 0.0


def read_useful(reply: str) -> Useful | None:
    """The verdict of a reply {"useful": true or false, "reason": ...}; None if it is anything else."""
    found = json_of(reply)
    if not isinstance(found, dict) or not isinstance(found.get("useful"), bool):
        return None
    reason = found.get("reason")
    return Useful(found["useful"], one_line(reason) if isinstance(reason, str) else None)


class Needed(NamedTuple):
    """Where the sentences of a passage begin and end, and the numbers (from 1) of those that are needed."""

    spans: tuple[tuple[int, int], ...]
    needed: frozenset[int]


@dataclass(frozen=True)
class ContextRelevance(_OfPassages[Needed]):
    """Share of a context's sentences that are needed to answer the question, in [0, 1].

    by: `sentences` counts sentences, `chars` their characters. A sentence that the budget cut counts with the
    share of its characters that stands in the context, one that is cut off not at all; so cut passages count
    by what the LLM is given of them.
    Source: context relevance of RAGAS's paper (Es et al. 2023, section 3) by sentences; ARES (Saad-Falcon et
    al. 2024) asks for a yes or no of the same.
    repeat: how many topics are measured once more, to tell how far the values move by themselves.
    prompt ($question, $sentences): a text, or the name of a .txt file; null for the shipped one.
    """

    component: ClassVar[str] = "context_relevance"
    uses: ClassVar[frozenset[str]] = frozenset({"chat"})
    needs: ClassVar[frozenset[str]] = frozenset({"contexts"})
    infos: ClassVar[tuple[AnswerMeasureInfo, ...]] = (
        AnswerMeasureInfo(
            "context_relevance", "context relevance", unit="share", section="Contexts", of="context"
        ),
    )
    without_truth: ClassVar[str] = NO_EVIDENCE
    blank: ClassVar[Needed] = Needed((), frozenset())

    by: Literal["sentences", "chars"] = "sentences"
    prompt: str | None = None
    repeat: int = runtime(0)

    def __post_init__(self) -> None:
        require_choice("answers.context_relevance.by", self.by, ("sentences", "chars"))
        require_count("answers.context_relevance.repeat", self.repeat, 0)
        text = load_prompt(
            self.prompt,
            "context_relevance.txt",
            ("question", "sentences"),
            key="answers.context_relevance.prompt",
        )
        object.__setattr__(self, "prompt", text)

    def _truth(self, topics: pd.DataFrame) -> dict[str, tuple[str, ...]]:
        # No sentence is needed for a question that the documents do not answer.
        return dict.fromkeys(topics["qid"][~is_unanswerable(topics)], ())

    def _request(
        self, query: str, truth: Sequence[str], text: str
    ) -> tuple[str, Callable[[str], Needed | None]]:
        spans = tuple(sentence_spans(text))
        listed = "\n".join(f"{i}: {quoted(text[start:end])}" for i, (start, end) in enumerate(spans, start=1))
        return fill(str(self.prompt), question=query, sentences=listed), partial(read_needed, spans=spans)

    def _value(self, passages: Sequence[Passage], verdicts: Sequence[Needed]) -> float | None:
        of_needed = of_all = 0.0
        for passage, (spans, needed) in zip(passages, verdicts, strict=True):
            for number, (start, end) in enumerate(spans, start=1):
                there = max(0, min(end, passage.chars) - start)
                weight = float(there) if self.by == "chars" else there / (end - start)
                of_all += weight
                of_needed += weight * (number in needed)
        return of_needed / of_all if of_all else None

    @staticmethod
    def _shown(verdict: Needed) -> dict[str, Any]:
        return {"sentences": len(verdict.spans), "needed": sorted(verdict.needed)}


def read_needed(reply: str, spans: tuple[tuple[int, int], ...]) -> Needed | None:
    """The sentences of a reply {"needed": [<numbers from 1>]}; None if it is anything else."""
    found = json_of(reply)
    numbers = found.get("needed") if isinstance(found, dict) else None
    if not isinstance(numbers, list) or not all(type(n) is int and 1 <= n <= len(spans) for n in numbers):
        return None
    return Needed(spans, frozenset(numbers))
