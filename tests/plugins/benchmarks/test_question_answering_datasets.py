"""A whole job over a file of each question-answering format: what topics lack is missing, nothing else."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from loader_files import json_lines
from processes import ROOT, run
from ragauge.contract.topics import is_unanswerable
from ragauge.datasets import FileSource
from ragauge.plugins.benchmarks.crag import CRAG
from ragauge.plugins.benchmarks.dpr import DPR
from ragauge.plugins.benchmarks.hotpotqa import TwoWikiMultihopQA
from ragauge.plugins.benchmarks.musique import MuSiQue
from ragauge.plugins.benchmarks.ragbench import RAGBench
from ragauge.plugins.benchmarks.squad import SQuAD
from ragauge.retrieval.chunkers import NoChunker
from ragauge.retrieval.retrievers import BM25
from same_outcomes import assert_same
from small_pipeline import SmallPipelines

HOTPOT = ROOT / "../shared/data/hotpot_train_100.json"
TOWER = "Anna built the tower. It stands high above Graz."
BRIDGE = "The bridge stands in Linz. It is made of stone."
WHO, WHERE, NONE = "Who built the tower?", "Where is the bridge?", "Who painted the tower?"


def as_json(file: Path, rows: Any) -> Path:
    file.write_text(json.dumps(rows), encoding="utf-8")
    return file


def squad(folder: Path) -> FileSource:
    def paragraph(context: str, *rows: Mapping[str, Any]) -> dict[str, Any]:
        return {"context": context, "qas": list(rows)}

    anna, linz = {"text": "Anna", "answer_start": 0}, {"text": "Linz", "answer_start": 21}
    tower = paragraph(
        TOWER,
        {"id": "who", "question": WHO, "answers": [anna]},
        {"id": "none", "question": NONE, "answers": [], "is_impossible": True},
    )
    bridge = paragraph(BRIDGE, {"id": "where", "question": WHERE, "answers": [linz]})
    whole = {"data": [{"title": "Town", "paragraphs": [tower, bridge]}]}
    return SQuAD(path=as_json(folder / "squad.json", whole))


def musique(folder: Path) -> FileSource:
    def row(qid: str, query: str, answer: str, supports: str, answerable: bool) -> dict[str, Any]:
        paragraphs = [
            {"idx": n, "title": "T", "paragraph_text": text, "is_supporting": answerable and text == supports}
            for n, text in enumerate((TOWER, BRIDGE))
        ]
        return {
            "id": qid,
            "question": query,
            "answer": answer,
            "answerable": answerable,
            "paragraphs": paragraphs,
        }

    rows = [
        row("2hop__1_2", WHO, "Anna", TOWER, True),
        row("2hop__3_4", WHERE, "Linz", BRIDGE, True),
        row("2hop__5_6", NONE, "Berta", "", False),
    ]
    return MuSiQue(path=json_lines(folder / "musique.jsonl", rows))


def twowiki(folder: Path) -> FileSource:
    context = [[text[:9], text.split(". ")] for text in (TOWER, BRIDGE)]
    rows = [
        {"_id": str(n), "question": query, "answer": answer, "supporting_facts": facts, "context": context}
        for n, (query, answer, facts) in enumerate(
            [(WHO, "Anna", [[TOWER[:9], 0]]), (WHERE, "Linz", [[BRIDGE[:9], 0]]), (NONE, None, [])]
        )
    ]
    return TwoWikiMultihopQA(path=as_json(folder / "2wiki.json", rows))


def dpr(folder: Path) -> FileSource:
    tower, bridge = ({"title": "T", "text": text, "passage_id": str(n)} for n, text in enumerate((TOWER, BRIDGE)))
    rows = [
        {"question": WHO, "answers": ["Anna"], "positive_ctxs": [tower], "hard_negative_ctxs": [bridge]},
        {"question": WHERE, "answers": ["in Linz", "Linz"], "positive_ctxs": [bridge]},
        {"question": NONE, "answers": ["Berta"], "positive_ctxs": []},
    ]
    return DPR(path=as_json(folder / "dpr.json", rows))


def crag(folder: Path) -> FileSource:
    found = [{"page_name": "P", "page_snippet": text} for text in (TOWER, BRIDGE)]
    rows = [
        {"interaction_id": str(n), "query": query, "answer": answer, "alt_ans": [], "search_results": found}
        for n, (query, answer) in enumerate([(WHO, "anna"), (WHERE, "linz"), (NONE, "invalid question")])
    ]
    return CRAG(path=json_lines(folder / "crag.jsonl.bz2", rows))


def ragbench(folder: Path) -> FileSource:
    texts = [TOWER, BRIDGE]
    sentences = [[[f"{n}{'ab'[m]}", one] for m, one in enumerate(text.split(". "))] for n, text in enumerate(texts)]
    rows = [
        {
            "id": str(n),
            "question": query,
            "documents": texts,
            "documents_sentences": sentences,
            "all_relevant_sentence_keys": keys,
        }
        for n, (query, keys) in enumerate([(WHO, ["0a"]), (WHERE, ["1a"]), (NONE, [])])
    ]
    return RAGBench(path=json_lines(folder / "ragbench.jsonl", rows))


# Of the three topics: how many have an IR score, and how many a verdict.
@pytest.mark.parametrize(
    ("written", "scored", "judged"),
    [
        (squad, 2, 3),
        (musique, 2, 3),
        (twowiki, 2, 2),
        (dpr, 2, 3),
        (crag, 0, 3),
        (ragbench, 2, 0),
    ],
)
def test_job_passes_whatever_topics_lack(
    tmp_path: Path,
    small: SmallPipelines,
    written: Callable[[Path], FileSource],
    scored: int,
    judged: int,
) -> None:
    source = written(tmp_path)
    job = small(32, (8, 32), dataset=source, chunker=NoChunker(), retriever=BM25(top_k=2))
    outcomes = job.outcomes
    assert len(job.frame("docs")) == 2
    assert len(outcomes) == len(job.frame("run").groupby("qid")) == 3
    assert int(outcomes["ir_score"].notna().sum()) == scored
    found = outcomes["ir_score"].dropna()
    assert np.all(found == 1)  # both documents are in the context
    assert int(outcomes["label"].notna().sum()) == judged
    unanswerable = int(is_unanswerable(job.frame("topics")).sum())
    assert unanswerable == (1 if written in (squad, musique, crag) else 0)


@pytest.mark.slow
@pytest.mark.skipif(not HOTPOT.is_file(), reason="the data is not here")
def test_a_job_of_hotpotqa_written_out_and_read_back(tmp_path: Path) -> None:
    data = [
        "dataset=hotpotqa",
        f"dataset.path={HOTPOT}",
        "chunker=none",
        "bootstrap=20",
    ]
    done = run(tmp_path, *data, "retriever=bm25", "llm=extractive", "judge=lexical", "n_tokens=300",
               "hydra.run.dir=live")  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert run(tmp_path, "export", "live").returncode == 0
    for name, more in (
        ("whole", ["experiment=recorded"]),
        ("same", [*data, "llm=recorded", "retriever=recorded"]),
    ):
        done = run(tmp_path, *more, "recorded.path=live/samples.jsonl", "judge=recorded", "n_tokens=2000",
                   "bootstrap=20", f"hydra.run.dir={name}")  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert_same(tmp_path / "live", tmp_path / name, ranked=name == "same")
