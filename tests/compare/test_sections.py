"""Measures beside the headline: tables and a correction of their own, which the headline does not pay for."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd

from ragauge import compare as comparing
from ragauge.compare import choose_metrics
from ragauge.contract.jobs import Compared
from ragauge.contract.measures import AnswerMeasureInfo

ANSWERS = [
    *(AnswerMeasureInfo(name, name.upper(), unit="share") for name in ("em", "f1")),
    AnswerMeasureInfo("truthfulness", "truthfulness", unit="signed", section="Truthfulness (CRAG)"),
]


def comparison(judged: bool = True) -> comparing.Comparison:
    rng = np.random.default_rng(0)
    runs = ["a", "b", "c"]
    frame = pd.concat(
        [
            pd.DataFrame({"run_id": run, "qid": [f"q{i}" for i in range(30)], "ir_score": rng.random(30)})
            for run in runs
        ],
        ignore_index=True,
    )
    frame = frame.assign(label=pd.array([5, 2, 1] * 30, dtype="Int8"), query="?", answer="!")
    for info in ANSWERS:
        frame[info.name] = rng.random(90)
    answers = ANSWERS
    if not judged:
        frame = frame.assign(ir_score=np.nan, label=pd.array([None] * 90, dtype="Int8"))
        answers = ANSWERS[:2]
    means = frame.groupby("run_id")[["ir_score", *(info.name for info in answers)]].mean().reset_index()
    table = means.assign(run=runs, system=runs, n_tokens=9, compared=True, correct_share=0.3)
    if not judged:
        table = table.drop(columns=["ir_score", "correct_share"])
    names = {run: run for run in runs}
    compared = Compared(frame, names, "a", answers, 9, 50, 0, runs=table, params=pd.DataFrame(index=runs))
    return comparing.found_of(compared)


def test_the_headline_stays_as_wide_as_it_is_and_measures_stand_below() -> None:
    found = comparison()
    text = comparing.text(found, choose_metrics(found), 0, 200)
    bare = comparing.text(replace(found, answer_measures=()), ["ir_score", "correct_share"], 0, 200)
    blocks = {block.splitlines()[0]: block for block in text.split("\n\n")}
    for heading in ("Metrics", "Paired differences from a, N = 9 tokens"):
        assert blocks[heading] in bare
    assert blocks["Measures"].splitlines()[1].split()[2:5] == ["EM", "↑", "F1"]
    answers = blocks["Paired differences from a, N = 9 tokens: Answers"].splitlines()
    assert [line.split()[0] for line in answers[2:]] == ["EM", "EM", "F1", "F1"]
    assert max(map(len, answers)) < 100
    assert "over 6 comparisons (each section by itself: Answers 4, Truthfulness (CRAG) 2)" in text
    # What --metrics leaves out is not told.
    few = comparing.text(found, ["ir_score", "em"], 0, 200)
    assert "over 6 comparisons (each section by itself: Answers 4), p < 0.05" in few
    assert "truthfulness" not in few


def test_without_scores_and_verdicts_there_is_no_empty_headline() -> None:
    found = comparison(judged=False)
    assert found.n_tests == {"Answers": 4}
    for text in (
        comparing.text(found, choose_metrics(found), 0, 100),
        comparing.markdown(found, choose_metrics(found), 0),
        comparing.latex(found, choose_metrics(found)),
    ):
        assert "tokens: Answers" in text
        assert "correction (each section by itself: Answers 4), p" in text
