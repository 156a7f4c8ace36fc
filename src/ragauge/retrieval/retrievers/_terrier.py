"""BM25 by Terrier itself, through PyTerrier: needs Java and Terrier's jars on this machine."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ragauge.contract.errors import ConfigError, DataError
from ragauge.retrieval.retrievers._ranking import Hits

_JARS = ("terrier-assemblies-*-jar-with-dependencies.jar", "terrier-python-helper-*.jar")
_NO_OPERATOR = re.compile(r"[^0-9A-Za-z]+")
_STEMMERS = {"porter2": "EnglishSnowballStemmer", "none": "none"}


def build(texts: Iterable[str], n_texts: int, folder: Path, stemmer: str, stopwords: str) -> None:
    """Writes a Terrier index of the texts, named by their row numbers."""
    pt = _pyterrier()
    indexer = pt.terrier.IterDictIndexer(
        str(folder.resolve()), meta={"docno": 20}, text_attrs=["text"], stemmer=_STEMMERS[stemmer], stopwords=stopwords
    )
    indexer.index({"docno": str(row), "text": text} for row, text in enumerate(texts))
    _check(pt.terrier.IndexFactory.of(str(folder.resolve())), n_texts, folder)


class Searcher:
    """BM25 search over a built index."""

    def __init__(self, folder: Path, n_chunks: int, k1: float, b: float) -> None:
        self._pt = _pyterrier()
        self._index = self._pt.terrier.IndexFactory.of(str(folder.resolve()))
        _check(self._index, n_chunks, folder)
        self._controls = {"bm25.k_1": str(k1), "bm25.b": str(b)}

    def __call__(self, queries: Sequence[str], depth: int) -> Hits:
        """The best `depth` hits of every query (by its place), in no particular order."""
        bm25 = self._pt.terrier.Retriever(self._index, wmodel="BM25", num_results=depth, controls=dict(self._controls))
        # Terrier's query language gives punctuation a meaning.
        words = [_NO_OPERATOR.sub(" ", query) for query in queries]
        found = bm25(pd.DataFrame({"qid": [str(row) for row in range(len(words))], "query": words}))
        return Hits(
            found["qid"].to_numpy(object).astype(np.int64),
            found["docno"].to_numpy(object).astype(np.int64),
            found["score"].to_numpy(np.float64),
        )

    def weighted(self, queries: Sequence[Sequence[tuple[str, float]]], depth: int) -> Hits:
        """As a call, for queries of several texts of one weight, joined; ConfigError for unequal weights."""
        if any(len({weight for _, weight in parts}) > 1 for parts in queries):
            raise ConfigError(
                "retriever.engine='terrier': this rewriter gives its texts unequal weights, "
                "which engine=pisa alone takes"
            )
        return self([" ".join(text for text, _ in parts) for parts in queries], depth)


def _check(index: Any, n_chunks: int, folder: Path) -> None:
    if len(index) != n_chunks:
        raise DataError(f"{folder}: Terrier indexed {len(index)} of {n_chunks} chunks")


def _pyterrier() -> Any:
    """PyTerrier with Java started from the jars at hand; ConfigError says what is not there."""
    home = Path(os.environ.get("PYTERRIER_HOME") or Path.home() / ".pyterrier")
    missing = [str(home / jar) for jar in _JARS if not any(home.glob(jar))]
    if not os.environ.get("JAVA_HOME") and shutil.which("java") is None:
        missing.insert(0, "Java 11 or newer (java on the PATH, or JAVA_HOME)")
    if missing:
        raise ConfigError(
            f"retriever.engine='terrier' needs what is not here: {'; '.join(missing)}. "
            "PYTERRIER_HOME names the folder of the jars. engine=pisa needs neither."
        )
    import pyterrier as pt

    if not pt.java.started():
        pt.java.mavenresolver.offline()
        pt.java.init()
    return pt
