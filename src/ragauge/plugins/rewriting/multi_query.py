"""`rewriter=multi_query`, `rag_fusion`, `decompose`: several queries for one question, each searched."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import pandas as pd

from ragauge.contract.checks import require_choice, require_count, require_flag, require_number
from ragauge.contract.component import Tools
from ragauge.contract.errors import ConfigError
from ragauge.contract.identity import runtime
from ragauge.contract.option import CONF, option
from ragauge.contract.retrieval import Rewriter
from ragauge.llms.prompts import fill, load_prompt
from ragauge.plugins.rewriting.hyde import PROMPTS
from ragauge.retrieval.queries import (
    parse_queries,
    question_parts,
    sub_questions,
    with_question,
    written_by_llm,
)
from ragauge.retrieval.searching import queries_frame
from ragauge.texts.words import has_words

log = logging.getLogger(__name__)


@option("rewriter/multi_query")
class MultiQuery(Rewriter):
    """Several queries per topic, each one search; the hits of all are united.

    queries: `llm` asks the chat model, `rules` takes the question apart (`question_parts`), `auto` is `llm`
    where there is a chat model and `rules` elsewhere. n_queries: how many of them at most.
    with_question: the question itself is searched for, too, as the first query.
    union: `rrf` orders by the sum over queries of 1 / (rrf_constant + rank + 1). `first_seen` takes all hits of the
        first query in order, then the new ones of the second, and so on.
    prompt: a text with $question and, if wanted, $n_queries, or a .txt file of it; None is the shipped one.
    Sources: LangChain's MultiQueryRetriever; Cormack et al., Reciprocal Rank Fusion, SIGIR 2009.
    """

    component = "multi_query"
    version = 2
    kind = "queries"
    shipped_prompt: ClassVar[tuple[str, str]] = ("ragauge.llms.prompts", "multi_query.txt")

    queries: Literal["auto", "llm", "rules"] = CONF
    n_queries: int = CONF
    with_question: bool = CONF
    union: Literal["rrf", "first_seen"] = CONF
    rrf_constant: float = CONF
    prompt: str | None = CONF
    max_tokens: int | None = runtime(CONF)

    def __post_init__(self) -> None:
        require_choice("rewriter.queries", self.queries, ("auto", "llm", "rules"))
        require_count("rewriter.n_queries", self.n_queries)
        require_flag("rewriter.with_question", self.with_question)
        require_choice("rewriter.union", self.union, ("rrf", "first_seen"))
        require_number("rewriter.rrf_constant", self.rrf_constant, 0)
        package, shipped = self.shipped_prompt
        prompt = load_prompt(self.prompt, shipped, ("question",), ("n_queries",), "rewriter.prompt", package)
        object.__setattr__(self, "prompt", prompt)  # the text is part of the identity

    @property
    def uses(self) -> frozenset[str]:  # type: ignore[override]
        """The chat model, if it can be asked."""
        return frozenset() if self.queries == "rules" else frozenset({"chat"})

    @property
    def needs_chat(self) -> bool:
        """Whether it requires a chat model."""
        return self.queries == "llm"

    def describe(self, tools: Tools) -> Mapping[str, str]:
        """The writer of the queries, for the record: llm or rules."""
        return {"queries": "rules" if self.queries == "rules" or tools.chat is None else "llm"}

    def rewrite(
        self, topics: pd.DataFrame, run: pd.DataFrame | None, chunks: pd.DataFrame | None, tools: Tools
    ) -> pd.DataFrame:
        """One search per query; MissingError if the LLM gave none for any topic.

        `origin` is question, llm or rules. A question without words is not asked about.
        """
        questions = topics["query"].tolist()
        asked = [row for row, question in enumerate(questions) if has_words(question)]
        chat = None if self.queries == "rules" else tools.chat
        if self.queries == "llm" and chat is None:
            raise ConfigError("rewriter.queries='llm' needs an llm that is a chat model (ollama, openai)")
        found: dict[int, list[str]] = {}
        if chat is not None and asked:
            prompts = [fill(str(self.prompt), n_queries=str(self.n_queries), question=questions[row]) for row in asked]
            texts = written_by_llm(chat, prompts, parse_queries, tools.store, self.component, self.component)
            found = dict(zip(asked, texts, strict=True))
        elif chat is None:
            log.info("%s: no chat model is asked; queries are the questions' parts, by rules", self.component)
            found = {row: self._by_rules(questions[row]) for row in asked}
        return queries_frame(
            row
            for place, (qid, question) in enumerate(zip(topics["qid"], questions, strict=True))
            for row in self._rows(qid, question, found.get(place), chat is not None)
        )

    @property
    def _by_rules(self) -> Callable[[str], list[str]]:
        return question_parts

    def _rows(self, qid: str, question: str, found: list[str] | None, by_llm: bool) -> list[dict[str, Any]]:
        """The rows of one topic; found: its written queries, None if none were requested."""
        if by_llm and found == []:
            return [{"qid": qid, "search": 0, "query": question, "origin": "failed"}]
        searched = with_question(question, found or [], self.n_queries, self.with_question)
        writer = "llm" if by_llm else "rules"
        return [
            {
                "qid": qid,
                "search": search,
                "query": query,
                "origin": "question" if query == question else writer,
            }
            for search, query in enumerate(searched)
        ]


@option("rewriter/rag_fusion")
class RagFusion(MultiQuery):
    """Queries by the chat model, each searched, their lists united by reciprocal rank fusion.

    As `MultiQuery`, with four queries, a prompt that asks for other points of view, and no other union.
    Source: Rackauckas, RAG-Fusion: a New Take on Retrieval-Augmented Generation, 2024, arXiv:2402.03367.
    """

    component = "rag_fusion"
    shipped_prompt: ClassVar[tuple[str, str]] = (PROMPTS, "rag_fusion.txt")

    queries: Literal["auto", "llm", "rules"] = CONF
    n_queries: int = CONF

    def __post_init__(self) -> None:
        super().__post_init__()
        require_choice("rewriter.union", self.union, ("rrf",), "with rewriter=rag_fusion")


@dataclass(frozen=True)
class Decompose(MultiQuery):
    """Sub-questions whose answers together answer the question, each searched.

    As `MultiQuery`; its prompt asks for questions that can be answered one by one, and its rules take the
    halves of a comparison and the clauses (`sub_questions`). A question that has no parts is searched itself.
    """

    component = "decompose"
    shipped_prompt: ClassVar[tuple[str, str]] = (PROMPTS, "decompose.txt")

    @property
    def _by_rules(self) -> Callable[[str], list[str]]:
        return sub_questions
