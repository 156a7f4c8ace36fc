"""Numbers of labels, by hand and beside `ppi_shares`."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from outcome_inputs import outcomes
from ragauge.contract.errors import ConfigError
from ragauge.estimate import ppi_shares
from ragauge.plugins.planning.labels import (
    correlation_lower,
    labels_for_width,
    plan_labels,
    ppi_variance,
    variance_for_width,
)


def test_labels_for_a_width_by_hand() -> None:
    # Near one half the logit interval is as wide as Wald's: 4 * 1.96^2 * 0.25 / 0.1^2 = 384.
    assert labels_for_width(0.5, 0.1) == pytest.approx(384, abs=6)
    # A quarter of the width takes sixteen times as many.
    assert labels_for_width(0.5, 0.025) == pytest.approx(16 * 384, rel=0.01)


def test_the_variance_of_ppi_by_hand_and_beside_ppi_shares() -> None:
    # 100 of 1,000 topics, correlation 0.7: 0.21 / 100 * (1 - 0.49 * 0.9).
    assert ppi_variance(0.3, 0.7, 1.2, 100, 1000) == pytest.approx(0.21 / 100 * (1 - 0.49 * 0.9))
    assert ppi_variance(0.3, 0.0, 1.2, 100, 1000) == pytest.approx(0.21 / 100)
    # lambda is at most 1: correlation * ratio * 0.9 = 1.26 would be better.
    assert ppi_variance(0.5, 0.7, 2.0, 100, 1000) == pytest.approx(0.25 / 100 * (1 - 2 * 0.7 / 2 + 1 / 4 / 0.9))
    rng = np.random.default_rng(2)
    n_topics, n = 4000, 400
    p = rng.beta(1, 1, n_topics)
    right = rng.random(n_topics) < p
    frame = pd.DataFrame({"qid": np.arange(n_topics).astype(str), "label": np.where(right, 5, 4), "judged": False})
    frame.loc[rng.choice(n_topics, n, replace=False), "judged"] = True
    frame = frame.assign(p1=0.0, p2=0.0, p3=0.0, p4=1 - p, p5=p)
    shares = ppi_shares(frame).set_index("share").loc["correct_share"]
    y, f = right[frame["judged"]].astype(float), p[frame["judged"]]
    variance = ppi_variance(y.mean(), float(np.corrcoef(y, f)[0, 1]), y.std() / f.std(), n, n_topics)
    # ppi_shares gives the width that is planned with.
    width = float(shares["hi"] - shares["lo"])
    assert variance_for_width(float(shares["estimate"]), width) == pytest.approx(variance, rel=0.05)


def test_labels_of_a_pilot() -> None:
    rng = np.random.default_rng(4)
    n = 120
    scores = rng.random(n)
    verdicts = np.where(rng.random(n) < scores, 5, 4)
    people = np.where(rng.random(n) < 0.9, verdicts, 9 - verdicts)
    frame = outcomes({"a": scores.tolist()}, {"a": verdicts.tolist()})
    frame["human_label"] = pd.array([int(p) if i < 50 else None for i, p in enumerate(people)], dtype="Int8")
    found = plan_labels(frame, 0.1, "retriever", n_topics=3000).set_index("kind")
    assert list(found.index) == ["alone", "judge", "predictor"]
    assert found.loc["alone", "share"] == (verdicts == 5).mean()
    assert found.loc["judge", "n"] == 50
    assert found.loc["judge", "correlation"] > found.loc["predictor", "correlation"] > 0.2
    assert (found["labels"] <= found["labels_upper"]).all()
    assert found.loc["judge", "labels"] < found.loc["alone", "labels"]
    small = plan_labels(frame, 0.02, "retriever").set_index("kind")
    assert small.loc["predictor", "labels"] == math.inf  # 120 topics are too few
    assert plan_labels(frame.assign(label=pd.NA), 0.1, "retriever").empty
    with pytest.raises(ConfigError, match=r"width=0\.0: allowed are numbers above 0 and below 1"):
        plan_labels(frame, 0.0, "retriever")


def test_a_share_of_0_or_1_is_planned_with_half_a_topic() -> None:
    frame = outcomes({"a": [0.5] * 30}, {"a": [5] * 30})
    found = plan_labels(frame, 0.1, "retriever").set_index("kind")
    assert 0 < found.loc["alone", "labels"] < found.loc["alone", "labels_upper"] < math.inf
    assert found.loc["alone", "labels"] == labels_for_width(1 - 0.5 / 30, 0.1)
    wrong = outcomes({"a": [0.5] * 30}, {"a": [4] * 30})
    never = plan_labels(wrong, 0.1, "retriever").set_index("kind")
    assert never.loc["alone", "labels"] == found.loc["alone", "labels"]
    assert never.loc["alone", "labels_upper"] == found.loc["alone", "labels_upper"]


def test_the_lower_limit_of_a_correlation_is_fishers_for_normal_values_and_lower_for_yes_or_no() -> None:
    rng = np.random.default_rng(8)
    x, e = rng.normal(0, 1, (2, 20_000))
    y = 0.6 * x + 0.8 * e
    rho = float(np.corrcoef(x, y)[0, 1])
    fisher = math.tanh(math.atanh(rho) - 0.841621 / math.sqrt(20_000 - 3))
    assert correlation_lower(x, y) == pytest.approx(fisher, abs=2e-4)
    rare = (rng.random(20_000) < 0.05).astype(float)
    found = np.where(rng.random(20_000) < 0.1, 1 - rare, rare)
    rho = float(np.corrcoef(rare, found)[0, 1])
    fisher = math.tanh(math.atanh(rho) - 0.841621 / math.sqrt(20_000 - 3))
    limit = correlation_lower(rare, found)
    assert limit < fisher - 1e-4
    # A bootstrap's quantile says the same.
    draws = rng.integers(20_000, size=(300, 20_000))
    boot = [np.corrcoef(rare[d], found[d])[0, 1] for d in draws]
    assert limit == pytest.approx(np.quantile(boot, 0.2), abs=0.003)
