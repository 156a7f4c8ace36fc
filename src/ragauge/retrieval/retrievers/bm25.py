"""`retriever=bm25`: the lexical baseline."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import pandas as pd

from ragauge.contract.checks import require_choice, require_count, require_number
from ragauge.contract.frames import Batches, batches_of, count_rows
from ragauge.contract.identity import later, runtime
from ragauge.contract.protocols import Tools
from ragauge.retrieval.retrievers import _pisa, _terrier
from ragauge.retrieval.retrievers._analysis import LANGUAGES, Analysis
from ragauge.retrieval.retrievers._ranking import (
    NO_ROWS,
    Hits,
    as_transformer,
    check_chunks,
    docno_order,
    rows_with_words,
    run_frame,
    top_hits,
)
from ragauge.texts.languages import AUTO, language_of_all, named_language

# An engine cannot build an index without one word (PISA ends the process); the file says that this is it.
_NO_WORDS = "no-words"
_LANGUAGE = "language"  # the file that says which one language=auto found
_WORD = re.compile(r"[0-9a-zA-Z]")
_CHOICES: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "pisa": {"stemmer": ("porter2", "krovetz", "none"), "stopwords": ("terrier", "lucene", "none")},
    "terrier": {"stemmer": ("porter2", "none"), "stopwords": ("terrier", "none")},
}


@dataclass(frozen=True)
class BM25:
    """BM25 over the chunks' texts. Text of any script is folded the same way on both sides (`fold`).

    language: english is stemmed and stopped by the engine. Texts of other languages are analysed before it
    sees them (`Analysis`): `stemmer` is then Snowball's of the language, and `stopwords` its list in
    ragauge.texts.words, unless they are none. auto is the language that most chunks are in. k1 >= 0, b in [0, 1].
    Stop words are left out of the queries; the documents' lengths count them under
    PISA, not under Terrier. Source: Robertson and Zaragoza, The Probabilistic Relevance Framework, 2009.
    """

    component: ClassVar[str] = "bm25"
    uses: ClassVar[frozenset[str]] = frozenset()
    reorder_after_cut: ClassVar[bool] = False
    space: ClassVar[str] = "lexical"
    indexes_batches: ClassVar[bool] = True
    search_columns: ClassVar[tuple[str, ...]] = ("docno",)

    top_k: int = 30
    k1: float = 0.9
    b: float = 0.4
    stemmer: Literal["porter2", "krovetz", "none"] = "porter2"
    stopwords: Literal["terrier", "lucene", "none"] = "terrier"
    engine: Literal["pisa", "terrier"] = "pisa"
    threads: int = runtime(1)
    language: str = later("english")

    def __post_init__(self) -> None:
        require_count("retriever.top_k", self.top_k)
        require_count("retriever.threads", self.threads)
        require_number("retriever.k1", self.k1, 0)
        require_number("retriever.b", self.b, 0, 1)
        require_choice("retriever.engine", self.engine, _CHOICES)
        for field, allowed in _CHOICES[self.engine].items():
            note = f"with engine={self.engine}"
            require_choice(f"retriever.{field}", getattr(self, field), allowed, note)
        object.__setattr__(self, "language", named_language("retriever.language", self.language, LANGUAGES))
        if not self._analysis.by_engine:
            for field, usual in (("stemmer", "porter2"), ("stopwords", "terrier")):
                note = f"with language={self.language} ({usual}: those of the language)"
                require_choice(f"retriever.{field}", getattr(self, field), (usual, "none"), note)

    def index_identity(self) -> Mapping[str, Any]:
        """Engine, stemmer and what else is written into its index."""
        written = ("k1", "b") if self.engine == "pisa" else ("stopwords",)
        fields = ("engine", "stemmer", *written)
        return {"index": "bm25", "version": 1, **{f: getattr(self, f) for f in fields}, **self._analysis.identity()}

    @property
    def _analysis(self) -> Analysis:
        return Analysis(self.language, self.stemmer != "none", self.stopwords != "none")

    def _analysis_in(self, folder: Path) -> Analysis:
        """The analysis of the texts of an index: that of the language which `language=auto` found."""
        file = folder / _LANGUAGE
        return replace(self._analysis, language=file.read_text()) if file.exists() else self._analysis

    def _by_engine(self, name: str, analysis: Analysis) -> str:
        """The engine's value of `stemmer` or `stopwords`: none where texts come to it analysed."""
        return str(getattr(self, name)) if analysis.by_engine else "none"

    def build_index(self, chunks: pd.DataFrame | Batches, folder: Path, tools: Tools | None = None) -> None:
        """Writes the engine's index; DataError if it holds fewer documents than there are chunks."""
        if isinstance(chunks, pd.DataFrame):
            check_chunks(chunks)
        if self.language == AUTO:
            found = language_of_all(text for some in batches_of(chunks) for text in some["text"])
            (folder / _LANGUAGE).write_text(found or "other")
        analysis, n_chunks = self._analysis_in(folder), count_rows(chunks)
        stemmer = self._by_engine("stemmer", analysis)

        def texts() -> Iterator[str]:
            return (analysis.document(text) for some in batches_of(chunks) for text in some["text"])

        if not any(map(_WORD.search, texts())):
            (folder / _NO_WORDS).touch()
        elif self.engine == "pisa":
            _pisa.build(texts(), n_chunks, folder, self.k1, self.b, stemmer, self.threads)
        else:
            _terrier.build(texts(), n_chunks, folder, stemmer, self._by_engine("stopwords", analysis))

    def transformer(
        self, chunks: pd.DataFrame, folder: Path, tools: Tools | None = None
    ) -> Callable[..., pd.DataFrame]:
        """Scores are the engine's; ties are broken by docno, at the cut-off, too.

        Topics with a column `query_parts` ([(text, weight), …]) are searched for that: a chunk's score is the
        weighted sum of those that it has for the texts.
        """
        if (folder / _NO_WORDS).exists():
            return as_transformer("BM25", lambda topics: run_frame(topics, chunks, NO_ROWS, NO_ROWS))
        searcher = self._searcher(folder, len(chunks))
        order = docno_order(chunks)
        analysed = self._analysis_in(folder).query

        def rank(topics: pd.DataFrame) -> pd.DataFrame:
            asked = [analysed(query) if isinstance(query, str) else "" for query in topics["query"]]
            queries = np.array(asked, dtype=object)
            ask: Callable[..., Hits] = searcher
            if "query_parts" in topics:  # of a rewriter
                ask = searcher.weighted
                for row, parts in enumerate(topics["query_parts"]):
                    queries[row] = [(analysed(text), weight) for text, weight in parts]
                topics = topics.drop(columns="query_parts")

            def search(rows: np.ndarray, depth: int) -> Hits:
                hits = ask(list(queries[rows]), depth)
                return hits._replace(topic=rows[hits.topic])

            hits = top_hits(search, rows_with_words(topics), order, self.top_k)
            return run_frame(topics, chunks, hits.topic, hits.chunk, score=hits.score)

        return as_transformer("BM25", rank)

    def _searcher(self, folder: Path, n_chunks: int) -> _pisa.Searcher | _terrier.Searcher:
        if self.engine == "terrier":
            return _terrier.Searcher(folder, n_chunks, self.k1, self.b)
        stemmer, stopwords = (self._by_engine(name, self._analysis_in(folder)) for name in ("stemmer", "stopwords"))
        return _pisa.Searcher(folder, n_chunks, self.k1, self.b, stemmer, stopwords, self.threads)
