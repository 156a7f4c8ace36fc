"""Estimates of outcomes that lack an IR score or have no class to get, against frames without such rows."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from ragauge.contract.errors import DataError
from ragauge.estimate import compare_pairs, cross_fit, leaderboard, summary
from ragauge.estimate.best import best_sets
from ragauge.estimate.board import rejection, share_estimates
from ragauge.estimate.outcomes import check_outcomes, scored, with_classes


def whole(n: int = 60, systems: str = "ab") -> pd.DataFrame:
    rng = np.random.default_rng(1)
    parts = [
        pd.DataFrame(
            {
                "qid": [f"q{i:02}" for i in range(n)],
                "system": system,
                "n_tokens": 100,
                "ir_score": rng.uniform(size=n).round(3),
                "label": pd.array(rng.choice([1, 2, 3, 4, 5], n), dtype="Int8"),
                "judge_status": "ok",
                "unanswerable": False,
            }
        )
        for system in systems
    ]
    return pd.concat(parts, ignore_index=True)


def lacking(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame, and topics beside: without evidence, without a reference, and unanswerable."""
    others = []
    for system in "ab":
        more = whole(12, system).assign(label=pd.array([4, 5, 1] * 4, dtype="Int8"))
        more["qid"] = [f"z{i:02}" for i in range(12)]
        of = np.arange(12) % 3
        more.loc[of != 1, "ir_score"] = np.nan
        more.loc[of == 1, ["label", "judge_status"]] = [pd.NA, "no reference"]
        more.loc[of == 2, "unanswerable"] = True
        others.append(more)
    return pd.concat([frame, *others], ignore_index=True)


def test_who_is_scored_and_who_has_a_class() -> None:
    frame = lacking(whole(6))
    assert scored(frame)["ir_score"].notna().all()
    assert len(scored(frame)) == 12 + 2 * 4
    assert len(with_classes(frame)) == 12 + 2 * 4
    assert with_classes(frame[["qid", "label"]]) is not None
    assert len(with_classes(frame[["qid", "label"]])) == len(frame)
    gaps = frame.assign(unanswerable=frame["unanswerable"].astype(object).where(frame["unanswerable"], np.nan))
    assert len(with_classes(gaps)) == len(with_classes(frame))  # a run that knows of no such topics


def test_ir_scores_are_of_those_that_have_one_and_classes_of_those_that_get_one() -> None:
    frame = lacking(whole())
    board = leaderboard(frame, "system", 100)
    by_score = leaderboard(scored(frame), "system", 100)
    columns = ["system", "ir_score", "ir_score_lo", "ir_score_hi"]
    assert board[columns].equals(by_score[columns])
    classed = with_classes(frame).assign(ir_score=lambda rows: rows["ir_score"].fillna(0))
    by_class = leaderboard(classed, "system", 100).set_index("system")
    for share in ("correct_share", "correct_share_hi", "judge_share_2", "judge_share_missing"):
        assert board.set_index("system")[share].to_dict() == by_class[share].to_dict()
    assert board["n_topics"].tolist() == [72, 72]
    assert board["n_classed"].tolist() == [64, 64]
    assert board["rejection_share"].tolist() == [1, 1]

    pairs = compare_pairs(frame, "system").set_index("measure")
    alone = compare_pairs(scored(frame), "system").set_index("measure")
    for column in ("difference", "n"):
        assert pairs.loc["ir_score", column] == alone.loc["ir_score", column]
    for column in ("lo", "hi", "p"):  # drawn over all topics
        assert pairs.loc["ir_score", column] == pytest.approx(alone.loc["ir_score", column], abs=0.02)
    of_classes = compare_pairs(classed, "system").set_index("measure")
    assert pairs.loc["correct"].to_dict() == of_classes.loc["correct"].to_dict()
    assert pairs["n"].to_dict() == {"ir_score": 64, "correct": 64, "hallucination": 64}


def test_quality_without_scores_or_without_classes() -> None:
    frame = lacking(whole())
    a = frame[frame["system"] == "a"]
    values = summary.quality(a)
    assert values["ir_score"] == pytest.approx(a["ir_score"].mean())
    assert values["correct_share"] == pytest.approx(with_classes(a)["label"].eq(5).mean())
    assert values["rejection_share"] == 1
    none = a.assign(ir_score=np.nan)
    assert "ir_score" not in summary.quality(none)
    unjudged = a.assign(judge_status="no reference", unanswerable=False)
    assert set(summary.quality(unjudged)) == {"ir_score", "ir_score_lo", "ir_score_hi"}


def test_nothing_to_compare_is_no_error() -> None:
    frame = whole().assign(ir_score=np.nan, label=pd.array([pd.NA] * 120, dtype="Int8"))
    assert compare_pairs(frame, "system").empty
    assert best_sets(frame, "system").table.empty
    assert leaderboard(frame, "system", 10)["system"].tolist() == ["a", "b"]


def test_without_scores_the_most_right_answers_come_first() -> None:
    frame = whole().assign(ir_score=np.nan)
    frame["label"] = frame["label"].mask(frame["system"] == "b", 5)
    assert leaderboard(frame, "system", 10)["system"].tolist() == ["b", "a"]


def test_rejections_are_those_of_judged_answers() -> None:
    labels = pd.array([1, 4, 1, pd.NA], dtype="Int8")
    frame = pd.DataFrame({"qid": list("wxyz"), "label": labels, "unanswerable": True})
    assert rejection(frame)["rejection_share"].value == pytest.approx(2 / 3)
    assert rejection(frame)["rejection_share"].n == 3
    assert rejection(frame.assign(unanswerable=False)) == {}
    assert rejection(frame.drop(columns="unanswerable")) == {}
    answered = pd.concat([frame, frame.assign(unanswerable=False, qid=list("abcd"))])
    assert share_estimates(answered)["judge_share_1"].value == pytest.approx(0.5)


def test_a_row_without_features_is_predicted_by_the_class_shares() -> None:
    frame = whole(40, "a").assign(judged=np.arange(40) % 2 == 0)
    frame.loc[frame.index >= 30, "ir_score"] = np.nan
    found = cross_fit(frame)
    p = found[[f"p{c}" for c in range(1, 6)]]
    assert p.sum(axis=1).round(9).eq(1).all()
    assert p[frame["ir_score"].isna() & ~frame["judged"]].nunique().eq(1).all()
    assert p[frame["ir_score"].notna()]["p5"].nunique() > 5


def test_a_missing_score_is_refused_where_it_may_not_be() -> None:
    frame = whole(3, "a")
    frame.loc[1, "ir_score"] = np.nan
    with pytest.raises(DataError, match="nan is not a number in"):
        check_outcomes(frame)
    assert check_outcomes(frame, may_lack=("ir_score",)) is frame
    frame.loc[1, "ir_score"] = 2.0
    with pytest.raises(DataError, match=r"2\.0 is not a number in"):
        check_outcomes(frame, may_lack=("ir_score",))
