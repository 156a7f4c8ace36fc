"""Measures of rankings are columns of the outcomes, which drown neither the leaderboard nor other tests."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ragauge.commands.conf import quoted
from ragauge.contract.answer_measures import as_record, checked, in_order
from ragauge.contract.errors import ConfigError
from ragauge.contract.groups import RANKINGS
from ragauge.contract.measures import AnswerMeasureInfo
from ragauge.estimate import leaderboard
from ragauge.findings.terminal import detectable_text, leaderboard_text
from ragauge.measures.rankings import ranking_infos
from small_pipeline import TOPICS, SmallPipelines, replaced

INFOS = list(ranking_infos(RANKINGS))


def test_documents_and_chunks_by_topic(small: SmallPipelines) -> None:
    unnamed = replaced(TOPICS, 1, evidence=["The bridge stands in Lint."])
    job = replace(small(topics=unnamed), measures=("P@1", "chunk:P@1", "chunk:NumRel(rel=1)"))
    found = job.outcomes.set_index("qid")
    # q2 names no document, and none holds its evidence, which is too short for a chunk by its text alone.
    assert found["p_at_1"].isna().tolist() == [False, True, False]
    assert found["chunk_p_at_1"].isna().tolist() == [False, True, False]
    values = job.frame("answer_values").set_index(["measure", "qid"])["status"]
    assert values["p_at_1"].to_dict() == {"q1": "ok", "q2": "no evidence", "q3": "ok"}
    assert found.loc["q1", "p_at_1"] == 1
    # Chunks of six words: "Anna built the tower . It" is the first of its document.
    assert found.loc["q1", "chunk_p_at_1"] == 1
    assert found.loc["q1", "chunk_numrel"] == 1
    assert [i.name for i in job.answer_measures if i.of == "ranking"] == [
        "p_at_1",
        "chunk_p_at_1",
        "chunk_numrel",
    ]


def test_one_run_is_measured_once_for_all_budgets(small: SmallPipelines) -> None:
    first = small()
    assert first.outcomes["ndcg_at_10"].notna().all()
    again = small(n_tokens=4)
    assert again.outcomes["ndcg_at_10"].tolist() == first.outcomes["ndcg_at_10"].tolist()
    assert "classics" not in again.made


def test_an_answer_measure_of_the_same_name_is_refused() -> None:
    own = {"mine": (AnswerMeasureInfo("ap", "mine"),)}
    checked(own, INFOS)
    with pytest.raises(ConfigError, match=r"answers.mine and measures=AP would both write 'ap'"):
        checked(own, ranking_infos(["AP"]))


def test_what_is_recorded_of_a_measure_is_short_and_read_back() -> None:
    assert as_record(INFOS[:1]) == [
        {"name": "ndcg_at_10", "label": "nDCG@10", "unit": "ratio", "section": "Rankings", "of": "ranking"}
    ]
    assert in_order([as_record(INFOS)]) == INFOS


def outcomes(n: int = 40, systems: str = "ab") -> pd.DataFrame:
    rng = np.random.default_rng(0)
    frames = []
    for system in systems:
        values = {i.name: rng.choice([0.0, 0.5, 1.0], n) for i in INFOS}
        frame = pd.DataFrame({"qid": [f"q{i}" for i in range(n)], "system": system, "run_id": system, **values})
        frames.append(frame.assign(ir_score=rng.random(n), label=pd.array([5] * n, dtype="Int8")))
    return pd.concat(frames, ignore_index=True)


def test_the_terminal_shows_them_where_nothing_else_ranks() -> None:
    frame = outcomes()
    board = leaderboard(frame, "system", answers=INFOS)
    assert "nDCG@10" not in leaderboard_text(board, 100, True, INFOS)
    bare = frame.assign(ir_score=np.nan, label=pd.array([None] * len(frame), dtype="Int8"))
    board = leaderboard(bare, "system", answers=INFOS)
    assert board["ndcg_at_10"].is_monotonic_decreasing
    shown = leaderboard_text(board, 100, False, INFOS)
    assert [name in shown for name in ("nDCG@10", "RR", "P@1", "P@5", "R@1")] == [True] * 3 + [False] * 2
    detectable = pd.DataFrame(
        [("ir_score", "share", 0.1, 0.1, 1), ("rr", "ratio", 0.2, 0.2, 1)],
        columns=["measure", "unit", "difference", "difference_median", "comparisons"],
    )
    assert "rr" not in detectable_text(detectable, (), INFOS)


def test_measures_with_parameters_need_no_quotes_on_the_command_line() -> None:
    asked = ["measures=[nDCG@10,P(rel=2)@5,chunk:AP(rel=2)]", 'measures=["P(rel=2)@5"]', "a.b=[f(x)]"]
    assert quoted(asked) == [
        'measures=[nDCG@10,"P(rel=2)@5","chunk:AP(rel=2)"]',
        'measures=["P(rel=2)@5"]',
        "a.b=[f(x)]",
    ]


def test_the_old_key_on_the_command_line_names_the_new_one(tmp_path: Path) -> None:
    from processes import run as run_program

    done = run_program(tmp_path, "rankings=[AP]")
    assert done.returncode == 2
    [told] = [row for row in done.stderr.splitlines() if "rankings" in row]
    assert told == "error: the key 'rankings' is called 'measures' now: measures=[…] takes the same names"
