"""Differences of options with all else equal: by hand, by brute force over the grid, and on samples."""

from __future__ import annotations

from itertools import product

import numpy as np
import pandas as pd
import pytest

from ragauge.contract.errors import DataError
from ragauge.contract.measures import AnswerMeasureInfo
from ragauge.estimate.intervals import paired_mean
from ragauge.estimate.outcomes import CLUSTER
from ragauge.estimate.pairs import compare_pairs
from ragauge.plugins.parts.ablation import ablation, gains

Values = dict[str, list[float]]


def outcomes(scores: Values, labels: dict[str, list[int | None]] | None = None) -> pd.DataFrame:
    """One topic a position, one system a key."""
    return pd.concat(
        [
            pd.DataFrame(
                {
                    "qid": [f"q{i}" for i in range(len(values))],
                    "system": name,
                    "ir_score": values,
                    "label": pd.array((labels or {}).get(name, [None] * len(values)), dtype="Int8"),
                }
            )
            for name, values in scores.items()
        ],
        ignore_index=True,
    )


def grid_settings(*factors: tuple[str, tuple[str, ...]]) -> dict[str, dict[str, str]]:
    names = [name for name, _ in factors]
    return {
        " ".join(chosen): dict(zip(names, chosen, strict=True))
        for chosen in product(*(options for _, options in factors))
    }


GRID = grid_settings(("retriever", ("bm25", "sim")), ("reranker", ("cross", "none")))
SCORES = {
    "bm25 cross": [0.9, 0.7],
    "bm25 none": [0.5, 0.5],
    "sim cross": [0.6, 1.0],
    "sim none": [0.6, 0.8],
}


def test_an_option_has_the_mean_of_its_differences_over_the_settings_of_the_others() -> None:
    found = ablation(outcomes(SCORES), GRID).set_index(["factor", "option"])
    # (0.9 - 0.5 + 0.7 - 0.5) / 2 = 0.3 with bm25, (0 + 0.2) / 2 = 0.1 with sim.
    cross = found.loc["reranker", "cross"]
    assert cross["difference"] == pytest.approx(0.2)
    assert (cross["base"], cross["settings"], cross["n"]) == ("none", 2, 2)
    # By topic (0.4 + 0) / 2 and (0.2 + 0.2) / 2: both are 0.2.
    expected = paired_mean(np.array([0.2, 0.2]))
    assert (cross["lo"], cross["hi"]) == pytest.approx((expected.lo, expected.hi))
    # Without an option `none` the first is the base: (-0.3 + 0.3 + 0.1 + 0.3) / 4.
    sim = found.loc["retriever", "sim"]
    assert (sim["base"], sim["settings"]) == ("bm25", 2)
    assert sim["difference"] == pytest.approx(0.1)
    assert set(found["measure"]) == {"ir_score"}


def test_settings_without_a_match_are_not_compared() -> None:
    some = {name: own for name, own in GRID.items() if name != "sim cross"}
    found = ablation(outcomes({name: SCORES[name] for name in some}), some)
    assert found["settings"].tolist() == [1, 1]
    assert found["difference"].tolist() == pytest.approx([0.2, 0.3])
    apart = {name: GRID[name] for name in ("bm25 cross", "sim none")}
    assert ablation(outcomes({name: SCORES[name] for name in apart}), apart).empty


def test_a_factor_without_effect_does_not_dilute_the_difference() -> None:
    settings = grid_settings(("retriever", ("bm25", "none")), ("size", ("64", "128")))
    scores = {"bm25 64": [0.2, 0.4], "bm25 128": [0.4, 0.6], "none 64": [0.0, 0.0], "none 128": [0.0, 0.0]}
    idle = {"none 64": ["size"], "none 128": ["size"]}
    both, bm25_alone = (
        ablation(outcomes(scores), settings, effect).set_index("factor").loc["size"] for effect in ({}, idle)
    )
    assert (both["difference"], both["settings"]) == (pytest.approx(0.1), 2)
    assert (bm25_alone["difference"], bm25_alone["settings"]) == (pytest.approx(0.2), 1)


def test_right_and_hallucination_are_compared_where_there_are_verdicts() -> None:
    labels: dict[str, list[int | None]] = {
        "bm25 cross": [5, 5], "bm25 none": [4, 5], "sim cross": [5, None], "sim none": [2, 4],
    }  # fmt: skip
    found = ablation(outcomes(SCORES, labels), GRID)
    cross = found[found["option"] == "cross"].set_index("measure")
    assert cross.loc["correct", "difference"] == pytest.approx((1 + 0 + 1 + 0) / 4)
    assert cross.loc["hallucination", "difference"] == pytest.approx((-1 + 0 - 1 - 1) / 4)
    assert ((cross["lo"] <= cross["difference"]) & (cross["difference"] <= cross["hi"])).all()


def test_with_one_setting_it_is_the_paired_comparison_of_the_two_systems() -> None:
    rng = np.random.default_rng(0)
    rows = outcomes(
        {name: rng.random(40).tolist() for name in ("a", "b")},
        {name: rng.integers(1, 6, 40).tolist() for name in ("a", "b")},
    )
    found = ablation(rows, {"b": {"part": "b"}, "a": {"part": "a"}}).set_index("measure")
    pairs = compare_pairs(rows, "system", seed=3).set_index("measure")
    for measure in ("ir_score", "correct", "hallucination"):
        expected = pairs.loc[measure, ["difference", "lo", "hi", "n"]].astype(float)
        # The pair is a less b, and b was named first: the base.
        np.testing.assert_allclose(found.loc[measure, ["difference", "lo", "hi", "n"]].astype(float), expected)


def test_averages_over_settings_are_those_of_brute_force() -> None:
    rng = np.random.default_rng(1)
    settings = grid_settings(("x", ("none", "p", "q")), ("y", ("1", "2")), ("z", ("u", "v")))
    rows = outcomes({name: rng.random(15).tolist() for name in settings})
    found = ablation(rows, settings).set_index(["factor", "option"])["difference"]
    mean = rows.groupby("system")["ir_score"].mean()
    for factor, option, base in (("x", "p", "none"), ("x", "q", "none"), ("y", "2", "1"), ("z", "v", "u")):
        pairs = [
            mean[a] - mean[b]
            for a, b in product(settings, settings)
            if settings[a] == {**settings[b], factor: option} and settings[b][factor] == base
        ]
        assert found[factor, option] == pytest.approx(np.mean(pairs))


def test_a_sample_of_judged_topics_gives_the_difference_over_all_topics() -> None:
    rng = np.random.default_rng(2)
    n = 400
    judged = np.arange(n) < 100
    parts = []
    for system, p in (("none", 0.3), ("cross", 0.6)):
        label = np.where(rng.random(n) < p, 5, 1)
        columns = {f"p{c}": 0.0 for c in (2, 3, 4)} | {"p5": p, "p1": 1 - p}
        rows = outcomes({system: [0.5] * n}, {system: label.tolist()}).assign(judged=judged, stratum=0)
        parts.append(rows.assign(**columns))
    frame = pd.concat(parts, ignore_index=True)
    frame["label"] = frame["label"].where(frame["judged"])
    found = ablation(frame, {s: {"reranker": s} for s in ("none", "cross")}).set_index("measure")
    assert found.loc["correct", "n"] == 100
    assert found.loc["correct", "lo"] < 0.3 < found.loc["correct", "hi"]
    assert found.loc["ir_score", "n"] == n


def test_a_system_without_settings_is_told() -> None:
    with pytest.raises(DataError, match="no settings are given of system 'sim none'"):
        ablation(outcomes(SCORES), {name: own for name, own in GRID.items() if name != "sim none"})


# --- gain over another system ------------------------------------------------------------------------------


def test_the_gain_has_every_class_and_answer_measure() -> None:
    labels: dict[str, list[int | None]] = {"sim": [5, 5, 2, 3], "none": [1, 5, 1, 1]}
    rows = outcomes({"sim": [1.0] * 4, "none": [0.0] * 4}, labels)
    rows["f1"] = [1.0, 1.0, 0.0, 0.5, 0.0, 1.0, 0.0, 0.0]
    info = AnswerMeasureInfo("f1", "F1", unit="share")
    found = gains(rows, {"sim": "none"}, answers=[info]).set_index("measure")["difference"]
    assert found.to_dict() == pytest.approx(
        {"correct": 0.25, "hallucination": 0.25, "judge_share_1": -0.75, "judge_share_2": 0.25,
         "judge_share_3": 0.25, "judge_share_4": 0.0, "f1": 0.375}
    )  # fmt: skip


def test_without_verdicts_and_answer_measures_there_is_no_gain_to_show() -> None:
    assert gains(outcomes({"sim": [1.0, 1.0], "none": [0.0, 0.0]}), {"sim": "none"}).empty


def test_an_ablation_over_clusters_is_wider() -> None:
    rng = np.random.default_rng(0)
    ease = np.repeat(rng.random(6), 10)  # topics of a cluster are alike
    rows = outcomes({name: np.clip(ease + rng.normal(0, 0.1, 60), 0, 1).round(2).tolist() for name in "st"})
    rows[CLUSTER] = np.tile(np.repeat(list("abcdef"), 10), 2)
    settings = {"s": {"reranker": "none"}, "t": {"reranker": "x"}}
    over, alone = (ablation(part, settings) for part in (rows, rows.drop(columns=CLUSTER)))
    assert over["difference"].tolist() == pytest.approx(alone["difference"].tolist())
    assert (over["hi"] - over["lo"] > alone["hi"] - alone["lo"]).all()
