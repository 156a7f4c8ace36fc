"""Values of topics as slices: numbers and their bins, texts, what is missing, and their order."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from ragauge.contract.errors import ConfigError
from ragauge.estimate.slicing import NOT_KNOWN, SliceBy, in_order, slice_labels, slicings


def counts(values: list[object] | np.ndarray, bins: int | tuple[float, ...] | None = None) -> dict[str, int]:
    labels = slice_labels(pd.Series(values), SliceBy("x", bins))
    assert len(labels) == len(values)
    assert labels.notna().all()
    return {label: int((labels == label).sum()) for label in in_order(labels)}


def test_texts_are_their_own_slices_and_what_is_missing_is_one() -> None:
    found = counts(["b", "a", None, "  ", "a", float("nan")])
    assert found == {"a": 2, "b": 1, NOT_KNOWN: 3}
    assert list(found) == ["a", "b", NOT_KNOWN]


def test_white_space_of_a_text_is_folded_and_nothing_else() -> None:
    nasty = 'a,"b"\n<script>|*x*'
    assert list(counts([nasty, "c"])) == ['a,"b" <script>|*x*', "c"]


def test_six_numbers_are_slices_and_seven_are_binned() -> None:
    assert counts([10, 2, 1, 2, None]) == {"1": 1, "2": 2, "10": 1, NOT_KNOWN: 1}
    assert counts(list(range(6))) == {str(i): 1 for i in range(6)}
    assert counts(list(range(8))) == {"under 2": 2, "2 to 4": 2, "4 to 6": 2, "6 and more": 2}


def test_own_edges_belong_to_the_bin_above() -> None:
    assert counts([1, 9.5, 10, 99, 100, 5000], (10.0, 100.0)) == {
        "under 10": 2, "10 to 100": 2, "100 and more": 2,
    }  # fmt: skip


def test_equal_values_leave_no_bin_empty() -> None:
    assert counts([0] * 90 + list(range(1, 11))) == {"under 1": 90, "1 and more": 10}
    assert counts([5.0] * 20, 3) == {"5": 20}


def test_edges_are_rounded_as_far_as_hardly_a_topic_changes_its_bin() -> None:
    values = np.random.default_rng(0).lognormal(3, 2, 1000)
    found = counts(values, 4)
    assert max(len(label) for label in found) <= len("under 0.0000")
    assert all(abs(n - 250) <= 15 for n in found.values())
    close = 1e6 + np.arange(20) / 1000  # two digits would put all of them into one bin
    assert list(counts(close, 2).values()) == [10, 10]


def test_numbers_that_a_file_spells_as_texts_are_numbers() -> None:
    assert counts([str(i) for i in range(8)]) == counts(list(range(8)))
    assert list(counts(["2", "10", "1"])) == ["1", "2", "10"]
    assert counts(["007", "7"]) == {"7": 1, "007": 1}
    assert counts(["1e400"] * 2) == {"1e400": 2}


def test_true_and_false_are_no_numbers() -> None:
    assert counts([True, False, None]) == {"false": 1, "true": 1, NOT_KNOWN: 1}


def test_bins_of_a_text_and_slices_without_end_are_refused_by_name() -> None:
    with pytest.raises(ConfigError, match=r"^slices: 'x' has the value 'bridge': bins are for numbers alone$"):
        slice_labels(pd.Series(["1", "bridge"]), SliceBy("x", 3))
    ids = pd.Series([f"topic {i}" for i in range(10_000)])
    with pytest.raises(ConfigError, match=r"^slices: 'x' has 10,000 slices, and allowed are 200: choose"):
        slice_labels(ids, SliceBy("x"))


def test_bins_are_in_the_order_of_their_numbers() -> None:
    labels = ["unanswerable", "9 and more", "not known", "under -2", "2wiki", "-2 to 9"]
    assert in_order(labels) == ["under -2", "-2 to 9", "9 and more", "2wiki", "unanswerable", "not known"]


def test_a_slicing_that_some_rows_lack_does_not_count() -> None:
    frame = pd.DataFrame({"qid": ["a", "b"], "slice:type": ["x", "y"], "slice:hops": ["1", None]})
    assert slicings(frame) == ["type"]
    assert slicings(frame.iloc[:0]) == []
