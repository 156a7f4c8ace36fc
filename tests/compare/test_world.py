"""Three runs side by side, and one of another budget: all that is printed and written of them, worked out by hand."""

from __future__ import annotations

import io
import math
import re
from dataclasses import replace

import pandas as pd
import pytest

from ragauge import compare as comparing
from ragauge.contract.errors import ConfigError
from ragauge.contract.jobs import Compared
from ragauge.contract.measures import AnswerMeasureInfo

# Of each run the IR score, the label, F1 and the cause of failure. A dot is missing, a minus a topic that it lacks;
# q7 is unanswerable and has no evidence. Of mmr most verdicts are missing, so that it is compared by scores alone.
WORLD = """
     bm25             sim              mmr
q0   .9 5 .8 .        .6 4 .5 llm      .95 5 .9 .
q1   .5 5 .6 .        .5 5 .6 .        .6  . .7 judge
q2   .5 4 .5 llm      .9 5 .5 .        .6  . .4 judge
q3   .1 1 .4 lost     .3 1 .9 lost     .2  . .  judge
q4   .2 1 .  lost     .2 2 .3 words    .7  . .5 judge
q5   .7 5 .3 .        .2 3 .1 budget   .9  . .6 judge
q6   .7 3 .2 budget   -  - -  -        .8  5 .2 .
q7   .  1 .1 .        .  5 .2 words    .   1 .3 .
q8   .4 5 .3 .        .4 5 .3 .        .5  . .3 judge
"""
CAUSES = {"lost": "not retrieved", "llm": "generation error", "words": "unsupported answer",
          "budget": "beyond the budget", "judge": "judge missing"}  # fmt: skip
RUNS = {"run_id": ["r1", "r2", "r3", "r4"], "run": ["bm25", "sim", "mmr", "bm25 300"],
        "system": ["bm25", "sim", "mmr", "bm25"], "n_tokens": [100, 100, 100, 300], "compared": [True] * 3 + [False],
        "ir_score": [0.7, 0.45, 0.643, 0.9], "ir_score_lo": [0.3, 0.2, 0.5, 0.8], "ir_score_hi": [0.8, 0.6, 0.9, 0.95],
        "correct_share": [0.375, 0.25, 0.25, 0.5], "hallucination_share": [0.125, 0.25, 0.0, 0.1],
        "judge_share_missing": [0.0, 0.0, 0.625, 0.0], "f1": [0.41, 0.44, 0.51, 0.6],
        "cost_usd": [0.5, 0.0, 0.25, 1.0]}  # fmt: skip


def compared() -> comparing.Comparison:
    rows = []
    for line in WORLD.strip("\n").splitlines()[1:]:
        qid, *cells = line.split()
        for i, run in enumerate(("r1", "r2", "r3")):
            ir, label, f1, cause = cells[4 * i : 4 * i + 4]
            if ir != "-":
                rows.append((run, qid, f"What is {qid}?", f"{qid} by {run}", *(math.nan if v == "." else float(v)
                             for v in (ir, label, f1)), CAUSES.get(cause), qid == "q7"))  # fmt: skip
    columns = ["run_id", "qid", "query", "answer", "ir_score", "label", "f1", "failure_cause", "unanswerable"]
    outcomes = pd.DataFrame(rows, columns=columns).astype({"label": "Int8"})
    outcomes = outcomes.sort_values("run_id", kind="stable", ignore_index=True)
    table, f1 = pd.DataFrame(RUNS), AnswerMeasureInfo("f1", "F1", unit="share")
    params = pd.DataFrame({"retriever": table["system"].tolist()}, index=table["run_id"])
    return comparing.found_of(
        Compared(
            outcomes, dict(zip(table["run_id"], table["run"], strict=True)), "r1", [f1], 100, 50, 0, runs=table,
            params=params, common={"dataset": "towns", "topics": "9"}, baseline_chosen=True, limits=["Limit."],
            equivalent=0.3,
        )
    )  # fmt: skip


# sim less bm25 on q0 to q5 and q8: -0.3 + 0.4 + 0.2 - 0.5 of 7; of 16 signs 14 are as extreme. Right on q2 and not on
# q0 and q5, a hallucination on q0 and q4 and not on q2. F1: -0.3 + 0.5 - 0.2 + 0.1 of q0 to q3, q5, q7 and q8.
# mmr less bm25: 0.05 + 0.1 + 0.1 + 0.1 + 0.5 + 0.2 + 0.1 + 0.1 of 8, all of one sign: p 2 / 256. F1 on q0 to q2 and
# q5 to q8: 0.1 + 0.1 - 0.1 + 0.3 + 0.2 of 7; of 32 signs 8 are as extreme.
# Holm counts the three pairs of IR scores and the one of verdicts twice: 5 times 2 / 256; of F1 three.
PAIRS = [
    ("r2", "ir_score", -0.2 / 7, 14 / 16, 1, 7),
    ("r2", "correct", -1 / 7, 1, 1, 7),
    ("r2", "hallucination", 1 / 7, 1, 1, 7),
    ("r2", "f1", 0.1 / 7, 1, 1, 7),
    ("r3", "ir_score", 1.25 / 8, 2 / 256, 10 / 256, 8),
    ("r3", "f1", 0.6 / 7, 8 / 32, 0.5, 7),
]
SHOWN = """
4 runs, 9 topics. In common: dataset towns.

What differs
system  retriever  n_tokens
bm25    bm25       100, 300
sim     sim        100
mmr     mmr        100

Metrics
run       id                IR score    right  hallucination  no verdict  cost, USD
bm25      r1  0.700^  [0.300, 0.800]  0.375^         0.125^      0.000^      0.5000
sim       r2  0.450   [0.200, 0.600]  0.250          0.250       0.000^        0.00
mmr       r3  0.643†  [0.500, 0.900]  0.250          0.000       0.625       0.2500

bm25 300  r4  0.900   [0.800, 0.950]  0.500          0.100       0.000         1.00

Measures
run       id     F1 ↑
bm25      r1  0.410
sim       r2  0.440
mmr       r3  0.510^

bm25 300  r4  0.600

Paired differences from bm25, N = 100 tokens
run  topics       IR score, difference      p  p, Holm  topics          right, difference      p  p, Holm  topics
sim       7  -0.029   [-0.336, +0.286]  0.875    1.000       7  -0.143   [-0.541, +0.318]  1.000    1.000       7
mmr       8  +0.156†  [-0.076, +0.354]  0.008    0.039       –                        –        –        –       –
run  hallucination, difference      p  p, Holm
sim  +0.143   [-0.318, +0.541]  1.000    1.000
mmr                        –        –        –

Paired differences from bm25, N = 100 tokens: Answers
measure  run  topics                 difference      p  p, Holm
F1 ↑     sim       7  +0.014   [-0.276, +0.301]  1.000    1.000
F1 ↑     mmr       7  +0.086   [-0.165, +0.315]  0.250    0.500

Equivalent to bm25 within 0.3
run  measure        topics  difference, 90 % interval  shown
sim  IR score            7  -0.029   [-0.272, +0.222]  equivalent
sim  right               7  -0.143   [-0.472, +0.249]  not shown
sim  hallucination       7  +0.143   [-0.249, +0.472]  not shown
sim  F1 ↑                7  +0.014   [-0.216, +0.241]  equivalent
mmr  IR score            8  +0.156   [-0.033, +0.311]  not shown
mmr  F1 ↑                7  +0.086   [-0.115, +0.265]  equivalent

Causes of failure that changed from bm25: 12 of 17
run  cause              becomes             topics
sim  generation error   not failed               1
sim  not failed         beyond the budget        1
sim  not failed         generation error         1
sim  not failed         unsupported answer       1
sim  not retrieved      unsupported answer       1
mmr  not failed         judge missing            3
mmr  not retrieved      judge missing            2
mmr  beyond the budget  not failed               1
mmr  generation error   judge missing            1

Topics that differ most in IR score: 3 of 8
  1. q4: What is q4?
     bm25  0.200  1 lack        q4 by r1
     mmr   0.700  no verdict    q4 by r3
  2. q5: What is q5?
     bm25  0.700  5 right       q5 by r1
     sim   0.200  3 incomplete  q5 by r2
  3. q2: What is q2?
     bm25  0.500  4 wrong       q2 by r1
     sim   0.900  5 right       q2 by r2

Topics that differ most in judge class: 3 of 6
  1. q2: What is q2?
     bm25  0.500  4 wrong  q2 by r1
     sim   0.900  5 right  q2 by r2
  2. q0: What is q0?
     bm25  0.900  5 right  q0 by r1
     sim   0.600  4 wrong  q0 by r2
  3. q7: What is q7?
     bm25      –  1 lack   q7 by r1
     sim       –  5 right  q7 by r2
"""


def test_pairs_are_on_the_topics_of_both_and_corrected_by_family() -> None:
    found = compared()
    assert found.n_tests == {"headline": 5, "Answers": 3}
    columns = ["run_id", "measure", "difference", "p", "p_holm", "n"]
    rows = found.pairs[columns].itertuples(index=False, name=None)
    assert list(rows) == [(*row[:2], *map(pytest.approx, row[2:5]), row[5]) for row in PAIRS]


def test_what_is_printed_and_said_of_them() -> None:
    found = compared()
    printed = comparing.text(found, found.metrics, 3, 118)
    assert printed[: printed.index("^ best of its column.")].split("\n\n") == [*SHOWN.strip("\n").split("\n\n"), ""]
    told = found.notes
    assert told[:2] == [
        "The best is that among the runs of one N; only those of one N make pairs.",
        "Topics with a value of F1: 8 of 9 in bm25, 8 of 8 in sim, 8 of 9 in mmr; a mean is over these, a pair over "
        "those of both.",
    ]
    assert told[2].startswith("† differs from bm25 after Holm's correction over 5 comparisons (each section by itself")
    assert told[3] == "bm25 was taken for its IR score, the best of them, so Holm counts all pairs."
    assert told[-1] == "Limit."
    assert found.metrics == [
        "ir_score", "correct_share", "hallucination_share", "judge_share_missing", "cost_usd", "f1",
    ]  # fmt: skip


def test_the_file_of_runs_has_every_difference_in_its_row() -> None:
    found = compared()
    written = pd.read_csv(io.StringIO(comparing.runs_csv(found, found.metrics))).set_index("run_id")
    assert written.index.tolist() == RUNS["run_id"]
    assert written["is_baseline"].tolist() == [True, False, False, False]
    for run_id, measure, difference, p, p_holm, n in PAIRS:
        ends = ("", "_p", "_p_holm", "_topics")
        row = [written.loc[run_id, f"difference_{measure}{end}"] for end in ends]
        assert row == pytest.approx([difference, p, p_holm, n])
    for name in ("ir_score", "ir_score_lo", "ir_score_hi", "f1", "cost_usd"):
        assert written[name].tolist() == RUNS[name]
    assert written["equivalence_ir_score"].tolist()[1:3] == ["equivalent", "not shown"]
    assert written.loc["r3", "difference_correct":"difference_correct_topics"].isna().all()  # type: ignore[misc]
    topics = pd.read_csv(io.StringIO(comparing.topics_csv(found)))
    assert list(topics) == ["run_id", "run", "qid", "query", "ir_score", "label", "answer", "f1"]
    assert topics.groupby("run_id")["qid"].size().to_dict() == {"r1": 9, "r2": 8, "r3": 9}


COLUMNS = """
Metrics
run       id     RR     P@1  right   hallucination  topics_read  length  no verdict
bm25      r1  0.500  0.000   0.375^  0.200^                   1   3.500      0.000^
sim       r2  0.500  1.000^  0.300   0.100                    4   4.000      0.200
mmr       r3  0.500  0.000   0.250   0.000                    2   3.000      0.625

bm25 300  r4  0.900  1.000   0.500   0.100                    9   1.000      0.000
"""


def test_a_column_has_its_kind_and_marks_the_best_of_each_budget_unless_all_are_equal() -> None:
    found = compared()
    more = {"rr": [0.5, 0.5, 0.5, 0.9], "p_at_1": [0.0, 1, 0, 1], "topics_read": [1.0, 4, 2, 9],
            "length": [3.5, 4, 3, 1]}  # fmt: skip
    # What has no verdict may be a hallucination: 0.3 of sim at most. Of mmr most is not known.
    verdicts = {"correct_share": [0.375, 0.3, 0.25, 0.5], "hallucination_share": [0.2, 0.1, 0.0, 0.1],
                "judge_share_missing": [0.0, 0.2, 0.625, 0.0]}  # fmt: skip
    found = replace(found, runs=found.runs.assign(**more, **verdicts))
    names = comparing.choose_metrics(found, "RR,p_at_1, correct_share,hallucination_share,topics_read,length")
    printed = comparing.text(found, names, 0, 118)
    assert " ".join(printed.split("\n\n")[2:4]).split() == COLUMNS.split()
    assert "Metrics of RAG systems on towns, 9 topics, N = 100 tokens." in comparing.latex(found, names)
    asked = comparing.choose_metrics(found, everything=True)
    assert asked[:4] == ["ir_score", "correct_share", "hallucination_share", "judge_share_missing"]
    assert {*more} <= {*asked}
    assert not [name for name in asked if name.endswith(("_lo", "_hi"))]
    with pytest.raises(ConfigError, match=r"no run has 'speed'; there are ir_score, correct_share, hall") as refused:
        comparing.choose_metrics(found, "ir_score,speed")
    assert "_lo" not in str(refused.value)
    free = replace(found, runs=found.runs.assign(cost_usd=0.0))
    assert "cost_usd" not in comparing.choose_metrics(free)


# Every topic is there twice; q1 is the slice "late". Early ones of bm25 have 3.5 of 7, sim 2.6 of 6, mmr 4.65 of 7, and
# they differ as all do but q1: -0.2 of 6, 1.15 of 7. Right are 3 of 7 that have an answer, 2 of 6, and 2 of 7 for mmr,
# of which most have no verdict, so that it makes no pair. The topics are the most of any column, as F1 has for sim.
SLICES = """
early bm25 14 0.500 – 0.429 –
early sim 14 0.433 −0.033 0.333 −0.167
early mmr 14 0.664 +0.164† 0.286 –
late bm25 2 0.500 – 1.000 –
late sim 2 0.500 – 1.000 –
late mmr 2 0.600 – – –
"""


def test_slices_are_of_their_own_topics_and_people_correct_the_verdicts() -> None:
    found = compared()
    twice = found.outcomes.assign(qid="again " + found.outcomes["qid"])
    outcomes = pd.concat([found.outcomes, twice], ignore_index=True)
    late = outcomes["qid"].str.endswith("q1")
    # To people sim is right on q4, and so it is right and hallucinates as often as bm25.
    of_people = outcomes["label"].mask(outcomes["qid"].str.endswith("q4") & outcomes["run_id"].eq("r2"), 5)
    outcomes = outcomes.assign(**{"slice:when": late.map({True: "late", False: "early"})}, human_label=of_people)
    given = {name: value for name, value in vars(found).items() if name not in ("found", "csv", "metrics")}
    found = comparing.found_of(Compared(**{**given, "outcomes": outcomes, "slices": True}))
    pages = comparing.markdown(found, found.metrics, 0).split("### ")
    [slices] = [page for page in pages if page.startswith("By slice of the topics, differences from bm25")]
    cells = [[re.sub(r" \[.*", "", cell.strip()) for cell in row.split("|")[2:-1]] for row in slices.splitlines()[4:]]
    heads = [cell.strip() for cell in slices.splitlines()[2].split("|")[2:-1]]
    shown = [heads.index(name) for name in ("IR score", "IR score, difference", "right", "right, difference")]
    read = [" ".join([*row[:3], *(row[at] for at in shown)]) for row in cells if len(row) > 3]
    assert read == SLICES.strip().splitlines()
    [people] = [page for page in pages if "as people would judge (verdicts corrected by labels)" in page]
    rows = [[re.sub(r" \[.*", "", cell.strip()) for cell in row.split("|")[1:6]] for row in people.splitlines()[4:6]]
    assert rows == [["sim", "right", "14", "−0.143", "+0.000"], ["sim", "hallucination", "14", "+0.143", "+0.000"]]
