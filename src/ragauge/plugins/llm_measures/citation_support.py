"""Support of an answer by its cited passages, on three levels, as in TREC RAG.

Source: Thakur et al., Support Evaluation for the TREC 2024 RAG Track: Comparing Human versus LLM Judges (2025).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import pandas as pd

from ragauge.contract.answer_measures import NO_ANSWER, NO_CITATIONS, NO_CLAIMS, NO_CONTEXT
from ragauge.contract.checks import require_choice, require_count
from ragauge.contract.component import Tools
from ragauge.contract.identity import runtime
from ragauge.contract.measures import AnswerMeasureInfo, MeasuresPassages
from ragauge.contract.replies import Structured
from ragauge.llms.json_replies import OK, Found, ask_each, json_of, quoted
from ragauge.llms.prompts import fill
from ragauge.llms.structured import TEXT, fields, one_of
from ragauge.plugins.llm_measures import read_prompt
from ragauge.plugins.llm_measures.citations import answers_with_marks, numbered_passages
from ragauge.plugins.llm_measures.claims import questions_of
from ragauge.plugins.llm_measures.values import Measured, lost, value_frame
from ragauge.texts.citation_marks import Statement, statements_of
from ragauge.texts.words import FUNCTION_WORDS, words

WEIGHTS: Mapping[str, float] = {"full": 1.0, "partial": 0.5, "no": 0.0}


class Pair(NamedTuple):
    """A statement of an answer, its question, and a passage that it cites; None if the number names none."""

    query: str
    statement: str
    passage: str | None


@dataclass(frozen=True)
class CitationSupport(MeasuresPassages):
    """Weighted precision and recall of an answer's citations: full support counts 1, partial 0.5, none 0.

    support_precision: mean weight of the citations that are judged; missing without any. support_recall: mean over all
    sentences of the highest weight of its citations, 0 of a sentence without any. A number that names no passage
    supports nothing.

    citations: `first` judges the first citation of each sentence, as TREC RAG 2024 did, `all` every one. Passages are
        taken as the LLM saw them, cut at the budget.
    by: `llm` asks once per distinct question, sentence and passage. `words` is a stand-in by rules: full where all
        content words of the sentence stand in the passage, partial where half of them do.
    repeat: the number of topics that are measured once more, to show the measure's own noise. prompt ($question,
    $passage, $statement): a text, or the name of a .txt file; null for the shipped one.
    """

    component = "citation_support"
    version = 2
    needs = frozenset({"answers", "contexts", "citations"})

    by: Literal["llm", "words"] = "llm"
    citations: Literal["first", "all"] = "first"
    prompt: str | None = None
    repeat: int = runtime(0)

    def __post_init__(self) -> None:
        require_choice("answers.citation_support.by", self.by, ("llm", "words"))
        require_choice("answers.citation_support.citations", self.citations, ("first", "all"))
        require_count("answers.citation_support.repeat", self.repeat, 0)
        read_prompt(self, "prompt", "citation_levels.txt", ("question", "passage", "statement"))

    @property
    def uses(self) -> frozenset[str]:
        """The chat model, unless rules decide."""
        return frozenset({"chat"} if self.by == "llm" else ())

    @property
    def infos(self) -> tuple[AnswerMeasureInfo, ...]:
        """Labels of the two values; those by rules are marked as a stand-in."""
        mark = " by words (stand-in, no LLM)" if self.by == "words" else ""
        return tuple(
            AnswerMeasureInfo(f"support_{name}", f"weighted support {name}{mark}", "higher", "share", "Citations")
            for name in ("precision", "recall")
        )

    def describe(self, tools: Tools) -> dict[str, str]:
        """The judge of the support, as a run tag."""
        return {"by": "words (stand-in, no LLM)" if self.by == "words" else "llm"}

    def measure_passages(
        self,
        topics: pd.DataFrame,
        evidence: pd.DataFrame,
        passages: pd.DataFrame,
        answers: pd.DataFrame,
        tools: Tools,
    ) -> pd.DataFrame:
        """Frame `answer_values`; missing if the support of a sentence could not be judged."""
        queries = questions_of(topics)
        shown, rows = numbered_passages(passages), answers_with_marks(answers)
        statements = {(qid, text): statements_of(text) for qid, text in rows if isinstance(text, str) and qid in shown}

        def pairs(qid: str, one: Statement) -> list[Pair]:
            cited = one.cited[:1] if self.citations == "first" else one.cited
            return [Pair(queries[qid], one.text, shown[qid].get(number)) for number in cited]

        asked = [pair for (qid, _), own in statements.items() for one in own for pair in pairs(qid, one)]
        levels = self._levels(list(dict.fromkeys(asked)), tools)

        def measured(qid: str, text: object) -> Measured:
            if not isinstance(text, str):
                return Measured(None, NO_ANSWER)
            if qid not in shown:
                return Measured(None, NO_CONTEXT)
            own = [(one, pairs(qid, one)) for one in statements[qid, text]]
            if not own:
                return Measured(None, NO_CLAIMS)
            missing = lost(*(levels[pair] for _, of in own for pair in of))
            if missing is not None:
                return missing
            found = [[levels[pair].value or "no" for pair in of] for _, of in own]
            precision, recall = support_scores(found)
            detail = [
                {"statement": one.text, "cited": list(one.cited), "support": said}
                for (one, _), said in zip(own, found, strict=True)
            ]
            lacking = OK if precision is not None else NO_CITATIONS
            return Measured((precision, recall), OK, {"statements": detail}, (lacking, OK))

        return value_frame(answers, self.infos, [measured(*row) for row in rows])

    def _levels(self, pairs: Sequence[Pair], tools: Tools) -> dict[Pair, Found[str]]:
        there = [(pair, pair.passage) for pair in pairs if pair.passage is not None]
        invented = {pair: Found("no", OK) for pair in pairs if pair.passage is None}
        if self.by == "words":
            return invented | {pair: Found(level_by_words(pair.statement, text), OK) for pair, text in there}
        prompts = {
            pair: fill(str(self.prompt), question=pair.query, passage=quoted(text), statement=quoted(pair.statement))
            for pair, text in there
        }
        readers = dict.fromkeys(prompts.values(), Structured(read_level, _REPLY))
        guesses = dict.fromkeys(readers, "no")
        found = ask_each(tools.chat, readers, tools.store, "support of citations", guesses=guesses)
        return invented | {pair: found[prompt] for pair, prompt in prompts.items()}


def support_scores(levels: Sequence[Sequence[str]]) -> tuple[float | None, float]:
    """Weighted precision (None without a citation) and recall of an answer, from each sentence's levels by citation."""
    weights = [[WEIGHTS[level] for level in of] for of in levels]
    judged = [weight for of in weights for weight in of]
    precision = sum(judged) / len(judged) if judged else None
    return precision, sum(max(of, default=0.0) for of in weights) / len(levels)


_REPLY = fields(reason=TEXT, support=one_of(WEIGHTS))


def read_level(reply: str) -> str | None:
    """The level of a reply {"support": "full", ...}; None for anything else."""
    found = json_of(reply)
    said = found.get("support") if isinstance(found, dict) else None
    return said if isinstance(said, str) and said in WEIGHTS else None


def level_by_words(statement: str, passage: str) -> str:
    """full, partial or no, by the share of the statement's content words that the passage contains."""
    content = set(words(statement)) - FUNCTION_WORDS
    share = len(content & set(words(passage))) / len(content) if content else 0.0
    return "full" if share == 1 else "partial" if share >= 0.5 else "no"
