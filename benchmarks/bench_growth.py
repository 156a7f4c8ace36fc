"""How time, memory and disk of each stage grow with the corpus: 10,000 to 1,000,000 documents, 500 topics.

The documents and topics are those of the fictional world. Each stage runs in a process of its own with the
stages before it in the store, so that its peak memory is its own (beside the imports). Vectors come from a
hash of the text instead of a model, through the real cache of vectors: what a model takes is proportional to
the texts (bench_embedding.py). Prints a Markdown row for each stage.

`--documents 10000 100000` are the sizes (these without it; 1000000 is the largest), `--keep FOLDER` keeps the
stores there and goes on where an earlier call was ended.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from memory import Peak, status_mib

from ragauge.answering import NoLLM
from ragauge.answering.judges import NoJudge
from ragauge.contract.stages import Components
from ragauge.experiment.stages.pipeline import Pipeline
from ragauge.llms.chat_use import TheLLM
from ragauge.measures import Substring
from ragauge.plugins.fictional.source import FictionalWorld
from ragauge.retrieval.chunkers import SemanticChunker, TokenChunker
from ragauge.retrieval.compressors import NoCompressor
from ragauge.retrieval.embedders.sentence_transformers import SentenceTransformerEmbedder
from ragauge.retrieval.expanders import NoExpander
from ragauge.retrieval.order import RankOrder
from ragauge.retrieval.queries import NoRewriter
from ragauge.retrieval.rerankers import NoReranker
from ragauge.retrieval.retrievers import BM25, MMR, Sim
from ragauge.store import Store
from ragauge.texts.tokenizers import WordTokenizer

SIZES = (10_000, 100_000)
TOPICS, OF_A_KIND, DIMENSIONS = 500, 60, 384
SLOPE, GOAL_MIB = 1.1, 4096
# What is measured: a stage of the pipeline, and the chunker and retriever that it is of.
STAGES = {
    "dataset": ("dataset", "tokens", "bm25"),
    "chunks, 128 tokens": ("chunks", "tokens", "bm25"),
    "chunks, semantic": ("chunks", "semantic", "bm25"),
    "index, bm25": ("index", "tokens", "bm25"),
    "index, dense": ("index", "tokens", "sim"),
    "run, bm25": ("run", "tokens", "bm25"),
    "run, sim": ("run", "tokens", "sim"),
    "run, mmr": ("run", "tokens", "mmr"),
    "context": ("context", "tokens", "bm25"),
    "scores": ("scores", "tokens", "bm25"),
    "floor": ("floor", "tokens", "bm25"),
    "funnel, corpus": ("funnel_corpus", "tokens", "bm25"),
    "funnel": ("funnel", "tokens", "bm25"),
}


@dataclass(frozen=True)
class Hashed(SentenceTransformerEmbedder):
    """Vectors that a hash of the text makes; all else is the real embedder's."""

    def _encode(self, texts: Sequence[str], store: Store | None = None) -> np.ndarray:
        seeds = [int.from_bytes(hashlib.sha256(t.encode()).digest()[:8], "little") for t in texts]
        vectors = np.array(
            [np.random.Generator(np.random.SFC64(s)).random(DIMENSIONS, dtype=np.float32) for s in seeds]
        )
        vectors = vectors.reshape(-1, DIMENSIONS) - np.float32(0.5)
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def pipeline_of(folder: Path, n_docs: int, chunker: str, retriever: str) -> Pipeline:
    """A job over the world of so many documents, with its store in the folder."""
    components = Components(
        dataset=FictionalWorld(
            style="hard", documents=n_docs, pronouns=0, max_hops=4, questions=OF_A_KIND, types=(), limit=TOPICS
        ),
        chunker=SemanticChunker(max_tokens=None) if chunker == "semantic" else TokenChunker(128, 0),
        embedder=Hashed(),
        tokenizer=WordTokenizer(),
        rewriter=NoRewriter(),
        retriever={"bm25": BM25(), "sim": Sim(), "mmr": MMR()}[retriever],
        reranker=NoReranker(),
        expander=NoExpander(),
        compressor=NoCompressor(),
        order=RankOrder(),
        measure=Substring(),
        llm=NoLLM(),
        evaluator=TheLLM(),
        answers={},
        judge=NoJudge(),
    )
    return Pipeline(components, Store(folder), 1000, tuple(range(100, 1001, 100)))


def measure(folder: Path, n_docs: int, name: str) -> dict[str, Any]:
    """One stage in this process: its seconds, and its memory and disk in MiB."""
    stage, chunker, retriever = STAGES[name]
    pipeline = pipeline_of(folder, n_docs, chunker, retriever)
    vectors_before = _size(folder / "vectors")
    imports = status_mib(os.getpid(), "VmRSS")
    start = time.process_time()
    with Peak() as peak:
        entry = pipeline.entry(stage)
    processor = time.process_time() - start
    assert pipeline.made[-1:] == [stage], f"{stage} was in the store already"
    return {
        "seconds": pipeline.seconds[stage],
        "processor": processor,
        "imports": imports,
        "resident": peak.resident,
        "own": peak.own,
        "output": _size(entry.path),
        "vectors": _size(folder / "vectors") - vectors_before,
    }


def _size(folder: Path) -> float:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) / 2**20


def measured(folder: Path, n_docs: int, name: str) -> dict[str, Any]:
    """`measure` in a process of its own; what an earlier call found stands in `growth.json` of the folder."""
    notes = folder / "growth.json"
    known: dict[str, Any] = json.loads(notes.read_text()) if notes.is_file() else {}
    if name not in known:
        command = [sys.executable, __file__, "--stage", name, "--docs", str(n_docs), "--store", str(folder)]
        start = time.perf_counter()
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(f"{name}, {n_docs} documents: {done.stderr}")
        known[name] = json.loads(done.stdout.splitlines()[-1])
        notes.write_text(json.dumps(known, indent=1))
        took = time.perf_counter() - start
        print(f"{n_docs:,} {name}: {known[name]} ({took:.0f} s in all)", file=sys.stderr, flush=True)
    found: dict[str, Any] = known[name]
    return found


def table(sizes: Sequence[int], kept: Path) -> None:
    """Prints a row for every stage."""
    Substring().score(["some text"], "some other text", np.array([4, 15]))  # compiles the kernel, once
    found = {(name, n): measured(kept / str(n), n, name) for n in sizes for name in STAGES}
    print(
        f"{', '.join(f'{n:,}' for n in sizes)} documents, {TOPICS} topics, vectors of {DIMENSIONS} numbers "
        "by a hash of the text in place of a model. Processor: seconds of all threads, with what is read "
        f"of earlier stages; its slope is that of the logarithms from one size to the next (goal: {SLOPE}). "
        "Memory is that of the stage's process and its children, in MiB: what is its own, and with the pages "
        "of mapped files, which the kernel takes back at need. Disk: the output and new vectors in the cache."
        "\n"
    )
    print("| stage | seconds | processor | slope | own memory | with mapped files | disk, MiB |")
    print("|---|---|---|---|---|---|---|")
    for name in STAGES:
        rows = [found[name, n] for n in sizes]
        slopes = [
            math.log(b["processor"] / a["processor"]) / math.log(m / n)
            for a, b, n, m in zip(rows, rows[1:], sizes, sizes[1:], strict=False)
        ]
        cells = [
            ", ".join(f"{row['seconds']:,.1f}" for row in rows),
            ", ".join(f"{row['processor']:,.1f}" for row in rows),
            ", ".join(f"{slope:.2f}" for slope in slopes),
            ", ".join(f"{row['own']:,.0f}" for row in rows),
            ", ".join(f"{row['resident']:,.0f}" for row in rows),
            ", ".join(f"{row['output'] + row['vectors']:,.1f}" for row in rows),
        ]
        print(f"| {name} | {' | '.join(cells)} |")
    most = max(row["own"] for row in found.values())
    missed = "reached" if most < GOAL_MIB else "missed"
    print(f"\nThe most memory of its own: {most:,.0f} MiB (goal: under {GOAL_MIB:,}, {missed}).")


def main() -> None:
    """Prints the table, or measures one stage of it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--documents", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--stage", choices=STAGES)
    parser.add_argument("--docs", type=int)
    parser.add_argument("--store", type=Path)
    given = parser.parse_args()
    if given.stage is not None:
        print(json.dumps(measure(given.store, given.docs, given.stage)))
    elif given.keep is not None:
        given.keep.mkdir(parents=True, exist_ok=True)
        table(given.documents, given.keep)
    else:
        with tempfile.TemporaryDirectory() as scratch:
            table(given.documents, Path(scratch))


if __name__ == "__main__":
    main()
