"""Which runs are equivalent to the baseline within a margin."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from ragauge.compare import found_of
from ragauge.contract.jobs import Compared
from ragauge.contract.measures import AnswerMeasureInfo

EQUIVALENT, FURTHER, OPEN = "equivalent", "further apart", "not shown"


def outcomes(differences: dict[str, np.ndarray], labels: int | None = None) -> pd.DataFrame:
    """Runs whose IR scores lie so far above those of the run `base`, all 0.5."""
    frames = []
    for run_id, d in {"base": np.zeros(len(next(iter(differences.values())))), **differences}.items():
        frame = pd.DataFrame({"run_id": run_id, "qid": [f"q{i}" for i in range(len(d))], "ir_score": 0.5 + d})
        frames.append(frame.assign(label=pd.array([labels] * len(d), dtype="Int8"), seconds=1.0 + d))
    return pd.concat(frames, ignore_index=True)


def equivalence(
    rows: pd.DataFrame, base: str, margin: float, answers: Sequence[AnswerMeasureInfo] = ()
) -> pd.DataFrame:
    """What a comparison with this margin finds of the runs."""
    ids = list(rows["run_id"].unique())
    runs = pd.DataFrame({"run_id": ids, "run": ids, "system": ids, "n_tokens": 9, "compared": True})
    names, params = dict(zip(ids, ids, strict=True)), pd.DataFrame(index=ids)
    rows = rows.assign(query="?", answer="!")
    compared = Compared(rows, names, base, answers, 9, 0, 0, runs=runs, params=params, equivalent=margin)
    found: pd.DataFrame = found_of(compared).found["equivalence"].table
    return found


def test_an_interval_within_the_margin_is_equivalent_and_one_beyond_it_further_apart() -> None:
    noise = np.tile([0.01, -0.01], 200)
    rows = outcomes({"near": noise, "far": noise + 0.2, "edge": noise + 0.03, "lower": noise - 0.2})
    found = equivalence(rows, "base", 0.03).set_index("run_id")
    assert found["shown"].to_dict() == {"near": EQUIVALENT, "far": FURTHER, "edge": OPEN, "lower": FURTHER}
    assert found.loc["far", "difference"] == pytest.approx(0.2)
    assert found.loc["lower", "hi"] < -0.03
    # The other way round is the same.
    turned = equivalence(rows[rows["run_id"].isin(["base", "far"])], "far", 0.03).iloc[0]
    assert (turned["shown"], turned["lo"]) == (FURTHER, pytest.approx(-found.loc["far", "hi"]))


def test_the_intervals_are_those_of_two_one_sided_t_tests_but_for_the_added_topic() -> None:
    d = np.random.default_rng(1).normal(0.01, 0.1, 2000)
    (row,) = equivalence(outcomes({"other": d}), "base", 0.03).to_dict("records")
    assert stats.ttest_1samp(d, -0.03, alternative="greater").pvalue < 0.05
    assert stats.ttest_1samp(d, 0.03, alternative="less").pvalue < 0.05
    assert row["shown"] == EQUIVALENT
    reach = stats.t.ppf(0.95, 1999) * d.std(ddof=1) / np.sqrt(2000)
    assert (row["lo"], row["hi"]) == pytest.approx((d.mean() - reach, d.mean() + reach), abs=2e-4)


def test_right_answers_are_compared_and_measures_beyond_1_are_not() -> None:
    rows = outcomes({"other": np.zeros(400)}, labels=5)
    seconds = AnswerMeasureInfo("seconds", "seconds", "lower", "score")
    found = equivalence(rows, "base", 0.03, [seconds])
    assert set(found["measure"]) == {"ir_score", "correct", "hallucination"}
    assert (found["shown"] == EQUIVALENT).all()
    few = equivalence(outcomes({"other": np.zeros(20)}, labels=5), "base", 0.03)
    assert set(few["shown"]) == {OPEN}  # 20 equal topics do not show that others are


def test_a_run_without_verdicts_is_not_equivalent_in_right_answers_to_one_that_is_never_right() -> None:
    wrong, unjudged = outcomes({"other": np.zeros(400)}, labels=4), outcomes({"other": np.zeros(400)})
    rows = pd.concat([wrong[wrong["run_id"] == "base"], unjudged[unjudged["run_id"] == "other"]], ignore_index=True)
    assert equivalence(rows, "base", 0.03)["measure"].tolist() == ["ir_score"]
