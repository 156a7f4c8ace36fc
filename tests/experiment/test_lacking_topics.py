"""Sweeps over topics that lack evidence, a reference or an answer in the documents."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from processes import run

SAMPLE = Path(__file__).resolve().parents[2] / "src/ragauge/datasets/sample"


def questions() -> list[dict]:
    lines = (SAMPLE / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines[:48]]


def mixed() -> list[dict]:
    """Of every four topics one lacks evidence, one a reference, one is unanswerable, one is whole."""
    rows = questions()
    for number, row in enumerate(rows):
        if number % 4 == 0:
            del row["evidence"]
        elif number % 4 == 1:
            del row["answer"]
        elif number % 4 == 2:
            del row["answer"]
            row["unanswerable"] = True
    return rows


def swept(folder: Path, topics: list[dict], *more: str) -> tuple[list[dict], str, str]:
    (folder / "topics.jsonl").write_text("\n".join(map(json.dumps, topics)), encoding="utf-8")
    done = run(
        folder, "-m", "dataset=jsonl", f"dataset.docs={SAMPLE / 'corpus.jsonl'}",
        "dataset.topics=topics.jsonl", "retriever=bm25,none", "n_tokens=100,300", "n_grid=[100,300]",
        "chunker=none", "answers=[contains]", "bootstrap=50", "hydra.sweep.dir=sweep", *more,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    records = [json.loads(file.read_text()) for file in sorted((folder / "sweep").glob("*/job.json"))]
    page = next(folder.glob("mlruns/**/report.html")).read_text(encoding="utf-8")
    return records, done.stdout + done.stderr, page


def only(records: list[dict], retriever: str, n: int) -> dict:
    found = [r for r in records if r["choices"]["retriever"] == retriever and r["n_tokens"] == n]
    assert len(found) == 1
    return found[0]


@pytest.mark.slow
def test_what_lacks_something_is_counted_and_left_out_of_that_alone(tmp_path: Path) -> None:
    records, said, page = swept(tmp_path, mixed())
    record = only(records, "bm25", 300)
    metrics = record["metrics"]
    lack = ("topics_without_evidence", "topics_without_reference", "topics_unanswerable")
    assert [metrics[name] for name in ("topics", *lack)] == [48, 12, 12, 12]
    rows = pd.read_parquet(tmp_path / "sweep" / str(record["number"]) / "outcomes.parquet")
    kind = rows.index.to_series().mod(4)
    assert rows["ir_score"].notna().equals(kind.isin([1, 3]))
    assert rows["judge_status"].eq("no reference").equals(kind.eq(1))
    assert rows["label"].notna().equals(kind.ne(1))
    assert metrics["ir_score"] == pytest.approx(rows["ir_score"].mean())
    classed = rows[kind.isin([0, 3])]
    assert metrics["correct_share"] == pytest.approx(classed["label"].eq(5).mean())
    assert metrics["judge_share_missing"] == 0
    assert metrics["rejection_share"] == pytest.approx(rows[kind.eq(2)]["label"].eq(1).mean())
    assert only(records, "none", 300)["metrics"]["rejection_share"] == 1
    assert set(rows[kind.eq(2)]["label"]) <= {1, 4}
    assert "12 of 48 topics have no evidence: the IR score is of the others" in said
    assert "12 of 48 topics are unanswerable" in page
    assert "rejected" in said
    assert "sampled" not in said
    assert "prediction-powered" not in said


@pytest.mark.slow
def test_without_any_evidence_classes_and_answers_are_compared(tmp_path: Path) -> None:
    topics = [{k: v for k, v in row.items() if k != "evidence"} for row in questions()]
    records, said, page = swept(tmp_path, topics)
    metrics = only(records, "bm25", 300)["metrics"]
    assert "ir_score" not in metrics
    assert "threshold_k" not in metrics or metrics["threshold_k"] != metrics["threshold_k"]
    assert 0 < metrics["contains"] < 1
    assert metrics["correct_share"] >= 0
    assert "no IR scores: no thresholds and no predictor" in said
    assert "48 of 48 topics have no evidence: there is no IR score" in page
    assert "Best IR score" not in page
    compared = run(tmp_path, "compare", "sweep")
    assert compared.returncode == 0, compared.stderr
    assert "Paired differences" in compared.stdout


@pytest.mark.slow
def test_bare_questions_are_answered_and_the_sweep_is_pooled(tmp_path: Path) -> None:
    topics = [{"qid": row["qid"], "query": row["query"]} for row in questions()]
    records, said, page = swept(tmp_path, topics, "answers=[]")
    assert [record["status"] for record in records] == ["FINISHED"] * 4
    assert not {"ir_score", "correct_share", "hallucination_share"} & set(records[0]["metrics"])
    assert "no verdicts: no thresholds and no predictor" in said
    assert "48 of 48 topics have no evidence: there is no IR score" in page


@pytest.mark.slow
def test_a_sample_to_judge_is_drawn_of_what_can_be_judged(tmp_path: Path) -> None:
    records, said, _ = swept(tmp_path, mixed(), "judge.sample=24")
    record = only(records, "bm25", 300)
    rows = pd.read_parquet(tmp_path / "sweep" / str(record["number"]) / "outcomes.parquet")
    lacking = rows["judge_status"].eq("no reference")
    assert lacking.sum() == 12
    assert not rows.loc[lacking, "judged"].any()
    assert rows["judged"].sum() == 24
    assert 0 <= record["metrics"]["correct_share"] <= 1
    assert " judged; 95 % intervals" in said
