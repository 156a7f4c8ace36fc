"""`ragauge labels` from a sweep's folder to estimates, and what it refuses."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ragauge.contract.errors import DataError
from ragauge.datasets.labels import with_human_labels
from ragauge.experiment.sweep.reports import found
from ragauge.plugins.labels.command import main
from ragauge.plugins.labels.sheet import answers_of, make_sheet
from sweep_records import job_json

SYSTEMS = ("bm25", "sim")
TOPICS = 60


def write_sweep(folder: Path, judged: bool = True, alike: bool = False) -> Path:
    """A sweep's folder as its jobs leave it: of every third topic both systems give the same answer.

    alike: the systems differ by an option alone, not by a component.
    """
    rng = np.random.default_rng(7)
    hard = rng.random(TOPICS)
    for number, system in enumerate(SYSTEMS):
        retriever, override = ("bm25", f"retriever.top_k={number + 5}") if alike else (system, f"retriever={system}")
        score = np.clip(hard + rng.normal(0, 0.2, TOPICS), 0, 1)
        label = np.where(rng.random(TOPICS) < score, 5, 4)
        job = folder / str(number)
        job.mkdir(parents=True)
        frame = pd.DataFrame(
            {
                "qid": [f"q{i}" for i in range(TOPICS)], "n_tokens": 100, "ir_score": score, "query": "which?",
                "answer": [f"answer {i},\n{system if i % 3 else 'both'}" for i in range(TOPICS)], "label": label,
                "answer_reference": "that", "retriever": retriever,
            }
        )  # fmt: skip
        frame.astype({"label": "Int8"}).assign(
            label=pd.array(label if judged else [None] * TOPICS, dtype="Int8")
        ).to_parquet(job / "outcomes.parquet", index=False)
        record = {
            "status": "FINISHED", "number": number, "sweep_id": "s", "name": system, "n_tokens": 100,
            "overrides": [override], "experiment": "towers", "seed": 0, "bootstrap": 20,
            "estimate": {"features": ["ir_score"], "spline": False, "calibrate": False},
            "choices": {"dataset": "made", "retriever": retriever}, "dataset_digest": "made", "metrics": {},
            "measured_by": {"measure": "m", "tokenizer": "t", "judge": "j"},
        }  # fmt: skip
        job_json(job, record)
    return folder


def outcomes(folder: Path, number: int) -> pd.DataFrame:
    return pd.read_parquet(folder / str(number) / "outcomes.parquet")


def test_without_a_budget_few_answers_are_all_drawn(tmp_path: Path) -> None:
    folder = write_sweep(tmp_path / "sweep")
    rows = answers_of(found(str(folder), None))
    few = rows[rows["qid"].isin(rows["qid"].unique()[:3])].reset_index(drop=True)
    sheet = make_sheet(few, None, 0, tmp_path / "labels.csv")
    assert set(sheet.rows["qid"]) == set(few["qid"])


def test_a_larger_budget_keeps_what_was_drawn_and_labelled(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, sheet = write_sweep(tmp_path / "sweep"), tmp_path / "labels.csv"
    assert main([str(folder), "--budget", "40", "--out", str(sheet)]) == 0
    assert "40 of 120 answers of 2 system(s), 0 with a label" in capsys.readouterr().out
    rows = pd.read_csv(sheet, dtype={"label": "Int8"})
    assert rows.groupby("system").size().tolist() == [20, 20]
    # People agree with the judge but on q-numbers that end in 7; the last two answers are left empty.
    said = rows["judge_class"].where(~rows["qid"].str.endswith("7"), 9 - rows["judge_class"])
    rows.assign(label=said.astype("Int8").where(rows.index < 38)).to_csv(sheet, index=False)
    assert main([str(folder), "--budget", "60", "--out", str(sheet)]) == 0
    more = pd.read_csv(sheet, dtype={"label": "Int8"})
    assert len(more) == 60
    assert set(zip(rows["qid"], rows["system"], strict=True)) <= set(zip(more["qid"], more["system"], strict=True))
    assert more["label"].notna().sum() == 38


def test_a_sheet_of_systems_that_differ_by_an_option_goes_on_and_labels_each_with_its_own_answers(
    tmp_path: Path,
) -> None:
    folder, sheet = write_sweep(tmp_path / "sweep", alike=True), tmp_path / "labels.csv"
    assert main([str(folder), "--budget", "40", "--out", str(sheet)]) == 0
    rows = pd.read_csv(sheet).assign(label=5)
    both = rows["answer"].str.endswith("both")
    assert rows["system"].str.contains("; ").tolist() == both.tolist()
    assert 0 < both.sum() < 20 < len(rows) < 40
    rows.to_csv(sheet, index=False)
    for number, name in enumerate(SYSTEMS):
        found = with_human_labels(outcomes(folder, number), sheet)
        own = rows["answer"].str.endswith((name, "both"))
        assert set(found.loc[found["human_label"].notna(), "qid"]) == set(rows.loc[own, "qid"])
    assert main([str(folder), "--budget", "60", "--out", str(sheet)]) == 0
    more = pd.read_csv(sheet)
    assert len(more) > len(rows)
    assert more["label"].notna().sum() == len(rows)
    job = outcomes(folder, 0)
    third = job.assign(answer=job["answer"].where(job["qid"].str[-1].isin(list("02468")), "of a third system"))
    with pytest.raises(DataError, match="has another answer in this job"):  # though some of its answers are labelled
        with_human_labels(third, sheet)
    rows.assign(answer="no " + rows["answer"]).to_csv(sheet, index=False)
    with pytest.raises(DataError, match="has another answer in this job"):
        with_human_labels(outcomes(folder, 0), sheet)


def test_labels_of_other_answers_and_probabilities_out_of_range_are_refused(tmp_path: Path) -> None:
    folder, sheet = write_sweep(tmp_path / "sweep"), tmp_path / "labels.csv"
    assert main([str(folder), "--budget", "10", "--out", str(sheet)]) == 0
    rows, job = pd.read_csv(sheet).assign(label=5), outcomes(folder, 0)
    rows.assign(probability=0).to_csv(sheet, index=False)
    with pytest.raises(
        DataError, match=r"labels.csv, line 2 \(qid=.*\): probability is '0', not from 0.000000001 to 1"
    ):
        with_human_labels(job, sheet)
    rows.assign(probability="1e-320").to_csv(sheet, index=False)
    with pytest.raises(DataError, match=r"probability is '1e-320', not from 0\.000000001 to 1"):
        with_human_labels(job, sheet)
    rows.assign(label=6).to_csv(sheet, index=False)
    with pytest.raises(DataError, match=r"label is '6', not a judge class 1\.\.5"):
        with_human_labels(job, sheet)
    rows.assign(answer="something else").to_csv(sheet, index=False)
    with pytest.raises(DataError, match=r"has another answer in this job than those of the file \(5 of 5 rows\)"):
        with_human_labels(job, sheet)
    rows.assign(qid="q99").iloc[:1].to_csv(sheet, index=False)
    with pytest.raises(DataError, match="qid 'q99' is no topic of the dataset"):
        with_human_labels(outcomes(folder, SYSTEMS.index(rows["system"].iloc[0])), sheet)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--budget", "500"], "budget=500: there are 120 answers"),
        (["--budget", "3"], "budget=3: allowed are integers from 4"),
        (["--uniform", "0.1"], "uniform=0.1: allowed are 0.2 to 1"),
        (["--earlier", "gone.csv"], "no file gone.csv"),
    ],
)
def test_what_cannot_be_drawn_is_said(
    arguments: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(write_sweep(tmp_path / "sweep")), "--out", str(tmp_path / "labels.csv"), *arguments]) == 2
    assert said in capsys.readouterr().err


def test_a_sheet_drawn_otherwise_and_runs_without_verdicts_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, sheet = write_sweep(tmp_path / "sweep"), tmp_path / "labels.csv"
    assert main([str(folder), "--budget", "10", "--out", str(sheet)]) == 0
    assert main([str(folder), "--budget", "12", "--out", str(sheet), "--seed", "1"]) == 2
    assert main([str(folder), "--budget", "8", "--out", str(sheet)]) == 2
    renamed = tmp_path / "renamed.csv"
    pd.read_csv(sheet).assign(system="another").to_csv(renamed, index=False)
    assert main([str(folder), "--budget", "12", "--out", str(renamed)]) == 2
    assert main([str(write_sweep(tmp_path / "silent", judged=False)), "--out", str(tmp_path / "none.csv")]) == 2
    other, fewer, of_others, silent = capsys.readouterr().err.splitlines()
    assert "was drawn from other runs, verdicts, earlier labels or --seed" in other
    assert "has 10 answers: a larger budget draws more" in fewer
    assert "was drawn from other runs" in of_others
    assert "bm25: no answer has a verdict" in silent
