"""Predictors of single sources beside the one of all others: by hand, and by fits done one by one."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from ragauge.estimate import fit_predictor
from ragauge.estimate.outcomes import topic_codes
from ragauge.plugins.training.trainers.sources import CONSTANT, POOLED, SINGLE, beside_other_fits, mean_errors
from ragauge.plugins.transfer.measured import leave_one_out
from ragauge.plugins.transfer.refits import folds_of


def judged(sweeps: int = 3, n: int = 40, seed: int = 1) -> pd.DataFrame:
    """Sweeps over own topics, two LLMs each, whose classes follow from the score."""
    rng = np.random.default_rng(seed)
    scores = rng.random(sweeps * n * 2)
    label = np.where(rng.random(len(scores)) < scores, 5, np.where(rng.random(len(scores)) < 0.5, 1, 4))
    of_sweep = np.repeat(np.arange(sweeps), n * 2)
    return pd.DataFrame(
        {
            "qid": [f"s{s}q{i % n}" for i, s in enumerate(of_sweep)],
            "sweep": [f"sweep {s}" for s in of_sweep],
            "llm": np.where(np.arange(len(scores)) // n % 2, "large", "small"),
            "ir_score": scores,
            "label": pd.array(label, dtype="Int8"),
            "weight": rng.choice([0.5, 1.0, 2.0], len(scores)),
        }
    )


def shares(frame: pd.DataFrame) -> np.ndarray:
    return np.array([np.average(frame["label"] == c, weights=frame["weight"]) for c in range(1, 6)])


def predicted(table: pd.DataFrame, group: str, fit: str, source: str = "") -> np.ndarray:
    rows = table[(table["group"] == group) & (table["fitted_on"] == fit) & (table["source"] == source)]
    return rows.sort_values("class")["predicted"].to_numpy()


def test_each_fit_predicts_what_a_fit_of_its_rows_on_the_other_topics_does() -> None:
    frame = judged()
    for by in ("sweep", "llm"):
        table = beside_other_fits(leave_one_out(frame, by, n_boot=0), frame)
        fold = folds_of(topic_codes(frame["qid"])[0], 0)
        for group, out in frame.groupby(by):
            others = frame[frame[by] != group]
            fits = {(CONSTANT, ""): others}
            fits |= {(SINGLE, name): rows for name, rows in others.groupby("sweep")}
            for (fit, source), rows in fits.items():
                total = np.zeros(5)
                for number in range(5):
                    here, train = out[fold[out.index] == number], rows[fold[rows.index] != number]
                    if fit == CONSTANT:
                        total += here["weight"].sum() * shares(train)
                    else:
                        model = fit_predictor(train)
                        total += here["weight"].to_numpy() @ model.predict_proba(here)
                wanted = total / out["weight"].sum()
                np.testing.assert_allclose(predicted(table, group, fit, source), wanted, atol=1e-9)
            judged_shares = table[table["group"] == group].drop_duplicates("class").sort_values("class")
            np.testing.assert_allclose(judged_shares["judged"], shares(out))


def test_the_pooled_rows_are_those_of_the_transfer_and_a_source_that_is_the_group_is_not_there() -> None:
    frame = judged()
    moved = leave_one_out(frame, "sweep", n_boot=50)
    table = beside_other_fits(moved, frame)
    pooled = table[table["fitted_on"] == POOLED]
    assert pooled["predicted"].tolist() == moved.table["predicted"].tolist()
    assert pooled["lo"].notna().all()
    singles = table[table["fitted_on"] == SINGLE]
    assert not (singles["group"] == singles["source"]).any()
    assert len(singles) == 3 * 2 * 5
    assert beside_other_fits(leave_one_out(frame[frame["sweep"] == "sweep 0"], "sweep"), frame).empty


def test_mean_errors_count_groups_and_sources_equally() -> None:
    rows = [("a", POOLED, "", 0.1), ("b", POOLED, "", -0.3)]
    rows += [("a", SINGLE, "x", 0.2), ("a", SINGLE, "y", -0.4), ("b", SINGLE, "x", 0.6)]
    table = pd.DataFrame(rows, columns=["group", "fitted_on", "source", "difference"])
    assert mean_errors(table) == {POOLED: pytest.approx(0.2), SINGLE: pytest.approx((0.3 + 0.6) / 2)}


def test_one_source_more_than_two_is_better_where_two_say_little() -> None:
    frame = judged(sweeps=6, n=12, seed=4)
    errors = mean_errors(beside_other_fits(leave_one_out(frame, "sweep", n_boot=0), frame))
    assert errors[POOLED] < errors[SINGLE]
