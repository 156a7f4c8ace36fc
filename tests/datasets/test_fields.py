"""The value under a key of a row."""

from __future__ import annotations

import pytest

from ragauge.datasets._fields import BadRow, optional_string, short


def test_a_string_that_may_be_absent_is_none_where_it_is_null_or_blank() -> None:
    rows = ({}, {"key": None}, {"key": " "}, {"key": " a b "})
    assert [optional_string(row, "key") for row in rows] == [None, None, None, "a b"]
    with pytest.raises(BadRow, match="key"):
        optional_string({"key": 3}, "key")


def test_a_value_is_shown_whole_up_to_eighty_characters() -> None:
    assert short("x" * 78) == f"'{'x' * 78}'"
    assert short("x" * 79) == f"'{'x' * 76}..."
