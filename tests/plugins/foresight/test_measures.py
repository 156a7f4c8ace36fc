"""Foresight by hand, against scikit-learn and SciPy, and where there is nothing to foresee."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, logit
from scipy.stats import kendalltau, spearmanr, t
from sklearn.metrics import roc_auc_score
from statsmodels.stats.multitest import multipletests

from irregular_sweep import UNANSWERABLE, irregular_sweep
from ragauge.contract.errors import ConfigError
from ragauge.contract.finding import Tagged
from ragauge.contract.measures import AnswerMeasureInfo
from ragauge.plugins.foresight.finding import best_of, best_sentence, foresight_figure, foresight_grid
from ragauge.plugins.foresight.measures import STATISTICS, Foresight, Pairs, _p_best, foresight

EM = AnswerMeasureInfo("em", "exact match", unit="share")
LENGTH = AnswerMeasureInfo("length", "length", direction="lower", of="context")


def frame(rows: list[tuple], *columns: str) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["qid", "system", "label", *columns])


def value(found: Foresight | None, measure: str, statistic: str, column: str = "value") -> float:
    assert found is not None
    table = found.table.set_index(["measure", "statistic"])
    return float(table.loc[(measure, statistic), column])


def random_frame(rng: np.random.Generator, topics: int = 40, systems: int = 4) -> pd.DataFrame:
    size = topics * systems
    rows = pd.DataFrame(
        {
            "qid": np.repeat(np.arange(topics), systems).astype(str),
            "system": np.tile(list("abcdefg"[:systems]), topics),
            "ir_score": rng.integers(0, 6, size) / 5,
            "length": rng.normal(size=size),
            "em": rng.choice([0.0, 0.6, 1.0], size),
            "label": rng.choice([1, 2, 3, 4, 5], size),
        }
    )
    rows.loc[rng.random(size) < 0.2, "length"] = np.nan
    return rows.sample(frac=1, random_state=1)


def test_by_hand() -> None:
    # System a: right 0.9 against 0.2 and 0.9: won, tied. System b: right 0.1 against 0.4: lost.
    rows = frame(
        [
            ("1", "a", 5, 0.9), ("2", "a", 1, 0.2), ("3", "a", 4, 0.9),
            ("1", "b", 5, 0.1), ("2", "b", 4, 0.4),
        ],
        "ir_score",
    )  # fmt: skip
    found = foresight(rows, [], n_boot=0)
    assert value(found, "ir_score", "auc_right") == pytest.approx((1 + 0.5 + 0) / 3)
    # Lack stands in system a alone, below both others.
    assert value(found, "ir_score", "auc_lack") == 1
    assert found is not None
    assert (found.target, found.n_topics, found.n_systems) == ("judge", 3, 2)
    # One pair alone: the right answer has the higher score, and so has the one that does not lack.
    pair = foresight(frame([("1", "a", 5, 0.9), ("2", "a", 1, 0.2)], "ir_score"), [], n_boot=0)
    assert [value(pair, "ir_score", name) for name in ("auc_right", "auc_lack", "spearman")] == [1, 1, 1]


@pytest.mark.parametrize("target", ["judge", "em"])
def test_against_other_peoples_statistics(target: str) -> None:
    rows = random_frame(np.random.default_rng(3))
    found = foresight(rows, [LENGTH, EM], target, n_boot=20)
    for measure, sign in (("ir_score", 1), ("length", -1)):
        known = rows[rows[measure].notna()]
        won = pairs = rho = weight = lacking = lack_pairs = 0.0
        for _, part in known.groupby("system"):
            right = part["label"].eq(5) if target == "judge" else part["em"].eq(1)
            n = right.sum() * (~right).sum()
            won, pairs = won + n * roc_auc_score(right, sign * part[measure]), pairs + n
            worth = right if target == "judge" else part["em"]
            rho += len(part) * spearmanr(sign * part[measure], worth).statistic
            weight += len(part)
            lack = part["label"].eq(1)
            n = lack.sum() * (~lack).sum()
            lacking, lack_pairs = lacking + n * roc_auc_score(lack, -sign * part[measure]), lack_pairs + n
        if target == "judge":
            assert value(found, measure, "auc_lack") == pytest.approx(lacking / lack_pairs)
        assert value(found, measure, "auc_right") == pytest.approx(won / pairs)
        assert value(found, measure, "spearman") == pytest.approx(rho / weight)
        worth = known["label"].eq(5) if target == "judge" else known["em"]
        means = known.assign(worth=worth).groupby("system")[[measure, "worth"]].mean()
        tau = kendalltau(sign * means[measure], means["worth"]).statistic
        assert value(found, measure, "kendall") == pytest.approx(tau)


def test_resamples_are_those_of_whole_topics() -> None:
    """A resample's value is that of the frame in which a topic that was drawn twice stands twice."""
    from ragauge.estimate.intervals import percentile_interval, topic_weights

    rows = random_frame(np.random.default_rng(5), topics=15, systems=3)
    rows["length"] = rows["length"].fillna(0.0)
    found = foresight(rows, [LENGTH], n_boot=30, seed=4)
    qids = sorted(rows["qid"].unique())
    tables = []
    for drawn in np.concatenate(list(topic_weights(len(qids), 30, 4))):
        parts = [
            rows[rows["qid"] == qid].assign(qid=f"{qid}-{copy}")
            for qid, times in zip(qids, drawn, strict=True)
            for copy in range(times)
        ]
        resampled = foresight(pd.concat(parts), [LENGTH], n_boot=0)
        assert resampled is not None
        tables.append(resampled.table.set_index(["measure", "statistic"]))
    flags = rows.assign(_right=rows["label"].eq(5), _lack=rows["label"].eq(1), _topic=rows["qid"].astype(int))
    pairs = {f"auc{flag}": Pairs.of(flags, flag, "system") for flag in ("_right", "_lack")}
    for statistic in STATISTICS:
        values = np.array([table.loc[("length", statistic), "value"] for table in tables])
        less = np.array([table.loc[("length", statistic), "less_ir"] for table in tables])
        of = pairs.get(statistic)
        auc = value(found, "length", statistic)
        limits = percentile_interval(values) if of is None else of.limits(auc, values, 0.95)
        expected = {
            "lo": limits[0], "hi": limits[1],
            "less_ir_lo": percentile_interval(less)[0], "less_ir_hi": percentile_interval(less)[1],
        }  # fmt: skip
        if statistic != "kendall":
            apart = abs(value(found, "length", statistic, "less_ir")) / less.std()
            expected["p"] = 2 * t.sf(apart, 14 if of is None else of.df)
        for column, of_tables in expected.items():
            assert value(found, "length", statistic, column) == pytest.approx(of_tables)


def test_the_ir_score_stands_beside_a_measure_on_the_rows_that_have_both() -> None:
    rows = random_frame(np.random.default_rng(7))
    found = foresight(rows, [LENGTH], n_boot=20)
    both = rows[rows["length"].notna()]
    alone = foresight(both, [LENGTH], n_boot=20)
    for statistic in ("auc_right", "auc_lack", "spearman"):
        less = value(alone, "length", statistic) - value(alone, "ir_score", statistic)
        assert value(found, "length", statistic, "less_ir") == pytest.approx(less)
    assert np.isnan(value(found, "ir_score", "auc_right", "less_ir"))
    assert np.isnan(value(found, "length", "kendall", "p"))
    assert value(found, "length", "auc_right", "p") <= value(found, "length", "auc_right", "p_holm")


def test_a_measure_counts_on_all_its_rows_also_on_those_without_an_ir_score() -> None:
    rows = random_frame(np.random.default_rng(19), systems=1)
    rows.loc[rows.index[:9], "ir_score"] = np.nan
    found = foresight(rows, [LENGTH], n_boot=0)
    known = rows[rows["length"].notna()]
    both = known[known["ir_score"].notna()]
    assert len(both) < len(known)
    auc = roc_auc_score(known["label"].eq(5), -known["length"])
    assert value(found, "length", "auc_right") == pytest.approx(auc)
    less = roc_auc_score(both["label"].eq(5), -both["length"]) - roc_auc_score(both["label"].eq(5), both["ir_score"])
    assert value(found, "length", "auc_right", "less_ir") == pytest.approx(less)
    assert value(found, "length", "auc_right", "n") == known["qid"].nunique()


def test_what_is_made_of_the_verdict_foresees_nothing() -> None:
    rows = random_frame(np.random.default_rng(21)).assign(crag=1.0)
    verdict = AnswerMeasureInfo("crag", "CRAG's score", of="verdict")
    found = foresight(rows, [verdict, EM], n_boot=0)
    assert found is not None
    assert set(found.table["measure"]) == {"ir_score", "em"}


def test_the_correction_is_over_the_measures_of_a_statistic() -> None:
    rows = random_frame(np.random.default_rng(23), topics=60)
    rows["length"] -= rows["label"].eq(5)
    found = foresight(rows, [LENGTH, EM], n_boot=60)
    assert found is not None
    for statistic in ("auc_right", "auc_lack", "spearman"):
        part = found.table[found.table["statistic"].eq(statistic) & found.table["p"].notna()]
        assert part["measure"].tolist() == ["length", "em"]
        assert part["p_holm"].tolist() == pytest.approx(multipletests(part["p"], method="holm")[1])


def test_systems_whose_means_are_equal_but_for_rounding_are_tied() -> None:
    scores = {"a": (0.1, 0.2), "b": (0.3, 0.0), "c": (0.9, 0.9)}
    assert sum(scores["a"]) != sum(scores["b"])
    labels = {"a": (4, 4), "b": (5, 4), "c": (5, 5)}
    rows = frame([(str(i), name, labels[name][i], of[i]) for name, of in scores.items() for i in (0, 1)], "ir_score")
    tau = kendalltau([0.15, 0.15, 0.9], [0, 0.5, 1]).statistic
    assert value(foresight(rows, [], n_boot=0), "ir_score", "kendall") == pytest.approx(tau)


def test_systems_are_compared_by_their_means_however_many_topics_they_have() -> None:
    rows = frame(
        [
            ("1", "a", 1, 0.1), ("2", "a", 1, 0.3), ("3", "a", 5, 0.2), ("4", "a", 4, 0.2),
            ("1", "b", 5, 0.5), ("2", "c", 4, 0.3), ("3", "c", 5, 0.5),
        ],
        "ir_score",
    )  # fmt: skip
    tau = kendalltau([0.2, 0.5, 0.4], [1 / 4, 1, 1 / 2]).statistic
    assert tau == 1
    assert value(foresight(rows, [], n_boot=0), "ir_score", "kendall") == pytest.approx(tau)


def test_rows_of_a_sample_count_as_often_as_they_stand_for_others() -> None:
    rows = random_frame(np.random.default_rng(9), topics=30, systems=1)
    strata = rows["ir_score"].gt(0.5).astype(int)
    judged = strata.eq(0) | rows["qid"].astype(int).mod(2).eq(0)
    sampled = rows.assign(stratum=strata, judged=judged, label=rows["label"].where(judged))
    found = foresight(sampled, [], n_boot=0)
    weight = strata.groupby(strata).transform("size") / judged.groupby(strata).transform("sum")
    part = sampled[judged]
    auc = roc_auc_score(part["label"].eq(5), part["ir_score"], sample_weight=weight[judged])
    assert value(found, "ir_score", "auc_right") == pytest.approx(auc)


def test_systems_without_context_and_topics_that_cannot_be_right_are_left_out() -> None:
    rows = random_frame(np.random.default_rng(11), systems=2).assign(n_used=50.0)
    rows.loc[rows.index[:3], "n_used"] = 0.0  # a system without context for some topics alone counts
    none = rows[rows["system"] == "a"].assign(system="none", n_used=0.0, ir_score=0.0, label=1)
    odd = rows[rows["system"] == "a"].head(4).assign(qid=list("wxyz"), unanswerable=True)
    with_all = foresight(pd.concat([rows.assign(unanswerable=False), none, odd]), [], n_boot=0)
    assert with_all is not None
    assert with_all.n_systems == 2
    assert value(with_all, "ir_score", "auc_right") == value(foresight(rows, [], n_boot=0), "ir_score", "auc_right")


def test_without_a_target_or_with_one_topic_there_is_nothing_to_foresee() -> None:
    rows = frame([("1", "a", 5, 0.9), ("2", "a", 1, 0.2)], "ir_score")
    assert foresight(rows.assign(label=np.nan), []) is None
    assert foresight(rows.head(1), []) is None
    assert foresight(rows.drop(columns="ir_score"), []) is None
    assert foresight(rows.assign(label=np.nan, em=[0.0, 1.0]), [EM], n_boot=0).target == "em"  # type: ignore[union-attr]
    assert foresight(rows, [EM], "em") is None
    with pytest.raises(ConfigError, match=r"foresight.target='emm': allowed are judge, em"):
        foresight(rows.assign(em=1.0), [EM, LENGTH], "emm")


def test_a_measure_whose_interval_holds_chance_is_not_said_to_foresee() -> None:
    rows = random_frame(np.random.default_rng(17), topics=20, systems=1)
    rows["length"] = np.nan
    found = foresight(rows, [LENGTH], n_boot=200)
    assert found is not None
    assert best_sentence(found).startswith("No measure that is known before the LLM answers is shown to foresee")


def test_answers_all_alike_have_no_auc_and_are_shown_so() -> None:
    rows = frame([(str(i), "a", 5, i / 9) for i in range(9)], "ir_score")
    found = foresight(rows, [], n_boot=10)
    assert np.isnan(value(found, "ir_score", "auc_right"))
    assert found is not None
    assert found.metrics() == {}
    assert foresight_figure(found) is None
    assert best_sentence(found) == ""
    assert best_of(found) is None


def test_the_best_measure_is_told_with_its_interval() -> None:
    rows = random_frame(np.random.default_rng(13)).assign(n_used=10.0)
    rows["length"] = -rows["label"].eq(5).astype(float)
    found = foresight(rows, [LENGTH, EM], n_boot=50)
    assert found is not None
    assert best_sentence(found).endswith("length foresees best: AUC 1.000 (0.991 to 1.000).")
    before = foresight_grid("before", found.table[found.table["of"].isin(("context", "ranking"))], found)
    assert before.rows[0][0] == Tagged("length", below="length")
    assert foresight_figure(found) is not None
    assert json.dumps(found.metrics())
    assert found.metrics()["foresight_auc_right/length_hi"] == 1


def test_the_best_of_many_useless_measures_is_not_said_to_foresee() -> None:
    """Its own interval may lie above 0.5, as that of one in twenty does; of the best of 20 in 43 of a hundred cases."""
    rng = np.random.default_rng(8)
    infos = [AnswerMeasureInfo(f"m{i}", f"m{i}", of="context") for i in range(20)]
    rows = pd.DataFrame(rng.normal(size=(60, 20)), columns=[info.name for info in infos])
    rows = rows.assign(qid=[str(i) for i in range(60)], system="a", label=np.tile([5, 4], 30))
    found = foresight(rows, infos, n_boot=300)
    best = best_of(found)
    assert best is not None
    assert best["value"] > 0.6
    assert not best["shown"]
    assert best_sentence(found).startswith("No measure")
    # One that knows the answer, and one that follows it: the first is the best, and is told from the others.
    known = rows.assign(m0=rows["label"] + rng.normal(size=60) / 10, m1=rows["label"] + rng.normal(size=60) / 10)
    found = foresight(known, infos, n_boot=300)
    best = best_of(found)
    assert best is not None
    assert (best["shown"], best["beside"]) == (True, "" if " = " in best["label"] else "; 1 other may be as good")


def test_limits_of_an_auc_by_hand() -> None:
    """Three of ten answers are right: they tell nearly all of the variance, and all their pairs are won."""
    rows = pd.DataFrame({"system": "a", "_right": [True] * 3 + [False] * 7, "_topic": np.arange(10)})
    of = Pairs.of(rows, "_right", "system")
    assert of.n == 21
    assert of.df == pytest.approx((3 * 49 + 7 * 9) ** 2 / (3 * 49**2 + 7 * 9**2) - 1)
    lo, hi = of.limits(1.0, np.ones(20), 0.95)
    middle = 21.5 / 22
    reach = t.isf(0.025, of.df) / np.sqrt(21 * middle * (1 - middle))
    assert (lo, hi) == (pytest.approx(expit(logit(middle) - reach)), 1.0)
    assert np.isnan(of.limits(float("nan"), np.full(20, np.nan), 0.95)).all()


def test_p_of_the_best_by_hand() -> None:
    # Three resamples; the second measure is 0.2 behind; its lead moves by -0.1, 0.1, 0: less than that.
    drawn = np.array([[0.8, 0.6], [0.9, 0.6], [0.8, 0.7], [0.7, 0.5]])
    p_best = _p_best(drawn, df=10_000)
    assert p_best.tolist() == [1, 1 / 4] or p_best.tolist() == [3 / 4 + 1 / 4, 1 / 4]


def test_p_of_chance_against_all_permutations() -> None:
    """Six topics of two systems, one answer of which is not known: all 720 orders, by pairs of rows."""
    rng = np.random.default_rng(4)
    right = np.array([[1, 1], [1, 0], [1, 1], [0, 0], [0, np.nan], [0, 1]])
    x = {"ir_score": rng.integers(0, 3, (6, 2)) / 3 + 0.3 * np.nan_to_num(right), "m": rng.normal(size=(6, 2))}
    known = ~np.isnan(right)

    def highest(order: tuple[int, ...]) -> list[float]:
        standings = []
        for values in x.values():
            added, ahead = np.zeros(6), 0.0
            for s in (0, 1):
                y = right[list(order), s]
                for i in np.flatnonzero((y == 1) & known[:, s]):
                    for j in np.flatnonzero((y == 0) & known[:, s]):
                        won = np.sign(values[i, s] - values[j, s]) / 2
                        ahead += won
                        added[[i, j]] += won
            standings.append(ahead / max(np.sqrt((added**2).sum()), 1e-9))
        return standings

    own = highest(tuple(range(6)))
    every = np.array([max(highest(order)) for order in itertools.permutations(range(6))])
    rows = pd.DataFrame(
        {
            "qid": np.repeat(np.arange(6), 2), "system": np.tile(["a", "b"], 6),
            "label": np.where(np.isnan(right), np.nan, np.where(right == 1, 5, 4)).ravel(),
            **{name: values.ravel() for name, values in x.items()},
        }
    )  # fmt: skip
    found = foresight(rows, [AnswerMeasureInfo("m", "m", of="context")], n_boot=2000)
    for name, one in zip(x, own, strict=True):
        exact = (every >= one - 1e-9).mean()
        assert value(found, name, "auc_right", "p_chance") == pytest.approx(exact, abs=0.035)


def test_foresight_is_within_systems_over_all_their_topics() -> None:
    sweep = irregular_sweep()
    at = sweep[sweep["n_tokens"] == 200]
    found = foresight(at, [], n_boot=0)
    assert found is not None
    table = found.table.set_index(["measure", "statistic"])["value"]
    kept = at[at["label"].notna() & at["ir_score"].notna() & (at["qid"] != UNANSWERABLE)]
    won = pairs = 0.0
    for _, part in kept.groupby("system"):
        right = part["label"].eq(5).to_numpy(dtype=bool)
        won += right.sum() * (~right).sum() * roc_auc_score(right, part["ir_score"])
        pairs += right.sum() * (~right).sum()
    assert table["ir_score", "auc_right"] == pytest.approx(won / pairs)
    means = kept.assign(right=kept["label"].eq(5).astype(float)).groupby("system")[["ir_score", "right"]].mean()
    assert table["ir_score", "kendall"] == pytest.approx(kendalltau(means["ir_score"], means["right"]).statistic)
