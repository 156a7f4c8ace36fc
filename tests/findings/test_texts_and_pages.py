"""Sentences of findings, and the head of a report: worked out by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from ragauge.contract.answer_measures import as_record
from ragauge.contract.jobs import Jobs
from ragauge.contract.measures import AnswerMeasureInfo
from ragauge.findings.answers import cut_after_answers, recorded_costs
from ragauge.findings.people import in_numbers
from ragauge.findings.pooling import PooledFindings
from ragauge.findings.terminal import common_text, job_line, leaderboard_text, valued
from ragauge.findings.topics import longest_match, match_evidence
from sweep_records import record_of

EM = AnswerMeasureInfo("em", "exact match", unit="share")


def test_contexts_that_the_budget_cuts_are_counted_at_that_budget_alone() -> None:
    run = pd.DataFrame({"qid": ["a", "a", "b", "c"]})
    layouts = pd.DataFrame({"qid": ["a", "b", "c"], "layout": 0, "text": ["one two", "three", "four \n"]})
    prefixes = pd.DataFrame(
        [("a", 100, 0, 3, 1), ("b", 100, 0, 5, 1), ("c", 100, 0, 4, 1),
         ("a", 300, 0, 7, 2), ("b", 300, 0, 5, 1), ("c", 300, 0, 4, 1),
         ("a", 200, 0, 7, 1), ("b", 200, 0, 2, 1), ("c", 200, 0, 4, 1)],
        columns=["qid", "n_tokens", "layout", "end", "n_chunks"],
    )  # fmt: skip
    assert str(cut_after_answers(100, run, layouts, prefixes)).startswith(
        "n_tokens=100 cuts the contexts of 1 of 3 topics, whose answers"
    )
    assert cut_after_answers(300, run, layouts, prefixes) is None  # what is left out is white space
    assert "of 2 of 3 topics" in str(cut_after_answers(200, run, layouts, prefixes))  # a chunk, and a text


def test_what_a_file_does_not_tell_of_its_answers_is_left_out() -> None:
    answers = pd.DataFrame({"answer": ["x", "y", None], "prompt_tokens": [1, 2, 3], "completion_tokens": 0,
                            "cost_usd": 0.0, "seconds": [1.0, 3.0, 90.0]})  # fmt: skip
    assert recorded_costs(answers) == {
        "recorded_prompt_tokens": 6, "recorded_seconds_p50": 2.0, "recorded_seconds_p95": pytest.approx(2.9),
    }  # fmt: skip
    assert recorded_costs(answers.assign(seconds=0.0, prompt_tokens=0)) == {}


def test_a_job_s_line_has_what_it_measured() -> None:
    values = {"ir_score": 0.5, "seconds_total": 3.04}
    assert job_line("bm25", values) == f"{'bm25':<32} IR score 0.500  3.0 s"
    judged = {"judge_share_missing": 0.5, "correct_share": 0.25, "judge_share_1": 0.5, "hallucination_share": 0.125}
    *_, lack, hallucination, missing, seconds = job_line("a", values | judged).split("  ")
    assert (lack, hallucination, missing, seconds) == ("lack 50%", "hallucination 12%", "no verdict 50%", "3.0 s")
    assert "no verdict" not in job_line("a", values | judged | {"judge_share_missing": 0.0})
    assert "right" not in job_line("a", values | judged | {"judge_share_missing": 1.0})
    predicted = {"predicted_correct_share": 0.5, "predicted_hallucination_share": 0.25}
    assert "predicted right 50%, hallucination 25%" in job_line("a", values | predicted)
    assert "0.3000 USD" in job_line("a", values | {"cost_usd": 0.1, "judge_cost_usd": 0.2})
    assert "USD" not in job_line("a", values | {"cost_usd": 0.0})
    assert "no IR score" in job_line("a", {"seconds_total": 1.0})


def test_of_how_many_topics_a_mean_is_stands_beside_it_where_some_lack_a_value() -> None:
    row = {"n_topics": 40, "n_classed": 40, "em_missing": 0.25}
    assert valued(row, EM) == "of 30"
    assert valued(row | {"em_missing": 0.0}, EM) == ""
    assert valued(row | {"n_classed": 30}, EM) == ""
    pairs = pd.DataFrame({"measure": ["em", "em", "f1", "f1"], "n": [30, 35, 40, 40]})
    f1 = AnswerMeasureInfo("f1", "F1")
    assert common_text(pairs, 40, [EM, f1]).endswith("on those that both have: exact match 30 to 35")
    assert common_text(pairs[1:], 40, [EM, f1]).endswith("exact match 35")
    assert common_text(pairs, 30, [EM, f1]) == ""
    scores = pairs[:1].assign(measure="ir_score", n=66)
    assert common_text(scores, 100, [EM], 100).endswith("compared on those that both have: IR score 66")
    assert common_text(scores, 100, [EM], 66) == ""
    assert common_text(pairs[:0], 40, [EM]) == ""


def test_a_score_of_some_topics_says_of_how_many() -> None:
    values = {"ir_score": 0.87, "ir_score_topics": 66, "topics": 110, "topics_unanswerable": 10, "seconds_total": 1.0}
    assert "IR score 0.870 of 66 of 100 topics  1.0 s" in job_line("x", values)
    assert "IR score 0.870  1.0 s" in job_line("x", {**values, "topics_without_evidence": 34})
    board = pd.DataFrame([{"system": "x", "ir_score": 0.87, "ir_score_in_best_set": True, "n_topics": 110,
                           "n_judged": 0, "n_classed": 0, "n_scored": 66, "n_scorable": 100}])  # fmt: skip
    assert "0.870* of 66" in leaderboard_text(board, 100, judged=False)
    assert "of 66" not in leaderboard_text(board.assign(n_scorable=66), 100, judged=False)


def jobs(**changes: Any) -> Jobs:
    record = record_of(name="a", overrides=["retriever=a"], metrics={"topics": 1200}, bootstrap=0)
    outcomes = pd.DataFrame({"system": ["a"], "n_tokens": 100})
    return replace(Jobs("s1", "towers", [record], [record_of(name="x")], outcomes), **changes)


def test_a_page_says_whether_the_sweep_has_others_that_are_not_comparable() -> None:
    page = PooledFindings(jobs(), {}, {}).page
    assert (page.title, page.about) == ("towers: 1 system compared", "ragauge report of s1 · 1,200 topics · 1 job")
    assert (page.failed, page.notes, page.group) == (1, [], "")
    page = PooledFindings(jobs(group="judge=a", siblings=[jobs(group="judge=b"), jobs(group="judge=c")]), {}, {}).page
    assert page.title == "towers, judge=a: 1 system compared"
    (note,) = page.notes
    assert note.startswith("The jobs of judge=a alone.")
    assert note.endswith("by other means: judge=b; judge=c.")
    assert page.group == "judge=a"


def test_intervals_are_said_to_be_over_what_they_are_over() -> None:
    clustered = jobs().outcomes.assign(topic_cluster="d1")
    record = jobs().records[0]
    for cluster, units in (
        ("document", "documents"),
        ("user", "clusters of topics (user)"),
        (None, "clusters of topics"),
    ):
        assert jobs(outcomes=clustered, records=[replace(record, cluster=cluster)]).units == units
    assert jobs(records=[replace(record, cluster="document")]).units == "topics"  # each topic has a document of its own


def test_the_longest_match_is_the_first_of_equals_and_stands_where_the_context_has_it() -> None:
    assert longest_match("ab cd", "xx cd ab") == (2, 3)  # " cd"
    assert longest_match("abab", "zabz ab") == (1, 2)
    [first, second] = match_evidence(["The  tower", "q"], "x the The\ttower y")
    assert (first.share, first.span) == (1.0, (6, 15))
    assert (second.share, second.span) == (0.0, None)
    rng = np.random.default_rng(3)
    for _ in range(30):
        part, text = ("".join(rng.choice(list("ab"), n)) for n in (6, 12))
        start, size = longest_match(part, text)
        assert text[start : start + size] in part
        assert not any(text[i : i + size + 1] in part for i in range(len(text) - size))


def test_a_job_outside_of_sweeps_prints_the_answer_measures_that_were_asked_for() -> None:
    infos = [AnswerMeasureInfo("em", "exact match", unit="share"), AnswerMeasureInfo("f1", "token F1")]
    values = {"em": 0.5, "em_lo": 0.25, "em_hi": 0.75, "f1": 0.5, "seconds_total": 1.0}
    given = {"metrics": values, "answer_measures": as_record(infos)}
    alone = "  exact match 50.0% (95 % 25.0% to 75.0%), token F1 0.500"
    assert in_numbers(record_of(given))[1:] == [alone]
    assert len(in_numbers(record_of(given, sweep_id="s"), 2)) == 1
