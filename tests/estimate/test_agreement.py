from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import cohen_kappa_score

from ragauge.contract.errors import DataError
from ragauge.estimate import judge_agreement, judge_stability, summary
from ragauge.estimate.intervals import effective_topics, wilson_interval


def labelled(labels, name="label"):
    return pd.DataFrame(
        {"qid": [f"q{i}" for i in range(len(labels))], "retriever": "r", name: pd.array(labels, dtype="Int8")}
    )


def test_kappa_by_hand():
    # 5 of 6 agree; chance (3*4 + 3*2) / 36 = 1/2, so kappa = (5/6 - 1/2) / (1/2)
    agreement = judge_agreement(labelled([5, 5, 5, 5, 1, 1]), labelled([5, 5, 5, 1, 1, 1]))
    assert agreement.kappa.value == pytest.approx(2 / 3)
    assert agreement.agreement.value == pytest.approx(5 / 6)
    assert agreement.confusion.loc[1, "5"] == 1
    assert agreement.confusion.to_numpy().sum() == 6
    assert agreement.kappa.lo <= 2 / 3 <= agreement.kappa.hi


def test_thirty_equal_labels_do_not_make_a_judge_perfect():
    """The interval of kappa was [1, 1], a bootstrap of topics that do not differ."""
    labels = [5] * 15 + [1] * 15
    kappa = judge_agreement(labelled(labels), labelled(labels)).kappa
    # Of 30 no one differs; n is 30 topics and what is added, and chance would make half of them differ.
    hi = wilson_interval(0.0, effective_topics(np.zeros(30), np.ones(30)))[1]
    assert (kappa.value, kappa.hi) == (1, 1)
    assert kappa.lo == pytest.approx(1 - hi / 0.5)
    assert 0.7 < kappa.lo < 0.8


def test_kappa_where_nearly_all_are_right_reaches_as_far_as_one_topic_more_would():
    people, judge = [5] * 19 + [1], [5] * 18 + [4, 5]
    kappa = judge_agreement(labelled(judge), labelled(people)).kappa
    assert kappa.value == pytest.approx(1 - 0.1 / (1 - 0.95**2))
    more = judge_agreement(labelled([*judge, 1]), labelled([*people, 1])).kappa
    assert more.value == pytest.approx(1 - 42 / 78)
    assert kappa.lo < kappa.value < 0 < more.value < kappa.hi


def test_kappa_agrees_with_scikit_learn():
    from sklearn.metrics import cohen_kappa_score, confusion_matrix

    rng = np.random.default_rng(0)
    human = rng.integers(1, 6, 200)
    judge = np.where(rng.random(200) < 0.6, human, rng.integers(1, 6, 200))
    agreement = judge_agreement(labelled(judge), labelled(human).sample(frac=1, random_state=1))
    assert agreement.kappa.value == pytest.approx(cohen_kappa_score(human, judge))
    assert (agreement.confusion.drop(columns="missing").to_numpy() == confusion_matrix(human, judge)).all()


def test_labels_meet_by_their_keys_and_a_missing_verdict_is_counted():
    verdicts = pd.concat([labelled([5, 1, None]), labelled([4, 4, 4]).assign(retriever="other")])
    agreement = judge_agreement(verdicts, labelled([5, 1, 2]))
    assert agreement.agreement.value == 1
    assert (agreement.n, agreement.n_missing) == (2, 1)
    assert agreement.confusion.loc[2, "missing"] == 1


def test_agreement_by_chance_alone_has_no_kappa():
    agreement = judge_agreement(labelled([5, 5]), labelled([5, 5]))
    assert math.isnan(agreement.kappa.value)
    assert agreement.agreement.value == 1


@pytest.mark.parametrize(
    ("human", "message"),
    [
        (labelled([5, None]), "no label for .*q1"),
        (labelled([5, 1, 1, 1]), "no row of the verdicts for .*q2"),
        (pd.concat([labelled([5]), labelled([5])]), "human labels: .*q0.* occurs twice"),
        (labelled([5]).drop(columns="retriever"), "verdicts: .*q0.* occurs twice"),
    ],
)
def test_human_labels_that_cannot_be_used(human, message):
    verdicts = pd.concat([labelled([5, 1]), labelled([5, 1]).assign(retriever="other")])
    with pytest.raises(DataError, match=message):
        judge_agreement(verdicts, human)


# --- a judge beside itself ---------------------------------------------------------------------------------


def again(*rows: tuple[str, int | None, int | None, int | None]) -> pd.DataFrame:
    frame = pd.DataFrame(rows, columns=["qid", "first", "same", "other"])
    return frame.astype(dict.fromkeys(("first", "same", "other"), "Int8"))


def test_noise_and_position_by_hand() -> None:
    found = judge_stability(again(("a", 5, 5, 5), ("a", 4, 4, 5), ("b", 5, 4, 4), ("b", 1, 1, 1), ("c", 1, 1, None)))
    assert found is not None
    assert (found.n_pairs, found.n_topics) == (4, 2)
    # Of four answers three are labelled as before by the same request, two in another order.
    assert found.agreement.value == 3 / 4
    assert found.agreement_other is not None
    assert found.agreement_other.value == 2 / 4
    assert found.position_effect is not None
    assert found.position_effect.value == pytest.approx(1 / 4)
    assert found.position_effect.lo < 1 / 4 < found.position_effect.hi
    # Equal by chance: classes 5, 4, 1 are given 2, 1, 1 times first and 1, 2, 1 times again: 5 of 16.
    assert found.kappa.value == pytest.approx((3 / 4 - 5 / 16) / (1 - 5 / 16))


def test_kappa_of_a_judge_with_itself_is_that_of_scikit_learn() -> None:
    rng = np.random.default_rng(3)
    first, second = rng.integers(1, 6, (2, 60))
    second[:30] = first[:30]
    frame = pd.DataFrame({"qid": np.arange(60) // 2, "first": first, "same": second}).astype({"qid": str})
    found = judge_stability(frame)
    assert found is not None
    assert found.kappa.value == pytest.approx(cohen_kappa_score(first, second))
    assert (found.agreement_other, found.position_effect) == (None, None)


def test_metrics_of_a_judge_without_an_order_have_no_position_effect_and_no_kappa_of_chance() -> None:
    frame = again(("a", 5, 5, 5), ("b", 5, 5, 5)).drop(columns="other")
    values = summary.stability(judge_stability(frame))
    assert values["judge_repeat_agreement"] == 1
    assert values["judge_repeat_agreement_lo"] < 1
    assert not [name for name in values if "kappa" in name or "position" in name or "reorder" in name]


def test_stability_without_labels_is_none_and_a_label_out_of_range_is_told() -> None:
    assert judge_stability(again(("a", 5, None, 5))) is None
    assert summary.stability(None) == {}
    with pytest.raises(DataError, match="not a judge class"):
        judge_stability(again(("a", 5, 6, 5)))
