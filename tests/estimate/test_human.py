"""Labels that people gave: the file, its errors, and what they say of the judge and of all topics."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ragauge.contract.errors import ConfigError, DataError
from ragauge.datasets.labels import read_human_labels, with_human_labels
from ragauge.estimate import summary
from ragauge.estimate.human import human_agreement, human_pairs, human_shares, strata_of_labels

NAN = float("nan")


def outcomes(labels: list[int | None], **columns: object) -> pd.DataFrame:
    frame = pd.DataFrame({"qid": [f"q{i}" for i in range(len(labels))], "ir_score": 0.5})
    which = {"retriever": "bm25", "n_tokens": 100, "dataset": "d", "chunker": "c", "llm": "l"}
    return frame.assign(label=pd.array(labels, dtype="Int8"), **which).assign(**columns)


def written(folder: Path, text: str) -> Path:
    (folder / "human.csv").write_text(text, encoding="utf-8")
    return folder / "human.csv"


def test_the_rows_of_a_job_are_those_of_its_retriever_and_budget(tmp_path: Path) -> None:
    path = written(
        tmp_path, "qid,retriever,n_tokens,label\nq0,bm25,100,5\nq1,sim,100,1\nq1,bm25,300,2\nq2,bm25,100,4\n"
    )
    labels = with_human_labels(outcomes([5, 5, 5]), path)["human_label"]
    assert labels.astype("float").tolist() == pytest.approx([5, float("nan"), 4], nan_ok=True)


def test_a_file_without_retriever_holds_for_every_job(tmp_path: Path) -> None:
    path = written(tmp_path, "\ufeffqid,label\nq1,3\n")
    assert with_human_labels(outcomes([5, 5]), path)["human_label"].tolist()[1] == 3


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("qid,label\nq0,6\n", r"human.csv, line 2 \(qid='q0'\): label is '6', not a judge class 1..5"),
        ("qid,label\nq0,1\nq1,\n", r"line 3 \(qid='q1'\): label is ''"),
        ("qid,n_tokens,label\nq0,many,1\n", r"n_tokens is 'many', not a number of tokens"),
        ("qid,label,colour\nq0,1,red\n", r"column 'colour' is unknown"),
        ("qid,reply\nq0,1\n", r"column 'reply' is unknown"),
        ("qid\nq0\n", r"column 'label' is missing"),
        ("qid,answer_relevance\nq0,2\n", r"answer_relevance is '2', not 1, 0 or empty"),
        ("qid,answer_relevance\nq0,1\nq0,0\n", r"line 3 \(qid='q0'\): a second row of the same qid"),
        ("qid,label,context_relevance\nq0,6,1\n", r"label is '6', not a judge class"),
        ("qid,n_tokens,label\nq0,9,1\nq0,9,2\n", r"line 3 \(qid='q0'\): a second row of the same qid, n_tokens"),
        ("", r"the file is empty"),
    ],
)
def test_a_bad_file_is_told_with_line_and_column(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_human_labels(written(tmp_path, text))


def test_answers_to_the_questions_of_a_trained_judge_stand_beside_classes_or_alone(tmp_path: Path) -> None:
    path = written(tmp_path, "qid,label,context_relevance,answer_relevance\nq0,5,1,\nq1,,0,1\n")
    found = with_human_labels(outcomes([5, 5, 5]), path)
    assert found["human_label"].astype("float").tolist() == pytest.approx([5, NAN, NAN], nan_ok=True)
    assert found["human_context_relevance"].tolist() == pytest.approx([1, 0, NAN], nan_ok=True)
    assert found["human_answer_relevance"].tolist() == pytest.approx([NAN, 1, NAN], nan_ok=True)
    alone = with_human_labels(outcomes([5]), written(tmp_path, "qid,answer_faithfulness\nq0,0\n"))
    assert "human_label" not in alone
    assert alone["human_answer_faithfulness"].tolist() == [0]


def test_a_file_that_is_not_there_and_a_topic_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="human_labels: no file"):
        read_human_labels(tmp_path / "none.csv")
    with pytest.raises(DataError, match="qid 'q9' is no topic of the dataset"):
        with_human_labels(outcomes([5]), written(tmp_path, "qid,label\nq9,1\n"))


def test_agreement_counts_equal_labels_and_leaves_out_what_no_judge_saw() -> None:
    rows = outcomes([5, 5, 1, None, None], human_label=pd.array([5, 1, 1, 5, 5], dtype="Int8"))
    found = human_agreement(rows)
    assert (found.n, found.n_missing) == (3, 2)
    assert found.agreement.value == pytest.approx(2 / 3)
    # Chance: people say 5 once and 1 twice, the judge the other way round.
    assert found.kappa.value == pytest.approx((2 / 3 - 4 / 9) / (1 - 4 / 9))
    sampled = rows.assign(judged=[True, True, True, False, False])
    assert human_agreement(sampled).n_missing == 0


def test_people_correct_a_judge_who_is_too_kind() -> None:
    # The judge calls everything right; of the 20 labelled answers, people call 15 so.
    people = [5] * 15 + [4] * 5 + [None] * 80
    rows = outcomes([5] * 100, human_label=pd.array(people, dtype="Int8"))
    shares = human_shares(rows)
    assert shares is not None
    right = shares.set_index("share").loc["correct_share"]
    assert right["estimate"] == pytest.approx(0.75)
    assert right["lo"] < 0.75 < right["hi"]
    values = summary.human(rows)
    assert values["human_labels"] == 20
    assert values["judge_agreement"] == pytest.approx(0.75)
    assert values["human_correct_share"] == pytest.approx(0.75)


def test_where_the_judge_is_right_its_verdicts_make_the_labels_worth_more() -> None:
    truth = [5, 1] * 100
    people = pd.array(truth[:40] + [None] * 160, dtype="Int8")
    shares = human_shares(outcomes(truth, human_label=people))
    assert shares is not None
    right = shares.set_index("share").loc["correct_share"]
    assert right["estimate"] == pytest.approx(0.5)
    assert right["effective_n"] > 150


def test_shares_of_people_need_two_labels_and_a_verdict_on_every_topic() -> None:
    one = outcomes([5, 5], human_label=pd.array([5, None], dtype="Int8"))
    assert human_shares(one) is None
    both = outcomes([5, None], human_label=pd.array([5, 5], dtype="Int8"))
    assert human_shares(both) is not None
    assert human_shares(both.assign(judged=[True, False])) is None
    assert summary.human(outcomes([5, 5])) == {}


def test_labels_only_where_the_judge_said_right_are_no_random_draw() -> None:
    """They were taken for one, and the share of right answers was 25 points too high."""
    people = [5] * 30 + [None] * 30 + [None] * 60
    rows = outcomes([5] * 60 + [1] * 60, human_label=pd.array(people, dtype="Int8"))
    with pytest.raises(DataError, match=r"of the 60 answers with verdict 1 0 have a label: label answers"):
        human_shares(rows)
    values = summary.human(rows)
    assert values["human_labels"] == 30
    assert "human_correct_share" not in values


def test_labels_drawn_by_verdict_are_weighted_by_verdict() -> None:
    # 90 right by the judge, 20 labelled, 10 of them right; 30 wrong, all labelled and wrong.
    people = [5] * 10 + [4] * 10 + [None] * 70 + [4] * 30
    rows = outcomes([5] * 90 + [1] * 30, human_label=pd.array(people, dtype="Int8"))
    shares = human_shares(rows)
    assert shares is not None
    assert shares.set_index("share").loc["correct_share", "estimate"] == pytest.approx(90 / 120 / 2)


def test_labels_of_the_best_scores_are_refused_and_a_random_draw_is_one_stratum() -> None:
    verdict = np.tile([5, 1, 4], 40)
    scores = np.linspace(0, 1, 120)
    with pytest.raises(DataError, match=r"their IR scores, on average 0\.8\d+, differ from those of the others"):
        strata_of_labels(scores > 0.7, verdict, scores)
    assert set(strata_of_labels(np.arange(120) % 4 == 0, verdict, scores)) == {0}


def pair_of_systems(kind: bool) -> pd.DataFrame:
    """Of 40 topics 20 are labelled; both systems are right on every second; the judge passes all of a."""
    people = [5, 4] * 10 + [None] * 20
    a = outcomes([5] * 40 if kind else [5, 4] * 20, human_label=pd.array(people, dtype="Int8"), system="a")
    b = outcomes([5, 4] * 20, human_label=pd.array(people, dtype="Int8"), system="b")
    return pd.concat([a, b], ignore_index=True)


def test_a_difference_that_is_the_judges_error_is_corrected() -> None:
    """There was no such number: the leaderboard's test of the verdicts was all."""
    pairs = human_pairs(pair_of_systems(kind=True))
    assert pairs is not None
    row = pairs.set_index("measure").loc["correct"]
    assert (row["judge_difference"], row["n"]) == (0.5, 20)
    assert row["difference"] == pytest.approx(0, abs=0.06)
    assert row["lo"] < 0 < row["hi"]
    assert row["p"] > 0.5
    assert human_pairs(pair_of_systems(kind=True).assign(judged=[True] * 79 + [False])) is None
    assert human_pairs(pair_of_systems(kind=True).drop(columns="human_label")) is None


def test_labels_drawn_with_known_probabilities_stand_for_as_many_as_their_inverse() -> None:
    # The judge calls all of 50 answers right. Ten labels were drawn with 1/4 and ten with 1; people call five of the
    # first and two of the second wrong in a, none in b: 1 - (5 / (1/4) + 2) / 50 less 1.
    given = [True] * 20 + [False] * 30
    probability = [0.25] * 10 + [1.0] * 10 + [NAN] * 30
    wrong = {"a": {0, 1, 2, 3, 4, 10, 11}, "b": set[int]()}
    frame = pd.concat([
        outcomes([5] * 50, system=name, human_probability=probability, human_label=pd.array(
            [(4 if i in of else 5) if known else None for i, known in enumerate(given)], dtype="Int8"))
        for name, of in wrong.items()
    ], ignore_index=True)  # fmt: skip
    pairs = human_pairs(frame)
    assert pairs is not None
    rows = pairs.set_index("measure")
    assert rows[["a", "b", "n", "judge_difference"]].to_numpy().tolist() == [["a", "b", 20, 0]] * 2
    assert rows["difference"].tolist() == pytest.approx([-0.44, 0.44])
    assert (rows["lo"] < rows["difference"]).all()
    assert (rows["difference"] < rows["hi"]).all()
    assert rows["p"].between(0, 1).all()
    fewer = frame.assign(human_probability=frame["human_probability"].where(frame["qid"] == "q0"))
    assert human_pairs(fewer) is None


def test_labels_of_topics_in_place_of_answers_are_refused() -> None:
    frame = pair_of_systems(kind=True)
    named = frame.assign(answer=frame["system"], human_label_of="retriever=bm25")
    with pytest.raises(DataError, match="on 20 topics answers of several systems that differ have one label in common"):
        human_pairs(named)
    assert human_pairs(named.assign(answer="one")) is not None


def test_equal_labels_that_name_their_system_are_sound() -> None:
    """Where ten labelled topics were right in both systems they were called labels of topics."""
    frame = pair_of_systems(kind=True)
    frame["human_label"] = frame["human_label"].where(frame["human_label"].isna(), 5)
    named = frame.assign(answer=frame["system"], human_label_of="llm=" + frame["system"])
    for rows in (named, named.drop(columns="human_label_of")):
        pairs = human_pairs(rows)
        assert pairs is not None
        assert set(pairs["n"]) == {20}


def test_a_file_says_which_answers_its_labels_are_of(tmp_path: Path) -> None:
    path = written(tmp_path, "qid,retriever,n_tokens,label\nq0,bm25,100,5\n")
    assert set(with_human_labels(outcomes([5, 5]), path)["human_label_of"]) == {"n_tokens=100, retriever=bm25"}
    path = written(tmp_path, "qid,label\nq0,5\n")
    assert set(with_human_labels(outcomes([5, 5]), path)["human_label_of"]) == {""}


def test_a_class_that_the_judge_saw_and_people_did_not_is_predicted() -> None:
    """It became 0, and the other classes grew: a perfect judge was 5 points too kind on 20 labels."""
    # Of 100 answers 80 are right, 20 lack information; of the latter none is among the 20 labelled.
    people = [5] * 20 + [None] * 80
    rows = outcomes([5] * 80 + [1] * 20, human_label=pd.array(people, dtype="Int8"))
    shares = human_shares(rows)
    assert shares is not None
    of = shares.set_index("share")
    # The labels do not vary, so that lambda is 0 and the labels alone speak.
    assert of.loc["correct_share", "estimate"] == 1
    # One labelled answer is wrong, as the judge says. Of the 81 others 20 lack information by the judge, of the
    # labelled none: 0 + lambda (20 / 81 - 0).
    mixed = outcomes(
        [5] * 79 + [4] + [1] * 20, human_label=pd.array([5] * 18 + [None] * 61 + [4] + [None] * 20, "Int8")
    )
    found = human_shares(mixed)
    assert found is not None
    of = found.set_index("share")
    assert of.loc["judge_share_1", "estimate"] == pytest.approx(20 / 81 * of.loc["judge_share_1", "lam"])
    assert of.loc["judge_share_1", "lam"] > 0.5
    assert (of.loc["judge_share_1", "lo"], of.loc["judge_share_1", "hi"]) == pytest.approx(
        (0, 1 - 0.025 ** (1 / 19)), abs=0.1
    )
    assert of["estimate"].iloc[:5].sum() == pytest.approx(1)
