"""The conclusion: where failures come from, whether a system is shown to be better, what to try next."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.sweep_records import record_of

from ragauge.contract.finding import Grid, Heading, Shown
from ragauge.contract.jobs import Jobs
from ragauge.contract.outcomes import CAUSE
from ragauge.contract.record import JobRecord
from ragauge.estimate import compare_pairs, leaderboard
from ragauge.estimate.best import best_sets
from ragauge.estimate.plan import alike, detectable_differences
from ragauge.findings.conclusion import Conclusion
from ragauge.findings.failures import Failures, _to_read
from ragauge.findings.leaderboard import Board
from ragauge.findings.pooling import PooledFindings
from ragauge.findings.terminal import WIDTH

N = 200
NONE: dict[str, int] = {}


def outcomes(right: dict[str, int], causes: dict[str, int] = NONE, score: float | None = None) -> pd.DataFrame:
    """Systems that are right on so many of the first topics; the last rows that fail have these causes."""
    rows = pd.concat(
        [
            pd.DataFrame({"qid": [f"q{i}" for i in range(N)], "system": system, "n_tokens": 100,
                          "label": pd.array([5] * n + [1] * (N - n), dtype="Int8")})
            for system, n in right.items()
        ],
        ignore_index=True,
    )  # fmt: skip
    cause = pd.Series(None, index=rows.index, dtype=object)
    failed = rows.index[rows["label"] != 5]
    cause[failed[: sum(causes.values())]] = np.repeat(list(causes), list(causes.values()))
    rng = np.random.default_rng(0)
    return rows.assign(ir_score=rng.random(len(rows)) if score is None else score, **{CAUSE: cause})


def concluded(rows: pd.DataFrame, *records: JobRecord) -> list[str]:
    pairs, best = compare_pairs(rows, "system"), best_sets(rows, "system")
    frame = leaderboard(rows, "system", 50, best=best)
    board = Board(frame, pairs, best, detectable_differences(rows, pairs), alike(rows))
    found = {"leaderboard": board}
    jobs = Jobs("s", "e", list(records), [], rows)
    if rows[CAUSE].notna().any():
        found["failures"] = Failures().compute(jobs, {}).value  # type: ignore
    sentences: list[str] = Conclusion().compute(jobs, found).value
    return sentences


def test_a_majority_is_named_with_its_interval_and_what_to_try_for_its_first_cause() -> None:
    causes = {"not retrieved": 60, "cut by the chunker": 20, "generation error": 20}
    first, second, third = concluded(outcomes({"bm25": 151, "sim": 149}, causes))
    # 80 of 100 failures; Wilson's interval at the 50 topics that they are of.
    assert re.fullmatch(
        r"Most failures come from retrieval: 80 % of 100 \(95 % interval .*\), 20 % from the LLM \(.*\)\.", first
    )
    assert second == "No system is shown to be better than another in right answers."
    assert third == (
        "Next: ask for more hits, search by words and meaning at once, or by several queries "
        "(retriever=hybrid retriever.top_k=100 rewriter=multi_query)."
    )


def test_without_a_majority_two_origins_are_named() -> None:
    first, *_ = concluded(outcomes({"bm25": 100}, {"beyond the budget": 45, "unsupported answer": 55}))
    assert first.startswith("55 % of failures come from the LLM (45 to 64), 45 % from the budget (")


def recorded(*overrides: str, **more: Any) -> JobRecord:
    choices = {"dataset": "samples", "retriever": "recorded", "llm": "recorded"}
    return record_of(choices=choices, overrides=list(overrides), outside=["retriever", "llm"], **more)


def test_the_parts_sum_to_all_failures_and_what_is_not_known_says_how_to_know_it() -> None:
    """Of twenty recorded rows ten are wrong, and one of these has evidence."""
    rows = outcomes({"all": 10}).iloc[:20]
    cause = pd.Series([None] * 10 + ["not retrieved"] + ["no evidence known"] * 9, dtype=object)
    there = [1.0] * 14 + [0.0] * 6
    rows = rows.assign(answer_in_context=there, answer_reference=["Graz"] * 19 + ["Yes."], **{CAUSE: cause})
    first, about, step = concluded(rows, recorded("experiment=recorded", "recorded.path=my rows.jsonl"))
    assert re.fullmatch(
        r"10 % of failures come from retrieval \(.*\), 90 % are not known: 9 questions lack evidence\.", first
    )
    assert about == (
        "In 3 of 8 failures without evidence the reference answer stood in the context, which points to the LLM; in 5 "
        "it did not, which points to retrieval."
    )
    assert step == (
        "Next: let a chat model find the evidence in your documents (ragauge annotate dataset=samples "
        "'dataset.path=my rows.jsonl' dataset.docs=<documents.jsonl> evaluator=openai out=annotated.jsonl)."
    )


def test_failed_answers_without_evidence_are_there_to_read() -> None:
    rows = outcomes({"all": 1}, {"no evidence known": 2, "not retrieved": 1}).iloc[:4]
    rows = rows.assign(
        query=list("abcd"),
        answer=["x", None, "y", "z"],
        answer_reference="Graz",
        answer_in_context=[1.0, 0.0, 1.0, 1.0],
    )
    heading, grid = _to_read(rows)
    assert heading == Heading("Failed answers without evidence, 2 of 2")
    assert isinstance(grid, Grid)
    assert grid.rows == [["all", "c", "Graz", "y", "yes"], ["all", "b", "Graz", "", "no"]]


def test_percentages_of_thirds_and_eighths_sum_to_100() -> None:
    causes = {"not retrieved": 60, "beyond the budget": 15, "generation error": 60, "not in the corpus": 15}
    first, *_ = concluded(outcomes({"bm25": 125, "sim": 125}, causes))
    assert sum(int(share) for share in re.findall(r"(\d+) %", first)) == 100


def test_advice_is_given_only_where_it_can_be_followed() -> None:
    lost = outcomes({"all": 180}, {"not retrieved": 20})
    assert concluded(lost, recorded())[-1] == (
        "Next: ask for more hits, search by words and meaning at once, or by several queries, in the system that was "
        "recorded or asked."
    )
    assert not concluded(lost, record_of(condition=0.4))[-1].startswith("Next")  # the retriever takes evidence away


def test_answers_without_a_verdict_are_no_contexts_that_lack_evidence() -> None:
    rows = outcomes({"bm25": 194}, {"judge missing": 6}).assign(label=pd.array([None] * N, dtype="Int8"))
    assert concluded(rows)[0] == "6 answers have no verdict: nothing shows whether they are right."


def test_unknown_evidence_and_no_failure_are_said() -> None:
    first, *others = concluded(outcomes({"bm25": 190, "sim": 190}, {"no evidence known": 20}))
    assert first == "Nothing shows where the 20 failures come from: 10 questions lack evidence."
    assert not [one for one in others if one.startswith("Next")]
    assert concluded(outcomes({"bm25": N, "sim": N}))[0] == "No answer failed."


def test_systems_that_are_shown_to_be_worse_are_named_and_several_that_may_be_the_best() -> None:
    assert concluded(outcomes({"bm25": 150, "sim": 40})) == ["bm25 is shown to be the best in right answers."]
    right = {"bm25": 150, "reo": 150, "sim": 40, "mmr": 40, "mlq": 40, "a": 40, "b": 40}
    assert " and 2 others are shown to be worse." in concluded(outcomes(right))[0]
    assert "Right answers: bm25 or reo may be best; " in concluded(outcomes(right))[0]


@pytest.mark.parametrize(
    ("right", "says", "instead"),
    [
        (N, "All systems score 1.000 in right answers: these topics cannot tell them apart.", "Harder questions"),
        (0, "All systems score 0.000 in right answers: these topics cannot tell them apart.", "Easier questions"),
        (90, "All systems have the same right answers on every topic: these topics cannot tell them apart.",
         "A smaller n_tokens"),
    ],
)  # fmt: skip
def test_at_the_ceiling_and_the_floor_no_system_is_named(right: int, says: str, instead: str) -> None:
    causes = {"generation error": 2 * (N - right)} if right < N else NONE
    _, second, *next_step = concluded(outcomes({"bm25": right, "sim": right}, causes))
    assert second.startswith(f"{says} {instead}")
    assert len(next_step) == (right < N)


def test_the_terminal_ends_with_the_leaderboard_and_the_lead_in_lines_of_its_width() -> None:
    jobs = Jobs("s", "e", [], [], pd.DataFrame())
    lead = "9 % are of " + "word " * 13 + "95 % of them, " + "word " * 20
    shown = {"a": Shown(lead=[lead]), "leaderboard": Shown(lines=["the board"]), "b": Shown(lines=["a line"])}
    lines = PooledFindings(jobs, {}, shown).lines
    assert lines[:3] == ["a line", "the board", ""]
    assert " ".join(lines[3:]) == lead.strip()
    assert max(map(len, lines)) <= WIDTH
    assert not any(line.startswith("%") for line in lines)


def test_failures_on_unanswerable_questions_are_said_to_be_none_of_right_answers() -> None:
    rows = outcomes({"bm25": 200, "sim": 200})
    last = rows["qid"].isin([f"q{i}" for i in range(190, 200)])
    rows = rows.assign(unanswerable=last, **{CAUSE: rows[CAUSE].mask(last, "unsupported answer")})
    first, second, *_ = concluded(rows)
    assert first.startswith("Most failures come from the LLM: 100 % of 20 (95 % interval ")
    assert first.endswith(". 20 of them are answers to unanswerable questions.")
    assert second.startswith("All systems score 1.000 in right answers to answerable questions: ")
