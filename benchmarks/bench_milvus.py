"""`retriever=milvus` over Milvus Lite against exact searches: the ten best, scores, questions a second.

Vectors of MiniLM against `sim`; words against BM25 by its formula over the whole collection, of the same
words. Both are what `ragauge.plugins.adapters.conformance.compare_to_exact` measures, after `check_retriever` has
passed. Over the shipped sample, or over a corpus of one's own:

    python benchmarks/bench_milvus.py --docs texts.csv --topics questions.csv --qid id --store store

--store is where vectors are kept; --questions are asked for vectors, --word-questions for words.
"""

from __future__ import annotations

import argparse
import re
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.sparse import csr_array
from timing import print_header, print_row

from ragauge.contract.component import Tools
from ragauge.contract.frames import as_frame
from ragauge.contract.retrieval import WithoutIndex
from ragauge.datasets import CsvDataset, SampleDataset
from ragauge.plugins.adapters.conformance import check_retriever, compare_to_exact
from ragauge.plugins.milvus.retriever import Milvus
from ragauge.retrieval.chunkers import NoChunker
from ragauge.retrieval.embedders import CachedEmbedder, SentenceTransformerEmbedder
from ragauge.retrieval.ranking import ranked
from ragauge.retrieval.retrievers import Sim
from ragauge.store import Store
from ragauge.texts.tokenizers import WordTokenizer

_WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class ExactWords(WithoutIndex):
    """BM25 of lower-cased words over the whole collection, without an index.

    A word's idf is log(1 + (N - n + 0.5) / (n + 0.5)), as Milvus has it.
    """

    top_k: int = 30
    k1: float = 1.2
    b: float = 0.75

    def transformer(self, chunks: pd.DataFrame, folder: Path, tools: Tools) -> Callable[..., pd.DataFrame]:
        """Topics to the best chunks by the formula."""
        counts = [Counter(_WORD.findall(text.lower())) for text in chunks["text"]]
        column = {word: i for i, word in enumerate(dict.fromkeys(w for count in counts for w in count))}
        length = np.array([count.total() for count in counts], dtype=float)
        row = np.repeat(np.arange(len(counts)), [len(count) for count in counts])
        words = np.array([column[w] for count in counts for w in count])
        tf = np.array([n for count in counts for n in count.values()], dtype=float)
        n = np.bincount(words, minlength=len(column))
        idf = np.log(1 + (len(counts) - n + 0.5) / (n + 0.5))
        norm = self.k1 * (1 - self.b + self.b * length / length.mean())
        weights = csr_array((idf[words] * tf * (self.k1 + 1) / (tf + norm[row]), (row, words)))

        def rank(topics: pd.DataFrame) -> pd.DataFrame:
            runs = []
            for qid, query in zip(topics["qid"], topics["query"], strict=True):
                asked = np.zeros(weights.shape[1])
                for word, times in Counter(_WORD.findall(query.lower())).items():
                    if word in column:
                        asked[column[word]] = times
                score = weights @ asked
                best = np.flatnonzero(score)
                run = pd.DataFrame({"qid": qid, "docno": chunks["docno"].iloc[best], "score": score[best]})
                runs.append(ranked(run, self.top_k))
            return pd.concat(runs, ignore_index=True)

        return rank


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--docs")
    parser.add_argument("--topics")
    parser.add_argument("--qid")
    parser.add_argument("--store")
    parser.add_argument("--questions", type=int, default=500)
    parser.add_argument("--word-questions", type=int, default=24)
    parser.add_argument("--only", default="", help="the rows whose names begin so")
    given = parser.parse_args()
    source: Any = SampleDataset()
    if given.docs:
        source = CsvDataset(name="corpus", docs=given.docs, topics=given.topics, qid_column=given.qid)
    data = source.load()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        store = Store(Path(given.store or folder / "store"))
        embedder = CachedEmbedder(SentenceTransformerEmbedder("all-MiniLM-L6-v2"), store.root)
        tools = Tools(store=store, embedder=embedder, tokenizer=WordTokenizer())
        chunks = NoChunker().chunk(as_frame(data.docs), tools)
        topics = data.topics[["qid", "query"]].head(given.questions)
        few = topics.head(given.word_questions)
        embedder.embed(chunks["text"].tolist())  # what is measured is the engine
        embedder.embed(topics["query"].tolist(), "query")
        print(f"{len(chunks):,} chunks, {len(topics)} questions ({len(few)} of words)\n")
        print_header(
            "what",
            "conforms",
            "top-10 overlap",
            "largest score error",
            "index",
            "first question",
            "questions/s",
        )
        hnsw: dict[str, Any] = {
            "index": "HNSW",
            "index_params": {"M": 16, "efConstruction": 200},
            "search_params": {"ef": 100},
        }
        for name, retriever, exact, asked in (
            ("dense, FLAT", Milvus(), Sim(), topics),
            ("dense, HNSW (M=16, ef=100)", Milvus(**hnsw), Sim(), topics),
            ("bm25", Milvus(mode="bm25"), ExactWords(), few),
            ("sim, for comparison", Sim(), Sim(), topics),
        ):
            if not name.startswith(given.only):
                continue
            own = folder / name
            check_retriever(retriever, own / "checked", tools, another_process=False)
            told = compare_to_exact(retriever, exact, chunks, asked, own / "compared", tools)
            print_row(
                name,
                "yes",
                f"{told['overlap_at_10']:.4f}",
                f"{told['score_error']:.1e}",
                f"{told['index_seconds']:.1f} s",
                f"{told['first_query_seconds']:.2f} s",
                f"{told['queries_per_second']:.1f}",
            )


if __name__ == "__main__":
    main()
