"""Prediction instead of generation: shares from scores, and models that do not fit are refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from test_sweep import mlflow_runs

from processes import run
from ragauge.contract.errors import ConfigError
from ragauge.contract.metrics import without_groups
from ragauge.estimate import fit_predictor
from ragauge.estimate.portable import portable, read_portable
from ragauge.estimate.prediction import _outside_share, check_settings, predict, settings_of

TRAINED = settings_of({"class": "Substring"}, {"class": "Words"}, [1000, 100, 100])
FRAME = pd.DataFrame({"qid": ["q1", "q2", "q3"], "query": ["a", "b", "c"], "ir_score": [0.0, 0.5, 1.0]})


class HalfAndHalf:
    """P(5) is the score, P(4) the rest."""

    classes_ = np.array([4, 5])
    feature_names_in_ = np.array(["ir_score"])

    def predict_proba(self, x: pd.DataFrame) -> np.ndarray:
        score = x["ir_score"].to_numpy()
        return np.column_stack([1 - score, score])


def test_shares_are_means_of_probabilities_and_topics_stand_by_risk() -> None:
    prediction = predict(HalfAndHalf(), FRAME)
    values = prediction.metrics
    assert values["predicted_correct_share"] == values["predicted_share_5"] == pytest.approx(0.5)
    assert values["predicted_hallucination_share"] == pytest.approx(0.5)
    assert values["predicted_share_1"] == 0
    assert values["predicted_correct_share_lo"] < 0.5 < values["predicted_correct_share_hi"]
    assert prediction.topics["qid"].tolist() == ["q1", "q2", "q3"]
    assert prediction.topics["risk"].tolist() == [1.0, 0.5, 0.0]


def test_a_fitted_classifier_predicts_its_own_training_shares() -> None:
    scores = np.linspace(0, 1, 50)
    labels = np.where(scores > 0.6, 5, np.where(scores > 0.3, 2, 1))
    x = pd.DataFrame({"ir_score": scores})
    model = LogisticRegression().fit(x, labels)
    frame = x.assign(qid=[f"q{i}" for i in range(50)], query="?")
    values = predict(model, frame).metrics
    for c in (1, 2, 5):
        assert values[f"predicted_share_{c}"] == pytest.approx((labels == c).mean(), abs=1e-3)


def test_the_same_settings_and_a_budget_in_between_are_no_difference() -> None:
    assert check_settings(TRAINED, {**TRAINED, "n_tokens": [550]}, allow=False) == []


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ({"n_tokens": [2000]}, "n_tokens: fitted on 100 to 1000, this job has 2000"),
        ({"measure": {"class": "Words"}}, "measure: fitted on"),
        ({"tokenizer": {"class": "Llama"}}, "tokenizer: fitted on"),
    ],
)
def test_other_settings_are_refused_with_a_reason_or_allowed_on_purpose(wanted, message) -> None:
    with pytest.raises(ConfigError, match=message):
        check_settings(TRAINED, {**TRAINED, **wanted}, allow=False)
    assert len(check_settings(TRAINED, {**TRAINED, **wanted}, allow=True)) == 1


def test_a_model_that_says_nothing_of_itself_is_refused() -> None:
    with pytest.raises(ConfigError, match="does not say"):
        check_settings({}, TRAINED, allow=False)


def test_topics_outside_of_what_the_model_was_fitted_on_are_told(caplog: pytest.LogCaptureFixture) -> None:
    scores = np.linspace(0.2, 0.8, 50)
    fitted = pd.DataFrame({"qid": np.arange(50).astype(str), "ir_score": scores, "label": np.where(scores > 0.5, 5, 4)})
    model = read_portable(portable(fit_predictor(fitted).model, {}).to_json())
    assert predict(model, FRAME).metrics["predicted_outside_share"] == pytest.approx(2 / 3)
    assert "ir_score was 0.2 to 0.8 there, 2 of 3 topics lie outside" in caplog.text
    caplog.clear()
    assert predict(model, FRAME[1:2]).metrics["predicted_outside_share"] == 0
    assert not caplog.text


def test_a_topic_outside_of_one_feature_s_range_is_outside() -> None:
    model = SimpleNamespace(feature_range_={"ir_score": (0.2, 0.8), "length": (1, 9)})
    rows = pd.DataFrame({"qid": list("abc"), "ir_score": [0.5, 0.9, 0.5], "length": [5, 5, 10]})
    assert _outside_share(model, rows) == {"predicted_outside_share": 2 / 3}


def test_a_model_that_does_not_say_its_scores_has_no_share_outside() -> None:
    assert "predicted_outside_share" not in predict(HalfAndHalf(), FRAME).metrics


@pytest.mark.slow
def test_a_job_without_llm_and_judge_logs_what_a_job_s_predictor_foresees(
    tmp_path: Path, bring_models: Callable[..., None]
) -> None:
    bring_models(tmp_path / ".ragauge")
    small = ["dataset=sample", "dataset.limit=30", "chunker=none", "bootstrap=50"]
    judged = run(tmp_path, *small, "retriever=bm25", "n_tokens=300", "register_predictor=sample-predictor")
    assert judged.returncode == 0, judged.stderr
    alone = [*small, "retriever=sim", "llm=none", "judge=none", "predictor=models:/sample-predictor/1"]
    predicted = run(tmp_path, *alone, "n_tokens=300")
    assert predicted.returncode == 0, predicted.stderr
    _, (logged, _) = mlflow_runs(tmp_path, "job")
    found = without_groups(logged.data.metrics)
    shares = [found[f"predicted_share_{c}"] for c in range(1, 6)]
    assert sum(shares) == pytest.approx(1)
    assert found["llm_calls"] == 0
    assert "judge_share_5" not in found or found["judge_share_missing"] == 1
    refused = run(tmp_path, *alone, "n_tokens=600")
    assert refused.returncode == 2
    assert "n_tokens: fitted on 300 to 300, this job has 600" in refused.stderr
