"""`ragauge plan` on a pilot's folder and on what MLflow holds of it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ragauge.estimate.plan import topics_for_mean
from ragauge.plugins.planning.command import main
from ragauge.plugins.planning.topics import topics_for_equivalence, topics_for_shares
from sweep_records import job_json

SYSTEMS = ("bm25", "sim", "mmr")


def write_pilot(folder: Path, n_topics: int = 40, systems: tuple[str, ...] = SYSTEMS) -> Path:
    """A sweep's folder as its jobs leave it; people labelled half of the topics."""
    rng = np.random.default_rng(7)
    hard = rng.random(n_topics)
    for number, system in enumerate(systems):
        score = np.clip(hard + rng.normal(0, 0.2, n_topics), 0, 1)
        label = np.where(rng.random(n_topics) < score, 5, 4)
        people = [int(c) if i % 2 else None for i, c in enumerate(np.where(rng.random(n_topics) < 0.9, label, 1))]
        job = folder / str(number)
        job.mkdir(parents=True)
        pd.DataFrame(
            {
                "qid": [f"q{i}" for i in range(n_topics)], "n_tokens": 100, "ir_score": score,
                "label": pd.array(label, dtype="Int8"), "human_label": pd.array(people, dtype="Int8"),
                "retriever": system,
            }
        ).to_parquet(job / "outcomes.parquet", index=False)  # fmt: skip
        record = {
            "status": "FINISHED", "number": number, "sweep_id": "pilot", "name": system, "n_tokens": 100,
            "overrides": [f"retriever={system}"], "experiment": "towers\x1b[31m", "seed": 0, "bootstrap": 20,
            "estimate": {"features": ["ir_score"], "spline": False, "calibrate": False},
            "choices": {"dataset": "made", "retriever": system}, "dataset_digest": "made", "metrics": {},
        }  # fmt: skip
        job_json(job, record)
    return folder


@pytest.fixture(scope="module")
def pilot(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_pilot(tmp_path_factory.mktemp("pilot"))


def planned(pilot: Path, capsys: pytest.CaptureFixture[str], *more: str) -> dict:
    assert main([str(pilot), "--json", *more]) == 0
    (plan,) = json.loads(capsys.readouterr().out)
    return plan


def test_the_plan_holds_the_pilots_own_numbers(pilot: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan = planned(pilot, capsys, "--difference", "0.05")
    frames = [pd.read_parquet(pilot / str(i) / "outcomes.parquet") for i in range(3)]
    of_pair = {(p["a"], p["b"]): p for p in plan["pairs"]}
    sd = float((frames[0]["ir_score"] - frames[1]["ir_score"]).std())
    assert of_pair["bm25", "sim"]["spread"] == pytest.approx(sd)
    assert of_pair["bm25", "sim"]["topics"] == topics_for_mean(sd, 0.05, 0.8, 0.05 / 3)
    assert plan["asked"]["comparisons"] == 3
    one = planned(pilot, capsys, "--difference", "0.1", "--measure", "correct", "--correction", "none")
    psi = float((frames[0]["label"] != frames[1]["label"]).mean())
    of_pair = {(p["a"], p["b"]): p for p in one["pairs"]}
    assert of_pair["bm25", "sim"]["topics"] == topics_for_shares(psi, 0.1, 0.8, 0.05)
    kinds = [row["kind"] for row in one["labels"] if row["system"] == "bm25"]
    assert kinds == ["alone", "judge", "predictor"]
    # 40 topics are too few for an interval of 0.1, whatever the judge says of them.
    assert all(row["labels"] is None for row in one["labels"] if row["kind"] != "alone")


def test_the_table_names_the_worst_and_the_median_pair(pilot: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(pilot), "--difference", "0.05", "--topics", "2000"]) == 0
    said = capsys.readouterr().out
    assert "Topics to see a difference of 0.05 in IR score with power 0.8 (two-sided test at 0.05 / 3)" in said
    assert sum(line.startswith(("median", "worst")) for line in said.splitlines()) == 2
    assert "people, with the judge" in said
    assert "on 2,000 topics" in said
    assert "\x1b" not in said


def test_a_margin_plans_for_equivalence_without_a_correction(pilot: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan = planned(pilot, capsys, "--equivalent", "0.05", "--measure", "correct")
    right = [pd.read_parquet(pilot / str(i) / "outcomes.parquet")["label"].eq(5).astype(float) for i in range(3)]
    of_pair = {(p["a"], p["b"]): p for p in plan["pairs"]}
    sd = float((right[0] - right[1]).std())
    assert of_pair["bm25", "sim"]["topics"] == topics_for_equivalence(sd, 0.05)
    assert main([str(pilot), "--equivalent", "0.05"]) == 0
    said = capsys.readouterr().out
    assert "Topics to show that systems do not differ by 0.05 in IR score with power 0.8 (two one-sided" in said
    assert main([str(pilot), "--equivalent", "5"]) == 2
    assert "equivalent=5.0: allowed are numbers above 0 to 1" in capsys.readouterr().err


def test_a_pair_of_equal_systems_has_no_number_of_topics(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write_pilot(tmp_path)
    first = pd.read_parquet(folder / "0" / "outcomes.parquet")
    first.assign(retriever="sim").to_parquet(folder / "1" / "outcomes.parquet", index=False)
    assert main([str(folder), "--difference", "0.05"]) == 0
    said = capsys.readouterr().out
    assert "1 pair(s) without a spread on these topics: this pilot cannot tell how many topics they take" in said
    assert "unknown" in said


@pytest.mark.parametrize(
    ("score", "says"),
    [(1.0, "All systems score 1.000 in IR score"), (0.0, "All systems score 0.000 in IR score"),
     (0.5, "All systems have the same IR score on every topic")],
)  # fmt: skip
def test_where_all_systems_score_alike_the_topics_cannot_tell(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], score: float, says: str
) -> None:
    folder = write_pilot(tmp_path, systems=("bm25", "sim"))
    for job in "01":
        rows = pd.read_parquet(folder / job / "outcomes.parquet").assign(ir_score=score)
        rows.to_parquet(folder / job / "outcomes.parquet", index=False)
    plan = planned(folder, capsys, "--difference", "0.05")
    assert plan["cannot_tell"].startswith(f"{says}: these topics cannot tell them apart. ")
    assert main([str(folder), "--difference", "0.05"]) == 0
    said = capsys.readouterr().out
    assert f"{plan['cannot_tell']} So this pilot gives no number of topics." in said
    assert "Topics to see a difference" not in said


def test_without_verdicts_and_with_one_system_the_plan_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write_pilot(tmp_path, systems=("bm25",))
    rows = pd.read_parquet(folder / "0" / "outcomes.parquet")
    rows.assign(label=pd.array([None] * len(rows), dtype="Int8")).to_parquet(folder / "0" / "outcomes.parquet")
    assert main([str(folder), "--difference", "0.05"]) == 0
    said = capsys.readouterr().out
    assert "one system: no pair to compare" in said
    assert "no verdicts: no number of labels" in said


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--power", "1.2"], "power=1.2: allowed are numbers above alpha (0.05) and below 1"),
        (["--power", "nan"], "power=nan: allowed are"),
        (["--alpha", "1"], "alpha=1.0: allowed are numbers above 0 and below 1"),
        (["--difference", "0"], "difference=0.0: allowed are numbers above 0 to 1"),
        (["--difference", "5"], "difference=5.0: allowed are numbers above 0 to 1"),
        (["--width", "1"], "width=1.0: allowed are numbers above 0 and below 1"),
        (["--topics", "1"], "topics=1: allowed are integers from 2"),
        (["--comparisons", "0"], "comparisons=0: allowed are integers from 1"),
        (["--confidence", "1"], "confidence=1.0: allowed are numbers above 0 and below 1"),
        (["--measure", "em"], "measure='em': allowed are ir_score, correct, hallucination in this pilot"),
        (["--correction", "none", "--comparisons", "3"], "--comparisons: only with --correction holm"),
    ],
)
def test_values_out_of_range_end_with_2_and_one_line(
    pilot: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], says: str
) -> None:
    assert main([str(pilot), "--difference", "0.05", *arguments]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    [line] = said.err.splitlines()
    assert says in line


def test_a_pilot_of_one_topic_a_log_file_and_no_folder_end_with_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one = write_pilot(tmp_path / "one", n_topics=1)
    log = tmp_path / "run.log"
    log.write_text("not a sweep")
    (tmp_path / "empty").mkdir()
    for source, says in (
        (one, "pilot pilot: 1 topic(s); a variance takes at least 2"),
        (log, "is neither a folder nor an MLflow run id"),
        (tmp_path / "empty", "holds no finished job"),
    ):
        assert main([str(source), "--difference", "0.05"]) == 2
        [line] = capsys.readouterr().err.splitlines()
        assert says in line
