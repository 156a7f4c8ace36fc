from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

from ragauge.contract.errors import ConfigError, DataError
from ragauge.estimate.intervals import bounded_mean, wilson_interval
from ragauge.plugins.budgets.curves import curve_band, smallest_budget
from simulations.curves import BUDGETS


def test_one_interval_is_that_of_a_mean_and_a_band_is_wider_by_how_freely_budgets_vary():
    rng = np.random.default_rng(0)
    one = rng.random(400)
    same = curve_band(pd.DataFrame(dict.fromkeys((100, 200, 300), one)))
    alone = bounded_mean(one)
    assert same[["lo", "hi"]].iloc[0].tolist() == pytest.approx([alone.lo, alone.hi])
    assert same[["band_lo", "band_hi"]].iloc[2].tolist() == pytest.approx([alone.lo, alone.hi], abs=0.002)
    free = curve_band(pd.DataFrame(rng.random((400, 10)), columns=BUDGETS))
    widths = (free["band_hi"] - free["band_lo"]) / (free["hi"] - free["lo"])
    # Ten independent budgets: Šidák's critical value.
    expected = norm.isf((1 - 0.95 ** (1 / 10)) / 2) / norm.isf(0.025)
    assert widths.to_numpy() == pytest.approx(np.full(10, expected), rel=0.03)


def test_a_band_has_a_width_where_all_topics_are_1_and_none_with_one_topic():
    ones = pd.DataFrame(np.ones((30, 3)), columns=[100, 200, 300])
    band = curve_band(ones)
    assert band["band_hi"].tolist() == [1, 1, 1]
    assert band["band_lo"].max() < wilson_interval(1.0, 30)[0]
    assert curve_band(ones.head(1))[["lo", "band_hi"]].isna().all(axis=None)


def test_topics_without_a_difference_show_none_below_the_margin_only_where_there_are_enough():
    # No deviation: the upper limit is c^2 / n, with c = t of one side at n - 1 degrees or a little more.
    def curve(n: int) -> pd.DataFrame:
        x = np.tile([0.2, 0.9, 0.9], (n, 1))
        return pd.DataFrame(x, columns=[100, 200, 300])

    assert smallest_budget(curve(12)) == 300
    assert smallest_budget(curve(240)) == 300
    assert smallest_budget(curve(500)) == 200
    assert smallest_budget(curve(12), margin=0.75) == 200
    assert smallest_budget(curve(1)) is None


def test_right_answers_that_fall_again_have_their_smallest_budget_before():
    rng = np.random.default_rng(0)
    ease = rng.random((800, 1))
    right = (ease < np.array([0.3, 0.6, 0.4])).astype(float)
    assert smallest_budget(pd.DataFrame(right, columns=[100, 200, 300])) == 200
    # Two budgets as good as each other, each with other topics: neither is known to be within a point.
    either = (rng.random((100, 2)) < 0.5).astype(float)
    assert smallest_budget(pd.DataFrame(either, columns=[100, 200])) is None


def test_bad_input_is_told_in_one_line():
    x = pd.DataFrame({100: [0.1, 0.2], 200: [0.3, 0.4]})
    with pytest.raises(ConfigError, match=r"margin 0: allowed is a number between 0 and 1"):
        smallest_budget(x, margin=0)
    with pytest.raises(ConfigError, match=r"level 1\.2: allowed is a number between 0 and 1"):
        curve_band(x, level=1.2)
    with pytest.raises(DataError, match=r"allowed are numbers in \[0, 1\]"):
        curve_band(x + 1)
    with pytest.raises(DataError, match=r"allowed are numbers in \[0, 1\]"):
        smallest_budget(x.where(x > 0.1))


def test_one_cluster_has_no_smallest_budget() -> None:
    x = [1.0, 1.0, 0.0, 0.0, 1.0, 0.0]
    assert smallest_budget(pd.DataFrame({100: x, 200: x}), clusters=np.zeros(6, dtype=int)) is None
