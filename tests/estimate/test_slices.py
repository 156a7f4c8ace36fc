"""Every measure by slice against the estimate of the slice's topics alone; averages by hand."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from ragauge.contract.measures import AnswerMeasureInfo
from ragauge.estimate import bounded_mean, compare_pairs, share_estimates
from ragauge.estimate.intervals import wilson_interval
from ragauge.estimate.pairs import holm
from ragauge.estimate.ppi import ppi_shares
from ragauge.estimate.shrinkage import shrunk_means
from ragauge.estimate.slices import macro_averages, slice_differences, slice_estimates

EM = AnswerMeasureInfo("em", "EM", unit="share")
WORDS = AnswerMeasureInfo("length", "words", unit="score")


def frame(n: int = 60, systems: tuple[str, ...] = ("a", "b")) -> pd.DataFrame:
    """Scores and labels of systems over n topics: two types, of which one is small."""
    rng = np.random.default_rng(3)
    kind = np.where(np.arange(n) < n - 5, "bridge", "comparison")
    parts = [
        pd.DataFrame(
            {
                "qid": [f"q{i}" for i in range(n)],
                "system": name,
                "ir_score": rng.uniform(0, 1, n),
                "label": pd.array(rng.choice([1, 3, 4, 5], n), dtype="Int8"),
                "em": rng.integers(0, 2, n).astype(float),
                "length": rng.poisson(20, n).astype(float),
                "slice:type": kind,
                "slice:half": np.where(np.arange(n) % 2 == 0, "1", "2"),
            }
        )
        for name in systems
    ]
    return pd.concat(parts, ignore_index=True)


def at(found: pd.DataFrame, **keys: str) -> pd.Series:
    for column, value in keys.items():
        found = found[found[column] == value]
    assert len(found) == 1
    return found.iloc[0]


def test_a_slice_is_estimated_as_its_topics_alone_would_be() -> None:
    rows = frame()
    found = slice_estimates(rows, "system", [EM, WORDS], n_boot=50)
    of = rows[(rows["system"] == "b") & (rows["slice:type"] == "bridge")]
    score = bounded_mean(of["ir_score"])
    row = at(found, system="b", slice="bridge", measure="ir_score")
    assert row[["value", "lo", "hi"]].tolist() == pytest.approx([score.value, score.lo, score.hi])
    assert row["n"] == 55
    for name, share in share_estimates(of).items():
        row = at(found, system="b", slice="bridge", measure=name)
        assert row[["value", "lo", "hi"]].tolist() == pytest.approx([share.value, share.lo, share.hi])
    assert at(found, system="b", slice="bridge", measure="em")["value"] == of["em"].mean()
    assert at(found, system="b", slice="bridge", measure="length")["value"] == of["length"].mean()
    small = found[found["small"]]
    assert set(small["slice"]) == {"comparison"}
    assert set(small["n"]) == {5}
    assert list(found["slicing"].unique()) == ["type", "half"]


def test_beside_each_slice_stands_what_it_is_after_shrinking() -> None:
    lies = AnswerMeasureInfo("lies", "lies", unit="signed")
    rows = frame().assign(lies=lambda of: 2 * of["em"] - 1)
    found = slice_estimates(rows, "system", [EM, WORDS, lies], n_boot=50)
    two = found[(found["system"] == "a") & (found["slicing"] == "half")]
    for measure in ("correct_share", "em"):
        part = two[two["measure"] == measure]
        wanted = shrunk_means(part["value"], part["n"], part["n"])
        assert pytest.approx(wanted) == part[["shrunk", "shrunk_lo", "shrunk_hi"]].to_numpy(dtype=float).T
    # A signed measure is shrunk as its share of the range, and a number of words not at all.
    em, signed = (two[two["measure"] == name]["shrunk"].to_numpy() for name in ("em", "lies"))
    assert signed == pytest.approx(2 * em - 1, abs=0.02)
    assert two[two["measure"] == "length"]["shrunk"].isna().all()


def test_differences_of_slices_are_shrunk_with_the_variance_of_their_intervals() -> None:
    rows = frame(100).assign(**{"slice:half": np.tile(np.repeat(["1", "2", "3", "4"], 25), 2)})
    found = slice_differences(rows, "a", "b", answers=[EM, WORDS])
    part = found[(found["slicing"] == "half") & (found["measure"] == "correct")]
    error = (part["hi"] - part["lo"]) / 2 / 1.959964
    effective = (1 - part["difference"] ** 2) / error**2
    wanted = shrunk_means(part["difference"], part["n"], effective, limits=(-1.0, 1.0))
    assert pytest.approx(wanted, abs=1e-5) == part[["shrunk", "shrunk_lo", "shrunk_hi"]].to_numpy(dtype=float).T
    assert np.ptp(part["shrunk"]) < np.ptp(part["difference"])
    assert found[found["measure"] == "length"]["shrunk"].isna().all()


@pytest.mark.filterwarnings("error")
def test_a_difference_on_every_topic_of_a_slice_is_shrunk_as_of_that_many() -> None:
    rows = frame(60).assign(label=pd.array([5] * 60 + [1] * 60, dtype="Int8"))
    part = slice_differences(rows, "a", "b")
    part = part[(part["slicing"] == "half") & (part["measure"] == "correct")]
    assert (part["difference"] == 1).all()
    assert part["shrunk"].between(0.9, 1).all()


def test_tests_of_slices_are_corrected_by_measure_or_all_together() -> None:
    rows = frame(100).assign(**{"slice:half": np.tile(np.repeat(["1", "2", "3", "4"], 25), 2)})
    each = slice_differences(rows, "a", "b")
    every = slice_differences(rows, "a", "b", family="all")
    for measure, part in each.groupby("measure"):
        assert part["p_holm"].tolist() == pytest.approx(holm(part["p"].to_numpy()).tolist()), measure
    assert every["p_holm"].tolist() == pytest.approx(holm(every["p"].to_numpy()).tolist())


def test_what_a_topic_lacks_takes_it_out_of_that_measure_alone() -> None:
    rows = frame(20, ("a",)).drop(columns="system")
    rows.loc[0, "ir_score"] = float("nan")  # no evidence
    rows["judge_status"] = ["ok"] + ["no reference"] * 2 + ["ok"] * 17
    rows.loc[1:2, "label"] = pd.NA
    rows["unanswerable"] = [False] * 16 + [True] * 4
    rows.loc[16:, "ir_score"] = float("nan")
    rows.loc[16:, "label"] = pd.array([1, 1, 5, 1], dtype="Int8")
    rows["slice:unanswerable"] = np.where(rows["unanswerable"], "unanswerable", "answerable")
    found = slice_estimates(rows)
    there = found[found["slice"] == "answerable"].set_index("measure")["n"]
    assert (there["ir_score"], there["correct_share"]) == (15, 14)
    assert "rejection_share" not in there
    of_marked = found[found["slice"] == "unanswerable"]
    assert of_marked["measure"].tolist() == ["rejection_share"]
    assert (of_marked["value"].iloc[0], of_marked["n"].iloc[0]) == (0.75, 4)


def test_without_a_verdict_there_are_scores_alone_and_without_slices_nothing() -> None:
    rows = frame(20, ("a",)).drop(columns=["system", "em", "length"])
    rows["label"] = pd.array([pd.NA] * 20, dtype="Int8")
    assert set(slice_estimates(rows)["measure"]) == {"ir_score"}
    bare = rows.drop(columns=["slice:type", "slice:half"])
    for empty in (slice_estimates(bare), slice_estimates(rows.iloc[:0]), slice_estimates(bare, "qid")):
        assert empty.empty
        assert macro_averages(empty).empty
    assert slice_differences(bare.assign(system="a"), "a", "b").empty


def test_of_a_judged_sample_the_shares_of_a_slice_are_prediction_powered() -> None:
    rows = frame(200, ("a",)).drop(columns="system")
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(5), 200)
    rows = rows.assign(judged=rng.random(200) < 0.3, **{f"p{c}": p[:, c - 1] for c in range(1, 6)})
    rows.loc[~rows["judged"], "label"] = pd.NA
    half = rows[rows["slice:half"] == "1"]
    wanted = ppi_shares(half).set_index("share").loc["correct_share"]
    row = at(slice_estimates(rows), slice="1", measure="correct_share")
    assert (row["value"], row["lo"], row["hi"]) == (wanted["estimate"], wanted["lo"], wanted["hi"])
    assert row["n"] == half["judged"].sum()
    unseen = rows.assign(judged=rows["judged"] & (rows["slice:type"] == "bridge"))
    unseen.loc[~unseen["judged"], "label"] = pd.NA
    found = slice_estimates(unseen)
    assert set(found.loc[found["slice"] == "comparison", "measure"]) == {"ir_score"}


def averages_of(values: list[tuple[str, float, int]], **more: object) -> pd.Series:
    nan = float("nan")
    rows = pd.DataFrame(
        [("type", label, "ir_score", value, nan, nan, n, float(n), False) for label, value, n in values],
        columns=["slicing", "slice", "measure", "value", "lo", "hi", "n", "effective_n", "small"],
    )
    found = macro_averages(rows, **more)  # type: ignore[arg-type]
    assert len(found) == 1
    return found.iloc[0]


def test_an_average_over_slices_by_hand() -> None:
    slices = [("x", 0.2, 90), ("y", 0.6, 10)]
    row = averages_of(slices)
    # One topic at 0 and one at 1 more in each: 19 of 92, and 7 of 12.
    x, y = 19 / 92, 7 / 12
    variance = 0.25 * (x * (1 - x) / 91 + y * (1 - y) / 11)
    middle = (x + y) / 2
    lo, hi = wilson_interval(0.4, middle * (1 - middle) / variance)
    assert row[["value", "lo", "hi"]].tolist() == pytest.approx([0.4, lo, hi])
    assert (row["n"], row["slices"]) == (100, 2)
    weighted = averages_of(slices, weights={"type": {"x": 3, "y": 1}})
    variance = (9 * x * (1 - x) / 91 + y * (1 - y) / 11) / 16
    middle = (3 * x + y) / 4
    lo, hi = wilson_interval(0.3, middle * (1 - middle) / variance)
    assert weighted[["value", "lo", "hi"]].tolist() == pytest.approx([0.3, lo, hi])


def test_the_average_of_a_measure_of_any_size_takes_the_ends_of_its_slices() -> None:
    columns = ["slicing", "slice", "measure", "value", "lo", "hi", "n", "effective_n", "small"]
    rows = [
        ("t", "x", "length", 20.0, 10, 40, 9, None, True),
        ("t", "y", "length", 60.0, 50, 80, 9, None, True),
    ]
    row = macro_averages(pd.DataFrame(rows, columns=columns), None, [WORDS]).iloc[0]
    assert row["lo"] == pytest.approx(40 - math.sqrt(5**2 + 5**2))
    assert row["hi"] == pytest.approx(40 + math.sqrt(10**2 + 10**2))


def test_what_is_not_known_and_what_has_no_weight_is_in_no_average() -> None:
    slices = [("x", 0.2, 90), ("y", 0.6, 10), ("not known", 1.0, 4)]
    assert averages_of(slices)["n"] == 100
    row = averages_of([*slices[:2], ("z", 0.9, 7)], weights={"type": {"x": 1, "y": 1, "z": 0}})
    assert (row["value"], row["slices"], row["n"]) == (pytest.approx(0.4), 2, 100)


def test_slices_that_are_all_right_are_not_certain() -> None:
    row = averages_of([("x", 1.0, 1), ("y", 1.0, 1), ("z", 1.0, 2)])
    assert row["lo"] < 0.7
    assert row["hi"] == 1.0


def test_one_slice_has_no_average() -> None:
    rows = slice_estimates(frame(20).assign(**{"slice:type": "x"})[["qid", "ir_score", "label", "slice:type"]])
    assert macro_averages(rows).empty


def test_a_slice_of_one_topic_widens_the_average() -> None:
    with_one = averages_of([("x", 0.5, 400), ("y", 1.0, 1)])
    with_many = averages_of([("x", 0.5, 400), ("y", 1.0, 400)])
    assert with_one["hi"] - with_one["lo"] > 3 * (with_many["hi"] - with_many["lo"])


def test_differences_by_slice_are_those_of_its_topics_and_corrected_over_all() -> None:
    rows = frame()
    found = slice_differences(rows, "b", "a", answers=[EM])
    assert set(found["slice"]) == {"bridge", "1", "2"}, "five topics are not compared"
    part = rows[rows["slice:type"] == "bridge"]
    alone = compare_pairs(part, "system", answers=[EM])
    for measure in ("ir_score", "correct", "em"):
        row, wanted = at(found, slice="bridge", measure=measure), at(alone, measure=measure)
        assert row["difference"] == -wanted["difference"]
        assert (row["lo"], row["hi"]) == (-wanted["hi"], -wanted["lo"])
        assert row["p"] == wanted["p"]
    p = np.sort(found.loc[found["measure"] == "ir_score", "p"].to_numpy())
    by_hand = np.minimum(1, np.maximum.accumulate(p * [3, 2, 1]))
    corrected = np.sort(found.loc[found["measure"] == "ir_score", "p_holm"].to_numpy())
    assert corrected == pytest.approx(by_hand)


def test_a_system_without_scores_is_compared_by_its_classes() -> None:
    rows = frame()
    rows["ir_score"] = float("nan")
    assert set(slice_differences(rows, "a", "b")["measure"]) == {"correct", "hallucination"}
