"""The leaderboard on a terminal: the headline, and answer measures in tables of their own."""

from __future__ import annotations

import numpy as np
import pandas as pd

from ragauge.contract.protocols import AnswerMeasureInfo
from ragauge.estimate import leaderboard
from ragauge.findings.terminal import detectable_text, leaderboard_text

INFOS = [AnswerMeasureInfo(f"m{i}", f"measure number {i}", unit="share") for i in range(9)]


def outcomes() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    of_systems = [
        pd.DataFrame(
            {"qid": [f"q{i}" for i in range(30)], "system": system, "ir_score": rng.random(30)}
            | {info.name: rng.random(30) for info in INFOS}
        )
        for system in ("bm25", "sim")
    ]
    frame = pd.concat(of_systems, ignore_index=True)
    return frame.assign(label=pd.array([5, 1, 2] * 20, dtype="Int8"))


def test_answer_measures_widen_no_table_beyond_a_terminal() -> None:
    board = leaderboard(outcomes(), "system", answers=INFOS)
    alone = leaderboard_text(board, 100, True).splitlines()
    shown = leaderboard_text(board, 100, True, INFOS).splitlines()
    # The headline is as it is without them.
    assert shown[:5] == alone[:5]
    assert all("measure number" not in line for line in shown[:5])
    below = shown[5:-1]
    assert max(map(len, below)) <= 100
    for info in INFOS:
        (header,) = [line for line in below if info.label in line]
        assert header.startswith("system")
    for row in board.to_dict("records"):
        of_system = [line for line in below if line.lstrip().startswith(row["system"])]
        for info in INFOS:
            assert any(f"{row[info.name]:.1%}" in line for line in of_system)


def test_without_scores_and_verdicts_the_measures_are_the_leaderboard() -> None:
    bare = outcomes().assign(ir_score=np.nan, label=pd.array([None] * 60, dtype="Int8"))
    shown = leaderboard_text(leaderboard(bare, "system", answers=INFOS), 100, False, INFOS[:2]).splitlines()
    assert shown[2].split() == ["system", "measure", "number", "0", "↑", "measure", "number", "1", "↑"]
    assert shown[5].startswith("↑ higher is better")


def test_the_line_of_smallest_differences_is_of_the_headline_or_else_of_the_measures() -> None:
    columns = ["measure", "unit", "difference", "difference_median", "comparisons"]
    rows = [("ir_score", "share", 0.1, 0.1, 1), ("m0", "share", 0.2, 0.2, 1)]
    assert detectable_text(pd.DataFrame(rows, columns=columns), INFOS).endswith(": IR score 0.100")
    assert detectable_text(pd.DataFrame(rows[1:], columns=columns), INFOS).endswith(": measure number 0 20.0 points")


def test_a_measure_that_some_topics_lack_says_how_many_have_it() -> None:
    rows = outcomes()
    rows.loc[rows["system"].eq("bm25") & ~rows["qid"].isin([f"q{i}" for i in range(7)]), "m0"] = np.nan
    text = leaderboard_text(leaderboard(rows, "system", answers=INFOS[:2]), 100, True, INFOS[:2])
    [first, second] = [line for line in text.splitlines()[6:] if line.strip().startswith(("bm25", "sim"))]
    bm25, sim = (first, second) if "bm25" in first else (second, first)
    assert " of 7 " in bm25
    assert " of " not in sim
    assert "of: the topics that have a value" in text


def test_where_nothing_was_measured_there_is_no_empty_table() -> None:
    bare = outcomes().assign(ir_score=np.nan, label=pd.array([None] * 60, dtype="Int8"))
    shown = leaderboard_text(leaderboard(bare, "system"), 100, False)
    assert shown == ("\nNo leaderboard of bm25, sim: no IR score, no verdict, no measure of answers; 30 topics")
