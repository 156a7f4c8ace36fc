"""Means that people's evidence corrects: by hand, against plain PPI, and with topics of no evidence."""

from __future__ import annotations

import numpy as np
import pytest

from ragauge.contract.errors import DataError
from ragauge.plugins.annotate.corrected import corrected_mean


def sample(n: int, labelled: int, noise: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    people = rng.random(n)
    return people, np.clip(people + noise * rng.normal(size=n), 0, 1), rng.permutation(n) < labelled


def test_scores_that_are_too_low_everywhere_are_raised() -> None:
    people, _, labelled = sample(400, 100, 0)
    found = corrected_mean(np.where(labelled, people, np.nan), 0.5 * people, labelled)
    assert found.mean.value == pytest.approx(people.mean(), abs=0.02)
    assert found.lam == pytest.approx(1)  # 2, but for the limit


def test_too_few_labels_are_refused() -> None:
    one = np.array([True, False, False])
    with pytest.raises(DataError, match="1 topics have evidence by people; a corrected mean takes at least 2"):
        corrected_mean(np.ones(3), np.ones(3), one)
    with pytest.raises(DataError, match="people found no evidence for any of the labelled topics"):
        corrected_mean(np.full(3, np.nan), np.ones(3), np.ones(3, dtype=bool))


def test_scores_by_people_that_are_all_alike_leave_the_others_room() -> None:
    made, labelled = np.random.default_rng(0).random(50), np.arange(50) < 6
    found = corrected_mean(np.where(labelled, 1.0, np.nan), made, labelled).mean
    # A quarter of a topic at both ends: of 6 topics, by t of 5 degrees of freedom, as many yes-or-no ones tell as much.
    n = [p * (1 - p) / (0.25 * (p**2 + (1 - p) ** 2) / 36) * (1.95996 / 2.57058) ** 2 for p in (6.25 / 6.5, 0.5)]
    assert (found.value, found.hi, found.n) == (1, 1, 6)
    assert found.lo == pytest.approx(n[0] / (n[0] + 1.95996**2), abs=1e-4)  # Wilson's at a share of 1
    apart = corrected_mean(np.where(labelled, 0.0, np.nan), made - 0.5, labelled, least=-1.0).mean
    assert (apart.value, apart.hi) == (0, pytest.approx(-apart.lo))
    assert apart.hi == pytest.approx(1.95996 / np.sqrt(n[1] + 1.95996**2), abs=1e-4)  # and at a half, for -1 to 1
