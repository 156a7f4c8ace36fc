from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from ragauge.contract.errors import DataError
from ragauge.estimate import class_shares
from ragauge.estimate.outcomes import (
    asked,
    check_outcomes,
    class_indicators,
    missing_share,
    topic_codes,
    weights_of,
)


def test_shares_are_over_all_rows():
    frame = pd.DataFrame({"qid": list("abcdefgh"), "label": pd.array([1, 2, 2, 4, 5, 5, 5, None], dtype="Int8")})
    assert class_shares(frame) == {
        "judge_share_1": 1 / 8,
        "judge_share_2": 2 / 8,
        "judge_share_3": 0,
        "judge_share_4": 1 / 8,
        "judge_share_5": 3 / 8,
        "judge_share_missing": 1 / 8,
        "hallucination_share": 3 / 8,
        "correct_share": 3 / 8,
    }


def test_shares_of_no_rows_are_nan():
    shares = class_shares(pd.DataFrame({"qid": [], "label": pd.array([], dtype="Int8")}))
    assert all(np.isnan(share) for share in shares.values())


def test_missing_verdict_is_in_no_class():
    assert class_indicators(np.array([0, 5])).tolist() == [[0, 0, 0, 0, 0], [0, 0, 0, 0, 1]]


def test_topics_are_numbered_in_order_of_qid():
    codes, n = topic_codes(pd.Series(["b", "a", "b"]))
    assert codes.tolist() == [1, 0, 1]
    assert n == 2


@pytest.mark.parametrize(
    ("column", "values", "message"),
    [
        ("qid", ["a", None], "column qid, row 1"),
        ("retriever", ["bm25", None], "column retriever, row 1"),
        ("ir_score", [0.5, float("nan")], "not a number in"),
        ("ir_score", ["0.5", "x"], "expected numbers"),
        ("gap", [1.0, float("inf")], "not a finite number"),
        ("label", [1, 7], "not a judge class 1..5 or nothing"),
    ],
)
def test_a_bad_value_is_named(column, values, message):
    frame = pd.DataFrame(
        {"qid": ["a", "b"], "retriever": "bm25", "ir_score": [0.1, 0.2], "gap": [0.0, 1.0], "label": [1, 5]}
    )
    frame[column] = values
    with pytest.raises(DataError, match=message):
        check_outcomes(frame, ("ir_score", "gap"), ("qid", "retriever"))


def test_a_value_is_missing_of_topics_that_were_to_be_answered() -> None:
    frame = pd.DataFrame({"f1": [0.5, None, None, 0.0, None]})
    assert missing_share(frame, "f1") == 3 / 5
    status = ["ok", "failed", "not sampled", "not sampled", "not sampled"]  # a value counts, whatever the status
    assert missing_share(frame.assign(answer_status=status), "f1") == 1 / 3


def test_rows_of_a_sample_by_strata_weigh_what_they_stand_for() -> None:
    frame = pd.DataFrame(
        {
            "qid": list("abcdef"),
            "stratum": [0, 0, 0, 0, 1, 1],
            "judged": [True, False, False, True, True, True],
        }
    )
    # Two of four topics stand for two each, two of two for themselves; over all, four stand for six.
    assert weights_of(asked(frame)).tolist() == pytest.approx([4 / 3, 4 / 3, 2 / 3, 2 / 3])
    assert weights_of(asked(frame.assign(stratum=0))).tolist() == [1, 1, 1, 1]


def test_rows_of_pooled_jobs_weigh_by_the_sample_of_their_own_job() -> None:
    """Strata were counted over all jobs: a job that judged every topic counted with a sample's stratum 0."""
    qids = list("abcdef")
    everything = pd.DataFrame({"system": "all", "qid": qids, "stratum": 0, "judged": True})
    sample = pd.DataFrame(
        {
            "system": "few",
            "qid": qids,
            "stratum": [0, 0, 0, 0, 1, 1],
            "judged": [True, False, False, False, True, True],
        }
    )
    weights = weights_of(asked(pd.concat([everything, sample], ignore_index=True)))
    # Six rows for themselves; one for four, two for themselves: 12 rows by 9.
    assert weights.tolist() == pytest.approx([9 / 12] * 6 + [4 * 9 / 12] + [9 / 12] * 2)
    twice = pd.concat([sample, sample.assign(system="other")], ignore_index=True)
    assert weights_of(asked(twice)).tolist() == pytest.approx([2, 0.5, 0.5] * 2)
