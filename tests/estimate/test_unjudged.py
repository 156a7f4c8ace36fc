"""Class shares of systems that nobody judged, foreseen from those that were."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from ragauge.contract.errors import DataError
from ragauge.estimate.prediction import foresee


def outcomes(scores, labels=None, system="a"):
    rows = pd.DataFrame({"qid": [f"q{i}" for i in range(len(scores))], "ir_score": scores, "system": system})
    return rows if labels is None else rows.assign(label=pd.array(labels, dtype="Int8"))


@pytest.fixture
def judged():
    rng = np.random.default_rng(3)
    score = rng.random(400)
    return outcomes(score, np.where(rng.random(400) < score, 5, np.where(rng.random(400) < 0.3, 1, 4)))


def test_thresholds_and_unchanged_by_hand(judged):
    others = outcomes([0.1, 0.3, 0.5, 0.9], system="b")
    table = foresee(judged, others, h=0.2, k=0.8, known={"b": [0.1, 0.2, 0.1, 0.2, 0.4]})
    assert table["share"].tolist() == ["right", "between", "lack"]
    assert table["thresholds"].tolist() == [0.25, 0.5, 0.25]
    assert table["judged"].tolist() == pytest.approx([0.4, 0.5, 0.1])
    counts = judged["label"].value_counts(normalize=True)
    assert table["unchanged"].tolist() == pytest.approx([counts[5], counts[4], counts[1]])
    assert table["predictor"].sum() == pytest.approx(1)


def test_the_predictor_is_scikit_learn_s_logistic_regression(judged):
    others = outcomes(np.linspace(0, 1, 50), system="b")
    scale = judged["ir_score"].std(ddof=0)
    model = LogisticRegression(C=1.0, max_iter=1000).fit(judged[["ir_score"]] / scale, judged["label"])
    mean = model.predict_proba(others[["ir_score"]] / scale).mean(axis=0)
    table = foresee(judged, others, 0.2, 0.8, {})
    assert table["predictor"].tolist() == pytest.approx(mean[[2, 1, 0]].tolist(), abs=1e-3)
    assert table["judged"].isna().all()


def test_a_bad_score_is_told(judged):
    with pytest.raises(DataError, match="ir_score"):
        foresee(judged, outcomes([2.0], system="b"), 0.2, 0.8, {})
