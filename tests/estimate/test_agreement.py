from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from ragauge.contract.errors import DataError
from ragauge.estimate import judge_agreement


def labelled(labels, name="label"):
    return pd.DataFrame(
        {"qid": [f"q{i}" for i in range(len(labels))], "retriever": "r", name: pd.array(labels, dtype="Int8")}
    )


def test_kappa_by_hand():
    # 5 of 6 agree; chance (3*4 + 3*2) / 36 = 1/2, so kappa = (5/6 - 1/2) / (1/2)
    agreement = judge_agreement(labelled([5, 5, 5, 5, 1, 1]), labelled([5, 5, 5, 1, 1, 1]), n_boot=200)
    assert agreement.kappa.value == pytest.approx(2 / 3)
    assert agreement.agreement.value == pytest.approx(5 / 6)
    assert agreement.confusion.loc[1, "5"] == 1
    assert agreement.confusion.to_numpy().sum() == 6
    assert agreement.kappa.lo <= 2 / 3 <= agreement.kappa.hi


def test_kappa_agrees_with_scikit_learn():
    from sklearn.metrics import cohen_kappa_score, confusion_matrix

    rng = np.random.default_rng(0)
    human = rng.integers(1, 6, 200)
    judge = np.where(rng.random(200) < 0.6, human, rng.integers(1, 6, 200))
    agreement = judge_agreement(labelled(judge), labelled(human).sample(frac=1, random_state=1), n_boot=20)
    assert agreement.kappa.value == pytest.approx(cohen_kappa_score(human, judge))
    assert (agreement.confusion.drop(columns="missing").to_numpy() == confusion_matrix(human, judge)).all()


def test_labels_meet_by_their_keys_and_a_missing_verdict_is_counted():
    verdicts = pd.concat([labelled([5, 1, None]), labelled([4, 4, 4]).assign(retriever="other")])
    agreement = judge_agreement(verdicts, labelled([5, 1, 2]), n_boot=20)
    assert agreement.agreement.value == 1
    assert (agreement.n, agreement.n_missing) == (2, 1)
    assert agreement.confusion.loc[2, "missing"] == 1


def test_agreement_by_chance_alone_has_no_kappa():
    agreement = judge_agreement(labelled([5, 5]), labelled([5, 5]), n_boot=20)
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
        judge_agreement(verdicts, human, n_boot=5)
