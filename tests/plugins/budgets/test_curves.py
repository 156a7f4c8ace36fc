from __future__ import annotations

from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

from ragauge.contract.errors import ConfigError, DataError
from ragauge.estimate.intervals import bounded_mean, wilson_interval
from ragauge.plugins.budgets.curves import budgets, compare_curves, curve_band, smallest_budget
from simulations.curves import BUDGETS, draw


def frame_of(curves: dict[str, np.ndarray], labels: dict[str, np.ndarray] | None = None) -> pd.DataFrame:
    """Outcomes of systems by their scores [topics, budgets] and labels."""
    parts = []
    for system, x in curves.items():
        for i, n in enumerate(BUDGETS[: x.shape[1]]):
            label = labels[system][:, i] if labels and system in labels else [None] * len(x)
            parts.append(
                pd.DataFrame(
                    {
                        "qid": [f"q{t:03}" for t in range(len(x))],
                        "system": system,
                        "n_tokens": n,
                        "ir_score": x[:, i],
                        "label": pd.array(label, dtype="Int8"),
                    }
                )
            )
    return pd.concat(parts, ignore_index=True)


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


def test_a_weighted_band_is_that_of_repeated_topics_in_its_middle():
    x = pd.DataFrame(np.random.default_rng(1).random((50, 2)), columns=[100, 200])
    twice = np.where(np.arange(50) < 25, 2.0, 1.0)
    repeated = pd.concat([x, x.head(25)])
    assert curve_band(x, twice)["value"].tolist() == pytest.approx(curve_band(repeated)["value"].tolist())


@pytest.mark.parametrize("missing", [0, 0.2])
def test_tests_over_all_budgets_are_those_of_all_sign_patterns(missing):
    rng = np.random.default_rng(4)
    first, second = rng.random((9, 3)) + np.array([0.3, 0.4, 0.1]), rng.random((9, 3))
    first[rng.random(first.shape) < missing] = np.nan
    names = [f"q{i}" for i in range(9)]
    curves = {"a": pd.DataFrame(first, names, [1, 2, 3]), "b": pd.DataFrame(second, names, [1, 2, 3])}
    found = compare_curves(curves)
    d = np.nan_to_num(first - second)
    t = np.abs(np.array(list(product((1, -1), repeat=9))) @ (d / np.sqrt((d**2).sum(axis=0))))
    assert found["p"].to_numpy() == pytest.approx((t >= t[0] - 1e-9).mean(axis=0), abs=0.035)
    over = [(t.max(axis=1) >= value - 1e-9).mean() for value in t[0]]
    assert found["p_all_budgets"].to_numpy() == pytest.approx(over, abs=0.035)
    assert found["difference"].to_numpy() == pytest.approx(np.nanmean(first - second, axis=0))
    assert found["n"].tolist() == (~np.isnan(first)).sum(axis=0).tolist()
    assert ((found["lo"] < found["difference"]) & (found["difference"] < found["hi"])).all()


def test_only_shared_budgets_are_compared():
    rng = np.random.default_rng(0)
    curves = {
        "a": pd.DataFrame(rng.random((20, 2)), columns=[100, 200]),
        "b": pd.DataFrame(rng.random((20, 2)), columns=[200, 300]),
        "c": pd.DataFrame(rng.random((20, 2)), columns=[400, 500]),
    }
    found = compare_curves(curves)
    assert found[["a", "b", "n_tokens"]].to_numpy().tolist() == [["a", "b", 200]]
    assert found["p_all_budgets"].iloc[0] == found["p"].iloc[0]


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


def test_the_curves_of_a_sweep():
    rng = np.random.default_rng(0)
    first, second = draw(300, 100, rng, 2)
    right = np.where(rng.random((300, 10)) < 0.5, 5, 4)
    found = budgets(frame_of({"a": first, "b": second, "short": first[:, :1]}, {"a": right}))
    assert found is not None
    assert found.n_budgets == 10
    assert found.bands.groupby(["measure", "system"]).size().to_dict() == {
        ("correct", "a"): 10, ("ir_score", "a"): 10, ("ir_score", "b"): 10,
    }  # fmt: skip
    alone = curve_band(pd.DataFrame(first, columns=BUDGETS))
    mine = found.bands[(found.bands["measure"] == "ir_score") & (found.bands["system"] == "a")]
    assert mine["band_lo"].tolist() == pytest.approx(alone["band_lo"].tolist())
    assert found.band_of("ir_score")["a"][100] == (alone["band_lo"][0], alone["band_hi"][0])
    assert set(found.tests["measure"]) == {"ir_score"}
    (most,) = found.most_different().to_dict("records")
    assert most["p_holm"] == most["p_all_budgets"] == found.tests["p_all_budgets"].min()
    seen = found.smallest.set_index(["measure", "system"]).loc[("ir_score", "a")]
    assert seen["best_n_tokens"] == 1000
    assert seen["smallest_n_tokens_seen"] <= seen["smallest_n_tokens"]


def test_a_sweep_of_one_budget_has_no_curves():
    assert budgets(frame_of({"a": np.full((5, 1), 0.5), "b": np.full((5, 1), 0.5)})) is None


def test_a_sample_s_right_answers_are_about_its_judged_topics():
    rng = np.random.default_rng(0)
    label = np.where(rng.random((40, 2)) < 0.5, 5, 1).astype(object)
    label[10:] = None
    frame = frame_of({"a": rng.random((40, 2))}, {"a": label})
    frame["judged"] = frame["label"].notna()
    found = budgets(frame)
    assert found is not None
    n = found.bands.groupby("measure")["n"].max().to_dict()
    assert n == {"correct": 10, "ir_score": 40}
    assert found.tests.empty
    assert found.most_different().empty


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
