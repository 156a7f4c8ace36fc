"""How time and memory of each stage grow with the corpus: 25,000 and 100,000 documents, 500 topics.

The passages of a real collection are repeated, each time with every eighth word taken from another passage.
Each stage runs in a process of its own with the stages before it in the store, so that its peak memory is
its own (beside the imports). Vectors come from a hash instead of a model, through the real cache of vectors:
what the model takes is proportional to the texts (bench_embedding.py). Prints a Markdown row each.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import resource
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from ragauge.answering import NoLLM
from ragauge.answering.judges import NoJudge
from ragauge.contract.identity import runtime
from ragauge.contract.protocols import Dataset
from ragauge.datasets import CsvDataset
from ragauge.experiment.pipeline import Parts, Pipeline
from ragauge.measures import Substring
from ragauge.retrieval.chunkers import SemanticChunker, TokenChunker
from ragauge.retrieval.embedders.sentence_transformers import SentenceTransformerEmbedder
from ragauge.retrieval.retrievers import BM25, MMR, Sim
from ragauge.store import Store
from ragauge.texts.tokenizers import WordTokenizer

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
SIZES = (25_000, 100_000)
TOPICS, DIMENSIONS = 500, 384
# What is measured: a stage of the pipeline, and the parts that matter for it.
STAGES = {
    "dataset": ("dataset", "tokens", "bm25"),
    "chunks, semantic": ("chunks", "semantic", "bm25"),
    "chunks, 100 tokens": ("chunks", "tokens", "bm25"),
    "index, bm25": ("index", "tokens", "bm25"),
    "index, dense": ("index", "tokens", "sim"),
    "run, bm25": ("run", "tokens", "bm25"),
    "run, sim": ("run", "tokens", "sim"),
    "run, mmr": ("run", "tokens", "mmr"),
    "context": ("context", "tokens", "bm25"),
    "scores": ("scores", "tokens", "bm25"),
}


@dataclass(frozen=True)
class Grown:
    """The passages of the collection, repeated and altered up to `n_docs` documents."""

    version: ClassVar[int] = 1

    n_docs: int
    name: str = runtime("grown")

    def files(self) -> Mapping[str, Path]:
        return {"docs": DATA / "rag_mini_texts.csv", "topics": DATA / "rag_mini_questions_val.csv"}

    def load(self) -> Dataset:
        files = self.files()
        data = CsvDataset(
            name="rag_mini", docs=files["docs"], topics=files["topics"], qid_column="id", limit=TOPICS
        ).load()
        words = [np.array(text.split(), dtype=object) for text in data.docs["text"]]
        others = np.concatenate(words)
        rng = np.random.default_rng(0)
        grown = []
        for copy in range(-(-self.n_docs // len(words))):
            texts = []
            for i, text in enumerate(words):
                # With two neighbours' texts: about 120 words, where the passages have 40.
                altered = np.concatenate([text, words[i - 1], words[i - 2]])
                if copy:
                    altered[::8] = others[rng.integers(len(others), size=len(altered[::8]))]
                texts.append(" ".join(altered))
            docno = data.docs["docno"] + (f"-{copy}" if copy else "")
            grown.append(data.docs.assign(docno=docno, text=texts))
        docs = pd.concat(grown, ignore_index=True).head(self.n_docs)
        return Dataset(docs, data.topics, data.evidence)


@dataclass(frozen=True)
class Hashed(SentenceTransformerEmbedder):
    """Vectors that a hash of the text makes; all else is the real embedder's."""

    def _encode(self, texts: Sequence[str], store: Store | None = None) -> np.ndarray:
        seeds = [int.from_bytes(hashlib.sha256(t.encode()).digest()[:8], "little") for t in texts]
        vectors = np.array([np.random.Generator(np.random.SFC64(s)).random(DIMENSIONS) for s in seeds])
        vectors = vectors.reshape(-1, DIMENSIONS).astype(np.float32) - np.float32(0.5)
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def measure(folder: Path, n_docs: int, name: str) -> dict[str, Any]:
    """One stage in this process: seconds, peak memory in MiB, and how large its output is."""
    stage, chunker, retriever = STAGES[name]
    parts = Parts(
        dataset=Grown(n_docs),
        chunker=SemanticChunker(max_tokens=None) if chunker == "semantic" else TokenChunker(100, 0),
        embedder=Hashed(),
        tokenizer=WordTokenizer(),
        retriever={"bm25": BM25(), "sim": Sim(), "mmr": MMR()}[retriever],
        measure=Substring(),
        llm=NoLLM(),
        judge=NoJudge(),
    )
    pipeline = Pipeline(parts, Store(folder), 1000, tuple(range(100, 1001, 100)))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    entry = getattr(pipeline, stage)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert pipeline.made[-1] == stage, f"{stage} was in the store already"
    return {
        "seconds": pipeline.seconds[stage],
        "imports": before / 1024,
        "peak": peak / 1024,
        "output": sum(file.stat().st_size for file in entry.path.rglob("*") if file.is_file()) / 2**20,
    }


def main() -> None:
    """Prints the table."""
    if not DATA.is_dir():
        print("skipped: the collection is not here")
        return
    found: dict[tuple[str, int], dict[str, Any]] = {}
    with tempfile.TemporaryDirectory() as scratch:
        for n_docs in SIZES:
            for name in STAGES:
                command = [sys.executable, __file__, "--stage", name, "--docs", str(n_docs)]
                folder = Path(scratch) / str(n_docs)
                done = subprocess.run([*command, "--store", str(folder)], capture_output=True, text=True)
                if done.returncode:
                    sys.exit(f"{name}, {n_docs} documents: {done.stderr}")
                found[name, n_docs] = json.loads(done.stdout.splitlines()[-1])
    small, large = SIZES
    print(f"| stage | {small:,} documents | {large:,} documents | grows by | peak memory | output |")
    print("|---|---|---|---|---|---|")
    for name in STAGES:
        a, b = found[name, small], found[name, large]
        print(
            f"| {name} | {a['seconds']:.2f} s | {b['seconds']:.2f} s | {b['seconds'] / a['seconds']:.1f}x | "
            f"{a['peak']:,.0f} and {b['peak']:,.0f} MiB | {a['output']:,.0f} and {b['output']:,.0f} MiB |"
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--stage", choices=STAGES)
    parser.add_argument("--docs", type=int)
    parser.add_argument("--store", type=Path)
    given = parser.parse_args()
    if given.stage is None:
        main()
    else:
        print(json.dumps(measure(given.store, given.docs, given.stage)))
