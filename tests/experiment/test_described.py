"""What is said of a job beside its numbers: MLflow's description, and the lines under its line."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from omegaconf import OmegaConf

from ragauge.experiment.request import JobFolder, Request, job_note
from ragauge.findings.people import judged_lines
from ragauge.track import tracking_uri
from ragauge.track.views import where_text
from sweep_records import record_of

CHOICES = {
    "retriever": "bm25", "chunker": "semantic", "reranker": "cross_encoder", "order": "rank",
    "expander": "none", "llm": "ollama", "judge": "lexical",
}  # fmt: skip


def test_a_job_s_description_says_what_it_measured_and_how_to_read_it() -> None:
    note = job_note(CHOICES, "fictional", 1000, "qwen3:4b", None)
    measured, read = note.split("\n\n")
    assert measured == (
        "Measured: retriever bm25 with reranker cross_encoder over chunks by semantic, on the questions of "
        "fictional, with a context of 1,000 tokens, answers of qwen3:4b judged by lexical "
        "(word rules, no LLM)."
    )
    assert read.startswith("Read `ir_score` first")
    assert "`per_question.json`" in read


def test_a_note_of_the_user_s_comes_first_and_what_there_is_not_is_not_named() -> None:
    chosen = {"retriever": "sim", "chunker": "none", "llm": "none", "judge": "none"}
    note, measured, _ = job_note(chosen, "ours", 50, "none", "before the move ").split("\n\n")
    assert note == "before the move"
    assert measured == ("Measured: retriever sim, on the questions of ours, with a context of 50 tokens, no answers.")


def test_a_job_ends_with_its_run_its_folder_and_how_to_open_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    page = "#/experiments/7/runs/3f0c"
    request = Request(OmegaConf.create({"tracking": {"uri": None}}), JobFolder(Path("/out/1"), None, 0, {}, ()))
    assert request.where(record_of(run_id="3f0c", experiment_id="7")).splitlines() == [
        "MLflow run 3f0c; folder /out/1",
        f"MLflow UI: make ui, or ragauge ui; then http://127.0.0.1:5000/{page}",
    ]
    with contextlib.chdir(tmp_path):  # make has no rule outside of a clone
        assert where_text(str(tracking_uri()), page).startswith("MLflow UI: ragauge ui; then http://")
    assert where_text("https://mlflow.example/", page) == f"MLflow UI: https://mlflow.example/{page}"
    assert where_text("sqlite:////else/mlflow.db", page) == (
        f"MLflow UI: ragauge ui --tracking-uri sqlite:////else/mlflow.db; then http://127.0.0.1:5000/{page}"
    )


def test_a_sample_of_judged_topics_says_of_how_many_and_how_sure() -> None:
    values = {
        "judged_of_topics": 120, "judged_topics": 40, "hallucination_share": 0.1,
        "correct_share": 0.25, "correct_share_lo": 0.125, "correct_share_hi": 0.375,
    }  # fmt: skip
    assert judged_lines(values) == [
        "  40 of 120 judged; of all topics of this kind: right 25.0% (95 % 12.5% to 37.5%), hallucination 10.0%"
    ]
    assert judged_lines(values, "topics")[0].startswith("  40 of 120 judged; of these topics: right 25.0%")
    assert judged_lines({"topics": 120, "correct_share": 0.25}) == []


def test_labels_by_people_say_the_kappa_with_its_interval() -> None:
    values = {
        "human_labels": 30, "judge_kappa": 0.7, "judge_kappa_lo": 0.5, "judge_kappa_hi": 0.875,
        "judge_agreement": 0.8, "judge_agreement_lo": 0.65, "judge_agreement_hi": 0.9,
    }  # fmt: skip
    assert judged_lines(values) == [
        "  judge against 30 labels by people: kappa 0.70 (95 % 0.50 to 0.88), equal 80.0% (95 % 65.0% to 90.0%)"
    ]
    [line] = judged_lines({"human_labels": 3, "judge_kappa": float("nan")})
    assert line.endswith("kappa is not defined, since chance alone would agree always")
