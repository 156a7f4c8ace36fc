"""A job over a corpus in batches: the same frames as over one in memory, which it never is."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from counted_progress import CountedProgress
from ragauge.contract.component import Tools
from ragauge.contract.frames import Batches
from ragauge.experiment.stages import documents
from ragauge.experiment.stages.pipeline import Pipeline
from ragauge.measures import Substring
from ragauge.measures.evidence_trail import in_corpus
from ragauge.measures.floor import floors
from ragauge.measures.questions import rarity
from ragauge.retrieval.chunkers import NoChunker, SemanticChunker
from ragauge.retrieval.retrievers import BM25, MLQ, MMR, Hybrid, NoRetrieval, Oracle, Sim
from ragauge.store import Store, _parquet
from ragauge.texts.tokenizers import WordTokenizer
from small_pipeline import DOCS, TOPICS, SmallPipelines
from whole import Whole

# Evidence that names no document, one that lies in another document than it names, and one that is nowhere.
ASKED = (
    *TOPICS,
    {"qid": "q4", "query": "Where do rivers end?", "answer": "sea", "evidence": [{"text": "reach the sea"}]},
    {
        "qid": "q5",
        "query": "What is made of stone?",
        "answer": "bridge",
        "evidence": [{"docno": "d1", "text": "It is made of stone."}, {"text": "no such words anywhere"}],
    },
)
HYBRID = Hybrid(arms=["bm25", "sim"], options={"bm25": BM25(), "sim": Sim()}, top_k=4, depth=5)
FRAMES = (
    "docs", "chunks", "run", "layouts", "prefixes", "scores", "part_scores", "floors", "evidence_in_corpus",
    "evidence_trail", "chunk_qrels", "derived", "contexts", "answers", "verdicts",
)  # fmt: skip


@pytest.mark.parametrize(
    "parts",
    [
        {},
        {"retriever": BM25(top_k=3)},
        {"retriever": MMR(top_k=2, fetch_k=4), "expander": Whole()},
        {"retriever": HYBRID},
        {"retriever": MLQ(top_k=2, queries="rules"), "expander": Whole(2)},
        {"retriever": Sim(top_k=3, index="hnsw"), "chunker": SemanticChunker(min_sentence_chars=5)},
        {"retriever": Oracle()},
        {"retriever": NoRetrieval()},
    ],
)
def test_a_job_in_batches_makes_the_frames_of_one_in_memory(
    small: SmallPipelines, monkeypatch: pytest.MonkeyPatch, parts: dict[str, Any]
) -> None:
    check_in_batches(small, monkeypatch, parts)


def check_in_batches(small: SmallPipelines, monkeypatch: pytest.MonkeyPatch, parts: dict[str, Any]) -> None:
    """A job of these parts makes the same frames in batches of two rows and in memory."""

    def made(folder: str, size: int | None) -> dict[str, pd.DataFrame]:
        if size is not None:
            monkeypatch.setattr(_parquet, "BATCH_ROWS", size)
        components = small.components(topics=ASKED, **parts)
        names = tuple(dict.fromkeys(["nDCG@10", "RR", "chunks:RR"]))
        job = Pipeline(components, Store(small.folder / folder), 8, (4, 8, 16), measures=names)
        assert isinstance(job.rows("docs"), Batches) == (size is not None)
        there = {name for stage in job.stages for name in stage.makes}
        return {name: job.frame(name) for name in FRAMES if name in there}

    expected = made("whole", None)
    assert len(expected["chunks"]) >= 4
    for name, frame in made("in-batches", 2).items():
        pd.testing.assert_frame_equal(frame, expected[name], obj=name)


@pytest.mark.parametrize("retriever", [Sim(top_k=3), BM25(top_k=3), HYBRID])
def test_no_stage_reads_all_documents_or_all_texts_of_chunks(
    small: SmallPipelines, monkeypatch: pytest.MonkeyPatch, retriever: Any
) -> None:
    monkeypatch.setattr(_parquet, "BATCH_ROWS", 2)
    real = Store._read_frame

    def refused(self: Store, entry: Any, name: str) -> pd.DataFrame:
        assert name not in ("docs", "chunks"), f"{name} was read as one frame"
        return real(self, entry, name)

    monkeypatch.setattr(Store, "_read_frame", refused)
    job = small(topics=ASKED, retriever=retriever, expander=Whole())
    assert len(job.verdicts) == len(ASKED)
    for name in ("floors", "evidence_trail", "scores"):
        assert len(job.frame(name))


def test_documents_are_chunked_a_batch_at_a_time_and_counted(
    small: SmallPipelines, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_parquet, "BATCH_ROWS", 2)
    monkeypatch.setattr(documents, "progress", counted := CountedProgress())
    sizes: list[int] = []

    class Noting(NoChunker):
        def chunk(self, docs: pd.DataFrame, tools: Tools) -> pd.DataFrame:
            sizes.append(len(docs))
            return super().chunk(docs, tools)

    docs = [{"docno": f"d{i}", "title": "", "text": f"Tower {i} is old."} for i in range(1, 6)]
    job = small(docs=docs, topics=TOPICS, chunker=Noting())
    assert len(job.frame("chunks")) == 5
    assert sizes == [2, 2, 1]
    assert counted.done == {"chunking": (5, 5)}


@pytest.mark.parametrize("size", [1, 2, 3])
def test_measures_of_a_corpus_in_batches_are_those_of_its_frame(tools: Tools, size: int) -> None:
    docs = pd.DataFrame(DOCS).astype("str")
    chunks = NoChunker().chunk(docs, tools)
    rows = [(t["qid"], i, p.get("docno"), p["text"]) for t in ASKED for i, p in enumerate(t["evidence"])]
    evidence = pd.DataFrame(rows, columns=["qid", "part", "docno", "text"])
    topics = pd.DataFrame([{"qid": t["qid"], "query": t["query"]} for t in ASKED])

    def cut(frame: pd.DataFrame) -> Batches:
        return Batches(lambda: iter([frame.iloc[at : at + size] for at in range(0, len(frame), size)]))

    found = in_corpus(Substring(), evidence, cut(docs), cut(chunks))
    pd.testing.assert_frame_equal(found, in_corpus(Substring(), evidence, docs, chunks))
    assert found["corpus"].tolist()[:5] == [1, 1, 1, 1, 1]
    assert found["holders"].tolist()[:5] == ["d1%p0", "d2%p0", "d3%p0", "d4%p0", "d2%p0"]
    whole = floors(Substring(), evidence, chunks, WordTokenizer(), [4, 8])
    pd.testing.assert_frame_equal(floors(Substring(), evidence, cut(chunks), WordTokenizer(), [4, 8]), whole)
    pd.testing.assert_series_equal(rarity(topics, cut(docs)), rarity(topics, docs))


def test_an_index_of_texts_that_cannot_be_read_says_why(tmp_path: Path) -> None:
    def broken() -> Iterator[pd.DataFrame]:
        yield pd.DataFrame({"docno": ["d1%p0"], "text": ["a tower"]})
        raise OSError("the disk is gone")

    with pytest.raises(OSError, match="the disk is gone"):
        BM25().build_index(Batches(broken), tmp_path)


_CHUNKING = """
import sys
from pathlib import Path
import pandas as pd
from ragauge.contract.frames import Batches
from ragauge.contract.datasets import Dataset
from ragauge.answering import NoLLM
from ragauge.answering.judges import NoJudge
from ragauge.contract.datasets import Source
from ragauge.experiment.stages.pipeline import Pipeline
from small_pipeline import SmallPipelines
from ragauge.retrieval.chunkers import NoChunker
from ragauge.retrieval.retrievers import NoRetrieval

class Long(Source):
    name = "long"
    def identity(self):
        return {"long": 1}
    def files(self):
        return {}
    def load(self):
        def batches():
            for first in range(0, 200_000, 5_000):
                docnos = [f"d{i}" for i in range(first, first + 5_000)]
                yield pd.DataFrame(
                    {"docno": docnos, "title": "", "text": [d + " word" * 250 for d in docnos]}
                ).astype("str")
        topics = pd.DataFrame({"qid": ["q1"], "query": ["a word"], "answer": ["word"]}).astype("str")
        evidence = pd.DataFrame({"qid": ["q1"], "part": [0], "docno": ["d1"], "text": ["d1 word"]})
        return Dataset(Batches(batches), topics, evidence.astype({"qid": "str", "docno": "str"}))

def peak(name):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) // 1024 for line in lines if line.startswith(name))

parts = {"chunker": NoChunker(), "retriever": NoRetrieval(), "dataset": Long(), "llm": NoLLM(),
         "judge": NoJudge()}
job = SmallPipelines(Path(sys.argv[1]), None)(**parts)
job.entry("dataset")
before = peak("VmRSS")
job.entry("chunks")
print(peak("VmHWM") - before)
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").is_file(), reason="memory is read from /proc, as Linux has it")
def test_chunking_a_quarter_of_a_gigabyte_takes_less_memory_than_that(tmp_path: Path) -> None:
    """200,000 documents of 1,250 characters: 48 MiB more than before, where reading them whole took 972."""
    paths = os.pathsep.join(sys.path)  # the tests' own modules are on it
    done = subprocess.run(
        [sys.executable, "-c", _CHUNKING, str(tmp_path)], capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": paths},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert int(done.stdout.splitlines()[-1]) < 400
