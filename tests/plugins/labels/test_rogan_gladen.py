"""Shares by labels of other answers, by hand, and what such a sheet must hold."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ragauge.contract.errors import DataError
from ragauge.plugins.labels.rogan_gladen import judge_by


def test_the_judge_of_a_sheet_is_weighted_and_answers_of_a_topic_are_a_cluster(tmp_path: Path) -> None:
    sheet = tmp_path / "then.csv"
    rows = pd.DataFrame(
        {
            "qid": list("abcdefgh"), "label": [5, 5, 5, 1, 1, 1, "", 2], "judge_class": [5, 5, 4, 5, 1, 1, 5, 3],
            "probability": [0.5, 0.5, 0.25, 0.5, 0.5, 0.5, 0.5, 0.25],
        }
    )  # fmt: skip
    rows.to_csv(sheet, index=False)
    judge = judge_by(sheet)
    assert judge.labels == 7
    assert judge.sensitivity.value == pytest.approx(4 / 8)  # weights 2, 2 of 2, 2, 4
    assert judge.specificity.value == pytest.approx(8 / 10)
    rows.assign(judge_class=[1, 1, 4, 5, 5, 1, 5, 3]).to_csv(sheet, index=False)
    with pytest.raises(DataError, match="add up to at most 1, so its verdicts say nothing"):
        judge_by(sheet)
    rows.drop(columns="judge_class").to_csv(sheet, index=False)
    with pytest.raises(DataError, match="columns label and judge_class are needed"):
        judge_by(sheet)


def test_a_judge_without_an_error_is_known_as_well_as_its_labels_whatever_their_weights_sum_to(tmp_path: Path) -> None:
    sheet, rng = tmp_path / "then.csv", np.random.default_rng(1)
    for n in range(6, 26):
        classes = [5, 1] * n
        rows = pd.DataFrame({"qid": range(2 * n), "label": classes, "judge_class": classes})
        rows.assign(probability=rng.uniform(0.1, 0.6, 2 * n).round(4)).to_csv(sheet, index=False)
        judge = judge_by(sheet)
        assert (judge.sensitivity.value, judge.specificity.value) == (1, 1)
        assert 1 <= judge.sensitivity.n <= n
