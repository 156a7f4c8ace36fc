"""How BM25 grows with the corpus: `retriever=bm25`, bm25s, and PISA where it is installed (Linux on x86-64).

Passages have 80 words of a made vocabulary of 500,000, whose frequencies are Zipf's; the 300 most frequent are English
stop words. 500 questions have ten such words, and stop words are left out of them. Top 30, one thread. Every row is
measured in processes of its own. Seconds of the processor are those of all processes of the engine. Memory is what they
take for themselves, in MiB, beyond what there was after the imports. `--passages 200000 1000000` are the sizes (the
first without it), `--engines` some of the rows, `--keep FOLDER` keeps the corpora there.

Published elsewhere, of other machines with one thread (bm25s's README): over the 2.7 million passages of NQ bm25s,
which FlashRAG uses, takes 24 ms a question (4.4 GB of memory, 2.2 GB mapped), Elasticsearch (by Lucene, as Pyserini)
82 ms, rank_bm25 10 s.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from memory import Peak, status_mib
from timing import print_header, print_row

SIZES, MOST_IN_MEMORY = (200_000,), 200_000
TOP_K, BATCH = 30, 50_000
VOCABULARY, STOP_WORDS = 500_000, 300

Measured = tuple[Callable[[], Any], Callable[[], Any]]
"""Writes an index into a folder; opens it and returns the search of all questions."""


def generate(file: Path, n: int) -> None:
    """Writes n passages (docno, text) as Parquet, and the questions beside it; the same at every call."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from ragauge.texts.words import ENGLISH_STOP_WORDS

    rng = np.random.default_rng(n)
    frequent = sorted(word for word in ENGLISH_STOP_WORDS if word.isascii())[:STOP_WORDS]
    syllables = [a + b for a in "bcdfghklmnprstvw" for b in "aeiou"]
    made = ["".join(syllables[digit] for digit in np.unravel_index(i, (80, 80, 80))) for i in range(VOCABULARY)]
    words = np.array([*frequent, *made[: VOCABULARY - len(frequent)]], dtype=object)
    share = np.cumsum(1 / np.arange(1, VOCABULARY + 1))

    def texts(n_texts: int, n_words: int) -> list[str]:
        drawn = np.searchsorted(share, rng.random((n_texts, n_words)) * share[-1])
        return [" ".join(of_text) for of_text in words[drawn]]

    with pq.ParquetWriter(file, pa.schema({"docno": pa.string(), "text": pa.string()})) as writer:
        for start in range(0, n, BATCH):
            docnos = [f"d{row:07}" for row in range(start, min(n, start + BATCH))]
            writer.write_table(pa.table({"docno": docnos, "text": texts(len(docnos), 80)}))
    pd.DataFrame({"query": texts(500, 10)}).to_parquet(file.with_suffix(".questions"))


def batches(file: Path) -> Iterator[pd.DataFrame]:
    """The passages of a file, some at a time."""
    import pyarrow.parquet as pq

    for batch in pq.ParquetFile(file).iter_batches(BATCH):
        yield batch.to_pandas()


def ours(file: Path, folder: Path, questions: pd.DataFrame, processes: int = 1) -> Measured:
    from ragauge.contract.frames import Batches
    from ragauge.retrieval.retrievers import BM25

    part = BM25(top_k=TOP_K, threads=processes)
    passages = Batches(lambda: batches(file))

    def opened() -> Callable[[], Any]:
        docnos = pd.concat([batch[["docno"]] for batch in batches(file)], ignore_index=True)
        transformer = part.transformer(docnos, folder)
        return lambda: transformer(questions)

    return lambda: part.build_index(passages, folder), opened


def ours_by_four(file: Path, folder: Path, questions: pd.DataFrame) -> Measured:
    return ours(file, folder, questions, 4)


def pisa(file: Path, folder: Path, questions: pd.DataFrame, algorithm: str = "maxscore") -> Measured:
    from pyterrier_pisa import PisaIndex

    def index() -> None:
        made = PisaIndex(str(folder / "pisa"), text_field="text", threads=1)
        made.index(row for batch in batches(file) for row in batch.to_dict("records"))
        made.bm25(k1=0.9, b=0.4)

    def opened() -> Callable[[], Any]:
        made = PisaIndex(str(folder / "pisa"), text_field="text")
        bm25 = made.bm25(k1=0.9, b=0.4, num_results=TOP_K, query_algorithm=algorithm, threads=1)
        return lambda: bm25(questions)

    return index, opened


def pisa_exhaustive(file: Path, folder: Path, questions: pd.DataFrame) -> Measured:
    return pisa(file, folder, questions, "ranked_or")


def of_bm25s(file: Path, folder: Path, questions: pd.DataFrame) -> Measured:
    import bm25s
    from Stemmer import Stemmer

    words: dict[str, Any] = {"stopwords": "en", "stemmer": Stemmer("english"), "show_progress": False}

    def index() -> None:
        made = bm25s.BM25(k1=0.9, b=0.4, backend="numba")
        texts = [text for batch in batches(file) for text in batch["text"]]
        made.index(bm25s.tokenize(texts, **words), show_progress=False)
        made.save(str(folder / "bm25s"), show_progress=False)

    def opened() -> Callable[[], Any]:
        made = bm25s.BM25.load(str(folder / "bm25s"), mmap=True)
        made.backend = "numba"
        return lambda: made.retrieve(bm25s.tokenize(questions["query"].tolist(), **words), k=TOP_K, show_progress=False)

    return index, opened


ENGINES: dict[str, tuple[Callable[..., Measured], str]] = {
    "retriever=bm25": (ours, "ragauge"),
    "retriever=bm25, threads=4": (ours_by_four, "ragauge"),
    "PISA, ranked_or": (pisa_exhaustive, "pyterrier_pisa"),
    "PISA, maxscore": (pisa, "pyterrier_pisa"),
    "bm25s, numba": (of_bm25s, "bm25s"),
}


def measure(name: str, file: Path, folder: Path, step: str) -> dict[str, float]:
    """One step of an engine in this process: index, or search of an index that is there."""
    questions = pd.read_parquet(file.with_suffix(".questions"))
    questions.insert(0, "qid", [str(row) for row in range(len(questions))])
    index, opened = ENGINES[name][0](file, folder, questions)
    import pyterrier  # noqa: F401
    import scipy.sparse  # noqa: F401

    before = sum(status_mib(os.getpid(), kind) for kind in ("RssAnon", "RssShmem"))
    with Peak() as peak:
        if step == "search":
            search = opened()
            search()  # compiles, and reads what is mapped
        start, wall = _processor(), time.perf_counter()
        if step == "search":
            search()
        else:
            index()
        processor, wall = _processor() - start, time.perf_counter() - wall
    return {"processor": processor, "wall": wall, "own": peak.own - before, "questions": len(questions)}


def _processor() -> float:
    """Seconds of the processor that this process took, and the children that ended."""
    return time.process_time() + sum(os.times()[2:4])


def row(name: str, n: int, file: Path) -> None:
    """Measures and prints one row."""
    found: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for step in ("index", "search"):
            command = [
                sys.executable,
                __file__,
                "--engine",
                name,
                "--file",
                str(file),
                "--folder",
                folder,
                "--step",
                step,
            ]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                print_row(
                    f"{n:,}", name, f"{step} failed: {done.stderr.strip().splitlines()[-1][:80]}", "", "", "", "", ""
                )
                return
            found[step] = json.loads(done.stdout.splitlines()[-1])
        disk = sum(file.stat().st_size for file in Path(folder).rglob("*") if file.is_file()) / 2**20
    made, asked = found["index"], found["search"]
    print_row(
        f"{n:,}",
        name,
        f"{made['processor']:.1f} s",
        f"{made['wall']:.1f} s",
        f"{made['own']:,.0f}",
        f"{1e3 * asked['processor'] / asked['questions']:.3f} ms",
        f"{asked['own']:,.0f}",
        f"{disk:,.0f}",
    )


def main() -> None:
    """Prints the table, or measures one step of one engine."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--passages", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--engines", nargs="+", choices=ENGINES, default=list(ENGINES))
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--engine")
    parser.add_argument("--file", type=Path)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--step")
    given = parser.parse_args()
    if given.engine:
        print(json.dumps(measure(given.engine, given.file, given.folder, given.step)))
        return
    print_header(
        "passages", "engine", "index, processor", "index, by the clock", "its memory, MiB",
        "a question, processor", "memory of searching, MiB", "disk, MiB",
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as scratch:
        kept = given.keep or Path(scratch)
        kept.mkdir(parents=True, exist_ok=True)
        for n in given.passages:
            file = kept / f"{n}.parquet"
            if not file.is_file():
                generate(file, n)
            for name in given.engines:
                if name.startswith("bm25s") and n > MOST_IN_MEMORY:
                    print_row(f"{n:,}", name, "not run: all in memory", "", "", "", "", "")
                elif find_spec(ENGINES[name][1]) is None:
                    print_row(f"{n:,}", name, "not installed", "", "", "", "", "")
                else:
                    row(name, n, file)


if __name__ == "__main__":
    main()
