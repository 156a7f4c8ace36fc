"""`retriever=bm25`: the lexical baseline."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd

from ragauge.contract.checks import require_choice, require_count, require_number
from ragauge.contract.component import Tools
from ragauge.contract.engine import LocalEngine
from ragauge.contract.frames import Batches, batches_of
from ragauge.contract.identity import later, runtime
from ragauge.contract.option import CONF, option
from ragauge.contract.retrieval import Retriever
from ragauge.retrieval.retrievers import _postings
from ragauge.retrieval.retrievers.ranking import (
    Hits,
    as_transformer,
    check_chunks,
    docno_order,
    rows_with_words,
    run_frame,
    top_hits,
)
from ragauge.texts.languages import AUTO, language_of_all, named_language
from ragauge.texts.terms import LANGUAGES, Analysis

_LANGUAGE = "language"  # the file that says which one language=auto found


@option("retriever/bm25")
class BM25(Retriever):
    """BM25 over the chunks' texts: the sum over a query's words w of weight(w) * count / (count + norm).

    count: how often the chunk holds w, or another word of the same stem. norm: k1 (1 - b + b length / mean length),
    lengths in words. A word that stands twice in the query counts twice. `formula` is the weight of a word
    in n of N chunks:

        lucene      log(1 + (N - n + 0.5) / (n + 0.5)); Lucene, Pyserini and bm25s have this one
        robertson   log((N - n + 0.5) / (n + 0.5)), and 0 for a word that more than half of the chunks hold
        atire       (k1 + 1) log(N / n)

    stemmer: snowball reduces words by the language's Snowball stemmer. stopwords: language leaves the language's stop
    words out of queries; in the chunks they stay, and count in their lengths. language: auto is the one that most
    chunks are in (`Analysis`). k1 >= 0, b in [0, 1]. threads: processes that index where chunks are many.
    Sources: Robertson and Zaragoza, The Probabilistic Relevance Framework, 2009. Kamphuis, de Vries, Boytsov and Lin,
    Which BM25 Do You Mean?, ECIR 2020, table 1.
    """

    component = "bm25"
    version = 2
    space = "lexical"
    indexes_batches = True
    search_columns = ("docno",)

    top_k: int = CONF
    formula: Literal["lucene", "robertson", "atire"] = CONF
    k1: float = CONF
    b: float = CONF
    stemmer: Literal["snowball", "none"] = CONF
    stopwords: Literal["language", "none"] = CONF
    threads: int = runtime(CONF)
    language: str = later("english")

    def __post_init__(self) -> None:
        require_count("retriever.top_k", self.top_k)
        require_count("retriever.threads", self.threads)
        require_choice("retriever.formula", self.formula, _postings.FORMULAS)
        require_number("retriever.k1", self.k1, 0)
        require_number("retriever.b", self.b, 0, 1)
        require_choice("retriever.stemmer", self.stemmer, ("snowball", "none"))
        require_choice("retriever.stopwords", self.stopwords, ("language", "none"))
        object.__setattr__(self, "language", named_language("retriever.language", self.language, LANGUAGES))

    def index_identity(self) -> Mapping[str, Any]:
        """The settings of the chunks' terms; an index serves every formula, k1, b and list of stop words."""
        return {"index": "bm25", "version": 2, **self._analysis.identity}

    @property
    def _analysis(self) -> Analysis:
        return Analysis(self.language, self.stemmer != "none", self.stopwords != "none")

    def _analysis_in(self, folder: Path) -> Analysis:
        """The analysis of an index's texts, with the language found by `language=auto`."""
        file = folder / _LANGUAGE
        return replace(self._analysis, language=file.read_text("utf-8")) if file.exists() else self._analysis

    def build_index(self, chunks: pd.DataFrame | Batches, folder: Path, tools: Tools | None = None) -> None:
        """Writes the index; DataError for a chunk without a text or a unique docno."""
        if isinstance(chunks, pd.DataFrame):
            check_chunks(chunks)
        if self.language == AUTO:
            found = language_of_all(text for some in batches_of(chunks) for text in some["text"])
            (folder / _LANGUAGE).write_text(found or "other", "utf-8")
        texts = (some["text"].tolist() for some in batches_of(chunks))
        engine = tools.engine if tools else LocalEngine()
        _postings.build(texts, folder, self._analysis_in(folder), engine, self.threads)

    def transformer(
        self, chunks: pd.DataFrame, folder: Path, tools: Tools | None = None
    ) -> Callable[..., pd.DataFrame]:
        """A transformer that breaks ties by docno, also at the cut-off.

        Topics with a column `query_parts` ([(text, weight), …]) are searched for that: a chunk's score is the
        weighted sum of those that it has for the texts.
        """
        searcher = _postings.Searcher(folder, len(chunks), self.k1, self.b, self.formula)
        order, analysis = docno_order(chunks), self._analysis_in(folder)

        def rank(topics: pd.DataFrame) -> pd.DataFrame:
            asked = [[(query, 1.0)] if isinstance(query, str) else [] for query in topics["query"]]
            if "query_parts" in topics:  # of a rewriter
                asked = topics["query_parts"].tolist()
                topics = topics.drop(columns="query_parts")
            queries = searcher.numbered([_weighted(parts, analysis) for parts in asked])

            def search(rows: np.ndarray, depth: int) -> Hits:
                hits = searcher([queries[row] for row in rows], depth)
                return hits._replace(topic=rows[hits.topic])

            hits = top_hits(search, rows_with_words(topics), order, self.top_k)
            return run_frame(topics, chunks, hits.topic, hits.chunk, score=hits.score)

        return as_transformer("BM25", rank)


def _weighted(parts: Sequence[tuple[str, float]], analysis: Analysis) -> Mapping[str, float]:
    """The terms of a query's texts, each with the sum of weights of its occurrences."""
    found: Counter[str] = Counter()
    for text, weight in parts:
        for term in analysis.of_query(text):
            found[term] += weight  # type: ignore[assignment]
    return found
