"""A sweep of two budgets by hand: the whole table of measures, as loops over answers and pairs of answers give it.

Topics of one document are a cluster. Of the difficult topics (stratum 1) half was judged. t9 is unanswerable, t10 has
no verdict, and system `none` gave the LLM nothing.
"""

from __future__ import annotations

import io
import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import t as student
from sklearn.linear_model import LogisticRegression

from ragauge.contract.finding import Grid
from ragauge.contract.jobs import Jobs
from ragauge.plugins.foresight.finding import Foresees
from sweep_records import record_of

WORLD = """
system qid doc stratum judged label ir_score length em  n_used
a      t0  d0  0       True   5     0.9      2      1    90
a      t1  d0  0       True   5     0.5      3      1    90
a      t2  d1  0       True   1     0.5      5      0    90
a      t3  d1  0       True   4     0.7      3      0    90
a      t4  d2  1       True   1     0.1      .      0    0
a      t5  d2  1       False  .     0.3      9      0    80
a      t6  d3  1       True   5     .        4      1    80
a      t7  d4  1       False  .     0.2      9      0.5  80
a      t8  d5  0       True   4     0.2      7      0.5  80
a      t9  d5  0       True   1     1.0      1      0    80
a      t10 d6  0       True   .     1.0      1      1    80
b      t0  d0  0       True   5     0.3      2      1    70
b      t1  d0  0       True   4     0.4      6      0    70
b      t2  d1  0       True   5     0.8      4      1    70
b      t3  d1  0       True   1     0.3      4      0    70
b      t6  d3  0       True   2     0.6      5      0.5  70
b      t8  d5  0       True   5     0.6      1      1    70
c      t0  d0  0       True   5     1.0      1      1    60
c      t1  d0  0       True   5     0.8      1      1    60
c      t8  d5  0       True   4     0.8      2      0    60
none   t0  d0  0       True   1     0.0      0      0    0
none   t1  d0  0       True   5     0.0      0      1    0
"""
MEASURES = [
    {"name": "length", "label": "length", "direction": "lower", "of": "context"},
    {"name": "em", "label": "exact match", "unit": "share"},
    {"name": "crag", "label": "CRAG", "of": "verdict"},
]
FOLDS = 5


def sweep(target: str | None = None, n_boot: int = 0) -> Jobs:
    at = pd.read_csv(io.StringIO(WORLD), sep=r"\s+", na_values=".").assign(n_tokens=100, crag=1.0)
    at["unanswerable"] = at["qid"].eq("t9")
    smaller = at.assign(n_tokens=50, ir_score=0.5, label=5)  # another budget, which counts for nothing
    outcomes = pd.concat([smaller, at]).rename(columns={"doc": "topic_cluster"})
    record = record_of(overrides=["retriever=a"], foresight={"target": target}, bootstrap=n_boot, seed=3,
                       answer_measures=MEASURES)  # fmt: skip
    return Jobs("s", "e", [record], [], outcomes)


def rows_of(target: str) -> list[dict[str, Any]]:
    """The answers of the world that have a value of the target, and how many answers each stands for."""
    found = []
    for line in WORLD.strip().splitlines()[1:]:
        system, qid, doc, stratum, judged, *values = line.split()
        label, ir_score, length, em, _ = (math.nan if v == "." else float(v) for v in values)
        row = {"system": system, "qid": qid, "doc": doc, "ir_score": ir_score, "length": -length, "em": em}
        if target == "judge":
            weight = 2.0 if (system, stratum) == ("a", "1") else 1.0  # two of the four were judged
            row |= {"right": float(label == 5), "lack": float(label == 1), "weight": weight}
        else:
            row |= {"right": float(em == 1), "lack": 0.0, "weight": 1.0}
        left_out = target == "judge" and (judged == "False" or math.isnan(label))
        if system != "none" and not left_out and qid != "t9":
            found.append(row)
    return found


def auc(rows: list[dict[str, Any]], measure: str, of: str, within: str = "system") -> float:
    won = pairs = 0.0
    for one in rows:
        for other in rows:
            if one[of] and not other[of] and one[within] == other[within]:
                weight = one["weight"] * other["weight"]
                apart = one[measure] - other[measure]
                won += weight * (1.0 if apart > 0 else 0.5 if apart == 0 else 0.0)
                pairs += weight
    return won / pairs


def spearman(rows: list[dict[str, Any]], measure: str, worth: str) -> float:
    total = weights = 0.0
    for system in {row["system"] for row in rows}:
        own = [row for row in rows if row["system"] == system]
        w = np.array([row["weight"] for row in own])
        ranks = []
        for name in (measure, worth):
            ranks.append(
                [sum(o["weight"] * (1.0 if o[name] < r[name] else 0.5 if o[name] == r[name] else 0) for o in own)
                 for r in own]
            )  # fmt: skip
        x, y = (np.array(of) - np.average(of, weights=w) for of in ranks)
        spread = math.sqrt((w * x * x).sum() * (w * y * y).sum())
        if spread > 0:
            total += w.sum() * (w * x * y).sum() / spread
            weights += w.sum()
    return total / weights


def kendall(rows: list[dict[str, Any]], measure: str, worth: str) -> float:
    def mean(system: str, name: str) -> float:
        own = [row for row in rows if row["system"] == system]
        return sum(row["weight"] * row[name] for row in own) / sum(row["weight"] for row in own)

    signs = [
        (np.sign(mean(p, measure) - mean(q, measure)), np.sign(mean(p, worth) - mean(q, worth)))
        for p, q in (("a", "b"), ("a", "c"), ("b", "c"))
    ]
    tied = math.sqrt(sum(x * x for x, _ in signs) * sum(y * y for _, y in signs))
    return float(sum(x * y for x, y in signs) / tied)


def statistics(rows: list[dict[str, Any]], measure: str, worth: str) -> list[float]:
    known = [row for row in rows if not math.isnan(row[measure])]
    lack = auc(known, measure, "lack") if worth == "right" else math.nan
    return [auc(known, measure, "right"), 1 - lack, spearman(known, measure, worth), kendall(known, measure, worth)]


@pytest.mark.parametrize("target", ["judge", "em"])
def test_every_measure_is_held_against_what_became_of_the_answers(target: str) -> None:
    rows, worth = rows_of(target), "right" if target == "judge" else "em"
    found = Foresees().compute(sweep(target), {})
    assert found is not None
    expected = []
    for measure in ("ir_score", "length", *(["em"] if target == "judge" else [])):
        both = [row for row in rows if not math.isnan(row[measure]) and not math.isnan(row["ir_score"])]
        alone, beside, own = (statistics(*of, worth) for of in ((both, "ir_score"), (both, measure), (rows, measure)))
        n = len({row["qid"] for row in rows if not math.isnan(row[measure])})
        for i, statistic in enumerate(("auc_right", "auc_lack", "spearman", "kendall")):
            less = math.nan if measure == "ir_score" else beside[i] - alone[i]
            expected.append([measure, statistic, own[i], n, less])
    there = found.value.table[found.value.table["measure"] != "n_used"]
    shown = there[["measure", "statistic", "value", "n", "less_ir"]].to_numpy().tolist()
    assert [row[:2] for row in shown] == [row[:2] for row in expected]
    assert [row[2:] for row in shown] == [pytest.approx(row[2:], nan_ok=True) for row in expected]
    assert (found.value.target, found.value.n_topics, found.value.n_systems) == (
        target, len({row["qid"] for row in rows}), 3,
    )  # fmt: skip
    (section,) = Foresees().show(sweep(target), found.value, {}).sections
    grids = [block for block in section.blocks if isinstance(block, Grid)]
    assert [[row[0].text for row in grid.rows] for grid in grids] == [  # type: ignore[union-attr]
        ["length", "IR score", "tokens of the context"], *([["exact match"]] if target == "judge" else []),
    ]  # fmt: skip
    assert found.metrics["foresight_spearman/length"] == pytest.approx(expected[6][2])


def test_what_length_adds_is_of_fits_that_did_not_see_the_documents() -> None:
    """Twins of the folds: topics of a document stand in one; the error is over documents, not answers."""
    table = Foresees().compute(sweep("judge"), {}).value.table  # type: ignore[union-attr]
    found = table[table["statistic"] == "auc_right"].set_index("measure").loc["length", ["adds", "adds_lo", "adds_hi"]]
    rows = [row for row in rows_of("judge") if not math.isnan(row["length"]) and not math.isnan(row["ir_score"])]
    everybody = sorted({row["doc"] for row in rows_of("judge")})
    mean = np.mean([1, 1, 1, 1, 2, 2, 1, 1, *[1] * 9])  # of all that were judged or should have been
    number = {doc: i for i, doc in enumerate(everybody)}
    fold_of = np.random.default_rng(3).permutation(1 + max(number[row["doc"]] for row in rows)) % FOLDS
    for row in rows:
        row["weight"] /= mean
        row["fold"] = fold_of[number[row["doc"]]]
        own = [other for other in rows if other["system"] == row["system"]]
        for name in ("ir_score", "length"):
            values = np.array([other[name] for other in own])
            row[f"z_{name}"] = (row[name] - values.mean()) / values.std()
        row["among"] = (row["system"], row["fold"])
    for held in range(FOLDS):
        fit = [row for row in rows if row["fold"] != held]
        model = LogisticRegression().fit(
            [[row["z_ir_score"], row["z_length"]] for row in fit], [row["right"] for row in fit],
            sample_weight=[row["weight"] for row in fit],
        )  # fmt: skip
        for row in rows:
            if row["fold"] == held:
                row["both"] = model.decision_function([[row["z_ir_score"], row["z_length"]]])[0]
    gain = auc(rows, "both", "right", "among") - auc(rows, "ir_score", "right", "among")
    parts = dict.fromkeys(number, 0.0)
    pairs = [(a, b) for a in rows for b in rows if a["right"] and not b["right"] and a["among"] == b["among"]]
    whole = sum(a["weight"] * b["weight"] for a, b in pairs)
    for name, sign in (("both", 1), ("ir_score", -1)):
        level = auc(rows, name, "right", "among")
        for a, b in pairs:
            won = 1.0 if a[name] > b[name] else 0.5 if a[name] == b[name] else 0.0
            for side in (a, b):
                parts[side["doc"]] += sign * a["weight"] * b["weight"] * (won - level) / whole
    h = dict.fromkeys(number, 0.0)
    for row in rows:
        others = [o for o in rows if o["system"] == row["system"] and o["right"] != row["right"]]
        h[row["doc"]] += len(others) ** 2
    df = sum(h.values()) ** 2 / sum(v * v for v in h.values()) - 1
    reach = student.isf(0.025, max(df, 1)) * math.sqrt(sum(part * part for part in parts.values()))
    assert found.tolist() == pytest.approx([gain, gain - reach, gain + reach])


def test_where_the_other_folds_hold_one_class_nothing_is_said_to_be_added() -> None:
    jobs = sweep("judge")
    jobs.outcomes["label"] = jobs.outcomes["label"].where(~jobs.outcomes["qid"].gt("t0"), 4.0)
    found = Foresees().compute(jobs, {})
    assert found is not None
    assert found.value.table["adds"].isna().all()
    assert found.value.table["less_ir"].notna().any()
