"""`retriever=bm25` against rank_bm25, bm25s and FlashRAG: index, queries and P@1 on RAG Mini BioASQ.

13,314 passages, 500 questions, top 10. Indexing goes from texts to something that can be searched: a folder
for ours and FlashRAG, memory for the others. The questions are handed over together. All have English
stemming and stop words; rank_bm25 gets the words that bm25s makes. FlashRAG's path is bm25s (its other
choice, Pyserini, needs Java) with the index saved, mapped and searched by numba. Each keeps its own k1 and b.
Seconds of the processor, one thread: medians of 3 interleaved runs after one that compiles.
"""

from __future__ import annotations

import re
import tempfile
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from timing import interleaved, print_header, print_row

from ragauge.retrieval.retrievers import BM25

DATA = Path(__file__).resolve().parents[1] / "../shared/data"
TOP_K, RUNS = 10, 3
OURS, RANK_BM25, BM25S, FLASHRAG = "ours", "rank_bm25", "bm25s", "FlashRAG's path (bm25s)"

Engine = tuple[Callable[[], Any], Callable[[Any], list[str]]]
"""Builds an index; takes it and returns the docno of every question's first passage ("" without one)."""


def ours(passages: pd.DataFrame, questions: list[str], scratch: Path) -> Engine:
    part, tools = BM25(top_k=TOP_K), None
    topics = pd.DataFrame({"qid": [str(i) for i in range(len(questions))], "query": questions}, dtype="str")

    def index() -> Path:
        folder = Path(tempfile.mkdtemp(dir=scratch))
        part.build_index(passages, folder, tools)  # type: ignore[arg-type]
        return folder

    def search(folder: Path) -> list[str]:
        run = part.transformer(passages, folder, tools)(topics)  # type: ignore[arg-type]
        return run[run["rank"] == 0].set_index("qid")["docno"].reindex(topics["qid"], fill_value="").tolist()

    return index, search


def rank_bm25(passages: pd.DataFrame, questions: list[str], scratch: Path) -> Engine:
    import bm25s
    from rank_bm25 import BM25Okapi
    from Stemmer import Stemmer

    docnos = passages["docno"].to_numpy()

    def words(texts: list[str]) -> Any:
        stemmer = Stemmer("english")
        return bm25s.tokenize(texts, stopwords="en", stemmer=stemmer, return_ids=False, show_progress=False)

    def search(index: Any) -> list[str]:
        scores = (index.get_scores(query) for query in words(questions))
        return [docnos[np.argsort(-of_query, kind="stable")[:TOP_K]][0] for of_query in scores]

    return (lambda: BM25Okapi(words(passages["text"].tolist()))), search


def bm25s_plain(passages: pd.DataFrame, questions: list[str], scratch: Path) -> Engine:
    import bm25s
    from Stemmer import Stemmer

    stemmer, docnos = Stemmer("english"), passages["docno"].to_numpy()

    def index() -> Any:
        tokens = bm25s.tokenize(passages["text"].tolist(), stopwords="en", stemmer=stemmer, show_progress=False)
        retriever = bm25s.BM25()
        retriever.index(tokens, show_progress=False)
        return retriever

    def search(retriever: Any) -> list[str]:
        tokens = bm25s.tokenize(questions, stopwords="en", stemmer=stemmer, show_progress=False)
        found, _ = retriever.retrieve(tokens, k=TOP_K, show_progress=False)
        return docnos[found[:, 0]].tolist()

    return index, search


def flashrag(passages: pd.DataFrame, questions: list[str], scratch: Path) -> Engine:
    import bm25s
    from Stemmer import Stemmer

    stemmer = Stemmer("english")
    corpus = [{"id": docno, "contents": text} for docno, text in passages[["docno", "text"]].to_numpy()]

    def index() -> str:
        folder = tempfile.mkdtemp(dir=scratch)
        tokenizer = bm25s.tokenization.Tokenizer(stopwords="en", stemmer=stemmer)
        tokens = tokenizer.tokenize(passages["text"].tolist(), return_as="tuple", show_progress=False)
        retriever = bm25s.BM25(corpus=corpus, backend="numba")
        retriever.index(tokens, show_progress=False)
        retriever.save(folder, corpus=None, show_progress=False)
        return folder

    def search(folder: str) -> list[str]:
        retriever = bm25s.BM25.load(folder, mmap=True, load_corpus=False)
        retriever.corpus, retriever.backend = corpus, "numba"
        tokens = bm25s.tokenize(questions, stemmer=stemmer, show_progress=False)
        found, _ = retriever.retrieve(tokens, k=TOP_K, show_progress=False)
        return [hits[0]["id"] for hits in found]

    return index, search


ENGINES: dict[str, tuple[Callable[..., Engine], tuple[str, ...]]] = {
    OURS: (ours, ()),
    RANK_BM25: (rank_bm25, ("rank_bm25", "bm25s", "Stemmer")),
    BM25S: (bm25s_plain, ("bm25s", "Stemmer")),
    FLASHRAG: (flashrag, ("bm25s", "Stemmer")),
}


def main() -> None:
    """Prints the table."""
    if not (DATA / "rag_mini_texts.csv").exists():
        print(f"skipped: {DATA / 'rag_mini_texts.csv'} is not there")
        return
    texts = pd.read_csv(DATA / "rag_mini_texts.csv", dtype=str)
    passages = pd.DataFrame({"docno": texts["id"], "text": texts["text"]})
    rows = pd.read_csv(DATA / "rag_mini_questions_val.csv", dtype=str)
    questions = rows["question"].tolist()
    relevant = [set(re.findall(r"\d+", ids)) for ids in rows["text_ids"]]
    print_header("what", "ours", "theirs", "ratio", "agreement")
    with tempfile.TemporaryDirectory() as folder:
        engines: dict[str, Engine] = {}
        for name, (make, needs) in ENGINES.items():
            if all(find_spec(package) is not None for package in needs):
                engines[name] = make(passages, questions, Path(folder))
        for index, search in engines.values():
            search(index())
        building, indexes = interleaved({name: index for name, (index, _) in engines.items()}, RUNS, time.process_time)
        works = {
            name: (lambda search=search, built=indexes[name]: search(built)) for name, (_, search) in engines.items()
        }
        asking, first = interleaved(works, RUNS, time.process_time)
    precision = {
        name: np.mean([docno in truth for docno, truth in zip(docnos, relevant, strict=True)])
        for name, docnos in first.items()
    }
    for name in ENGINES:
        if name == OURS:
            continue
        if name not in engines:
            print_row(name, "", "not installed", "", "")
            continue
        agreement = f"P@1 {precision[OURS]:.3f}, theirs {precision[name]:.3f}"
        mine, theirs = building[OURS], building[name]
        what = f"index of {len(passages):,} passages: {name}"
        print_row(what, f"{mine:.2f} s", f"{theirs:.2f} s", f"{theirs / mine:.1f}x", agreement)
        mine, theirs = (1e3 * asking[side] / len(questions) for side in (OURS, name))
        what = f"{len(questions)} questions together, index opened: {name}"
        print_row(what, f"{mine:.2f} ms each", f"{theirs:.2f} ms each", f"{theirs / mine:.1f}x", agreement)


if __name__ == "__main__":
    main()
