from __future__ import annotations

from itertools import product

import numpy as np
import pandas as pd
import pytest

from outcome_inputs import outcomes
from ragauge.contract.errors import ConfigError, DataError
from ragauge.contract.measures import AnswerMeasureInfo
from ragauge.estimate import compare_pairs, leaderboard
from ragauge.estimate.best import best_sets, best_systems, top_optimism
from simulations.best import draw, holm_marks


def exact(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """p_best and p_all_best over all sign patterns, pair by pair; NaN is a topic that a system lacks."""
    signs = np.array(list(product((1, -1), repeat=len(x))))
    n = x.shape[1]

    def ahead(j: int, i: int) -> np.ndarray:
        """Of all patterns, the first of which is the observed one."""
        d = np.nan_to_num(x[:, j] - x[:, i])
        return signs @ d / np.sqrt((d**2).sum()) if d.any() else np.zeros(len(signs))

    def share(found: list[np.ndarray]) -> float:
        largest = np.max(found, axis=0)
        return float((largest >= largest[0] - 1e-9).mean())

    single = [share([ahead(j, i) for j in range(n) if j != i]) for i in range(n)]
    left, p, highest = list(range(n)), np.ones(n), 0.0
    while len(left) > 1:
        highest = max(highest, share([ahead(j, i) for i in left for j in left if i != j]))
        out = max(left, key=lambda i: max(ahead(j, i)[0] for j in left if j != i))
        p[out] = highest
        left.remove(out)
    return np.array(single), p


def test_three_topics_by_hand():
    values = pd.DataFrame({"a": [0.5, 0.6, 0.7], "b": [0.4, 0.4, 0.4]})
    values["a"] = values["b"] + 0.1
    found = best_systems(values)
    # All three signs alike: one of eight patterns for one side, two for both.
    assert found["p_best"].to_dict() == pytest.approx({"a": 1, "b": 1 / 8}, abs=0.025)
    assert found["p_all_best"].to_dict() == pytest.approx({"a": 1, "b": 1 / 4}, abs=0.03)


@pytest.mark.parametrize("missing", [0, 0.2])
def test_max_t_is_that_of_all_sign_patterns(missing):
    rng = np.random.default_rng(5)
    for _ in range(4):
        x = rng.random((9, 1)) / 2 + rng.random((9, 4)) + [0.3, 0.2, 0, 0]
        x[rng.random(x.shape) < missing] = np.nan
        found = best_systems(pd.DataFrame(x))
        single, every = exact(x)
        assert found["p_best"].to_numpy() == pytest.approx(single, abs=0.04)
        assert found["p_all_best"].to_numpy() == pytest.approx(every, abs=0.04)
        # The fewest is the best where signs are turned, and a weight multiplies a topic.
        turned = best_systems(-pd.DataFrame(x), lowest=True)
        assert turned.equals(found)
        weights = rng.random(9) + 0.5
        weighted = best_systems(pd.DataFrame(x), weights=weights)["p_best"]
        assert weighted.to_numpy() == pytest.approx(exact(x * weights[:, None])[0], abs=0.04)


def test_equal_systems_and_systems_without_a_common_topic_stay_together():
    rng = np.random.default_rng(0)
    a = rng.random(50)
    found = best_systems(pd.DataFrame({"a": a, "twin": a, "low": a - 0.2 * rng.random(50)}))
    assert found.loc[["a", "twin"]].to_numpy().min() == 1
    assert found.loc["low"].max() < 0.01
    apart = pd.DataFrame({"a": [0.9] * 6 + [np.nan] * 6, "b": [np.nan] * 6 + [0.1] * 6})
    assert best_systems(apart).to_numpy().min() == 1
    assert best_systems(apart[["a"]]).to_numpy().tolist() == [[1, 1]]


def test_a_set_of_best_systems_is_smaller_than_holm_s_marks_where_one_leads():
    x = draw([0.05] + [0.0] * 14, 120, False, np.random.default_rng(3))
    single = best_systems(pd.DataFrame(x))["p_best"].to_numpy() >= 0.05
    assert single[0]
    assert single.sum() < holm_marks(x, 0).sum()


def test_the_optimism_of_the_top_by_hand():
    # The half that holds the first topic chooses the first system, which is 1 there and 0 on the other half.
    crossed = pd.DataFrame({"a": [1.0, 0.0], "b": [0.0, 1.0]})
    assert top_optimism(crossed) == pytest.approx(1 / np.sqrt(2))
    assert top_optimism(crossed, lowest=True) == pytest.approx(1 / np.sqrt(2))
    rng = np.random.default_rng(0)
    clear = pd.DataFrame({"a": rng.random(40), "b": rng.random(40) + 2})
    assert top_optimism(clear) == pytest.approx(0, abs=1e-12)
    assert np.isnan(top_optimism(clear.head(1)))
    assert top_optimism(clear[["a"]]) == pytest.approx(0, abs=1e-12)


def test_best_sets_by_measure():
    rng = np.random.default_rng(2)
    base = rng.uniform(0.3, 0.9, 60)
    frame = outcomes(
        {"low": list(base - 0.25), "top": list(base + rng.normal(0, 0.01, 60)), "none": list(base)},
        {"low": [5 if i % 6 == 0 else 1 for i in range(60)], "top": [5 if i % 6 else 2 for i in range(60)]},
    )
    frame["length"] = np.where(frame["retriever"] == "low", 3.0, 8.0) + rng.random(len(frame))
    info = AnswerMeasureInfo("length", "length", "lower")
    found = best_sets(frame, answers=[info])
    assert found.marks("ir_score") == {"low": False, "top": True, "none": True}
    assert found.marks("correct") == {"low": False, "top": True}  # the third has no label
    assert found.marks("hallucination") == {"low": True, "top": False}
    assert found.marks("length") == {"low": True, "top": False, "none": False}
    metrics = found.metrics()
    assert {name: metrics[f"best_set_size_{name}"] for name in ("ir_score", "correct", "length")} == {
        "ir_score": 2, "correct": 1, "length": 1,
    }  # fmt: skip
    assert metrics["top_optimism_ir_score"] >= 0
    board = leaderboard(frame, n_boot=20, answers=[info]).set_index("retriever")
    assert board["correct_in_best_set"].isna().to_dict() == {"low": False, "top": False, "none": True}
    assert board.loc["top", "ir_score_in_best_set"]


def test_a_sample_is_compared_on_its_judged_topics_by_weight():
    rng = np.random.default_rng(1)
    parts = []
    for name, share in (("a", 0.8), ("b", 0.2)):
        label = np.where(rng.random(60) < share, 5, 1).astype(object)
        judged = (np.arange(60) < 30) & (np.arange(60) % 3 > 0) | (np.arange(60) >= 30) & (np.arange(60) % 6 == 0)
        label[~judged] = None
        parts.append(
            outcomes({name: list(rng.random(60))}, {name: list(label)}).assign(
                judged=judged, stratum=(np.arange(60) >= 30).astype(int)
            )
        )
    frame = pd.concat(parts, ignore_index=True)
    table = best_sets(frame).table.set_index(["measure", "retriever"])
    right = frame.pivot(index="qid", columns="retriever", values="label").dropna().eq(5).astype(float)
    late = right.index.str[1:].astype(int) >= 30
    weights = np.where(late, 30 / 5, 30 / 20) / (60 / 25)
    expected = best_systems(right, weights=weights)
    assert table.loc[("correct", "b"), "p_best"] == expected.loc["b", "p_best"]


def test_bad_input_is_told_in_one_line():
    frame = outcomes({"a": [0.2, 0.4], "b": [0.2, 0.4]})
    with pytest.raises(DataError, match="no rows"):
        best_sets(frame.head(0))
    with pytest.raises(ConfigError, match=r"alpha 1\.2: allowed is a number between 0 and 1"):
        best_sets(frame, alpha=1.2)
    with pytest.raises(DataError, match="infinite; allowed are finite numbers"):
        best_systems(pd.DataFrame({"a": [0.1, np.inf], "b": [0.2, 0.3]}))
    with pytest.raises(DataError, match="weights of 2 topics: allowed are as many"):
        best_systems(pd.DataFrame({"a": [0.1, 0.2], "b": [0.2, 0.3]}), weights=np.array([1.0, -1.0]))


def test_missing_verdicts_count_against_a_system_and_one_that_lacks_most_is_not_compared():
    n = 60
    labels = {"few": [5] * 20 + [None] * 40, "some": [5] * 45 + [None] * 15, "all": [5] * 54 + [4] * 6}
    frame = pd.concat(
        [
            pd.DataFrame({"qid": [f"q{i}" for i in range(n)], "system": name, "ir_score": 0.5, "retriever": name})
            .assign(label=pd.array(values, dtype="Int8"))
            for name, values in labels.items()
        ],
        ignore_index=True,
    )  # fmt: skip
    found = best_sets(frame, "system")
    # 6 hallucinations of `all` against up to 15 of `some`; 20 of 60 verdicts are less than half.
    assert found.marks("hallucination") == {"all": True, "some": False}
    assert found.marks("correct") == {"all": True, "some": False}
    board = leaderboard(frame, "system").set_index("system")
    assert board.loc["few", "hallucination_in_best_set"] is pd.NA
    assert board.loc["few", ["hallucination_share", "judge_share_missing"]].tolist() == pytest.approx([0, 2 / 3])
    pairs = compare_pairs(frame, "system").set_index(["a", "b", "measure"])
    assert pairs.loc[("all", "few", "hallucination"), ["difference", "p", "p_holm"]].isna().all()
    # The six hallucinations of `all` are on topics where `some` has no verdict.
    assert pairs.loc[("all", "some", "hallucination"), ["difference", "n"]].tolist() == [0, 45]
    alone = best_sets(frame[frame["system"] == "few"], "system")
    assert alone.marks("hallucination") == {}
