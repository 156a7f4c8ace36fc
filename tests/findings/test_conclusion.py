"""The conclusion: where failures come from, whether a system is shown to be better, what to try next."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from ragauge.contract.finding import Shown
from ragauge.contract.jobs import Jobs
from ragauge.contract.outcomes import CAUSE
from ragauge.diagnose.failures import failure_origins
from ragauge.estimate import compare_pairs, leaderboard
from ragauge.estimate.best import best_sets
from ragauge.estimate.plan import alike, detectable_differences
from ragauge.findings.conclusion import Conclusion
from ragauge.findings.failures import _unanswerable
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


def concluded(rows: pd.DataFrame) -> list[str]:
    pairs, best = compare_pairs(rows, "system"), best_sets(rows, "system")
    frame = leaderboard(rows, "system", 50, best=best)
    board = Board(frame, pairs, best, detectable_differences(rows, pairs), alike(rows))
    found = {"leaderboard": board}
    if rows[CAUSE].notna().any():
        found["failures"] = SimpleNamespace(origins=failure_origins(rows), unanswerable=_unanswerable(rows))  # type: ignore
    sentences: list[str] = Conclusion().compute(Jobs("s", "e", [], [], rows), found).value
    return sentences


def test_a_majority_is_named_with_its_interval_and_what_to_try_for_its_first_cause() -> None:
    causes = {"not retrieved": 60, "cut by the chunker": 20, "generation error": 20}
    first, second, third = concluded(outcomes({"bm25": 151, "sim": 149}, causes))
    # 80 of 100 failures; Wilson's interval at the 50 topics that they are of.
    assert first.startswith("Most failures come from retrieval: 80 % of 100 (95 % interval ")
    assert second == "No system is shown to be better than another in right answers."
    assert third == (
        "Next: ask for more hits, search by words and meaning at once, or by several queries "
        "(retriever=hybrid retriever.top_k=100 rewriter=multi_query)."
    )


def test_without_a_majority_two_origins_are_named() -> None:
    first, *_ = concluded(outcomes({"bm25": 100}, {"beyond the budget": 45, "unsupported answer": 55}))
    assert first.startswith("55 % of failures come from the LLM (45 to 64), 45 % from the budget (")


def test_unknown_evidence_and_no_failure_are_said() -> None:
    first, *others = concluded(outcomes({"bm25": 190, "sim": 190}, {"no evidence known": 20}))
    assert first == "Nothing shows where the 20 failures come from: the dataset names no evidence for them."
    assert not [one for one in others if one.startswith("Next")]
    assert concluded(outcomes({"bm25": N, "sim": N}))[0] == "No answer failed."


def test_systems_that_are_shown_to_be_worse_are_named_and_several_that_may_be_the_best() -> None:
    assert concluded(outcomes({"bm25": 150, "sim": 40}))[1] == "bm25 is shown to be the best in right answers."
    right = {"bm25": 150, "reo": 150, "sim": 40, "mmr": 40, "mlq": 40, "a": 40, "b": 40}
    assert " and 2 others are shown to be worse." in concluded(outcomes(right))[1]
    assert "Right answers: bm25 or reo may be best; " in concluded(outcomes(right))[1]


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


def test_the_lead_comes_first_and_its_lines_are_as_wide_as_a_terminal() -> None:
    jobs = Jobs("s", "e", [], [], pd.DataFrame())
    shown = {"a": Shown(lead=["word " * 40]), "b": Shown(lines=["a line"])}
    lines = PooledFindings(jobs, {}, shown).lines
    assert len(lines) == 4
    assert max(map(len, lines)) <= WIDTH
    assert lines[-1] == "a line"


def test_failures_on_unanswerable_questions_are_said_to_be_none_of_right_answers() -> None:
    rows = outcomes({"bm25": 200, "sim": 200})
    last = rows["qid"].isin([f"q{i}" for i in range(190, 200)])
    rows = rows.assign(unanswerable=last, **{CAUSE: rows[CAUSE].mask(last, "unsupported answer")})
    first, second, *_ = concluded(rows)
    assert first.startswith("Most failures come from the LLM: 100 % of 20 (95 % interval ")
    assert first.endswith(". 20 of them are answers to unanswerable questions.")
    assert second.startswith("All systems score 1.000 in right answers to answerable questions: ")
