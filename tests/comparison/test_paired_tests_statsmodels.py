"""Paired tests and Holm's correction against scipy and statsmodels."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from ragauge.estimate import compare_pairs
from ragauge.estimate.pairs import holm, mcnemar_p, sign_flip_p


@pytest.mark.parametrize("n", [8, 13, 60, 300])
def test_sign_flips_agree_with_scipy(n):
    from scipy.stats import permutation_test

    rng = np.random.default_rng(n)
    differences = np.round(rng.normal(0.05, 0.4, n), 1)  # ties, and differences of 0
    ours = sign_flip_p(differences[:, None])[0]
    theirs = permutation_test(
        (differences,),
        lambda x, axis: x.mean(axis=axis),
        permutation_type="samples",
        n_resamples=9999,
        vectorized=True,
        rng=np.random.default_rng(0),
    ).pvalue
    assert ours == pytest.approx(theirs, abs=1e-9 if n <= 13 else 0.02)


def test_mcnemar_agrees_with_statsmodels():
    from statsmodels.stats.contingency_tables import mcnemar

    rng = np.random.default_rng(0)
    for _ in range(20):
        a, b = rng.random((2, 40)) < rng.random((2, 1))
        table = [[(a & b).sum(), (a & ~b).sum()], [(~a & b).sum(), (~a & ~b).sum()]]
        expected = mcnemar(table, exact=True).pvalue
        assert mcnemar_p((a.astype(float) - b)[:, None])[0] == pytest.approx(expected)


def test_holm_rejects_what_statsmodels_rejects():
    from statsmodels.stats.multitest import multipletests

    rng = np.random.default_rng(1)
    base = rng.random(80)
    frame = pd.concat(
        [
            pd.DataFrame(
                {
                    "qid": np.arange(80).astype(str),
                    "retriever": f"r{i}",
                    "ir_score": np.clip(base + rng.normal(0.02 * i, 0.1, 80), 0, 1),
                    "label": pd.array(rng.choice([1, 4, 5], 80), dtype="Int8"),
                }
            )
            for i in range(4)
        ]
    )
    for _, part in compare_pairs(frame).groupby("measure"):
        assert part["p_holm"].to_numpy() == pytest.approx(multipletests(part["p"], method="holm")[1])


def test_holm_is_that_of_statsmodels_and_leaves_what_is_not_known():
    from statsmodels.stats.multitest import multipletests

    assert holm(np.array([0.01, 0.04, np.nan, 0.03])) == pytest.approx([0.03, 0.06, np.nan, 0.06], nan_ok=True)
    assert holm(np.array([0.4])) == pytest.approx([0.4])
    assert np.isnan(holm(np.array([np.nan]))).all()
    rng = np.random.default_rng(3)
    for n in (2, 3, 10, 200):
        p = rng.random(n).round(2)  # with ties
        assert holm(p) == pytest.approx(multipletests(p, method="holm")[1], rel=1e-15)
