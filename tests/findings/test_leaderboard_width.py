"""The leaderboard on a terminal: the headline, and answer measures in tables of their own."""

from __future__ import annotations

import numpy as np
import pandas as pd

from ragauge.contract.measures import AnswerMeasureInfo
from ragauge.estimate import leaderboard
from ragauge.findings.terminal import WIDTH, detectable_text, leaderboard_text

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


def test_a_judged_board_is_as_wide_as_a_terminal_and_leaves_answer_measures_to_the_report() -> None:
    board = leaderboard(outcomes(), "system", answers=INFOS)
    shown = leaderboard_text(board, 1000, True, INFOS)
    assert "measure number" not in shown
    _, heading, header, *rows = shown.splitlines()
    assert heading == "Leaderboard at N = 1000 tokens, 30 topics; 95 % intervals; * may be the best"
    assert header.split() == ["system", "IR", "score", "right", "lack", "hallucination"]
    assert max(map(len, (heading, header, *rows))) <= WIDTH
    first = board.iloc[0]
    score = f"{first['ir_score']:.3f}* {first['ir_score_lo']:.3f}-{first['ir_score_hi']:.3f}"
    lack = f"{first['judge_share_1']:.0%} {100 * first['judge_share_1_lo']:.0f}-"
    assert rows[0].startswith(f"{first['system']:<6}  {score}")
    assert lack in rows[0]
    assert len(rows) == 2


def test_without_verdicts_answer_measures_widen_no_table_beyond_a_terminal() -> None:
    bare = outcomes().assign(label=pd.array([None] * 60, dtype="Int8"))
    board = leaderboard(bare, "system", answers=INFOS)
    shown = leaderboard_text(board, 100, False, INFOS).splitlines()
    assert all("measure number" not in line for line in shown[:5])
    below = shown[5:]
    assert max(map(len, below)) <= WIDTH
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


def test_the_line_of_smallest_differences_is_of_the_headline_or_else_of_the_measures() -> None:
    columns = ["measure", "unit", "difference", "difference_median", "comparisons"]
    rows = [("ir_score", "share", 0.1, 0.1, 1), ("m0", "share", 0.2, 0.2, 1)]
    assert detectable_text(pd.DataFrame(rows, columns=columns), (), INFOS).endswith(": IR score 0.100")
    of_answers = ": measure number 0 20.0 points"
    assert detectable_text(pd.DataFrame(rows[1:], columns=columns), (), INFOS).endswith(of_answers)
    rows[0] = ("ir_score", "share", 0.0, 0.0, 1)
    alike = detectable_text(pd.DataFrame(rows, columns=columns), {"ir_score": 1.0}, INFOS)
    assert alike.endswith(": IR score none, since all systems are alike")
    assert detectable_text(pd.DataFrame(rows, columns=columns), (), INFOS).endswith(": IR score 0.000")


def test_a_measure_that_some_topics_lack_says_how_many_have_it() -> None:
    rows = outcomes().assign(label=pd.array([None] * 60, dtype="Int8"))
    rows.loc[rows["system"].eq("bm25") & ~rows["qid"].isin([f"q{i}" for i in range(7)]), "m0"] = np.nan
    text = leaderboard_text(leaderboard(rows, "system", answers=INFOS[:2]), 100, False, INFOS[:2])
    [first, second] = [line for line in text.splitlines()[6:] if line.strip().startswith(("bm25", "sim"))]
    bm25, sim = (first, second) if "bm25" in first else (second, first)
    assert " of 7 " in bm25
    assert " of " not in sim


def test_where_nothing_was_measured_there_is_no_empty_table() -> None:
    bare = outcomes().assign(ir_score=np.nan, label=pd.array([None] * 60, dtype="Int8"))
    shown = leaderboard_text(leaderboard(bare, "system"), 100, False)
    assert shown == ("\nNo leaderboard of bm25, sim: no IR score, no verdict, no measure of answers; 30 topics")


def test_a_missing_share_of_verdicts_has_a_column_and_what_is_mostly_missing_no_star() -> None:
    frame = outcomes()
    sim = frame.index[frame["system"] == "sim"]
    frame.loc[sim[5:], "label"] = pd.NA
    _, _, header, *rows = leaderboard_text(leaderboard(frame, "system"), 100, True).splitlines()
    assert header.split() == ["system", "IR", "score", "right", "lack", "hallucination", "no", "verdict"]
    assert max(map(len, [header, *rows])) <= WIDTH + 12
    (row,) = [row for row in rows if row.startswith("sim")]
    assert row.endswith("83%")
    assert "*" not in row.partition("%")[2]
    (row,) = [row for row in rows if row.startswith("bm25")]
    assert row.endswith("0%")
    assert "%*" in row
