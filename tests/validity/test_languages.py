"""Questions that stray from the language of their document are rejected, and others stay."""

from __future__ import annotations

import numpy as np
import pytest

from simulations.languages import TEXTS, XQUAD, recognised, rejected

pytestmark = pytest.mark.slow


def test_strays_are_rejected_and_others_stay() -> None:
    strays, own = np.mean(list(rejected(XQUAD, 100, seed=0).values()), axis=0)
    assert strays >= 0.95
    assert own <= 0.02


def test_a_short_question_is_hardly_taken_for_another_language() -> None:
    found = recognised(40, seed=0)
    assert set(found) == set(TEXTS)
    assert max(wrong for _, wrong in found.values()) <= 0.02
