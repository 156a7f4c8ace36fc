"""Means that people's evidence corrects: by hand, against plain PPI, and with topics of no evidence."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import t

from ragauge.contract.errors import DataError
from ragauge.plugins.annotate.corrected import corrected_mean
from ragauge.plugins.annotate.finding import corrected_of


def sample(n: int, labelled: int, noise: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    people = rng.random(n)
    return people, np.clip(people + noise * rng.normal(size=n), 0, 1), rng.permutation(n) < labelled


def test_with_labels_on_all_topics_it_is_their_mean_with_its_t_interval() -> None:
    people, made, _ = sample(40, 40, 0.3)
    found = corrected_mean(people, made, np.ones(40, dtype=bool))
    assert found.mean.value == pytest.approx(people.mean())
    reach = t.isf(0.025, 39) * people.std(ddof=1) / np.sqrt(40)
    assert found.mean.hi - found.mean.value == pytest.approx(reach)


def test_where_all_topics_have_evidence_it_is_ppi_of_the_scores() -> None:
    people, made, labelled = sample(200, 50, 0.1)
    found = corrected_mean(np.where(labelled, people, np.nan), made, labelled)
    y, f, others = people[labelled], made[labelled], made[~labelled]
    assert found.mean.value == pytest.approx(y.mean() + found.lam * (others.mean() - f.mean()), abs=2e-3)
    variance = (y - found.lam * f).var(ddof=1) / 50 + found.lam**2 * others.var(ddof=1) / 150
    reach = found.mean.hi - found.mean.value
    assert reach == pytest.approx(t.isf(0.025, 49) * np.sqrt(variance), rel=0.03)
    assert reach < 0.8 * t.isf(0.025, 49) * y.std(ddof=1) / np.sqrt(50)  # the made scores are worth labels


def test_scores_that_are_too_low_everywhere_are_raised() -> None:
    people, _, labelled = sample(400, 100, 0)
    found = corrected_mean(np.where(labelled, people, np.nan), 0.5 * people, labelled)
    assert found.mean.value == pytest.approx(people.mean(), abs=0.02)
    assert found.lam == pytest.approx(1)  # 2, but for the limit


def test_topics_without_evidence_by_people_or_evaluator_are_no_zeros() -> None:
    people = np.array([1.0, 1.0, np.nan, 0.5, 1.0, np.nan])
    made = np.array([1.0, np.nan, 0.0, 0.5, 1.0, 0.0])
    found = corrected_mean(people, made, np.ones(6, dtype=bool))
    assert found.mean.value == pytest.approx(3.5 / 4)
    assert found.people_only == pytest.approx(3.5 / 4)


def test_evidence_that_the_dataset_gave_counts_as_labelled() -> None:
    rows = pd.DataFrame(
        {
            "qid": list("abcdef"), "ir_score": [1.0, 0.5, 0.2, 0.4, 0.6, 0.8],
            "evidence_by": ["dataset"] * 2 + ["evaluator"] * 4, "unanswerable": [False] * 6,
        }
    )  # fmt: skip
    found = corrected_of(rows, dict.fromkeys("cdef", 0.5))
    assert found.mean.value == pytest.approx((1.5 + 4 * 0.5) / 6)
    assert found.mean.n == 6


def test_too_few_labels_are_refused() -> None:
    one = np.array([True, False, False])
    with pytest.raises(DataError, match="1 topics have evidence by people; a corrected mean takes at least 2"):
        corrected_mean(np.ones(3), np.ones(3), one)
    with pytest.raises(DataError, match="people found no evidence for any of the labelled topics"):
        corrected_mean(np.full(3, np.nan), np.ones(3), np.ones(3, dtype=bool))


def test_scores_by_people_that_are_all_alike_leave_the_others_room() -> None:
    made, labelled = np.random.default_rng(0).random(50), np.arange(50) < 6
    found = corrected_mean(np.where(labelled, 1.0, np.nan), made, labelled).mean
    # Wilson's lower limit at a share of 1 is n / (n + z^2), n being 1.5 / .5 * 6 * 6.5 / 6.25 = 3.12 topics by t of 5.
    assert (found.value, found.hi) == (1, 1)
    assert 0.4 < found.lo < 0.6
    apart = corrected_mean(np.where(labelled, 0.0, np.nan), made - 0.5, labelled, least=-1.0).mean
    assert apart.value == 0
    assert -0.8 < apart.lo < -0.2
    assert apart.hi == pytest.approx(-apart.lo)
