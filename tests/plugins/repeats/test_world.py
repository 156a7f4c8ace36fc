"""Two answers to each of six topics, two verdicts on each: what job and sweep say of them, beside plain loops."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import spearmanr

from ragauge.contract.finding import Fold, Grid
from ragauge.contract.measures import AnswerMeasureInfo
from ragauge.estimate.outcomes import CLUSTER
from ragauge.plugins.repeats.finding import RepeatsFound, RepeatsOfSystems
from sweep_records import record, sweep

# Two answers to a topic, with the two verdicts on each; - is a missing one. q6 cannot be answered, q7 was not judged.
TOPICS = """
qid  cluster  score  answers   verdicts  em
q0   a        0.9    yes_yes   55_55     11
q1   a        0.8    yes_no    55_51     10
q2   b        0.4    yes_no    15_4-     00
q3   b        0.2    yes_so    44_55     01
q4   c        .      yes_no    51_11     1.
q5   c        0.1    yes_yes   44_44     00
q6   d        0.3    yes_no    11_55     00
q7   d        0.3    yes_no    .._..     00
"""
N_BOOT, SEED = 40, 3
PARTS = ("topic", "answer", "judge")


def rows() -> list[list[str]]:
    return [line.split() for line in TOPICS.strip().splitlines()[1:]]


class Priced:
    """A model at a dollar for a hundred tokens that are read, and for ten that are written."""

    def cost(self, prompt_tokens: int, completion_tokens: int) -> float:
        return prompt_tokens / 100 + completion_tokens / 10


def job(wanted: int = 2, per_answer: int = 2) -> Any:
    frame = pd.DataFrame(
        {
            "qid": qid, "sample": s, "repeat": v, "answer": f"{answers.split('_')[s]} \n", "label": None if
            (label := verdicts.split("_")[s][v]) in "-." else int(label), "judge_status": None if label == "." else
            "missing" if label == "-" else "ok", "em": np.nan if em[s] == "." else float(em[s]),
        }
        for qid, _, _, answers, verdicts, em in rows()
        for s in range(wanted) for v in range(per_answer)
    ).astype({"label": "Int8"})  # fmt: skip
    outcomes = pd.DataFrame(
        {
            "qid": qid,
            "ir_score": np.nan if score == "." else float(score),
            CLUSTER: cluster,
            "unanswerable": qid == "q6",
        }
        for qid, cluster, score, *_ in rows()
    )
    # Of three answers two share a request.
    replies = pd.DataFrame({"request": ["a", "a", "b"], "prompt_tokens": [30, 30, 10], "completion_tokens": [2, 2, 4]})
    pipeline = SimpleNamespace(
        repeats=SimpleNamespace(several=True), repeated=frame, all_answers=replies.drop(columns="request"),
        all_verdicts=replies, components=SimpleNamespace(llm=Priced(), judge=Priced()),
    )  # fmt: skip
    info = AnswerMeasureInfo("em", "exact match", unit="share")
    return SimpleNamespace(pipeline=pipeline, outcomes=outcomes, answer_measures=[info], n_boot=N_BOOT, seed=SEED)


def terms() -> list[dict[str, float]]:
    """Of each topic that counts: the mean of right, and what is unbiased for the variances below it."""
    found = []
    for _, _, _, answers, verdicts, _ in rows()[:6]:
        texts, values = answers.split("_"), [[float(c == "5") for c in of] for of in verdicts.split("_")]
        means, spread = [np.mean(of) for of in values], [np.var(of, ddof=1) for of in values]
        same = texts[0] == texts[1]
        answer = 0.0 if same else ((means[0] - means[1]) ** 2 - sum(spread) / 2) / 2
        shared = sum(spread) * (2 if same else 1) / 8
        within = answer / 2 + shared
        found.append({"mean": np.mean(means), "answer": answer, "judge": np.mean(spread), "within": within})
    return found


def parts(of: list[dict[str, float]]) -> list[float]:
    """The variance between topics, between answers, and between verdicts."""
    means = [topic["mean"] for topic in of]
    spread = sum((mean - np.mean(means)) ** 2 for mean in means) / max(len(of) - 1, 1)
    within, answer, judge = (float(np.mean([topic[name] for topic in of])) for name in ("within", "answer", "judge"))
    return [spread - within, answer, judge]


def test_a_job_logs_the_parts_of_the_variance_and_the_stability_of_its_answers() -> None:
    found = RepeatsFound().compute(job(), {})
    assert found is not None
    of = terms()
    seen = parts(of)
    expected = {
        f"repeat_variance_{name}": value for name, value in zip(("topic", "answer", "judge"), seen, strict=True)
    }
    # Three clusters are drawn anew.
    drawn = []
    for times in np.random.default_rng(SEED).multinomial(3, [1 / 3] * 3, size=N_BOOT):
        chosen = [of[2 * c + i] for c in range(3) for _ in range(times[c]) for i in range(2)]
        topic, answer, judge = parts(chosen)
        drawn.append([topic + seen[0] / 2, answer, judge])
    for name, values in zip(PARTS, np.transpose(drawn), strict=True):
        lo, hi = np.percentile(values, [2.5, 97.5])
        expected |= {f"repeat_variance_{name}_lo": lo, f"repeat_variance_{name}_hi": hi}
    error = np.var([topic["mean"] for topic in of], ddof=1) / 6
    judge_error = np.mean([topic["within"] for topic in of]) - seen[1] / 2
    for name, part in (("topic", seen[0]), ("answer", seen[1] / 2), ("judge", judge_error)):
        expected[f"repeat_error_{name}"] = part / 6 / error
    scores, varies = [0.9, 0.8, 0.4, 0.2, 0.1], [0, 0, 0, 0.5, 0]  # of the first verdicts: right in one of two answers
    moved, rng = [], np.random.default_rng(SEED)
    for _ in range(N_BOOT):
        chosen = [i for c in rng.integers(0, 3, 3) for i in ([0, 1], [2, 3], [4])[c]]
        x, y = [scores[i] for i in chosen], [varies[i] for i in chosen]
        if len(set(x)) > 1 and len(set(y)) > 1:
            moved.append(spearmanr(x, y).statistic)
    lo, hi = np.percentile(moved, [2.5, 97.5])
    whole = spearmanr(scores, varies).statistic
    expected |= {"repeat_foresight": whole, "repeat_foresight_lo": lo, "repeat_foresight_hi": hi}
    # First verdicts: q0 5 5, q1 5 5, q2 1 4, q3 4 5, q4 5 1, q5 4 4.
    expected |= {
        "repeat_topics": 6, "repeat_answers": 2, "repeat_verdicts": 2, "repeat_agreement": 3 / 6,
        "repeat_right_once": 4 / 6, "repeat_right_always": 2 / 6, "repeat_same_answers": 2 / 6,
        "repeat_judge_agreement": (1 + 0.5 + 0 + 1 + 0.5 + 1) / 6,
        "repeat_price_answer": (70 / 100 + 8 / 10) / 3, "repeat_price_verdict": (40 / 100 + 6 / 10) / 2,
    }  # fmt: skip
    intervals = {f"repeat_{name}{end}" for name in
                 ("agreement", "right_once", "right_always", "same_answers", "judge_agreement")
                 for end in ("_lo", "_hi")}  # fmt: skip
    assert {name: value for name, value in found.metrics.items() if name not in intervals} == pytest.approx(expected)
    assert intervals < set(found.metrics)
    table = found.tables["repeats_variance"].set_index("of")
    # A verdict that is missing is of no class; exact match is of the five topics that have both values.
    assert table.loc["judge_share_1", "mean"] == pytest.approx((0 + 1 / 4 + 1 / 4 + 0 + 3 / 4 + 0) / 6)
    assert table.loc["judge_share_missing", "mean"] == pytest.approx(1 / 24)
    assert table.loc["em", ["mean", "topics"]].tolist() == pytest.approx([(1 + 0.5 + 0 + 0.5 + 0) / 5, 5])
    assert table.loc["em", "answer"] == pytest.approx((0.5 + 0.5) / 5)
    assert table.loc["correct_share", "error"] == pytest.approx(math.sqrt(error))
    assert RepeatsFound().show(job(), found.value, {}).lines == [
        "2 answers to each topic: right at least once 67%, always 33%",
        "variance of the share of right answers: " + ", ".join(
            f"{name} {expected[f'repeat_error_{part}']:.0%}"
            for name, part in (("topics", "topic"), ("answers", "answer"), ("judge", "judge"))),
    ]  # fmt: skip


def test_what_was_not_repeated_is_not_logged_and_equal_answers_are_said() -> None:
    once = RepeatsFound().compute(job(per_answer=1), {})
    assert once is not None
    unknown = ("repeat_variance_judge", "repeat_judge_agreement")
    assert not [name for name in once.metrics if name.startswith(unknown)]
    # The variance of an answer then holds the judge's.
    assert once.metrics["repeat_variance_answer"] == pytest.approx((0 + 0 + 0 + 0.5 + 0.5 + 0) / 6)
    alone = RepeatsFound().compute(job(wanted=1), {})
    assert alone is not None
    assert not [name for name in alone.metrics if ("answer" in name and "variance" in name) or "right" in name]
    assert alone.metrics["repeat_variance_judge"] == pytest.approx((0 + 0 + 0.5 + 0 + 0.5 + 0) / 6)
    same = job()
    same.pipeline.repeated["answer"] = "yes"
    found = RepeatsFound().compute(same, {})
    assert found is not None
    assert RepeatsFound().show(same, found.value, {}).lines[0] == (
        "llm.repeat: the 2 answers to each topic are equal, for all 6 topics"
    )
    same.pipeline.repeated["label"] = pd.array([None] * 32, "Int8")
    bare = RepeatsFound().compute(same, {})
    assert bare is not None
    assert (bare.value, list(bare.tables)) == (None, ["repeats"])


def test_a_sweep_shows_the_systems_that_have_repeats_at_its_budget() -> None:
    known = {"repeat_answers": 3.0, "repeat_right_once": 0.75, "repeat_right_always": 0.25, "repeat_agreement": 0.5,
             "repeat_judge_agreement": 0.875, "repeat_foresight": -0.125, "repeat_variance_topic": 0.0625,
             "repeat_variance_answer": 0.03125, "repeat_error_topic": 0.75, "repeat_error_answer": 0.25}  # fmt: skip
    jobs = sweep(record("retriever=bm25", **{name: value / 2 for name, value in known.items()}),
                 record("retriever=bm25", n=300, **known), record("retriever=sim", n=300))  # fmt: skip
    found = RepeatsOfSystems().compute(jobs, {})
    assert found is not None
    assert found.tables["repeats"].to_dict("records") == [{"system": "bm25", **known}]
    (section,) = RepeatsOfSystems().show(jobs, found.value, {}).sections
    grid, fold = section.blocks[1:]
    assert isinstance(grid, Grid)
    assert isinstance(fold, Fold)
    values = [[getattr(cell, "value", cell) for cell in of.rows[0]] for of in (grid, fold.blocks[1])]  # type: ignore[union-attr]
    assert values == [
        ["bm25", 3.0, 0.75, 0.25, 0.5, 0.875, -0.125], ["bm25", 0.0625, 0.03125, None, 0.75, 0.25, None],
    ]  # fmt: skip
    assert RepeatsOfSystems().compute(sweep(record()), {}) is None
