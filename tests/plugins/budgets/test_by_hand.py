"""Eight judged and ten scored topics in clusters, at uneven budgets: every number of the section, by plain loops.

Quantiles of Student's variables are SciPy's here, and simulated in the package; random signs are all signs here.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import brentq
from scipy.stats import multivariate_t, norm

from ragauge.contract.finding import Fold, Grid, Num
from ragauge.contract.jobs import Jobs
from ragauge.estimate.intervals import effective_topics, wilson_interval
from ragauge.plugins.budgets.curves import budgets
from ragauge.plugins.budgets.finding import OverBudgets
from sweep_records import record_of

# qid, cluster, stratum, whether it was judged, and by system and budget the score (None: no evidence) and the label.
# q5 is unanswerable, and not among the right answers. Of stratum "s" two of four were judged: each stands for two.
A, B, C = "a", "b", "c"
WORLD: list[tuple[Any, ...]] = [
    # qid  in  of   judged  a 100     a 200     a 400     b 200     b 400     c 400     c 800
    ("q0", "u", "s", True,  (0.0, 1), (0.1, 1), (0.5, 5), (0.2, 1), (0.4, 4), (0.9, 5), (0.9, 5)),
    ("q1", "u", "s", True,  (0.2, 4), (0.4, 5), (0.4, 5), (0.1, 1), (0.2, 1), (0.6, 5), (0.9, 4)),
    ("q2", "v", "s", False, (0.3, 0), (0.3, 0), (0.9, 0), (0.0, 0), (0.1, 0), (0.2, 0), (0.4, 0)),
    ("q3", "w", "s", False, (0.1, 0), (0.8, 0), (0.8, 0), (0.1, 0), (0.4, 0), (0.4, 0), (0.4, 0)),
    ("q4", "w", "t", True,  (0.0, 1), (0.6, 5), (0.9, 4), (0.3, 4), (0.3, 1), (0.3, 1), (1.0, 5)),
    ("q5", "w", "t", True,  (0.5, 1), (0.5, 1), (0.7, 5), (0.2, 1), (0.2, 4), (0.6, 1), (0.7, 1)),
    ("q6", "x", "t", True,  (0.2, 2), (None, 5), (1.0, 5), (0.6, 4), (0.8, 5), (0.1, 1), (0.3, 1)),
    ("q7", "y", "t", True,  (0.1, 1), (0.2, 1), (0.2, 1), (0.0, 1), (0.9, 5), (0.5, 5), (0.6, 5)),
    ("q8", "z", "t", True,  (0.6, 5), (0.6, 5), (0.8, 5), (0.4, 3), (0.1, 4), (0.8, 5), (0.8, 5)),
    ("q9", "g", "t", True,  (0.3, 4), (0.7, 5), (0.7, 4), (0.5, 4), (0.5, 1), (0.6, 4), (0.8, 5)),
]  # fmt: skip
AT = [(A, 100), (A, 200), (A, 400), (B, 200), (B, 400), (C, 400), (C, 800)]
FRAME = pd.DataFrame(
    [
        (qid, cluster, stratum, judged, qid == "q5", system, n, score, label or None)
        for qid, cluster, stratum, judged, *cells in WORLD
        for (system, n), (score, label) in [*zip(AT, cells, strict=True), (("once", 100), (0.5, None))]
    ],
    columns=["qid", "topic_cluster", "stratum", "judged", "unanswerable", "system", "n_tokens", "ir_score", "label"],
).astype({"label": "Int8", "ir_score": "float64"})
COMPLETE = FRAME[FRAME["judged"] & (FRAME["qid"] != "q6")].drop(columns="topic_cluster")

Values = dict[str, dict[int, dict[str, float]]]  # by system, budget and qid


def values_of(measure: str, complete: bool) -> Values:
    found: Values = {}
    for qid, _, _, judged, *cells in WORLD:
        for (system, n), (score, label) in zip(AT, cells, strict=True):
            value = score if measure == "ir_score" else float(label == 5)
            if value is None or (measure == "correct" and (not judged or qid == "q5")):
                continue
            if complete and (qid == "q6" or not judged):
                continue
            found.setdefault(system, {}).setdefault(n, {})[qid] = value
    return found


def clusters_of(complete: bool) -> dict[str, str]:
    return {row[0]: row[0 if complete else 1] for row in WORLD}


def weight(qid: str, measure: str, complete: bool) -> float:
    return 2.0 if measure == "correct" and not complete and qid in ("q0", "q1") else 1.0


def quantile(deviations: np.ndarray, level: float, sides: int) -> float:
    squares = (deviations**2).sum(axis=0)
    norms = np.sqrt(np.where(squares > 0, squares, np.inf))
    shape = (deviations / norms).T @ (deviations / norms)
    np.fill_diagonal(shape, 1 + 1e-9)
    variables = multivariate_t(np.zeros(len(norms)), shape, df=len(deviations) - 1, seed=0)

    def above(c: float) -> float:
        low = np.full(len(norms), -c if sides == 2 else -50.0)
        return float(variables.cdf(np.full(len(norms), c), lower_limit=low)) - level

    return float(brentq(above, 0.5, 30, xtol=0.003))


def summed(of: Mapping[str, float], clusters: Mapping[str, str]) -> np.ndarray:
    """By cluster, in the order of their names."""
    return np.array([sum(v for q, v in of.items() if clusters[q] == c) for c in sorted({clusters[q] for q in of})])


def band(values: dict[int, dict[str, float]], w: Mapping[str, float], clusters: Mapping[str, str]) -> list[list[float]]:
    qids = [q for q in w if all(q in of for of in values.values())]
    rows, sums, means = summed({q: w[q] for q in qids}, clusters), [], []
    for of in values.values():
        sums.append(summed({q: w[q] * of[q] for q in qids}, clusters))
        means.append(sums[-1].sum() / rows.sum())
    c = quantile(np.array([s - rows * m for s, m in zip(sums, means, strict=True)]).T, 0.95, 2)
    found = []
    for n, s, m in zip(values, sums, means, strict=True):
        alone = wilson_interval(m, effective_topics(s, rows, None, len(qids), 0.95), 0.95)
        at_once = wilson_interval(m, effective_topics(s, rows, None, len(qids)), 1 - 2 * norm.cdf(-c))
        found.append([n, m, *alone, *at_once, len(qids)])
    return found


def upper_limits(
    values: dict[int, dict[str, float]], w: Mapping[str, float], clusters: Mapping[str, str]
) -> dict[int, float]:
    """By budget, the largest of the upper limits of mean(M) - mean(N) over the budgets M that may be the best."""
    qids = [q for q in w if all(q in of for of in values.values())]
    total, ns = sum(w[q] for q in qids), sorted(values)
    grades = {values[n][q] for n in ns for q in qids}
    rising = all(values[n][q] <= values[m][q] for n, m in itertools.pairwise(ns) for q in qids) and grades - {0, 1}
    sizes = {c: sum(clusters[q] == c for q in qids) for c in {clusters[q] for q in qids}}
    size = total**2 / sum(w[q] ** 2 for q in qids) / math.sqrt(len(qids) / len(sizes))
    most = dict.fromkeys(ns, 0.0)
    for best in ns[-1:] if rising else ns:
        mean = {n: sum(w[q] * (values[best][q] - values[n][q]) for q in qids) / total for n in ns}
        off = {n: {q: w[q] * (values[best][q] - values[n][q] - mean[n]) / total for q in qids} for n in ns}
        c = quantile(np.array([summed(off[n], clusters) for n in ns if n != best]).T, 0.95, 1)
        for n in ns:
            variance = 0.0
            for name, count in sizes.items():
                own = sum(v for q, v in off[n].items() if clusters[q] == name)
                several = len(qids) > len(sizes)
                variance += (own / (1 - count / len(qids))) ** 2 * (1 - 1 / len(sizes)) if several else own**2
            if n != best:
                upper = mean[n] + c**2 / (2 * size) + c * math.sqrt(variance + (c / (2 * size)) ** 2)
                most[n] = max(most[n], upper)
    return most


def of_pairs(values: Values, w: Mapping[str, float], clusters: Mapping[str, str]) -> list[list[Any]]:
    found = []
    for a, b in itertools.combinations(values, 2):
        shared = [n for n in values[a] if n in values[b]]
        topics = {q for n in shared for q in values[a][n] if q in values[b][n]}
        per = len(topics) / len({clusters[q] for q in topics})
        sums, rows, ns = [], [], []
        for n in shared:
            known = {q: 1.0 * (q in values[a][n] and q in values[b][n]) for q in topics}
            both = {q: w[q] * (values[a][n][q] - values[b][n][q]) if known[q] else 0.0 for q in topics}
            sums.append(summed(both, clusters))
            rows.append(summed({q: w[q] * known[q] for q in topics}, clusters))
            ns.append(int(sum(known.values())))
        v, r = np.array(sums).T, np.array(rows).T
        mean, scale = v.sum(axis=0) / r.sum(axis=0), np.sqrt((v**2).sum(axis=0))
        signs = np.array(list(itertools.product((1, -1), repeat=len(v))))
        drawn, seen = np.abs(signs @ v) / scale, np.abs(v.sum(axis=0)) / scale
        c = quantile(v - r * mean, 0.95, 2)
        for i, n in enumerate(shared):
            unseen = c**2 / 4 * (r[:, i] ** 2).sum() / (r[:, i] > 0).sum() / per
            reach = c * math.sqrt(((v - r * mean)[:, i] ** 2).sum() + unseen) / r[:, i].sum()
            p = [(of >= seen[i] - 1e-9).mean() for of in (drawn[:, i], drawn.max(axis=1))]
            found.append([a, b, n, mean[i], max(mean[i] - reach, -1), min(mean[i] + reach, 1), *p, ns[i]])
    return found


def same(found: list[Any], expected: list[Any], abs_: float) -> bool:
    return all(f == (pytest.approx(e, abs=abs_) if isinstance(e, float) else e)
               for f, e in zip(found, expected, strict=True))  # fmt: skip


@pytest.mark.parametrize("complete", [False, True])
@pytest.mark.parametrize("measure", ["ir_score", "correct"])
def test_bands_smallest_budgets_and_tests(measure: str, complete: bool) -> None:
    frame = COMPLETE if complete else FRAME.sample(frac=1, random_state=1)
    values = values_of(measure, complete)
    w, clusters = {row[0]: weight(row[0], measure, complete) for row in WORLD}, clusters_of(complete)
    at = {margin: budgets(frame, margin) for margin in (0.01, 0.4, 0.6, 0.7, 0.8, 0.95)}
    found = at[0.01]
    assert found is not None
    bands = found.bands[found.bands["measure"] == measure]
    assert set(bands["system"]) == set(values)
    for system, of in values.items():
        expected = band(of, w, clusters)
        rows = bands[bands["system"] == system].drop(columns=["measure", "system"]).to_numpy().tolist()
        assert [same(row, exact, 0.02) for row, exact in zip(rows, expected, strict=True)] == [True] * len(of)
        assert [row[1] for row in rows] == pytest.approx([row[1] for row in expected])
        assert found.band_of(measure)[system] == {int(row[0]): tuple(row[4:6]) for row in rows}
        limits, means = upper_limits(of, w, clusters), {row[0]: row[1] for row in expected}
        best = max(means.values())
        for margin, result in at.items():
            assert result is not None
            (row,) = result.smallest.query("measure == @measure and system == @system").to_dict("records")
            if all(abs(limit - margin) > 0.02 for limit in limits.values()):
                smallest = min((n for n, limit in limits.items() if limit < margin), default=None)
                assert row["smallest_n_tokens"] == smallest if smallest else pd.isna(row["smallest_n_tokens"])
            assert row["smallest_n_tokens_seen"] == min(n for n, m in means.items() if m >= best - margin - 1e-12)
            assert row["best_n_tokens"] == min(n for n, m in means.items() if m == pytest.approx(best))
            assert row["n"] == expected[0][-1]
    rows_of_pairs = found.tests[found.tests["measure"] == measure].drop(columns="measure").to_numpy().tolist()
    for row, exact in zip(rows_of_pairs, of_pairs(values, w, clusters), strict=True):
        assert same(row, exact, 0.05), (row, exact)
        assert row[3] == pytest.approx(exact[3])


def shown(cell: Any) -> Any:
    return (cell.value, cell.lo, cell.hi, cell.kind) if isinstance(cell, Num) else cell


def test_the_section_has_the_rows_of_its_tables() -> None:
    jobs = Jobs("s", "e", [record_of(seed=3)], [], FRAME)
    found = OverBudgets().compute(jobs, {})
    assert found is not None
    value = found.value
    drawn = {name: table.to_dict("records") for name, table in found.tables.items()}
    exact = budgets(FRAME, seed=3)
    assert exact is not None
    assert exact.n_budgets == 3
    pd.testing.assert_frame_equal(found.tables["budget_tests"], exact.tests)
    assert drawn["budget_tests"] != budgets(FRAME, seed=4).tests.to_dict("records")
    (section,) = OverBudgets().show(jobs, value, {}).sections
    intro, smallest, note, fold, bands = section.blocks
    assert "with 95 % confidence" in intro.text
    assert "at most 1.0 points (a score of 0.010) worse" in intro.text
    assert note.text.startswith("This sweep has 3 budgets")
    assert isinstance(smallest, Grid)
    assert isinstance(fold, Fold)
    assert isinstance(bands, Fold)
    names = {"ir_score": "IR score", "correct": "right"}
    assert [[shown(c) for c in row] for row in smallest.rows] == [
        [r["system"], names[r["measure"]], str(r["best_n_tokens"]), str(r["smallest_n_tokens_seen"]),
         "too few topics to tell" if pd.isna(r["smallest_n_tokens"]) else str(r["smallest_n_tokens"]),
         (r["n"], None, None, "whole")]
        for r in drawn["smallest_budgets"]
    ]  # fmt: skip
    assert [[shown(c) for c in row] for row in bands.blocks[0].rows] == [
        [r["system"], names[r["measure"]], str(r["n_tokens"]), (r["value"], r["lo"], r["hi"], kind),
         (r["band_lo"], None, None, kind), (r["band_hi"], None, None, kind)]
        for r in drawn["budget_bands"] for kind in ["score" if r["measure"] == "ir_score" else "share"]
    ]  # fmt: skip
    # Of each pair the budget with the smallest p over all; a and b have two, and the other pairs one.
    most = []
    for measure, kind, label in (("ir_score", "score", "IR score"), ("correct", "points", "right, points")):
        rows = [min((r for r in drawn["budget_tests"] if (r["measure"], r["a"], r["b"]) == (measure, *pair)),
                    key=lambda r: r["p_all_budgets"]) for pair in ((A, B), (A, C), (B, C))]  # fmt: skip
        ps = sorted(r["p_all_budgets"] for r in rows)
        corrected = [min(1.0, max((3 - k) * ps[k] for k in range(last))) for last in (1, 2, 3)]
        for r in rows:
            p = [r["p"], r["p_all_budgets"], corrected[ps.index(r["p_all_budgets"])]]
            most.append([f"{r['a']} – {r['b']}", label, str(r["n_tokens"]), (r["difference"], r["lo"], r["hi"], kind),
                         *((one, None, None, "p") for one in p), (r["n"], None, None, "whole")])  # fmt: skip
    assert [[shown(c) for c in row] for row in fold.blocks[1].rows] == most
    alone = Jobs("s", "e", [record_of(seed=3)], [], FRAME[FRAME["system"] == A])
    kept = OverBudgets().compute(alone, {})
    assert kept is not None
    assert len(OverBudgets().show(alone, kept.value, {}).sections[0].blocks) == 3  # nothing to test
    for n, known in ((2, True), (1, False)):  # limits take two topics, a difference one
        pair = budgets(FRAME[FRAME["qid"].isin(["q0", "q1", "q4"][-n:]) | FRAME["system"].eq("once")])
        assert pair is not None
        assert pair.tests["difference"].notna().all()
        assert pair.tests["lo"].notna().all() == known
    once = Jobs("s", "e", [record_of(seed=3)], [], FRAME[FRAME["n_tokens"] == 400])
    assert OverBudgets().compute(once, {}) is None
    assert budgets(FRAME.assign(ir_score=np.nan, label=pd.array([None] * len(FRAME), dtype="Int8"))) is None
