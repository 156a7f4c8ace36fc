"""`ragauge foresee`: shares, drift and refusals by hand, the training rows in a file, the command from end to end."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from processes import Command
from ragauge.contract.errors import DataError
from ragauge.estimate import fit_predictor
from ragauge.estimate.portable import portable, read_portable
from ragauge.plugins.foresee.command import main
from ragauge.plugins.foresee.drift import drift, refusals
from ragauge.plugins.foresee.reference import Reference, as_settings, read
from ragauge.plugins.foresee.shares import density_ratio
from ragauge.plugins.foresee.window import by_day, foreseen, lines

HOW = {"spline": False, "calibrate": False, "penalty": 1.0}


def rows(n: int, seed: int, shift: float = 0.0) -> pd.DataFrame:
    """Answers [qid, query, x, label]; right the more probably, the larger x."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n) + shift
    right = rng.random(n) < 1 / (1 + np.exp(-2 * x))
    label = pd.array(np.where(right, 5, np.where(rng.random(n) < 0.5, 1, 4)), dtype="Int8")
    return pd.DataFrame({"qid": [f"q{i}" for i in range(n)], "query": "what?", "x": x, "label": label})


def reference(training: pd.DataFrame) -> Reference:
    return Reference(training[["qid", "label", "x"]], HOW, training["qid"].nunique(), {})


def test_rows_beyond_the_training_or_without_a_feature_are_refused_by_name() -> None:
    frame = pd.DataFrame({"x": [0.0, 1.0, 1.05, 1.2, np.nan], "y": [5.0, 5.0, 5.0, -9.0, 5.0]})
    why = refusals(frame, ["x", "y"], {"x": (0.0, 1.0), "y": (0.0, 10.0)})
    assert why.tolist() == ["", "", "", "x 1.2, y -9", "no x"]
    assert refusals(frame, ["x"], None).tolist() == ["", "", "", "", "no x"]


def test_drift_is_of_one_row_a_topic_and_corrected_over_features() -> None:
    training = pd.DataFrame({"qid": ["a", "a", "b", "b"], "x": [0.0, 0.0, 1.0, 1.0], "y": [1.0, 1.0, 1.0, 1.0]})
    window = pd.DataFrame({"x": [2.0, 3.0], "y": [1.0, 1.0]})
    table = drift(window, Reference(training, HOW, 2, {}), ["x", "y"]).set_index("feature")
    assert table["distance"].tolist() == [1.0, 0.0]
    assert table.loc["x", "p"] == pytest.approx(1 / 3)  # 2 of the 6 orders of two and two are as far apart
    assert table.loc["x", "p_holm"] == pytest.approx(2 / 3)
    assert (table.loc["x", "training_median"], table.loc["x", "window_median"]) == (0.5, 2.5)


def test_training_rows_like_the_window_weigh_more_and_none_beyond_twenty_means() -> None:
    training = pd.DataFrame({"x": np.linspace(-2, 2, 50)})
    ratio = density_ratio(training, training + 1.0, np.arange(50))
    assert (np.diff(ratio) > 0).all()
    assert ratio.mean() == pytest.approx(1.0)
    assert density_ratio(training, training + 50.0, np.arange(50)).max() <= 20


def test_a_file_of_a_predictor_keeps_its_training_rows_and_no_text() -> None:
    training = rows(40, 0).assign(query="secret question", weight=2.0)
    kept = as_settings(training, ["x"], HOW, {"retriever": 0.02}, seed=0)
    text = portable(fit_predictor(training, ["x"]).model, kept).to_json()
    assert "secret" not in text
    back = read(read_portable(text).settings, ["x"])
    assert back is not None
    assert (back.n_topics, back.how, back.transfer) == (40, HOW, {"retriever": 0.02})
    theirs = training.sort_values("qid", key=lambda q: pd.factorize(q, sort=True)[0])
    np.testing.assert_allclose(back.rows.sort_values("qid")["x"], theirs["x"], rtol=1e-5)
    assert (back.rows["weight"] == 2).all()
    assert read({}, ["x"]) is None
    kept["training"]["label"][0] += 5
    with pytest.raises(DataError, match="classes 1 to 5"):
        read(kept, ["x"])
    kept["training"]["label"][0] -= 5
    kept["training"]["columns"]["x"][0] = float("nan")
    with pytest.raises(DataError, match="finite numbers"):
        read(kept, ["x"])
    with pytest.raises(DataError, match="cannot be read: KeyError"):
        read({"training": {"topic": []}}, ["x"])


def test_of_many_rows_whole_topics_are_kept() -> None:
    n = 20_000
    many = pd.DataFrame({"qid": np.repeat(np.arange(n // 2), 2).astype(str), "x": 1.0, "label": 5})
    kept = as_settings(many, ["x"], HOW, {}, seed=0)["training"]
    assert len(kept["topic"]) == 40_000 // 3 // 2 * 2
    assert set(np.bincount(kept["topic"])) == {0, 2}
    assert kept["n_topics"] == n // 2
    assert as_settings(many, ["x"], HOW, {}, seed=1)["training"]["topic"] != kept["topic"]


def test_a_window_has_charts_by_day_and_says_what_is_not_known() -> None:
    training, window = rows(100, 0), rows(30, 1).assign(day="2026-11-20")
    window.loc[3, "x"] = 99.0
    window.loc[4, ["x", "day"]] = [np.nan, "2026-11-21"]
    of = reference(training)
    model = fit_predictor(training, ["x"]).model
    topics = foreseen(window, model, ["x"], of, of_topics=False, seed=0).topics
    days = by_day(topics)
    assert days["foreseen_refused_share_at_day"] == {20261120: pytest.approx(1 / 29), 20261121: 1}
    known = topics[topics["refused"] == ""]
    assert days["foreseen_correct_share_at_day"] == {20261120: pytest.approx(known["p5"].mean())}
    assert days["foreseen_hallucination_share_at_day"] == {20261120: pytest.approx((known["p2"] + known["p4"]).mean())}
    assert by_day(topics.assign(day="yesterday")) == {}
    unknown = foreseen(window, model, ["x"], None, of_topics=False, seed=0)
    assert "its own error and drift are unknown" in "\n".join(lines(unknown, None))
    beyond = foreseen(window.loc[[3]], model, ["x"], of, of_topics=False, seed=0)
    assert "no answer lies within the training" in "\n".join(lines(beyond, of))


def test_a_window_that_has_moved_names_its_features_and_the_first_of_what_is_refused() -> None:
    of = reference(rows(900, 0))
    model = fit_predictor(rows(900, 0), ["x"]).model
    window = rows(60, 2, shift=0.8)
    window.loc[:5, "x"] = 99.0
    for first, named in ((0, "q0, q1, q2, q3, q4, …"), (1, "q1, q2, q3, q4, q5")):
        found = foreseen(window[first:], model, ["x"], of, of_topics=False, seed=0)
        assert found.drift is not None
        distance, p = found.drift.loc[0, ["distance", "p_holm"]]
        said = lines(found, of)
        assert len(said) == 5  # training topics enough look like the window, and nothing was left out
        assert said[1].endswith(f"x of {6 - first} ({named})")
        assert said[4] == f"  drift against the training: x (distance {distance:.2f}, p {p:.2g})"
        assert found.metrics["drift_features"] == 1


def test_the_command_explains_itself(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    assert "experiment=mlflow_traces" in capsys.readouterr().out


@pytest.mark.slow
def test_recorded_answers_are_foreseen_from_end_to_end(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    samples = []
    for i in range(60):
        good = rng.random() < 0.6
        context = f"The colour of thing{i} is blue." if good else "Nothing is known here."
        answer = "blue" if good and rng.random() < 0.9 else "red"
        question = {"qid": f"q{i}", "question": f"What colour has thing{i}?", "reference": "blue"}
        samples.append(question | {"contexts": [context, "Birds sing."], "answer": answer})
    for name, part in (("then", samples[:40]), ("now", samples[40:])):
        if name == "now":
            part = [{key: value for key, value in row.items() if key != "reference"} for row in part]
        (tmp_path / f"{name}.jsonl").write_text("\n".join(map(json.dumps, part)))
    common = ["experiment=recorded", "tokenizer=words", "bootstrap=20"]
    features = "[question_coverage,order_agreement]"
    qpp = ["answers=[qpp]", "answers.qpp.vectors=false"]
    judged = Command(
        tmp_path, *common, *qpp, "recorded.path=then.jsonl", "judge=lexical", f"estimate.features={features}"
    ).wait()
    assert judged.returncode == 0, judged.stderr
    run = re.findall(r"MLflow run ([0-9a-f]{32})", judged.stderr)[0]
    trained = Command(
        tmp_path, "train", "trainer=predictor", f"runs=[{run}]", f"trainer.features={features}", "register=risk",
        "bootstrap=20",
    ).wait()  # fmt: skip
    assert trained.returncode == 0, trained.stderr
    now = [*common, "recorded.path=now.jsonl", "predictor=models:/risk/1"]
    done = Command(tmp_path, "foresee", *now, "answers.qpp.vectors=false").wait()
    assert done.returncode == 0, done.stderr
    assert re.search(r"foreseen right \d", done.stderr), done.stderr
    (file,) = (tmp_path / "outputs").glob("*/*/topics_at_risk.csv")
    table = pd.read_csv(file)
    assert len(table) == 20
    assert table["answer"].isin(["blue", "red"]).all()
    other = Command(tmp_path, "foresee", *now, "answers.qpp.vectors=false", "answers.qpp.persistence=0.5").wait()
    assert other.returncode == 2
    assert "the settings of answers.qpp are others than where it was fitted" in other.stderr
