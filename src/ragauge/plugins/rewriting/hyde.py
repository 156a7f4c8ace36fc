"""`rewriter=hyde`: searches for passages made up by a chat model instead of the question."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pandas as pd

from ragauge.contract.checks import require_count, require_flag
from ragauge.contract.component import Tools
from ragauge.contract.errors import ConfigError
from ragauge.contract.identity import runtime
from ragauge.contract.option import CONF, option
from ragauge.contract.retrieval import Rewriter
from ragauge.llms.prompts import fill, load_prompt
from ragauge.retrieval.queries import written_by_llm
from ragauge.retrieval.searching import queries_frame
from ragauge.texts.words import has_words

PROMPTS = "ragauge.plugins.rewriting.prompts"
_BETWEEN = re.compile(r"^[ \t]*(?:[-*_=][ \t]*){3,}$", re.MULTILINE)
_LABEL = re.compile(r"^\W*passage(?:\s*\d+)?\s*:\W*", re.IGNORECASE)


@option("rewriter/hyde")
class HyDE(Rewriter):
    """Hypothetical passages as the query: texts in the form of an answer, right or not.

    One request per topic asks for all n_passages (the same request twice would be answered alike). They are one search.
    Dense retrievers take the mean of the vectors of the passages (as passages) and of the question (as a query).
    Lexical ones take the sum of the scores of all of these texts.
    with_question: whether the question is one of the texts, as in equation 8 of the paper.
    prompt: a text with $question and, if wanted, $n_passages, or a .txt file of it; None is the shipped one.
    For several passages it must ask for a line of --- between them.
    Source: Gao, Ma, Lin and Callan, Precise Zero-Shot Dense Retrieval without Relevance Labels, ACL 2023,
    arXiv:2212.10496.
    """

    component = "hyde"
    version = 2
    kind = "passages"
    uses = frozenset({"chat"})
    needs_chat = True
    union = "rrf"
    rrf_constant = 60

    n_passages: int = CONF
    with_question: bool = CONF
    prompt: str | None = CONF
    max_tokens: int | None = runtime(CONF)

    def __post_init__(self) -> None:
        require_count("rewriter.n_passages", self.n_passages)
        require_flag("rewriter.with_question", self.with_question)
        shipped = "hyde.txt" if self.n_passages == 1 else "hyde_several.txt"
        prompt = load_prompt(self.prompt, shipped, ("question",), ("n_passages",), "rewriter.prompt", PROMPTS)
        object.__setattr__(self, "prompt", prompt)  # the text is part of the identity

    def rewrite(
        self, topics: pd.DataFrame, run: pd.DataFrame | None, chunks: pd.DataFrame | None, tools: Tools
    ) -> pd.DataFrame:
        """One search per topic; MissingError if the LLM wrote no passage for any.

        `origin` is question or llm. A question without words is not asked about.
        """
        if tools.chat is None:
            raise ConfigError("rewriter=hyde needs an llm that is a chat model (ollama, openai)")
        asked = topics[[has_words(question) for question in topics["query"]]]
        found: dict[str, list[str]] = {}
        if len(asked):
            prompts = [
                fill(str(self.prompt), n_passages=str(self.n_passages), question=question)
                for question in asked["query"]
            ]
            passages = written_by_llm(tools.chat, prompts, self._passages, tools.store, "hyde", "hyde", "passages")
            found = dict(zip(asked["qid"], passages, strict=True))
        return queries_frame(
            row
            for qid, question in zip(topics["qid"], topics["query"], strict=True)
            for row in passage_rows(qid, question, found.get(qid, []), "llm", self.with_question)
        )

    def _passages(self, reply: str) -> list[str]:
        """The passages of a reply, without a leading label; a line of --- separates several."""
        parts = [reply] if self.n_passages == 1 else _BETWEEN.split(reply)
        texts = [_LABEL.sub("", part.strip()) for part in parts]
        return [text for text in texts if has_words(text)][: self.n_passages]


def passage_rows(
    qid: str, question: str, passages: Sequence[str], origin: str, with_question: bool
) -> list[dict[str, Any]]:
    """The rows of one search, all of weight 1: the question first if wanted, then the passages.

    Without a passage it is the question alone, as one whose rewrite failed (unless it has no words anyway).
    """
    row = {"qid": qid, "search": 0, "query": question}
    if not passages:
        return [{**row, "origin": "failed" if has_words(question) else "question"}]
    first = [{**row, "origin": "question"}] if with_question else []
    return [*first, *({**row, "query": text, "role": "passage", "origin": origin} for text in passages)]
