"""Citations of an answer: whether they support it, and whether each is needed.

Source: Gao et al., Enabling Large Language Models to Generate Text with Citations (ALCE), EMNLP 2023.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import pandas as pd

from ragauge.contract.answer_measures import NO_ANSWER, NO_CITATIONS, NO_CLAIMS, NO_CONTEXT
from ragauge.contract.checks import require_choice, require_count
from ragauge.contract.component import Tools
from ragauge.contract.identity import runtime
from ragauge.contract.measures import AnswerMeasureInfo, MeasuresPassages
from ragauge.contract.replies import Structured
from ragauge.llms.json_replies import OK, Found, ask_each, json_of, quoted, truth_of
from ragauge.llms.prompts import fill
from ragauge.llms.structured import TEXT, TRUTH, fields
from ragauge.plugins.llm_measures import read_prompt
from ragauge.plugins.llm_measures.claims import questions_of
from ragauge.plugins.llm_measures.values import Measured, lost, value_frame
from ragauge.texts.citation_marks import Statement, statements_of
from ragauge.texts.words import FUNCTION_WORDS, words

CITED_ANSWER = "cited_answer"  # column of answers: the text with its marks


class Request(NamedTuple):
    """A request: do these passages, together, support the statement that answers this question?"""

    query: str
    statement: str
    passages: tuple[str, ...]


class Cited(NamedTuple):
    """A statement with its citations: passages by number, and how many numbers name no passage.

    supported: whether the passages together support it. irrelevant: numbers that do not support it alone,
    and without which the others do.
    """

    statement: str
    passages: tuple[int, ...]
    n_invented: int
    supported: bool
    irrelevant: tuple[int, ...]


def numbered_passages(passages: pd.DataFrame) -> dict[str, dict[int, str]]:
    """The passages as the LLM saw them, cut at the budget, by qid and citation number (from 1)."""
    shown: dict[str, dict[int, str]] = {}
    columns = (passages[name] for name in ("qid", "position", "text", "chars"))
    for qid, position, text, chars in zip(*columns, strict=True):
        shown.setdefault(qid, {})[int(position) + 1] = text[: int(chars)]
    return shown


def answers_with_marks(answers: pd.DataFrame) -> list[tuple[str, object]]:
    """(qid, answer with citation marks) of every row; the answer is not a string if there is none."""
    texts = answers["answer"]
    if CITED_ANSWER in answers:
        texts = answers[CITED_ANSWER].where(answers[CITED_ANSWER].notna(), texts)
    return list(zip(answers["qid"], texts, strict=True))


@dataclass(frozen=True)
class Citations(MeasuresPassages):
    """Recall and precision of the citations in an answer, by sentence.

    citation_recall: share of the sentences whose cited passages together support them; a sentence without a
        citation is not supported.
    citation_precision: share of all citations that are relevant: of a sentence that its citations support,
        those that support it alone or without which the others do not. Missing without any citation.
    uncited: 1 for an answer without any citation, else 0.
    citations_invented: share of the citations whose number is that of no passage; they support nothing, and
        count as irrelevant. Missing without any citation.

    Passages are taken as the LLM saw them, cut at the budget. The marks are those of the column
    `cited_answer` of the answers, else of the answers themselves.

    by: `llm` asks once per distinct question, sentence and passages. `words` is a stand-in by rules: a sentence is
        supported if all of its words that are no function words stand in the passages.
    repeat: the number of topics that are measured once more, to show the measure's own noise. prompt ($question,
    $passages, $statement): a text, or the name of a .txt file; null for the shipped one.
    """

    component = "citations"
    version = 2
    needs = frozenset({"answers", "contexts", "citations"})

    by: Literal["llm", "words"] = "llm"
    prompt: str | None = None
    repeat: int = runtime(0)

    def __post_init__(self) -> None:
        require_choice("answers.citations.by", self.by, ("llm", "words"))
        require_count("answers.citations.repeat", self.repeat, 0)
        read_prompt(self, "prompt", "citation_support.txt", ("question", "passages", "statement"))

    @property
    def uses(self) -> frozenset[str]:
        """The chat model, unless rules decide."""
        return frozenset({"chat"} if self.by == "llm" else ())

    @property
    def infos(self) -> tuple[AnswerMeasureInfo, ...]:
        """Labels of the four values; those by rules are marked as a stand-in."""
        mark = " by words (stand-in, no LLM)" if self.by == "words" else ""
        section = "Citations"
        return (
            AnswerMeasureInfo("citation_recall", f"citation recall{mark}", "higher", "share", section),
            AnswerMeasureInfo("citation_precision", f"citation precision{mark}", "higher", "share", section),
            AnswerMeasureInfo("uncited", "no citation", "lower", "share", section),
            AnswerMeasureInfo("citations_invented", "invented citations", "lower", "share", section),
        )  # fmt: skip

    def describe(self, tools: Tools) -> dict[str, str]:
        """The judge of whether passages support a sentence, as a run tag."""
        return {"by": "words (stand-in, no LLM)" if self.by == "words" else "llm"}

    def measure_passages(
        self,
        topics: pd.DataFrame,
        evidence: pd.DataFrame,
        passages: pd.DataFrame,
        answers: pd.DataFrame,
        tools: Tools,
    ) -> pd.DataFrame:
        """Frame `answer_values`; recall and precision are missing if a sentence could not be judged."""
        queries = questions_of(topics)
        shown, rows = numbered_passages(passages), answers_with_marks(answers)
        sentences = {
            (qid, text): [_Sentence(queries[qid], one, shown[qid]) for one in statements_of(text)]
            for qid, text in rows
            if isinstance(text, str) and qid in shown
        }
        verdicts = self._verdicts([one for own in sentences.values() for one in own], tools)

        def measured(qid: str, text: object) -> Measured:
            if not isinstance(text, str):
                return Measured(None, NO_ANSWER)
            if qid not in shown:
                return Measured(None, NO_CONTEXT)
            own = sentences[qid, text]
            return _measured(own, verdicts) if own else Measured(None, NO_CLAIMS)

        return value_frame(answers, self.infos, [measured(*row) for row in rows])

    def _verdicts(self, sentences: Sequence[_Sentence], tools: Tools) -> dict[Request, Found[bool]]:
        """All verdicts that the sentences need: on their passages together, on each alone, and on the others."""
        verdicts: dict[Request, Found[bool]] = {}
        while todo := list(
            dict.fromkeys(request for one in sentences for request in one.requests(verdicts) if request not in verdicts)
        ):
            verdicts |= self._support(todo, tools)
        return verdicts

    def _support(self, requests: Sequence[Request], tools: Tools) -> dict[Request, Found[bool]]:
        if self.by == "words":
            return {one: Found(supported_by_words(one.statement, one.passages), OK) for one in requests}
        prompts = {one: self._asked(one) for one in requests}
        readers = dict.fromkeys(prompts.values(), Structured(read_supported, _REPLY))
        # In a dry run: several passages support it together and none alone, so that all is counted.
        guesses = {prompt: len(one.passages) > 1 for one, prompt in prompts.items()}
        found = ask_each(tools.chat, readers, tools.store, "citations", guesses=guesses)
        return {one: found[prompt] for one, prompt in prompts.items()}

    def _asked(self, request: Request) -> str:
        return fill(
            str(self.prompt),
            question=request.query,
            passages="\n".join(map(quoted, request.passages)),
            statement=quoted(request.statement),
        )


@dataclass(frozen=True)
class _Sentence:
    """A sentence of an answer with the passages that it may cite, by number."""

    query: str
    statement: Statement
    passages: dict[int, str] = field(repr=False)

    @property
    def cited(self) -> tuple[int, ...]:
        """The cited numbers that name a passage, in passage order."""
        return tuple(sorted(number for number in self.statement.cited if number in self.passages))

    @property
    def n_invented(self) -> int:
        return len(self.statement.cited) - len(self.cited)

    def about(self, numbers: Iterable[int]) -> Request:
        # In an order of their own: systems that rank the same passages otherwise share the request.
        texts = sorted(self.passages[number] for number in numbers)
        return Request(self.query, self.statement.text, tuple(texts))

    def without(self, number: int) -> Request:
        return self.about(other for other in self.cited if other != number)

    def requests(self, verdicts: dict[Request, Found[bool]]) -> list[Request]:
        """The requests that the verdicts so far call for; none follow a missing verdict."""
        if not self.cited:
            return []
        found = [self.about(self.cited)]
        if len(self.cited) > 1 and _says(verdicts, found[0], True):
            for number in self.cited:
                found.append(self.about([number]))
                if _says(verdicts, found[-1], False):
                    found.append(self.without(number))
        return found

    def judged(self, verdicts: dict[Request, Found[bool]]) -> Cited:
        supported = bool(self.cited) and _says(verdicts, self.about(self.cited), True)
        irrelevant = tuple(
            number
            for number in self.cited
            if supported
            and len(self.cited) > 1
            and _says(verdicts, self.about([number]), False)
            and _says(verdicts, self.without(number), True)
        )
        return Cited(self.statement.text, self.cited, self.n_invented, supported, irrelevant)


def _measured(own: Sequence[_Sentence], verdicts: dict[Request, Found[bool]]) -> Measured:
    """The values of an answer of at least one sentence, in the order of the infos."""
    n_cited = sum(len(one.statement.cited) for one in own)
    n_invented = sum(one.n_invented for one in own)
    counted = (float(not n_cited), n_invented / n_cited if n_cited else None)
    lacking = OK if n_cited else NO_CITATIONS
    missing = lost(*(verdicts[request] for one in own for request in one.requests(verdicts)))
    if missing is not None:
        statuses = (missing.status, missing.status, OK, lacking)
        return Measured((None, None, *counted), missing.status, missing.detail, statuses)
    found = [one.judged(verdicts) for one in own]
    scores = citation_scores(found)
    shown = [
        {
            "statement": one.statement.text,
            "cited": list(one.statement.cited),
            "supported": said.supported,
            "irrelevant": list(said.irrelevant),
        }
        for one, said in zip(own, found, strict=True)
    ]
    values = (scores["citation_recall"], scores.get("citation_precision"), *counted)
    return Measured(values, OK, {"statements": shown}, (OK, lacking, OK, lacking))


def _says(verdicts: dict[Request, Found[bool]], request: Request, said: bool) -> bool:
    return request in verdicts and verdicts[request].value is said


def citation_scores(found: Sequence[Cited]) -> dict[str, float]:
    """citation_recall and, if anything is cited, citation_precision of an answer's sentences."""
    n_cited = sum(len(one.passages) + one.n_invented for one in found)
    relevant = sum(len(one.passages) - len(one.irrelevant) for one in found if one.supported)
    values = {"citation_recall": sum(one.supported for one in found) / len(found)}
    return {**values, "citation_precision": relevant / n_cited} if n_cited else values


_REPLY = fields(reason=TEXT, supported=TRUTH)


def read_supported(reply: str) -> bool | None:
    """The verdict of a reply {"supported": true or false, ...}; None for anything else."""
    found = json_of(reply)
    return truth_of(found.get("supported")) if isinstance(found, dict) else None


def supported_by_words(statement: str, passages: Iterable[str]) -> bool:
    """Whether the passages contain every content word of the statement; False without content words."""
    content = set(words(statement)) - FUNCTION_WORDS
    there = {word for text in passages for word in words(text)}
    return bool(content) and content <= there
