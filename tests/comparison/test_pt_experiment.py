"""PyTerrier's own experiment over `retriever=bm25` gives the measures that a job gives."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pyterrier as pt
import pytest
from ir_measures import RR, P, nDCG

from golden import jobs


def document_of(run: pd.DataFrame) -> pd.DataFrame:
    """The run with documents in the place of chunks."""
    return run.assign(docno=run["docno"].str.partition("%p")[0])


def test_an_experiment_of_pyterrier_gives_the_measures_of_a_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(
        jobs.JOBS, "sample", ("dataset=sample", "retriever=bm25", "chunker=none", "llm=none", "judge=none")
    )
    with jobs.pipeline("sample", tmp_path) as (job, _):
        own = job.outcomes[["ndcg_at_10", "rr", "p_at_1"]].mean()
        bm25 = job.components.retriever.transformer(job.frame("chunks"), job.folder_of("index"))
        qrels = job.frame("evidence")[["qid", "docno"]].dropna().drop_duplicates().assign(label=1)
        questions = job.frame("topics")[["qid", "query"]]
        table = pt.Experiment([bm25 >> pt.apply.generic(document_of)], questions, qrels, [nDCG @ 10, RR, P @ 1])
    assert len(questions) > 100
    assert table[["nDCG@10", "RR", "P@1"]].iloc[0].tolist() == pytest.approx(own.tolist(), abs=1e-9)
    assert 0.5 < own["ndcg_at_10"] < 1
