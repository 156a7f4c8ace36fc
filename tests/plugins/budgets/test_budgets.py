"""Budgets of sweeps that are uneven, over clusters, and where there is nothing to compare."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest

from irregular_sweep import BUDGETS, N_TOPICS, irregular_sweep
from ragauge.plugins.budgets.curves import budgets, compare_curves, curve_band, smallest_budget


def test_curves_are_those_of_the_systems_with_two_budgets() -> None:
    sweep = irregular_sweep()
    found = budgets(sweep)
    assert found is not None
    scores = found.bands[found.bands["measure"] == "ir_score"]
    shown = scores.groupby("system")["n_tokens"].agg(tuple).to_dict()
    assert {name: of for name, of in shown.items() if len(of) > 1} == {
        name: of for name, of in BUDGETS.items() if len(of) > 1
    }
    for row in scores.to_dict("records"):
        of = sweep[(sweep["system"] == row["system"]) & (sweep["n_tokens"] == row["n_tokens"])]
        assert row["value"] == pytest.approx(of["ir_score"].mean())
        assert row["n"] == N_TOPICS - 1
    assert found.n_budgets == 4
    tests = found.tests[found.tests["measure"] == "ir_score"]
    compared = {(r["a"], r["b"], r["n_tokens"]) for r in tests.to_dict("records")}
    shared = {(a, b, n) for a, b in itertools.combinations(sorted(shown), 2) for n in set(shown[a]) & set(shown[b])}
    assert compared == shared


def test_curves_over_clusters() -> None:
    rng = np.random.default_rng(4)
    x = pd.DataFrame(np.repeat(rng.random((10, 3)), 4, axis=0), columns=[100, 200, 300])
    clusters = np.repeat(np.arange(10), 4)
    once = curve_band(x.iloc[::4])
    over = curve_band(x, clusters=clusters)
    assert over["value"].tolist() == pytest.approx(once["value"].tolist())
    # Four copies of ten topics are ten topics, but for what unequal clusters and few of them cost.
    assert ((over["hi"] - over["lo"]) > 0.9 * (once["hi"] - once["lo"])).all()
    assert ((over["hi"] - over["lo"]) > 1.5 * (curve_band(x)["hi"] - curve_band(x)["lo"])).all()
    curves = {"s": x, "t": x * 0.8}
    of = pd.Series(clusters, x.index)
    tests = compare_curves(curves, clusters=of)
    alone = compare_curves({"s": x.iloc[::4], "t": x.iloc[::4] * 0.8})
    assert tests["p"].tolist() == alone["p"].tolist()
    assert tests["n"].tolist() == [40] * 3


def test_one_cluster_has_no_smallest_budget_and_without_scores_there_are_no_curves() -> None:
    x = [1.0, 1.0, 0.0, 0.0, 1.0, 0.0]
    assert smallest_budget(pd.DataFrame({100: x, 200: x}), clusters=np.zeros(6, dtype=int)) is None
    frame = irregular_sweep().assign(ir_score=np.nan, label=pd.NA).astype({"label": "Int8"})
    assert budgets(frame) is None
