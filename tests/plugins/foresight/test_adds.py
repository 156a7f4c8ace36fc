"""What a measure adds to the IR score: AUCs by brute force, useless and useful measures, where it is not defined."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from ragauge.contract.measures import AnswerMeasureInfo
from ragauge.plugins.foresight.adds import _placed, added
from ragauge.plugins.foresight.measures import foresight


def test_auc_and_its_parts_equal_those_of_all_pairs() -> None:
    rng = np.random.default_rng(0)
    n = 30
    values, right = np.round(rng.normal(size=n), 1), rng.random(n) < 0.4
    system, weight = rng.integers(0, 2, n), rng.uniform(0.5, 2, n)
    won = total = 0.0
    of_row = np.zeros(n)  # the weight of won less lost pairs that each answer takes part in
    pairs = [(i, j) for i in range(n) for j in range(n) if right[i] and not right[j] and system[i] == system[j]]
    for i, j in pairs:
        both = weight[i] * weight[j]
        won += both * ((values[i] > values[j]) + 0.5 * (values[i] == values[j]))
        total += both
    for i, j in pairs:
        part = weight[i] * weight[j] * ((values[i] > values[j]) + 0.5 * (values[i] == values[j]) - won / total) / total
        of_row[[i, j]] += part
    auc, parts = _placed(values, right, system, weight)
    assert auc == pytest.approx(won / total)
    assert parts == pytest.approx(of_row)


def rows(n: int, seed: int) -> pd.DataFrame:
    """Answers in two systems: `new` says as much as the IR score, and something else; `noise` says nothing."""
    rng = np.random.default_rng(seed)
    size = 2 * n
    score, new, noise = rng.normal(size=(3, size))
    right = rng.random(size) < 1 / (1 + np.exp(-1.5 * (score + new)))
    return pd.DataFrame(
        {
            "qid": np.repeat(np.arange(n), 2).astype(str), "system": np.tile(["a", "b"], n), "ir_score": score,
            "new": new * np.tile([1, 50], n), "noise": noise, "label": np.where(right, 5, 4),
        }
    )  # fmt: skip


def test_what_says_something_new_adds_and_what_says_nothing_does_not() -> None:
    infos = [AnswerMeasureInfo(name, name, of="context") for name in ("new", "noise")]
    found = foresight(rows(200, 1), infos, n_boot=2)
    assert found is not None
    table = found.table[found.table["statistic"] == "auc_right"].set_index("measure")
    assert table.loc["new", "adds_lo"] > 0.05
    assert table.loc["noise", "adds"] == pytest.approx(0, abs=0.02)
    assert table.loc["noise", "adds_lo"] < 0
    assert np.isnan(table.loc["ir_score", "adds"])


def test_the_error_is_that_of_resampled_topics() -> None:
    frame = rows(150, 2).assign(_right=lambda f: f["label"].eq(5), _topic=lambda f: f["qid"].astype(int), _weight=1.0)
    gain, lo, _ = added(frame, "ir_score", "new", 1, "system", 1e9, 0.95, seed=0)
    right, topic, system = frame["_right"].to_numpy(), frame["_topic"].to_numpy(), pd.factorize(frame["system"])[0]
    rng = np.random.default_rng(4)
    drawn = []
    for _ in range(200):
        times = np.bincount(rng.integers(0, 150, 150), minlength=150)[topic].astype(float)
        # Of the IR score alone, which needs no fit: the error of its AUC by its parts, against resamples of topics.
        drawn.append(_placed(frame["ir_score"].to_numpy(), right, system, times)[0])
    _, parts = _placed(frame["ir_score"].to_numpy(), right, system, np.ones(len(frame)))
    error = np.sqrt((np.bincount(topic, parts) ** 2).sum())
    assert error == pytest.approx(np.std(drawn), rel=0.2)
    assert lo < gain


def test_answers_of_one_class_are_told_by_no_value() -> None:
    frame = rows(10, 3).assign(_right=False, _topic=lambda f: f["qid"].astype(int), _weight=1.0)
    assert np.isnan(added(frame, "ir_score", "new", 1, "system", 9, 0.95, seed=0)).all()
