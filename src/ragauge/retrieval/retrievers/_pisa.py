"""BM25 by the PISA engine through pyterrier-pisa: no Java.

Documents are indexed under their row numbers, so that docnos may hold any character.
"""

from __future__ import annotations

import logging
import math
import os
import sys
import tempfile
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from ragauge.contract.errors import DataError
from ragauge.retrieval.retrievers._ranking import Hits

log = logging.getLogger(__name__)

# Sums the terms of every document in the same order: equal documents get equal scores, at any depth and
# number of threads, which the pruning algorithms do not promise; they save a third of the time.
_ALGORITHM = "ranked_or"
# Steps of a word's weight: a power of two, so that equal weights give what no weights give, to the last bit.
_WEIGHTS = 4096
_redirected = threading.Lock()


def build(texts: Iterable[str], n_texts: int, folder: Path, k1: float, b: float, stemmer: str, threads: int) -> None:
    """Writes the index and the files for this k1 and b, so that searching only ever reads.

    Raises DataError if PISA took in fewer documents than there are, and whatever reading the texts raises.
    """
    from pyterrier_pisa import PisaIndex

    failed: list[Exception] = []

    def documents() -> Iterator[dict[str, str]]:
        # A thread of PISA's reads them, which would print an error and go on with what it has.
        try:
            for row, text in enumerate(texts):
                yield {"docno": str(row), "text": text}
        except Exception as error:
            failed.append(error)

    with _quiet():
        index = PisaIndex(str(folder), text_field="text", stemmer=stemmer, stops="none", threads=threads)
        index.index(documents())
        if failed:
            raise failed[0]
        if index.num_docs() != n_texts:
            raise DataError(f"PISA indexed {index.num_docs()} of {n_texts} chunks")
        index.bm25(k1=k1, b=b)


class Searcher:
    """BM25 search over a built index."""

    def __init__(
        self, folder: Path, n_chunks: int, k1: float, b: float, stemmer: str, stopwords: str, threads: int
    ) -> None:
        from pyterrier_pisa import PisaIndex

        index = PisaIndex(str(folder), text_field="text", stemmer=stemmer, stops=stopwords)
        self._stemmer, self._stopwords = stemmer, stopwords
        if not index.built() or index.num_docs() != n_chunks:
            raise DataError(f"{folder} holds no PISA index of these {n_chunks} chunks")
        with _quiet():
            settings = {"k1": k1, "b": b, "query_algorithm": _ALGORITHM, "threads": threads}
            self._bm25: Any = index.bm25(**settings)
            self._weighted: Any = index.bm25(**settings, query_weighted=True, toks_scale=1.0)

    def __call__(self, queries: Sequence[str], depth: int) -> Hits:
        """The best `depth` hits of every query (by its place), in no particular order."""
        import pandas as pd

        self._bm25.num_results = depth
        return _hits(self._bm25.transform(pd.DataFrame({"qid": np.arange(len(queries)), "query": list(queries)})))

    def weighted(self, queries: Sequence[Sequence[tuple[str, float]]], depth: int) -> Hits:
        """As a call, for queries of several texts with weights: the weighted sum of the texts' scores.

        PISA takes whole numbers as the weights of words: a word's share of the query's largest weight is
        rounded to a 4,096th.
        """
        import pandas as pd

        self._weighted.num_results = depth
        whole, units = zip(*(_whole(self._words(parts)) for parts in queries), strict=True)
        hits = _hits(
            self._weighted.transform(pd.DataFrame({"qid": np.arange(len(queries)), "query_toks": list(whole)}))
        )
        return hits._replace(score=hits.score * np.array(units)[hits.topic])

    def _words(self, parts: Sequence[tuple[str, float]]) -> dict[str, float]:
        """The words of the texts with the sum of the weights of the texts that hold them, without stop words.

        Words of one stem are one, under one of their spellings: the engine stems them once more.
        """
        spelling: dict[str, str] = {}
        weights: dict[str, float] = {}
        for text, weight in parts:
            spelt = dict(zip(_tokens(text, self._stemmer), _tokens(text, "none"), strict=True))
            for stem in spelt.keys() - _stopword_stems(self._stopwords, self._stemmer):
                weights[stem] = weights.get(stem, 0.0) + weight
                spelling.setdefault(stem, spelt[stem])
        return {spelling[stem]: weights[stem] for stem in sorted(weights)}


def _whole(weights: Mapping[str, float]) -> tuple[dict[str, float], float]:
    """The weights as small whole numbers, and the unit that these are multiples of."""
    unit = max(weights.values(), default=0.0) / _WEIGHTS
    steps = {word: round(weight / unit) for word, weight in weights.items()}
    # The engine repeats a word as often as its weight says.
    common = math.gcd(*steps.values()) or 1
    return {word: float(step // common) for word, step in steps.items()}, unit * common


def _hits(found: Any) -> Hits:
    return Hits(
        found["qid"].to_numpy(np.int64),
        found["docno"].to_numpy(object).astype(np.int64),
        found["score"].to_numpy(np.float64),
    )


def _tokens(text: str, stemmer: str) -> list[str]:
    """The engine's own words of a text, in order."""
    from pyterrier_pisa import tokenize

    found: list[str] = tokenize(text, stemmer)
    return found


@lru_cache(maxsize=8)
def _stopword_stems(stopwords: str, stemmer: str) -> frozenset[str]:
    """The stems left out of queries: the engine drops a word whose stem is that of a stop word."""
    from pyterrier_pisa.stopwords import _STOPWORDS

    return frozenset(_tokens(" ".join(_STOPWORDS.get(stopwords, ())), stemmer))


@contextmanager
def _quiet() -> Iterator[None]:
    """Sends what C++ writes to file descriptors 1 and 2 to the debug log; to an error's notes if one comes.

    The descriptors belong to the whole process: one redirection at a time, undone whatever happens.
    """
    with _redirected, tempfile.TemporaryFile() as sink:
        sys.stdout.flush()
        sys.stderr.flush()
        saved = [(fd, os.dup(fd)) for fd in (1, 2)]
        try:
            for fd, _ in saved:
                os.dup2(sink.fileno(), fd)
            yield
        except Exception as error:
            error.add_note(_text(sink))
            raise
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            for fd, copy in saved:
                os.dup2(copy, fd)
                os.close(copy)
            if log.isEnabledFor(logging.DEBUG):
                log.debug("PISA: %s", _text(sink))


def _text(sink: Any) -> str:
    sink.seek(0)
    return str(sink.read().decode("utf-8", "replace"))
