"""`rewriter=contextual`: rewrites a question that depends on earlier turns to stand alone."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Literal

import pandas as pd

from ragauge.contract.checks import require_choice, require_flag
from ragauge.contract.component import Tools
from ragauge.contract.errors import ConfigError, DataError
from ragauge.contract.identity import runtime
from ragauge.contract.option import CONF, option
from ragauge.contract.retrieval import Rewriter
from ragauge.contract.topics import HISTORY, STANDALONE, spoken
from ragauge.llms.prompts import fill, load_prompt
from ragauge.retrieval.queries import parse_queries, with_question, written_by_llm
from ragauge.retrieval.searching import queries_frame

log = logging.getLogger(__name__)


@option("rewriter/contextual")
class Contextual(Rewriter):
    """The question of a later turn, rewritten to be understood without the turns before it.

    by: `recorded` takes the dataset's column `standalone_question`, `llm` asks the chat model, one request a topic, and
        `history` puts the earlier questions before it. `auto` is the first of them that there is.
    with_question: the question as it was asked is searched for, too.
    prompt: a text with $history and $question, or a .txt file of it; None is the shipped one.
    A question without earlier turns is searched as it is.
    Source: Anantha et al., Open-Domain Question Answering Goes Conversational via Question Rewriting, NAACL 2021.
    """

    component = "contextual"
    version = 2
    kind = "queries"
    stands_alone = True
    union = "rrf"
    rrf_constant = 60

    by: Literal["auto", "recorded", "llm", "history"] = CONF
    with_question: bool = CONF
    prompt: str | None = CONF
    max_tokens: int | None = runtime(CONF)

    def __post_init__(self) -> None:
        require_choice("rewriter.by", self.by, ("auto", "recorded", "llm", "history"))
        require_flag("rewriter.with_question", self.with_question)
        place = "ragauge.plugins.conversations.prompts"
        prompt = load_prompt(self.prompt, "contextual.txt", ("history", "question"), (), "rewriter.prompt", place)
        object.__setattr__(self, "prompt", prompt)  # the text is part of the identity

    @property
    def uses(self) -> frozenset[str]:
        """The chat model, if it can be asked."""
        return frozenset({"chat"} if self.by in ("auto", "llm") else ())

    @property
    def needs_chat(self) -> bool:
        """Whether it requires a chat model."""
        return self.by == "llm"

    def describe(self, tools: Tools) -> Mapping[str, str]:
        """The writer of the questions, for the record."""
        return {"by": self.by}

    def rewrite(
        self, topics: pd.DataFrame, run: pd.DataFrame | None, chunks: pd.DataFrame | None, tools: Tools
    ) -> pd.DataFrame:
        """One query per topic, or two with the question; `origin` is question, recorded, llm, history or failed.

        DataError for by=recorded where the dataset has no standalone questions; MissingError where the LLM gave none.
        """
        by = self.by
        if by == "auto":
            by = "recorded" if STANDALONE in topics else "history" if tools.chat is None else "llm"
        histories = topics[HISTORY].tolist() if HISTORY in topics else [[]] * len(topics)
        later = [row for row, history in enumerate(histories) if any(history)]
        if not later:
            log.warning("contextual: no topic has earlier turns, so each question is searched as it is")
        found = dict(zip(later, self._written(by, topics.iloc[later], tools), strict=True)) if later else {}
        rows = []
        for row, (qid, question) in enumerate(zip(topics["qid"], topics["query"], strict=True)):
            text = found.get(row, question)
            texts = with_question(question, [text] if text else [], 1, self.with_question)
            for search, query in enumerate(texts):
                origin = ("question" if text else "failed") if query == question else by
                rows.append({"qid": qid, "search": search, "query": query, "origin": origin})
        return queries_frame(rows)

    def _written(self, by: str, topics: pd.DataFrame, tools: Tools) -> list[str]:
        """The standalone question of every topic with earlier turns; "" if it could not be written."""
        if by == "recorded":
            if STANDALONE not in topics:
                raise DataError(
                    f"rewriter.by=recorded: the topics have no column {STANDALONE}; rewriter=recorded reads a file"
                )
            given = zip(topics[STANDALONE], topics["query"], strict=True)
            return [text if isinstance(text, str) and text.strip() else question for text, question in given]
        both = list(zip(topics[HISTORY], topics["query"], strict=True))
        if by == "history":
            return [" ".join([*filter(None, history[::2]), question]) for history, question in both]
        if tools.chat is None:
            raise ConfigError("rewriter.by=llm needs an llm that is a chat model (ollama, openai)")
        prompts = [fill(str(self.prompt), history=spoken(history), question=question) for history, question in both]
        replies = written_by_llm(
            tools.chat, prompts, lambda reply: parse_queries(reply)[:1], tools.store, self.component, self.component
        )
        return [texts[0] if texts else "" for texts in replies]
