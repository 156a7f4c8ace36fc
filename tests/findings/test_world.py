"""A sweep by hand, two systems at two budgets on ten topics: what its report, terminal and charts say of it."""

from __future__ import annotations

import html
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ragauge.contract import loading
from ragauge.contract.answer_measures import as_record
from ragauge.contract.jobs import Jobs
from ragauge.contract.measures import AnswerMeasureInfo
from ragauge.contract.record import JobRecord
from ragauge.findings.pooling import PooledFindings, pooled
from ragauge.show.html import write_report
from sweep_records import record_of

# Score and class of each answer. q9 cannot be answered, q8 has no evidence, - is a verdict that is missing, and one
# job lacks q7.
ANSWERS = """
qid  kind   people  bm25/100  bm25/300  sim/100  sim/300
q0   tower  5       1.0:5     1.0:5     0.5:5    0.5:5
q1   tower  4       0.5:5     1.0:5     0.0:4    0.5:4
q2   tower  .       0.5:3     0.5:5     0.0:4    0.5:5
q3   tower  1       0.0:1     0.5:5     0.0:1    0.0:2
q4   bridge .       0.0:1     0.5:4     0.0:1    0.0:1
q5   bridge .       0.0:2     0.5:5     0.0:1    1.0:-
q6   bridge 5       0.0:1     1.0:5     0.5:5    1.0:5
q7   bridge .       0.0:4     0.0:1     .        0.5:3
q8   bridge .       .:1       .:5       .:1      .:4
q9   bridge .       .:4       .:1       .:1      .:1
"""
# Why the answers at 300 tokens failed, how much of the evidence they had, and where in the context all of it stands.
CAUSES = """
qid  bm25                  there  place      sim                   there  place
q0   .                     all    beginning  .                     all    end
q1   .                     all    beginning  generation_error      all    beginning
q2   .                     some   .          .                     some   .
q3   .                     some   .          not_retrieved         none   .
q4   beyond_the_budget     some   .          not_retrieved         none   .
q5   .                     all    middle     judge_missing         all    middle
q6   .                     all    end        .                     all    middle
q7   not_retrieved         none   .          beyond_the_budget     some   .
q8   .                     .      .          no_evidence_known     .      .
q9   .                     .      .          .                     .      .
"""
MEASURE = AnswerMeasureInfo("em", "exact match", unit="share")


def _rows(text: str) -> list[list[str]]:
    return [line.split() for line in text.strip().splitlines()]


def outcomes() -> pd.DataFrame:
    """A row per job and topic."""
    head, *rows = _rows(ANSWERS)
    _, *causes = _rows(CAUSES)
    found = []
    for at, job in enumerate(head[3:], 3):
        system, n = job.split("/")
        for row, why in zip(rows, causes, strict=True):
            if row[at] == ".":
                continue
            score, label = row[at].split(":")
            cause, there, place = why[1:4] if system == "bm25" else why[4:7]
            if n == "100":
                cause = there = place = "."
            found.append(
                {
                    "qid": row[0], "query": f"Which {row[1]}?", "answer_reference": "yes", "answer": "yes",
                    "answer_status": "ok", "answer_error": None, "system": system, "retriever": system,
                    "chunker": "none", "llm": "chat", "dataset": "made", "prompts_are": "fixed", "n_tokens": int(n),
                    "ir_score": np.nan if score == "." else float(score), "label": None if label == "-" else int(label),
                    "judge_status": "unreadable" if label == "-" else "ok",
                    "reason": "no class in “hm”" if label == "-" else "", "unanswerable": row[0] == "q9",
                    "human_label": None if row[2] == "." or n == "100" else int(row[2]), "slice:kind": row[1],
                    "failure_cause": None if cause == "." else cause.replace("_", " "),
                    "evidence_in_context": None if there == "." else there,
                    "evidence_place": None if place == "." else place,
                    "em": np.nan if row[0] == "q9" else float(label == "5"),
                }
            )  # fmt: skip
    return pd.DataFrame(found).astype({"label": "Int8", "human_label": "Int8"})


# What the jobs logged: costs of two answers that were asked for and of verdicts that share requests, seconds, steps.
METRICS = """
metric                       bm25/100  bm25/300  sim/100  sim/300
topics                       10        10        9        10
topics_without_evidence      1         1         1        1
topics_unanswerable          1         1         1        1
ir_score                     0.25      0.625     0.125    0.5
ir_score_lo                  0.125     0.375     0.0625   0.25
ir_score_hi                  0.5       0.75      0.25     0.75
correct_share                0.25      0.75      0.25     0.375
correct_share_lo             0.125     0.5       0.0      0.25
correct_share_hi             0.5       0.875     0.5      0.625
judge_share_missing          0         0         0        0.125
ndcg_at_10                   0.5       0.5       0.25     0.25
llm_calls                    4         6         .        8
llm_calls_cached             .         4         10       2
prompt_tokens                400       600       .        1000
completion_tokens            40        60        .        100
cost_usd                     0.25      0.5       .        1.0
llm_cut                      .         2         .        1
judge_llm_calls              5         5         2        3
judge_prompt_tokens          1000      2000      3000     500
judge_cost_usd               0.5       0.25      .        .
rewriter_llm_calls           .         .         3        .
rewriter_cost_usd            .         .         0.125    .
judge_prompt_spread          .         0.125     .        0.25
correct_share_prompt_1       .         0.75      .        0.25
correct_share_prompt_2       .         0.625     .        0.5
seconds_total                2         3         4        1
seconds_run                  0.5       1         1.5      0.25
seconds_answers              1         1.5       2        0.5
seconds_docs                 0.01      0.01      0.01     0.01
seconds_made_index           50        50        50       50
latency_topics               .         5         .        .
latency_total_p50            .         0.5       .        .
latency_total_p95            .         2         .        .
latency_run_p50              .         0.125     .        .
latency_run_p95              .         0.25      .        .
funnel_corpus                .         1         .        1
funnel_candidates            .         0.75      .        0.625
funnel_candidates_change     .         -0.25     .        -0.375
funnel_candidates_change_lo  .         -0.5      .        -0.625
funnel_candidates_change_hi  .         -0.125    .        -0.125
funnel_context               .         0.625     .        .
judge_repeat_pairs           12        12        .        20
judge_repeat_topics          6         6         .        5
judge_repeat_agreement       0.75      0.75      .        0.5
judge_repeat_kappa           0.5       0.5       .        0.25
"""
CURVES = {"bm25/100": {50: 0.125, 100: 0.25}, "bm25/300": {50: 0.125, 100: 0.25, 300: 0.625},
          "sim/100": {50: 0.0, 100: 0.125}, "sim/300": {50: 0.0, 100: 0.125, 300: 0.5}}  # fmt: skip


def jobs() -> Jobs:
    """The jobs of the sweep, and one that failed."""
    head, *rows = _rows(METRICS)
    records: list[JobRecord] = []
    for at, job in enumerate(head[1:], 1):
        system, n = job.split("/")
        records.append(record_of({
            "status": "FINISHED", "name": job, "number": at, "sweep_id": "s", "experiment": "towers",
            "choices": {"dataset": "made", "retriever": system, "llm": "chat", "judge": "lexical"},
            "overrides": [f"retriever={system}", f"n_tokens={n}"], "n_tokens": int(n), "seed": 0, "bootstrap": 20,
            "estimate": {"features": ["ir_score"], "spline": False, "calibrate": False},
            "dataset_digest": "d" * 64, "answer_measures": as_record([MEASURE]),
            "metrics": {row[0]: float(row[at]) for row in rows if row[at] != "."},
            "rankings": {"ndcg_at_10": "nDCG@10"}, "ir_score_at_n": CURVES[job],
            "ir_score_floor_at_n": {50: 0.0625, int(n): 0.125},
        }))  # fmt: skip
    failed = [record_of(name="mmr", number=5, overrides=["retriever=mmr", "n_tokens=300"], error="no model")]
    return Jobs("s", "towers", records, failed, outcomes())


def words(page: Path) -> list[str]:
    """The headings, cards, sentences and rows of a report, a line each; its cells between bars."""
    _, _, body = page.read_text(encoding="utf-8").partition("<body")
    body = re.sub(r"<img[^>]*>", "", body)
    body = re.sub(r"</t[hd]><t[hd][^>]*>", " | ", body)
    body = re.sub(r"</(tr|p|h\d|li|dt|dd|summary|figcaption|caption|div|pre)>", "\n", body)
    lines = (" ".join(html.unescape(re.sub(r"<[^>]+>", " ", line)).split()) for line in body.splitlines())
    return [line for line in lines if line]


def short(cell: str) -> str:
    """A cell with narrow intervals, of a long text the beginning."""
    return re.sub(r"(?<=[\d%]) to (?=[−+\d])", "…", cell.replace(" %", "%").replace("≈ best", "≈").strip())[:22].strip()


# Counted in the tables above; intervals are those of `ragauge.estimate`.
ROWS = """
System|IR score|Right|Hallucination classes|1 lack|2 partly wrong|3 incomplete|4 wrong|No verdict|Rejected of the unansw
bm25|≈ 0.625 0.386…0.815|≈ 77.8% 45.3%…96.1%|≈ 11.1% 0.6%…43.5%|11.1%|0.0%|0.0%|11.1%|0.0%|100.0%
sim|≈ 0.500 0.275…0.725|≈ 33.3% 9.1%…64.6%|≈ 33.3% 9.1%…64.6%|11.1%|11.1%|11.1%|22.2%|11.1%|100.0%
Pair|Measure|Difference|p|p, Holm|Topics
bm25 – sim|IR score|0.125 −0.250…0.472|0.688|0.688|8
bm25 – sim|right, points|+44.4 +2.8…+69.9|0.125|0.125|9
bm25 – sim|hallucination, points|−25.0 −62.0…+22.0|0.625|0.625|8
bm25 – sim|exact match ↑, points|+44.4 +0.7…+79.3|0.125|0.125|9
Failures come from|Failures|Of all failures|Most frequent cause
retrieval|3|37.5% 17.6%…62.7%|not retrieved
the budget|2|25.0% 9.5%…51.3%|beyond the budget
the LLM|1|12.5% 0.4%…49.8%|generation error
the judge|1|12.5% 0.4%…49.8%|judge missing
not known|1|12.5% 0.4%…49.8%|no evidence known
Cause|What to try|For example
not retrieved|Ask for more hits, sea|retriever=hybrid retri
beyond the budget|Give the LLM more toke|n_tokens=2000 reranker
generation error|Try another model, or|llm=<another> llm.prom
judge missing|Run again, which asks|judge=<another>
no evidence known|Mark the evidence of t|ragauge annotate evalu
System|Cause|Topics|Of all topics|Of the failures
bm25|not retrieved|1|10.0% 0.5%…40.4%|50.0%
|beyond the budget|1|10.0% 0.5%…40.4%|50.0%
sim|not retrieved|2|20.0% 3.6%…51.0%|33.3%
|beyond the budget|1|10.0% 0.5%…40.4%|16.7%
|generation error|1|10.0% 0.5%…40.4%|16.7%
|judge missing|1|10.0% 0.5%…40.4%|16.7%
|no evidence known|1|10.0% 0.5%…40.4%|16.7%
kind|Topics|beyond the budget|not retrieved
bridge|6|16.7% 0.9%…56.4%|16.7% 0.9%…56.4%
System|50|100|300
bm25|0.125|0.250 0.125…0.500|0.625 0.375…0.750
sim|0.000|0.125 0.062…0.250|0.500 0.250…0.750
unrelated text|0.062|0.125|0.125
System|Step|Evidence there|Change
bm25|in the corpus|1.000|–
|among all candidates|0.750|−0.250 −0.500…−0.125
|within N tokens|0.625|–
sim|in the corpus|1.000|–
|among all candidates|0.625|−0.375 −0.625…−0.125
System|Evidence in the contex|Topics|Right|Hallucination|Incomplete|Lack|No verdict
bm25|all|4|100.0% 51.0%…100.0%|0.0% 0.0%…49.0%|0.0% 0.0%…49.0%|0.0% 0.0%…49.0%|0.0% 0.0%…49.0%
|some|3|66.7% 20.8%…98.3%|33.3% 1.7%…79.2%|0.0% 0.0%…56.1%|0.0% 0.0%…56.1%|0.0% 0.0%…56.1%
|none|1|0.0%|0.0%|0.0%|100.0%|0.0%
sim|all|4|50.0% 8.9%…91.1%|25.0% 1.3%…69.9%|0.0% 0.0%…49.0%|0.0% 0.0%…49.0%|25.0% 1.3%…69.9%
|some|2|50.0% 2.6%…97.4%|0.0% 0.0%…65.8%|50.0% 2.6%…97.4%|0.0% 0.0%…65.8%|0.0% 0.0%…65.8%
|none|2|0.0% 0.0%…65.8%|50.0% 2.6%…97.4%|0.0% 0.0%…65.8%|50.0% 2.6%…97.4%|0.0% 0.0%…65.8%
System|nDCG@10
bm25|0.500
sim|0.250
System|Wording 1|Wording 2|Moves by points
bm25|75.0%|62.5%|+12.5
sim|25.0%|50.0%|+25.0
System|100|300
bm25|25.0% 12.5%…50.0%|75.0% 50.0%…87.5%
sim|25.0% 0.0%…50.0%|37.5% 25.0%…62.5% 12%
Jobs|Answers of topics|Same order equal label|κ|Other order equal labe|κ|Position effect points
bm25, N = 100; bm25, N|12 of 6|75.0%|0.500|–|–|–
sim, N = 300|20 of 5|50.0%|0.250|–|–|–
People say|1 lack|2 partly wrong|3 incomplete|4 wrong|5 right|missing no verdict
1 lack|0|1|0|0|1|0
2 partly wrong|0|0|0|0|0|0
3 incomplete|0|0|0|0|0|0
4 wrong|0|0|0|1|1|0
5 right|0|0|0|0|4|0
System|Share|All topics|Labels alone|Seen|Effective
bm25|hallucination|25.0% 0.2%…98.4%|25.0% 0.5%…95.9%|4|2
bm25|right|50.0% 1.3%…98.7%|50.0% 2.5%…97.5%|4|2
sim|hallucination|24.7% 0.1%…98.7%|25.0% 0.5%…95.9%|4|2
sim|right|36.1% 1.6%…95.1%|50.0% 2.5%…97.5%|4|5
Pair|Measure|By the judge|As people would judge|p|p, Holm|Labelled topics
bm25 – sim|right, points|+44.4|+0.0 −53.0…+53.0|1.000|1.000|4
bm25 – sim|hallucination, points|−22.2|+0.0 −53.0…+53.0|1.000|1.000|4
System|exact match ↑ higher i|No value
bm25|≈ 77.8% 45.3%…96.1%|10.0%
sim|≈ 33.3% 9.1%…64.6%|10.0%
exact match|100|300
bm25|–|–
sim|–|–
IR score|Topics|bm25 alone|bm25 shrunk|sim alone|sim shrunk
bridge small|4|0.500 0.205…0.795|0.561 0.268…0.814|0.625 0.252…0.935|0.541 0.261…0.833
tower small|4|0.750 0.426…0.949|0.665 0.392…0.904|0.375 0.173…0.633|0.442 0.178…0.709
average over 2 slices||0.625 0.395…0.810||0.500 0.285…0.715|
Right|Topics|bm25 alone|bm25 shrunk|sim alone|sim shrunk
bridge small|5|60.0% 23.1%…92.9%|65.8% 28.4%…92.6%|20.0% 1.0%…62.4%|31.5% 5.1%…65.0%
tower small|4|100.0% 51.0%…100.0%|84.6% 48.3%…100.0%|50.0% 8.9%…91.1%|42.0% 12.0%…78.9%
average over 2 slices||80.0% 52.0%…95.5%||35.0% 14.5%…63.1%|
Hallucination|Topics|bm25 alone|bm25 shrunk|sim alone|sim shrunk
bridge small|5|20.0% 1.0%…62.4%|20.5% 1.9%…54.0%|20.0% 1.0%…62.4%|31.5% 5.1%…65.0%
tower small|4|0.0% 0.0%…49.0%|12.1% 0.0%…44.3%|50.0% 8.9%…91.1%|42.0% 12.0%…78.9%
average over 2 slices||10.0% 0.7%…38.3%||35.0% 14.5%…63.1%|
No verdict|Topics|bm25 alone|bm25 shrunk|sim alone|sim shrunk
bridge small|5|0.0% 0.0%…43.4%|3.9% 0.0%…26.6%|20.0% 1.0%…62.4%|20.5% 1.9%…54.0%
tower small|4|0.0% 0.0%…49.0%|4.3% 0.0%…29.3%|0.0% 0.0%…49.0%|12.1% 0.0%…44.3%
average over 2 slices||0.0% 0.0%…26.1%||10.0% 0.7%…38.3%|
Unanswerable questions|Topics|bm25 alone|bm25 shrunk|sim alone|sim shrunk
bridge small|1|100.0%|–|100.0%|–
exact match ↑|Topics|bm25 alone|bm25 shrunk|sim alone|sim shrunk
bridge small|5|60.0% 23.1%…92.9%|65.8% 28.4%…92.6%|20.0% 1.0%…62.4%|31.5% 5.1%…65.0%
tower small|4|100.0% 51.0%…100.0%|84.6% 48.3%…100.0%|50.0% 8.9%…91.1%|42.0% 12.0%…78.9%
average over 2 slices||80.0% 52.0%…95.5%||35.0% 14.5%…63.1%|
Threshold|Value stability|Equally good|Not rejected|Accuracy on the fit|Constant guess|Gain unseen topics, po|Pairs
h lack of information|0.250 0.119…0.250|0.000…0.500|0.000…0.500|83.3%|73.3%|+10.0 −18.7…+34.7|30
k right above|0.250 0.250…0.750|0.000…0.500|0.000…1.000|86.7%|70.0%|+16.7 −12.4…+39.1|30
Zone|Share by score|Class|Share by judge|Difference points
above k|58.1%|5|41.9%|+16.1 +6.2…+25.0
between h and k|0.0%|2, 3, 4|29.0%|−29.0 −42.4…−14.0
below h|41.9%|1|25.8%|+16.1 +9.4…+23.9
no verdict|–|–|3.2%|–
Measure|Predictor|Without it|Better is
AUC, right or not|0.940 0.828…1.000|0.500|higher
AUC, lack of informati|0.900 0.785…0.957|0.500|higher
Log loss, nats|1.077 0.778…1.358|1.572 1.348…1.814|lower
Brier score|0.530 0.366…0.679|0.777 0.678…0.879|lower
Calibration error of P|0.233 0.131…0.271|–|nearer to 0
Slope of calibration u|–|–|nearer to 1
Intercept of calibrati|0.059 −0.889…0.944|–|nearer to 0
For|Calls|Cached|Prompt tokens|Completion tokens|US dollars
Queries|3|0|0|0|0.1250
Answers|18|16|2,000|200|1.75
Verdicts|15|0|6,500|0|0.7500
System|N|End to end|Of it|Questions
bm25|300|500 ms 2.0 s|run 125 ms|5
Stage|Time
answers|5.0 s
run|3.2 s
System|N|Calls|Cached|Prompt tokens|Completion tokens|US dollars|Time
bm25|100|9|0|1,400|40|0.7500|2.0 s
bm25|300|11|4|2,600|60|0.7500|3.0 s
sim|100|5|10|3,000|0|0.1250|4.0 s
sim|300|11|2|1,500|100|1.00|1.0 s
"""
SENTENCES = """
towers: 2 systems compared
ragauge report of s · 10 topics · 4 jobs · 1 failed
38 % of failures come from retrieval (18 to 63), 25 % from the budget (10 to 51), 13 % from the LLM (0 to 50), \
12 % have no verdict (0 to 50), 12 % are not known: 1 question lacks evidence.
Replies cut at the token limit: answers 3 of 39; max_tokens (num_predict) of the model's chat sets it.
1 of 39 verdicts could not be read, nor those that the judge gave when asked again. The first: no class in “hm”.
1 of 10 topics have no evidence: the IR score is of the others.
1 of 10 topics are unanswerable: right is class 1 there, and they are counted apart.
Best IR score at N = 300 0.625 bm25, 0.386 to 0.815
Most right answers at N = 300 77.8 % bm25, 45.3 % to 96.1 %
Fewest hallucinations at N = 300 11.1 % bm25, 0.6 % to 43.5 %
IR score tells right answers apart AUC 0.940 0.828 to 1.000; 0.5 is chance
LLM calls paid for 36 2.62 USD; 16 more were cached
2 topics worth reading
Causes by kind, bm25
Not in the table, since its jobs failed: mmr (no model).
Smallest difference that the tests see with a power of 80 %, for the pair that varies most: IR score 0.504, right 73.2
points, hallucination 80.1 points.
Holm's correction counts the pairs of each measure by itself, so that some of 4 measures differs by chance in up to
19% of sweeps; primary measures: IR score, right; exploratory: hallucination, exact match.
The top of 2 systems owes part of its lead to chance. This part is expected to be at most 0.043 of the best IR score,
0.0 points of the most right answers, 2.8 points of the fewest hallucinations.
It is not 0 on text that has nothing to do with the question: random passages of the same corpus score 0.125 at N =
300. The distance of a system from this floor is due to its retrieval.
The share of right answers moves by up to 25.0 points with the judge's wording
8 answers have a label by people and a verdict. Cohen's κ 0.368 (−0.006 to 0.823); equal labels 62.5 % (25.2 % to 93.5
%).
Every measure by slice of the topics, at N = 300 tokens. Slices are many: 2 of 22 intervals over 2 slices are expected
to miss. The highest and lowest of many slices owe part of their distance to chance. The mark “small” is on slices
with fewer than ten topics, which say little. All of it is in tables/slices.csv.
Over all 31 judged answers of the sweep. A difference is the bias of reading class shares off the thresholds.
bm25 · N = 300 · IR score 0.500 · qid q4
in all jobs: 1, lack of information 3× · 4, wrong 1×
sim · N = 300 · IR score 0.500 · qid q1
in all jobs: 4, wrong 2× · 5, right 2×
python run.py -m retriever=bm25,sim,mmr n_tokens=100,300
10 topics; digest dddddddddddddddd
4 finished, 1 failed; budgets N = 100, 300 tokens
"""
# Right answers by the place of the evidence, as (system, place, topics, right); the report has no rows of so few.
PLACES = [
    ("bm25", "beginning", 2, 2), ("bm25", "middle", 1, 1), ("bm25", "end", 1, 1),
    ("sim", "beginning", 1, 0), ("sim", "middle", 2, 1), ("sim", "end", 1, 1),
]  # fmt: skip
LINES = """
the share of right answers moves with the judge's wording, by points: 12.5 (bm25), 25.0 (sim)
h = 0.250, lack below: 10.0 points over guessing (-18.7 to 34.7), no use shown
k = 0.250, right above: 16.7 points over guessing (-12.4 to 39.1), no use shown
predictor, on unseen topics: AUC 0.940 for right answers, 0.900 for lack
Replies cut at the token limit: answers 3 of 39; max_tokens (num_predict) of the model's chat sets it.
1 of 39 verdicts could not be read, nor those that the judge gave when asked again. The first: no class in “hm”.

Leaderboard at N = 300 tokens, 10 topics; 95 % intervals; * may be the best
system  IR score            right       lack      hallucination  no verdict  rejected
bm25    0.625* 0.386-0.815  78%* 45-96  11% 1-43  11%* 1-43      0%          100%
sim     0.500* 0.275-0.725  33%* 9-65   11% 1-43  33%* 9-65      11%         100%
not in the table, since its jobs failed: mmr

38 % of failures come from retrieval (18 to 63), 25 % from the budget (10 to
51), 13 % from the LLM (0 to 50), 12 % have no verdict (0 to 50), 12 % are not
known: 1 question lacks evidence.
No system is shown to be better than another in right answers to answerable
questions.
Next: ask for more hits, search by words and meaning at once, or by several
queries (retriever=hybrid retriever.top_k=100 rewriter=multi_query).
"""


@pytest.fixture(scope="module")
def found() -> PooledFindings:
    """What ragauge's own findings say of the sweep."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loading, "entry_points", lambda group: [])
        return pooled(jobs())


def test_every_table_of_the_report_counts_what_the_jobs_hold(found: PooledFindings, tmp_path: Path) -> None:
    write_report([found.page], tmp_path / "report.html")
    said = words(tmp_path / "report.html")
    rows = [line for line in said if " | " in line]
    assert ["|".join(short(cell) for cell in row.split("|")) for row in rows] == ROWS.strip().splitlines()
    for line in SENTENCES.strip().splitlines():
        assert line in " ".join(said)
    places = found.value("failures").places
    assert list(places[["system", "place", "n", "right"]].itertuples(index=False, name=None)) == PLACES


def test_the_terminal_says_the_same(found: PooledFindings) -> None:
    assert "\n".join(found.lines) == LINES.removeprefix("\n").removesuffix("\n")


def test_charts_and_figures_hold_a_point_for_each_budget_and_a_bar_for_each_step(found: PooledFindings) -> None:
    assert {name: line for one in found.found.values() for name, line in (one.steps or {}).items()} == {
        "ir_score_at_n/bm25": {50: 0.125, 100: 0.25, 300: 0.625}, "ir_score_at_n/sim": {50: 0, 100: 0.125, 300: 0.5},
        "ir_score_floor_at_n/unrelated text": {50: 0.0625, 100: 0.125, 300: 0.125},
        "correct_share_at_n/bm25": {100: 0.25, 300: 0.75}, "correct_share_at_n/sim": {100: 0.25, 300: 0.375},
        "threshold_h_at_n": {100: 0.25, 300: 0.25}, "threshold_k_at_n": {100: 0.25, 300: 0.25},
    }  # fmt: skip
    panels = found.page.figures["funnel"].axes
    assert [axes.get_title(loc="left") for axes in panels] == ["bm25", "sim"]
    assert [[text.get_text() for text in axes.texts] for axes in panels] == [
        ["−0.250", "1.000"], ["−0.375", "1.000"],
    ]  # fmt: skip
    bars = [[[round(bar.get_width(), 4) for bar in kind] for kind in axes.containers] for axes in panels]
    assert bars == [[[1, 0.75, 0.625], [0, 0.25, 0], [0, 0, 0]], [[1, 0.625], [0, 0.375], [0, 0]]]
