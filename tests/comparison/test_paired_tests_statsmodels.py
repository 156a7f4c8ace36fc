"""Paired tests and Holm's correction against scipy and statsmodels."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from ragauge.estimate import compare_pairs
from ragauge.estimate.pairs import mcnemar_p, sign_flip_p


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
