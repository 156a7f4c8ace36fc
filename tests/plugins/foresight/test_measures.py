"""Foresight by hand, against scikit-learn and SciPy, and where there is nothing to foresee."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, logit
from scipy.stats import kendalltau, norm, spearmanr, t
from sklearn.metrics import roc_auc_score
from statsmodels.stats.multitest import multipletests

from ragauge.contract.measures import AnswerMeasureInfo
from ragauge.plugins.foresight.finding import best_of, best_sentence, foresight_figure
from ragauge.plugins.foresight.measures import STATISTICS, Foresight, Pairs, foresight

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
    found = foresight(rows, [LENGTH], n_boot=12, seed=4)
    qids = sorted(rows["qid"].unique())
    tables = []
    for drawn in np.concatenate(list(topic_weights(len(qids), 12, 4))):
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
    # Which may be the best of the two: by how far the other's lead moves in the resamples, on a normal scale.
    own = [value(found, name, "auc_right") for name in ("ir_score", "length")]
    moved = np.array([[table.loc[(name, "auc_right"), "value"] for name in ("ir_score", "length")] for table in tables])
    for i, name in enumerate(("ir_score", "length")):
        lead = moved[:, 1 - i] - moved[:, i] - (own[1 - i] - own[i])
        ahead = norm.ppf(t.cdf((own[1 - i] - own[i]) / lead.std(), pairs["auc_right"].df))
        reached = sum(one / lead.std() >= ahead for one in lead)
        assert value(found, name, "auc_right", "p_best") == pytest.approx((1 + reached) / 13)


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


def test_without_a_target_or_with_one_topic_there_is_nothing_to_foresee() -> None:
    rows = frame([("1", "a", 5, 0.9), ("2", "a", 1, 0.2)], "ir_score")
    assert foresight(rows.assign(label=np.nan), []) is None
    assert foresight(rows.head(1), []) is None
    assert foresight(rows.drop(columns="ir_score"), []) is None
    assert foresight(rows.assign(label=np.nan, em=[0.0, 1.0]), [EM], n_boot=0).target == "em"  # type: ignore[union-attr]
    assert foresight(rows, [EM], "em") is None


def test_answers_all_alike_have_no_auc_and_are_shown_so() -> None:
    rows = frame([(str(i), "a", 5, i / 9) for i in range(9)], "ir_score")
    found = foresight(rows, [], n_boot=10)
    assert np.isnan(value(found, "ir_score", "auc_right"))
    assert found is not None
    assert found.metrics() == {}
    assert foresight_figure(found) is None
    assert best_sentence(found) == ""
    assert best_of(found) is None


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
