"""`rewriter=prf`: pseudo-relevance feedback, which moves the question towards its hits; no LLM."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from ragauge.contract.checks import require, require_count, require_number
from ragauge.contract.component import Tools
from ragauge.contract.option import CONF, option
from ragauge.contract.retrieval import Rewriter
from ragauge.retrieval.searching import queries_frame
from ragauge.texts.words import FUNCTION_WORDS, has_words, words


@option("rewriter/prf")
class PRF(Rewriter):
    """The question's own best hits, taken as if they were relevant, become part of the query.

    fb_docs: how many of them. Dense retrievers search once with alpha times the question's vector plus beta
    times the mean of the hits' vectors (Rocchio without negative feedback, over embeddings).
    Lexical ones search with weighted words (RM3): the question's own, original_weight in all, and the
    fb_terms words of the relevance model of the hits, 1 - original_weight in all (`relevance_model`).
    Sources: Rocchio, Relevance Feedback in Information Retrieval, 1971. Li, Mourad, Zhuang, Koopman and Zuccon, Pseudo
    Relevance Feedback with Deep Language Models and Dense Retrievers, TOIS 2023. Abdul-Jaleel et al., UMass at TREC
    2004: Novelty and HARD.
    """

    component = "prf"
    version = 3
    kind = "feedback"
    feedback = True
    union = "rrf"
    rrf_constant = 60

    fb_docs: int = CONF
    fb_terms: int = CONF
    original_weight: float = CONF
    alpha: float = CONF
    beta: float = CONF

    def __post_init__(self) -> None:
        require_count("rewriter.fb_docs", self.fb_docs)
        require_count("rewriter.fb_terms", self.fb_terms)
        require_number("rewriter.original_weight", self.original_weight, 0, 1)
        require_number("rewriter.alpha", self.alpha, 0)
        require_number("rewriter.beta", self.beta, 0)
        require("rewriter.beta", self.beta, self.alpha + self.beta > 0, "numbers above 0 where alpha is 0")

    def rewrite(
        self, topics: pd.DataFrame, run: pd.DataFrame | None, chunks: pd.DataFrame | None, tools: Tools
    ) -> pd.DataFrame:
        """One search per topic, with separate rows for dense and lexical retrievers.

        `origin` is question or feedback; a topic whose question finds nothing has that alone, as failed.
        """
        assert run is not None
        assert chunks is not None
        best = run[run["rank"] < self.fb_docs].sort_values(["qid", "rank"], kind="stable")
        text = chunks.set_index("docno")["text"].loc[best["docno"].unique()]
        texts = dict(zip(text.index, text, strict=True))
        seen = {docno: _content(text) for docno, text in texts.items()}
        hits = dict(list(best.groupby("qid", sort=False)))
        return queries_frame(
            {"qid": qid, "search": 0, **row}
            for qid, question in zip(topics["qid"], topics["query"], strict=True)
            for row in (
                self._rows(question, hits[qid], texts, seen)
                if qid in hits
                else [{"query": question, "origin": "failed" if has_words(question) else "question"}]
            )
        )

    def _rows(
        self, question: str, hits: pd.DataFrame, texts: Mapping[str, str], seen: Mapping[str, list[str]]
    ) -> list[dict[str, Any]]:
        docnos = hits["docno"].tolist()
        asked = {"query": question, "origin": "question"}
        fed = {"origin": "feedback"}
        dense = [
            {**asked, "weight": self.alpha},
            *(
                {**fed, "query": texts[docno], "weight": self.beta / len(docnos), "role": "passage"}
                for docno in docnos
                if has_words(texts[docno])
            ),
        ]
        # A text's weight is that of each of its words, as often as they stand there.
        own = len(_content(question)) or 1
        model = relevance_model([seen[docno] for docno in docnos], hits["score"].tolist(), self.fb_terms)
        lexical = [
            {**asked, "weight": self.original_weight / own if model else 1.0},
            *({**fed, "query": term, "weight": (1 - self.original_weight) * share} for term, share in model.items()),
        ]
        return [
            {**row, "space": space}
            for space, rows in (("dense", dense), ("lexical", lexical))
            for row in rows
            if float(row["weight"]) > 0  # type: ignore[arg-type]
        ]


def relevance_model(docs: Sequence[Sequence[str]], scores: Sequence[float], n_terms: int) -> dict[str, float]:
    """The n_terms most probable words of the relevance model RM1 and their shares, which sum to 1.

    P(word) is the mean over the documents, weighted by their scores, of (occurrences) / (words of the
    document). Where a score is not above 0, as some fusions have them, documents count alike. docs: their
    words, in which those that are no terms are left out already. Equally probable words come in their order
    as strings. {} where no document has a word.
    """
    weights = list(scores) if min(scores, default=0.0) > 0 else [1.0] * len(docs)
    share: Counter[str] = Counter()
    for found, weight in zip(docs, weights, strict=True):
        for word, count in Counter(found).items():
            share[word] += weight * count / len(found)  # type: ignore[assignment]
    best = sorted(share.items(), key=lambda term: (-term[1], term[0]))[:n_terms]
    whole = sum(value for _, value in best)
    return {word: value / whole for word, value in best}


def _content(text: str) -> list[str]:
    """The possible terms of a text: no English function words, no single Latin letters."""
    return [word for word in words(text) if word not in FUNCTION_WORDS and (len(word) > 1 or not word.isascii())]
