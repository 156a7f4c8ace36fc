"""Config values are checked in one form."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ragauge.contract import checks
from ragauge.contract.errors import ConfigError


@pytest.mark.parametrize(
    ("check", "value", "more", "says"),
    [
        (checks.require_count, 0, {}, "g.k=0: allowed are integers from 1"),
        (checks.require_count, True, {"least": 0}, "g.k=True: allowed are integers from 0"),
        (checks.require_count, 1.0, {"note": "tokens"}, "g.k=1.0: allowed are integers from 1 (tokens)"),
        (checks.require_count, 9, {"most": 8}, "g.k=9: allowed are integers from 1 to 8"),
        (checks.require_count, None, {}, "g.k=None: allowed are integers from 1"),
        (checks.require_count, "2", {"null": "all"}, "g.k='2': allowed are integers from 1, and null (all)"),
        (checks.require_number, float("nan"), {"low": 0}, "g.k=nan: allowed are numbers from 0"),
        (checks.require_number, float("inf"), {"low": 0}, "g.k=inf: allowed are numbers from 0"),
        (checks.require_number, False, {"low": 0, "high": 1}, "g.k=False: allowed are numbers from 0 to 1"),
        (checks.require_number, 0, {"low": 0, "above": True}, "g.k=0: allowed are numbers above 0"),
        (checks.require_number, "x", {"low": 0, "null": ""}, "g.k='x': allowed are numbers from 0, and null"),
        (checks.require_choice, "c", {"choices": ("a", "b")}, "g.k='c': allowed are a, b"),
        (checks.require_choice, ["a"], {"choices": ("a",), "note": "here"}, "g.k=['a']: allowed are a here"),
        (checks.require_text, " ", {"what": "names"}, "g.k=' ': allowed are names"),
        (checks.require_text, None, {"what": "names"}, "g.k=None: allowed are names"),
    ],
)
def test_a_refusal_names_key_value_and_what_is_allowed(
    check: Callable[..., None], value: object, more: dict[str, Any], says: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        check("g.k", value, **more)
    assert str(caught.value) == says


def test_what_is_allowed_passes() -> None:
    checks.require_count("k", 1)
    checks.require_count("k", 8, most=8)
    checks.require_count("k", None, null="all")
    checks.require_number("k", 0, 0, 1)
    checks.require_number("k", 1.0, 0, 1, above=True)
    checks.require_number("k", None, 0, null="")
    checks.require_choice("k", "a", ("a", "b"))
    checks.require_text("k", "a name", "names")
