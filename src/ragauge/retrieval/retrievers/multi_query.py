"""`retriever=mlq`: the united hits of several queries per topic."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd

from ragauge.contract.checks import require_choice, require_count, require_number
from ragauge.contract.component import ChatModel, Tools
from ragauge.contract.errors import ConfigError
from ragauge.contract.identity import runtime
from ragauge.contract.option import CONF, option
from ragauge.llms.prompts import fill, load_prompt
from ragauge.retrieval.fusion import first_seen, reciprocal_rank_fusion
from ragauge.retrieval.queries import parse_queries, question_parts, with_question, written_by_llm
from ragauge.retrieval.ranking import ranks_within
from ragauge.retrieval.retrievers.dense import Dense, VectorIndex
from ragauge.retrieval.retrievers.ranking import NO_ROWS, Hits, as_transformer, rows_with_words, run_frame

log = logging.getLogger(__name__)


@option("retriever/mlq")
class MLQ(Dense):
    """The union of the vector index's hits for several queries of a topic.

    top_k: depth of each query's search; the union is kept whole, from top_k to queries * top_k chunks.
    queries: `llm` asks the chat model, `rules` takes the question apart (`question_parts`), `auto` is `llm`
    where there is a chat model and `rules` elsewhere. n_queries: how many of them at most.
    with_question: the question itself is searched for, too, as the first query.
    union: `rrf` orders by the sum over queries of 1 / (rrf_constant + rank + 1). `first_seen` takes all hits of the
        first query in order, then the new ones of the second, and so on, with score 1 / (rank + 1).
    prompt: a text with $question and, if wanted, $n_queries, or a .txt file of it; None is the shipped one.

    The run's column `queries` holds the origin of a topic's queries: llm, rules, or question (alone: the LLM's reply
    failed or held none). `similarity` is the highest cosine to any of them. Sources: LangChain's MultiQueryRetriever;
    Cormack et al., Reciprocal Rank Fusion, SIGIR 2009.
    """

    component = "mlq"
    takes_queries = False

    top_k: int = CONF
    queries: Literal["auto", "llm", "rules"] = CONF
    n_queries: int = CONF
    with_question: bool = CONF
    union: Literal["rrf", "first_seen"] = CONF
    rrf_constant: float = CONF
    prompt: str | None = CONF
    max_tokens: int | None = runtime(CONF)

    def __post_init__(self) -> None:
        require_count("retriever.top_k", self.top_k)
        require_count("retriever.n_queries", self.n_queries)
        require_choice("retriever.queries", self.queries, ("auto", "llm", "rules"))
        require_choice("retriever.union", self.union, ("rrf", "first_seen"))
        require_number("retriever.rrf_constant", self.rrf_constant, 0)
        prompt = load_prompt(self.prompt, "multi_query.txt", ("question",), ("n_queries",), key="retriever.prompt")
        object.__setattr__(self, "prompt", prompt)  # the text is part of the identity

    @property
    def uses(self) -> frozenset[str]:  # type: ignore[override]
        """The chat model, if it can be asked."""
        return Dense.uses if self.queries == "rules" else Dense.uses | {"chat"}

    def transformer(self, chunks: pd.DataFrame, folder: Path, tools: Tools) -> Callable[..., pd.DataFrame]:
        """The transformer; ConfigError for queries=llm without a chat model."""
        index = VectorIndex(folder, chunks, tools.engine)
        chat = None if self.queries == "rules" else tools.chat
        if self.queries == "llm" and chat is None:
            raise ConfigError(
                "retriever.queries='llm' needs an llm that is a chat model (ollama, openai); "
                "without one: rules, or auto"
            )

        def rank(topics: pd.DataFrame) -> pd.DataFrame:
            rows = rows_with_words(topics)
            if len(rows) == 0 or len(chunks) == 0:
                return run_frame(topics, chunks, NO_ROWS, NO_ROWS, similarity=np.empty(0), queries=[])
            queries, origin = self._queries(topics["query"].iloc[rows].tolist(), chat, tools)
            owner = np.repeat(rows, [len(of_topic) for of_topic in queries])
            texts = [query for of_topic in queries for query in of_topic]
            vectors = tools.embedder.embed(texts, "query").astype(np.float32, copy=False)
            united = self._unite(index.nearest(vectors, self.top_k), owner, index.order)
            return run_frame(
                topics,
                chunks,
                united["topic"].to_numpy(),
                united["chunk"].to_numpy(),
                score=united["score"].to_numpy(),
                similarity=united["cosine"].to_numpy(),
                queries=pd.Series(origin, index=rows).loc[united["topic"]].to_numpy(),
            )

        return as_transformer("MLQ", rank)

    def describe(self, tools: Tools) -> dict[str, str]:
        """The writer of the queries, for the record: llm or rules."""
        return {"queries": "rules" if self.queries == "rules" or tools.chat is None else "llm"}

    def requests(self, topics: pd.DataFrame) -> list[str]:
        """A request for the queries of each question with words; none by rules."""
        questions = topics["query"].iloc[rows_with_words(topics)] if self.queries != "rules" else []
        return [self._request(question) for question in questions]

    def _request(self, question: str) -> str:
        return fill(str(self.prompt), n_queries=str(self.n_queries), question=question)

    def _queries(self, questions: list[str], chat: ChatModel | None, tools: Tools) -> tuple[list[list[str]], list[str]]:
        """The queries of each question, at least one, and their origin."""
        if chat is None:
            log.info("mlq: no chat model is asked; queries are the questions' parts, by rules")
            found, origin = [question_parts(question) for question in questions], "rules"
        else:
            prompts = [self._request(question) for question in questions]
            found = written_by_llm(chat, prompts, parse_queries, tools.store, "mlq", "multi_query")
            origin = "llm"
        queries = [
            with_question(question, parts, self.n_queries, self.with_question)
            for question, parts in zip(questions, found, strict=True)
        ]
        return queries, [origin if parts or origin == "rules" else "question" for parts in found]

    def _unite(self, hits: Hits, owner: np.ndarray, order: np.ndarray) -> pd.DataFrame:
        """topic, chunk, score, cosine (the highest): one row per topic and chunk, in rank order.

        hits: those of the queries, in rank order; owner: the topic row of each query, ascending.
        """
        found = pd.DataFrame({"topic": owner[hits.topic], "chunk": hits.chunk, "cosine": hits.score})
        found["rank"] = ranks_within(hits.topic)
        by = ("topic", "chunk")
        cosine = found.groupby(list(by), sort=False)["cosine"].max()
        if self.union == "first_seen":
            return cosine.to_frame().assign(score=first_seen(found, by)).reset_index()
        score = reciprocal_rank_fusion(found, by, self.rrf_constant)
        united = cosine.to_frame().assign(score=score).reset_index()
        united = united.assign(docno=order[united["chunk"]])
        return united.sort_values(["topic", "score", "docno"], ascending=[True, False, True])
